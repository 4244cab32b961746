// SPDX-License-Identifier: Apache-2.0
//! The way of one packet: from the driver, or a module that made it, through containers and to the driver.

mod buffering;
pub(crate) mod returned;
mod traced;

use std::net::IpAddr;

use ipnet::IpNet;
use netserv_dataplane::{DriverError, Final, Packet, PacketId};
use netserv_model::effect::ModuleSlot;
use netserv_model::verdict::FailureMode;
use netserv_model::{DropReason, Flow, Verdict};
use netserv_wire::container::ring::{Answer, Ingress};
use netserv_wire::ip::IpView;

use crate::PacketLoop;
use crate::in_flight::{Held, Journey, Stop, length_of};
use crate::limits::HELD_PER_FREE_MAX;
use crate::workers::{WorkerSlot, Workers};

impl PacketLoop {
    /// Takes a packet from the driver and sends it to the first container on its way.
    pub(crate) fn admit(&mut self, packet: &Packet<'_>) {
        self.tally.received();
        let Ok(view) = IpView::parse(packet.bytes) else {
            self.tally.unparsed();
            self.trace_unwanted(packet, None);
            return self.driver.finish(packet.id, Final::Pass);
        };
        let flow = view.flow();
        let interface = packet.interface.0;
        self.find_stops(&flow, interface, None);
        let Some(at) = self.stops.first().copied() else {
            self.tally.unmatched();
            self.trace_unwanted(packet, Some(&flow));
            return self.driver.finish(packet.id, Final::Pass);
        };
        let journey = (self.stops.len() > 1)
            .then(|| Box::new(Journey::new(self.stops.clone(), self.buffered.changes(), packet.bytes)));
        let trace = self.begin_trace(packet, &flow);
        let length = length_of(packet.bytes);
        self.enter(Held { packet: packet.id, length, flow, interface, at, journey, trace }, packet.bytes);
    }

    /// Finds the workers that want to see packets of a flow, in the order in which they were first wanted. A user's
    /// workers keep the order of their flavours, though, and none of a user sees what that user's modules made (`maker`).
    pub(crate) fn find_stops(&mut self, flow: &Flow, interface: u32, maker: Option<WorkerSlot>) {
        self.filters.matching(flow, &mut self.found);
        if let Some(maker) = maker {
            self.found.retain(|(_, stop)| !self.workers.are_of_one_user(stop.worker, maker));
        }
        self.stops.clear();
        for (_, stop) in &self.found {
            if stop.wait.is_some_and(|wait| self.buffered.lets_by(wait, flow, interface)) {
                continue;
            }
            match self.stops.iter_mut().find(|known| known.worker == stop.worker) {
                Some(known) => {
                    known.modules |= stop.modules;
                    known.closed |= stop.closed;
                    known.wait = self.buffered.longer(known.wait, stop.wait);
                }
                None => join(&self.workers, &mut self.stops, *stop),
            }
        }
    }

    /// Puts a packet into the ring of the container that it is at, or of the next one that takes it, or ends its way.
    /// `received` are the bytes of a packet without a [`Journey`].
    pub(crate) fn enter(&mut self, mut held: Held, received: &[u8]) {
        loop {
            if self.must_wait(&held.at) {
                return self.buffer(held, received);
            }
            let Err((back, reason)) = self.show(held, received) else { return };
            held = back;
            self.tally.unseen(reason);
            self.note_failure(&mut held, reason);
            if held.at.on_failure() == FailureMode::Closed {
                return self.drop(&held, reason);
            }
            if !held.step() {
                return self.pass(&held, held.changed());
            }
        }
    }

    /// Puts a packet into the ring of the container that it is at; gives it back with why not.
    #[expect(
        clippy::result_large_err,
        reason = "a packet that does not get in is moved back, and nothing is allocated for it"
    )]
    pub(crate) fn show(&mut self, mut held: Held, received: &[u8]) -> Result<(), (Held, DropReason)> {
        let bytes = held.journey.as_deref().map_or(received, |journey| &journey.bytes);
        match self.offer(&mut held.at, held.interface, bytes) {
            Ok(()) => {
                self.tally.shown();
                self.note_entered(&mut held);
                self.pending.insert(held);
                Ok(())
            }
            Err(reason) => Err((held, reason)),
        }
    }

    fn offer(&mut self, at: &mut Stop, interface: u32, bytes: &[u8]) -> Result<(), DropReason> {
        // The module that it waited for has no bit.
        if at.wait.is_some() && (at.modules == 0 || at.closed & !at.modules != 0) {
            return Err(DropReason::Frozen);
        }
        let free = self.room.saturating_sub(self.pending.len() + self.buffered.len());
        let end = self.workers.end(at.worker).filter(|end| !end.broken).ok_or(DropReason::ContainerGone)?;
        let missing = at.modules & !end.loaded;
        // A module that is down and fails open must not keep the others from seeing the packet.
        if missing & at.closed != 0 || missing == at.modules {
            return Err(DropReason::Trapped);
        }
        at.modules &= end.loaded;
        if end.ring.outstanding() >= free * HELD_PER_FREE_MAX {
            return Err(DropReason::RingFull);
        }
        let ingress = Ingress { interface, timestamp_ns: self.now_ns };
        end.offer(self.now, bytes, ingress, at.modules, self.pending.next_cookie())?;
        end.meters.shown(at.modules, bytes.len());
        if !end.staged {
            end.staged = true;
            self.staged.push(at.worker);
        }
        Ok(())
    }

    pub(crate) fn pass(&mut self, held: &Held, changed: Option<&[u8]>) {
        let verdict = changed.map_or(Final::Pass, Final::Replace);
        match held.maker() {
            None => {
                self.tally.finished(if changed.is_some() { Verdict::Modified } else { Verdict::Pass });
                self.tell_trace(held, verdict, None);
                self.driver.finish(held.packet, verdict);
            }
            Some(_) => {
                let bytes = changed.or(held.journey.as_deref().map(|journey| journey.bytes.as_slice()));
                match self.send_made(bytes.unwrap_or_default()) {
                    Ok(()) => self.tell_trace(held, verdict, None),
                    Err(reason) => self.drop(held, reason),
                }
            }
        }
    }

    pub(crate) fn drop(&mut self, held: &Held, reason: DropReason) {
        self.tell_trace(held, Final::Drop, Some(reason));
        match held.maker() {
            None => {
                self.tally.dropped(reason);
                self.driver.finish(held.packet, Final::Drop);
            }
            Some(_) => self.tally.refused(reason),
        }
    }

    /// Carries out a container's answer for a packet.
    pub(crate) fn settle(&mut self, prefixes: &[IpNet], cookie: u64, said: (Answer, Option<ModuleSlot>), bytes: &[u8]) {
        let Some(mut held) = self.pending.remove(cookie) else { return };
        let (answer, module) = said;
        self.note_answer(&mut held, answer, module);
        match answer {
            Answer::Pass => self.go_on(held),
            Answer::Drop => self.drop(&held, DropReason::Module),
            Answer::Failed => self.fail(held, DropReason::Trapped),
            Answer::Modified => match judge(bytes, Some(&held.flow), prefixes) {
                Err(reason) => self.drop(&held, reason),
                Ok(_) if !self.may_lengthen(&held, bytes) => self.drop(&held, DropReason::TooMany),
                Ok(flow) => self.go_on_changed(held, flow, bytes),
            },
        }
    }

    /// Takes what a container added to a packet's length from what its user's modules may send.
    fn may_lengthen(&self, held: &Held, bytes: &[u8]) -> bool {
        self.workers.may_add(held.at.worker, length_of(bytes).saturating_sub(held.length), self.now)
    }

    fn go_on(&mut self, mut held: Held) {
        if held.is_outdated(self.buffered.changes()) {
            self.match_again(&mut held);
        }
        if held.step() { self.enter(held, &[]) } else { self.pass(&held, held.changed()) }
    }

    fn go_on_changed(&mut self, mut held: Held, flow: Flow, bytes: &[u8]) {
        if flow != held.flow {
            held.flow = flow;
            self.match_again(&mut held);
        }
        if held.change(bytes) { self.go_on(held) } else { self.pass(&held, Some(bytes)) }
    }

    /// Finds the rest of the way of a packet whose addresses or ports have changed. No worker sees a packet twice, so it is
    /// matched at most once for each worker that wants it.
    fn match_again(&mut self, held: &mut Held) {
        self.find_stops(&held.flow, held.interface, held.maker());
        self.stops.retain(|stop| !held.was_at(stop.worker));
        held.divert(&self.stops, self.buffered.changes());
        self.note_matched_again(held);
    }

    /// Gives a packet that its container did not judge its failure verdict.
    pub(crate) fn fail(&mut self, mut held: Held, reason: DropReason) {
        self.tally.unseen(reason);
        self.note_failure(&mut held, reason);
        match held.at.on_failure() {
            FailureMode::Open => self.go_on(held),
            FailureMode::Closed => self.drop(&held, reason),
        }
    }

    /// Sends a packet that a module made, if it may be sent, by way of the other users' modules that want it. These do not
    /// know it from others: what they make of it is bounded by what their users may send, and no worker sees it twice.
    pub(crate) fn inject(
        &mut self,
        (maker, module): (WorkerSlot, Option<ModuleSlot>),
        prefixes: &[IpNet],
        bytes: &[u8],
    ) -> Result<(), DropReason> {
        let may = self.workers.may_make_packet(maker, bytes.len(), self.now);
        // A packet that a module makes has no ends of its own: only the user's prefixes count.
        let judged = if may { judge(bytes, None, prefixes) } else { Err(DropReason::TooMany) };
        if let Ok(flow) = judged {
            self.find_stops(&flow, NO_INTERFACE, Some(maker));
            if let Some(at) = self.stops.first().copied() {
                let journey = Journey::of_made(maker, self.stops.clone(), self.buffered.changes(), bytes);
                let (journey, trace) = (Some(Box::new(journey)), self.begin_made(maker, module, &flow, bytes));
                let (packet, length) = (PacketId(0), length_of(bytes));
                self.enter(Held { packet, length, flow, interface: NO_INTERFACE, at, journey, trace }, &[]);
                return Ok(());
            }
        }
        let sent = judged.and_then(|_| self.send_made(bytes));
        if let Err(reason) = sent {
            self.tally.refused(reason);
        }
        self.trace_made(maker, module, bytes, sent);
        sent
    }

    fn send_made(&mut self, bytes: &[u8]) -> Result<(), DropReason> {
        self.driver.inject(bytes).map_err(|error| reason_of(&error))?;
        self.tally.injected();
        Ok(())
    }
}

/// The interface by which packets come in that modules make.
const NO_INTERFACE: u32 = 0;

/// Adds a stop to others: at their end, or right before the stop of the same user's next flavour.
fn join(workers: &Workers, stops: &mut Vec<Stop>, stop: Stop) {
    let next = workers.next_of_user(stop.worker);
    let at = next.and_then(|next| stops.iter().position(|one| one.worker == next));
    stops.insert(at.unwrap_or(stops.len()), stop);
}

/// Returns the flow of a packet that a module changed or made, if the packet may be sent.
///
/// `before` is what it was. A source that is not the user's may stay only on a packet that goes where it went, or to
/// the user: sent to anybody else, it would be a packet in another's name.
fn judge(bytes: &[u8], before: Option<&Flow>, prefixes: &[IpNet]) -> Result<Flow, DropReason> {
    let view = IpView::parse(bytes).map_err(|_| DropReason::BadVerdict)?;
    if view.bytes().len() != bytes.len() {
        // The driver would not send it.
        return Err(DropReason::BadVerdict);
    }
    if view.names_other_addresses() {
        return Err(DropReason::RouteRefused);
    }
    let flow = view.flow();
    let own = |address: IpAddr| prefixes.iter().any(|prefix| prefix.contains(&address));
    let stays = |before: &Flow| before.destination == flow.destination || own(flow.destination);
    let kept = before.is_some_and(|before| before.source == flow.source && stays(before));
    if kept || own(flow.source) { Ok(flow) } else { Err(DropReason::SourceRefused) }
}

fn reason_of(error: &DriverError) -> DropReason {
    if matches!(error, DriverError::NoMachine(_)) { DropReason::DestinationRefused } else { DropReason::SendFailed }
}
