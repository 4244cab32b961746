// SPDX-License-Identifier: Apache-2.0
//! The modules of a container in turn: each sees what the ones before it left.
//!
//! A module that is parallel has an instance for each lane, and packets of a lane are shown to that lane's. The chain can be
//! split by lanes then, to be run on a thread for each.

use netserv_model::effect::ModuleSlot;
use netserv_model::limits::BATCH_PACKETS_MAX;
use netserv_model::{Instant, Refusal, Verdict};
use netserv_wire::container::ring::{Answer, Ingress};

use super::host::Host;
use super::instance::{Instance, Left};

/// A batch of at most [`BATCH_PACKETS_MAX`] packets, wherever they lie.
pub trait PacketBatch {
    /// Returns the number of packets.
    fn len(&self) -> usize;
    /// Returns whether there is no packet.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Returns a packet's length.
    fn length(&self, index: usize) -> usize;
    /// Returns the bit mask of the modules that see a packet.
    fn modules(&self, index: usize) -> u64;
    /// Returns where and when a packet came in.
    fn ingress(&self, index: usize) -> Ingress;
    /// Copies a packet to `into`, which has its length.
    fn read(&self, index: usize, into: &mut [u8]);
    /// Puts `packet` in a packet's place.
    fn write(&mut self, index: usize, packet: &[u8]);
    /// Returns the slot of the ring that a packet lies in; asked only of batches from a ring.
    fn slot(&self, index: usize) -> usize;
    /// Takes a packet's new length, which a module changed where it lies.
    fn resize(&mut self, index: usize, length: usize);
}

/// What a chain needs of its surroundings while modules run.
pub trait Surroundings {
    /// Says that a module runs from here on.
    fn enter(&mut self, slot: ModuleSlot);
    /// Says that no module runs.
    fn leave(&mut self);
    /// Takes a packet that a module made. Returns whether there was room for it.
    fn inject(&mut self, slot: ModuleSlot, packet: &[u8]) -> bool;
    /// Is told of a module that failed and is gone, with what is left of its instances, the one that failed first.
    fn failed(&mut self, slot: ModuleSlot, refusal: Refusal, rest: Vec<Host>);
}

/// What becomes of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The answer.
    pub answer: Answer,
    /// The module that dropped, changed or failed on it.
    pub module: Option<ModuleSlot>,
}

impl Outcome {
    /// Lets a later module have its say. A packet that a module failed on stays so unless a later one drops it, so that
    /// a module that fails open opens no way around the ones behind it.
    fn then(&mut self, later: Outcome) {
        if self.answer != Answer::Failed || later.answer == Answer::Drop {
            *self = later;
        }
    }
}

/// The loaded modules, in the order of loading unless another is asked for.
#[derive(Default)]
pub struct Chain {
    links: Vec<Link>,
    /// The lane whose packets are shown.
    lane: usize,
    chosen: Vec<usize>,
    left: Vec<Left>,
}

struct Link {
    slot: ModuleSlot,
    /// By lane, or one for all lanes.
    instances: Vec<Instance>,
}

impl Chain {
    /// Puts a module at the end of the chain, or in the place of the one in the same slot, which is returned. It has one
    /// instance, or one for each lane.
    ///
    /// # Panics
    /// If there is no instance.
    pub fn insert(&mut self, slot: ModuleSlot, instances: Vec<Instance>) -> Option<Vec<Instance>> {
        assert!(!instances.is_empty(), "a module has an instance");
        let link = Link { slot, instances };
        match self.links.iter_mut().find(|link| link.slot == slot) {
            Some(old) => Some(std::mem::replace(old, link).instances),
            None => {
                self.links.push(link);
                None
            }
        }
    }

    /// Takes a module out of the chain.
    pub fn remove(&mut self, slot: ModuleSlot) -> Option<Vec<Instance>> {
        let place = self.links.iter().position(|link| link.slot == slot)?;
        Some(self.links.remove(place).instances)
    }

    /// Puts the modules into an order; those that it does not name come after the others, in the order that they have.
    pub fn sort(&mut self, order: &[ModuleSlot]) {
        self.links.sort_by_key(|link| order.iter().position(|slot| *slot == link.slot).unwrap_or(usize::MAX));
    }

    /// Returns the number of modules.
    pub fn len(&self) -> usize {
        self.links.len()
    }

    /// Returns whether there is no module.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// Returns the modules in turn with their instances, by lane.
    pub fn iter(&self) -> impl Iterator<Item = (ModuleSlot, &[Instance])> {
        self.links.iter().map(|link| (link.slot, &*link.instances))
    }

    /// Returns the modules in turn with their instances, by lane.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (ModuleSlot, &mut [Instance])> {
        self.links.iter_mut().map(|link| (link.slot, &mut *link.instances))
    }

    /// Has the packets be of a lane from here on.
    #[inline]
    pub fn turn_to(&mut self, lane: usize) {
        self.lane = lane;
    }

    /// Returns whether there are modules, and each of them has an instance for each of so many lanes, which are several.
    pub fn is_parallel(&self, lanes: usize) -> bool {
        lanes > 1 && !self.links.is_empty() && self.links.iter().all(|link| link.instances.len() == lanes)
    }

    /// Takes the instances of all lanes but the first out of a chain that is parallel, a chain for each lane.
    pub fn split(&mut self, lanes: usize) -> Vec<Chain> {
        debug_assert!(self.is_parallel(lanes));
        let mut chains: Vec<Chain> = (1..lanes).map(|_| Chain::default()).collect();
        for Link { slot, instances } in &mut self.links {
            for (chain, instance) in chains.iter_mut().zip(instances.drain(1..)) {
                chain.links.push(Link { slot: *slot, instances: vec![instance] });
            }
        }
        chains
    }

    /// Puts the chains of a split together again. Returns what is left of modules that failed in some lane, and are gone from
    /// all of them.
    pub fn join(&mut self, chains: Vec<Chain>) -> Vec<(ModuleSlot, Vec<Host>)> {
        let lanes = 1 + chains.len();
        let mut orphans = Vec::new();
        for link in chains.into_iter().flat_map(|chain| chain.links) {
            match self.links.iter_mut().find(|own| own.slot == link.slot) {
                Some(own) => own.instances.extend(link.instances),
                None => orphans.push(link),
            }
        }
        orphans.extend(self.links.extract_if(.., |link| link.instances.len() < lanes));
        orphans.into_iter().map(|link| (link.slot, hosts(link.instances))).collect()
    }

    /// Shows a batch to the modules in turn. `outcomes` gets one entry per packet.
    ///
    /// Slots are mapped into a module only while it is alone: a module behind it would see what it wrote over packets
    /// that it passes.
    pub fn process<B: PacketBatch + Surroundings>(&mut self, batch: &mut B, outcomes: &mut Vec<Outcome>) {
        debug_assert!(batch.len() <= BATCH_PACKETS_MAX);
        debug_assert!(self.links.len() <= 1 || self.iter().all(|(_, all)| all.iter().all(|one| !one.is_mapped())));
        outcomes.clear();
        let loaded = self.links.iter().fold(0, |mask, link| mask | bit(link.slot));
        outcomes.extend((0..batch.len()).map(|index| unseen(batch.modules(index) & !loaded)));
        let mut at = 0;
        while let Some(link) = self.links.get_mut(at) {
            let mask = bit(link.slot);
            self.chosen.clear();
            self.chosen.extend(
                (0..batch.len())
                    .filter(|index| batch.modules(*index) & mask != 0 && outcomes[*index].answer != Answer::Drop),
            );
            if self.chosen.is_empty() {
                at += 1;
                continue;
            }
            match link.run(self.lane, batch, &self.chosen, &mut self.left) {
                Ok(()) => {
                    link.apply(self.lane, batch, &self.chosen, &self.left, outcomes);
                    at += 1;
                }
                Err(refusal) => {
                    let slot = link.slot;
                    for index in &self.chosen {
                        outcomes[*index].then(Outcome { answer: Answer::Failed, module: Some(slot) });
                    }
                    let failed = link.place(self.lane);
                    self.fail(at, failed, refusal, batch);
                }
            }
        }
    }

    /// Takes out a module of which an instance failed.
    fn fail(&mut self, at: usize, instance: usize, refusal: Refusal, around: &mut impl Surroundings) {
        let Link { slot, mut instances } = self.links.remove(at);
        instances.swap(0, instance);
        around.failed(slot, refusal, hosts(instances));
    }

    /// Calls every timer that is due, each once at most.
    pub fn handle_timeout(&mut self, now: Instant, around: &mut impl Surroundings) {
        let mut at = 0;
        while let Some(link) = self.links.get_mut(at) {
            match link.handle_timeout(now, around) {
                Ok(()) => at += 1,
                Err((instance, refusal)) => self.fail(at, instance, refusal, around),
            }
        }
    }

    /// Tells every module of control messages, and of messages that came for it from its server part; of several instances,
    /// the first.
    pub fn handle_messages(&mut self, around: &mut impl Surroundings) {
        let mut at = 0;
        while let Some(link) = self.links.get_mut(at) {
            let instance = &mut link.instances[0];
            let (told, sent) = (instance.host().control.take_news(), instance.host().messages.take_news());
            if !told && !sent {
                at += 1;
                continue;
            }
            around.enter(link.slot);
            let handled = if told { instance.handle_control() } else { Ok(()) };
            let result = handled.and_then(|()| if sent { instance.handle_message() } else { Ok(()) });
            around.leave();
            match result {
                Ok(()) => {
                    inject_all(link.slot, instance, around);
                    at += 1;
                }
                Err(refusal) => self.fail(at, 0, refusal, around),
            }
        }
    }

    /// Returns when the next timer of any module is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let instances = self.links.iter().flat_map(|link| &link.instances);
        instances.filter_map(|instance| instance.host().timers.poll_timeout()).min()
    }
}

impl Link {
    /// Returns the place of the instance that sees the packets of a lane.
    fn place(&self, lane: usize) -> usize {
        lane.min(self.instances.len() - 1)
    }

    fn run<B: PacketBatch + Surroundings>(
        &mut self,
        lane: usize,
        batch: &mut B,
        chosen: &[usize],
        left: &mut Vec<Left>,
    ) -> Result<(), Refusal> {
        let place = self.place(lane);
        let instance = &mut self.instances[place];
        if instance.is_mapped() {
            let packet = |index: &usize| (batch.slot(*index), batch.length(*index), batch.ingress(*index));
            instance.point(chosen.iter().map(packet));
        } else {
            for (place, index) in chosen.iter().enumerate() {
                batch.read(*index, instance.place(place, batch.length(*index), batch.ingress(*index)));
            }
        }
        batch.enter(self.slot);
        let result = instance.process(chosen.len(), left);
        batch.leave();
        if result.is_ok() {
            inject_all(self.slot, instance, batch);
        }
        result
    }

    fn apply<B: PacketBatch>(
        &self,
        lane: usize,
        batch: &mut B,
        chosen: &[usize],
        left: &[Left],
        outcomes: &mut [Outcome],
    ) {
        let instance = &self.instances[self.place(lane)];
        let mapped = instance.is_mapped();
        for (place, (index, left)) in chosen.iter().zip(left).enumerate() {
            let answer = match left.verdict {
                Verdict::Pass => continue,
                Verdict::Drop => Answer::Drop,
                Verdict::Modified if mapped => {
                    batch.resize(*index, left.length);
                    Answer::Modified
                }
                Verdict::Modified => {
                    batch.write(*index, instance.packet(place, left.length));
                    Answer::Modified
                }
            };
            outcomes[*index].then(Outcome { answer, module: Some(self.slot) });
        }
    }

    /// Calls the timers of all instances. If one fails, tells which.
    fn handle_timeout(&mut self, now: Instant, around: &mut impl Surroundings) -> Result<(), (usize, Refusal)> {
        for (place, instance) in self.instances.iter_mut().enumerate() {
            // A timer that the module sets anew while it runs is not due before the next round, so this ends.
            while let Some(id) = instance.host_mut().timers.poll_due(now) {
                around.enter(self.slot);
                let result = instance.handle_timer(id);
                around.leave();
                result.map_err(|refusal| (place, refusal))?;
                inject_all(self.slot, instance, around);
            }
        }
        Ok(())
    }
}

fn hosts(instances: Vec<Instance>) -> Vec<Host> {
    instances.into_iter().map(Instance::into_host).collect()
}

/// Hands the packets that a module made in its last call to the surroundings.
pub fn inject_all(slot: ModuleSlot, instance: &mut Instance, around: &mut impl Surroundings) {
    let host = instance.host_mut();
    if host.injected.is_empty() {
        return;
    }
    let (mut taken, mut lost) = (0, 0);
    host.injected.drain(|packet| if around.inject(slot, packet) { taken += 1 } else { lost += 1 });
    if lost > 0 {
        let text = format!("{lost} injected packets lost: the node has no room for more");
        // A module that writes too much loses this line too.
        let _ = host.log.push(host.clock.instant(), netserv_wire::container::frames::LogLevel::Warn, text.as_bytes());
    }
    instance.counts.injected += taken;
}

fn bit(slot: ModuleSlot) -> u64 {
    1_u64.checked_shl(u32::from(slot.0)).unwrap_or(0)
}

/// Returns the outcome of a packet before any module saw it: one that is not there fails on it.
fn unseen(absent: u64) -> Outcome {
    if absent == 0 {
        return Outcome { answer: Answer::Pass, module: None };
    }
    let slot = u8::try_from(absent.trailing_zeros()).expect("a 64-bit word has 64 bits");
    Outcome { answer: Answer::Failed, module: Some(ModuleSlot(slot)) }
}
