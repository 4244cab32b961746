// SPDX-License-Identifier: Apache-2.0
//! How things move between the engines. This is the only place where they do.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};

use netserv_gist::{ApiCall, Event};
use netserv_model::audit::{Asked, Proven};
use netserv_model::effect::{Command, EffectId, EffectOutcome, Job, Notice, RequestId};
use netserv_model::request::{Ask, Body, NodeReport, Request};
use netserv_nslp::Withdrawal;
use netserv_wire::gist::{Direction, Mri};

use crate::applications::Told;
use crate::input::CallId;
use crate::node::Node;
use crate::output::Output;
use crate::{calls, routes};

impl Node {
    /// Moves one thing from one engine to the next; returns whether there was one.
    pub(crate) fn step(&mut self) -> bool {
        let now = self.now;
        if let Some(call) = self.nslp.poll_api_call() {
            self.call_gist(call);
        } else if let Some(event) = self.gist.poll_event() {
            self.tell(event);
        } else if let Some(transmit) = self.gist.poll_transmit() {
            // Before the commands: the next node is to work on a request while this one does.
            self.outputs.push_back(Output::Send(transmit));
        } else if let Some((query, disposition)) = self.gist.poll_release() {
            let token = self.held.remove(&query);
            self.outputs.extend(token.map(|token| Output::Release(token, disposition)));
        } else if let Some((id, request)) = self.nslp.poll_request() {
            self.take_request(id, request);
        } else if let Some(Withdrawal { user, module, nonce }) = self.nslp.poll_withdrawal() {
            self.controller.withdraw(now, &user, &module, nonce);
        } else if let Some(notify) = self.nslp.poll_notify() {
            self.outputs.push_back(Output::Notice(Notice::Notified(Box::new(notify))));
        } else if let Some(command) = self.controller.poll_command() {
            self.take_command(command);
        } else if let Some((id, result)) = self.nslp.poll_result() {
            let call = self.posted.remove(&id);
            self.outputs.extend(call.map(|call| Output::Reply(call, Box::new(Ok(result)))));
        } else if self.calls.begin(self.next_effect()) {
            self.start(self.next_effect(), Job::Measure);
        } else if self.usage_calls.wants()
            && let Some(reading) = self.controller.read_meters(now)
        {
            self.usage_calls.begin(reading);
        } else {
            return self.stopped();
        }
        true
    }

    /// Gives an event of GIST to the NSLP that it is for.
    fn tell(&mut self, event: Event) {
        match self.applications.tell(event) {
            Told::Own(event) => self.nslp.handle_event(self.now, event),
            Told::Client(client, words) => self.outputs.push_back(Output::Application(client, words)),
            Told::Nobody => {}
        }
    }

    /// Gives a message to GIST with the node's own address toward the next peer, which may have to be asked for.
    fn call_gist(&mut self, call: ApiCall) {
        match mri(&call).map(toward) {
            Some(Some(destination)) => self.look(destination, routes::Waiter::Message(Box::new(call))),
            Some(None) => self.call_from(call, None),
            // Some calls need no address.
            None => self.call_from(call, Some(Ipv4Addr::UNSPECIFIED.into())),
        }
    }

    /// Goes on with something now that the node's own address is known, or that there is no route.
    pub(crate) fn routed(&mut self, waiter: routes::Waiter, local: Option<IpAddr>) {
        match waiter {
            routes::Waiter::Message(call) => self.call_from(*call, local),
            routes::Waiter::Post(call, request) => self.post_from(call, *request, local),
            routes::Waiter::Application(client, line, call) => self.application_from(client, line, *call, local),
        }
    }

    /// Takes the node's own address toward a destination.
    pub(crate) fn route_known(&mut self, effect: EffectId, local: Option<IpAddr>) {
        let again = self.next_effect();
        let (waiters, stale) = self.routes.answered(effect, local, again);
        if let Some(destination) = stale {
            self.start(again, Job::Route(destination));
        }
        for waiter in waiters {
            self.routed(waiter, local);
        }
    }

    /// Takes what was counted, and goes on with those who waited for it.
    pub(crate) fn counted(&mut self, waiters: VecDeque<calls::Waiter>, outcome: EffectOutcome) {
        if let EffectOutcome::Measured(measured) = outcome {
            self.controller.set_load(measured.load);
            self.measured = *measured;
        }
        self.fresh(waiters);
    }

    /// Goes on with those who waited for counts, which are fresh.
    pub(crate) fn fresh(&mut self, waiters: VecDeque<calls::Waiter>) {
        for waiter in waiters {
            match waiter {
                calls::Waiter::Call(call) => self.outputs.push_back(Output::Fresh(call)),
                calls::Waiter::Request(id, request) => self.controller.handle_request(self.now, id, *request),
            }
        }
    }

    fn call_from(&mut self, call: ApiCall, local: Option<IpAddr>) {
        let handle = if let ApiCall::SendMessage { handle, .. } = &call { Some(*handle) } else { None };
        let result = self.call_gist_from(call, local);
        if let Err(error) = result {
            self.counters.calls_refused += 1;
            if let Some(handle) = handle {
                self.nslp.handle_api_error(self.now, handle, error);
            }
        }
    }

    /// Gives a call to GIST; without a route, only what needs none.
    pub(crate) fn call_gist_from(
        &mut self,
        call: ApiCall,
        local: Option<IpAddr>,
    ) -> Result<(), netserv_gist::ApiError> {
        let needs_route = match &call {
            ApiCall::SendMessage { .. } | ApiCall::InvalidateRoutingState { .. } => true,
            ApiCall::AbortMessage { .. }
            | ApiCall::SetStateLifetime { .. }
            | ApiCall::AnswerQuery { .. }
            | ApiCall::SetPeering { .. } => false,
        };
        match local {
            Some(local) => self.gist.handle_api(self.now.instant, call, local),
            None if needs_route => Err(netserv_gist::ApiError::NoRoute),
            None => self.gist.handle_api(self.now.instant, call, Ipv4Addr::UNSPECIFIED.into()),
        }
    }

    /// Gives a request to the controller; one that asks for counters waits until they are fresh.
    fn take_request(&mut self, id: RequestId, request: Request) {
        let (method, user, session) = (request.body.verb().as_str(), request.user.clone(), request.session);
        self.outputs.push_back(Output::Notice(Notice::Requested { request: id, method, user, session }));
        self.arrived.insert(id, (self.now.instant, Box::new(Asked::of(&request))));
        if !wants_counters(&request.body) {
            return self.controller.handle_request(self.now, id, request);
        }
        if let Some(calls::Waiter::Request(id, request)) =
            self.calls.wait(calls::Waiter::Request(id, Box::new(request)))
        {
            self.controller.handle_request(self.now, id, *request);
        }
    }

    fn take_command(&mut self, command: Command) {
        match command {
            Command::Do(effect) => {
                if let Some(effect) = self.lanes.push(effect) {
                    self.give_out(effect);
                }
            }
            Command::Abandon(id) => self.outputs.push_back(Output::Abandon(id)),
            Command::Proven(request) => self.nslp.handle_proven(request),
            Command::Answer { request, report, proven } => self.take_report(request, *report, proven),
            Command::Notify(notice) => self.outputs.push_back(Output::Notice(notice)),
            Command::TellRequesters(news) => self.nslp.handle_module_news(self.now, *news),
            Command::Settled => self.stop.settled = true,
            Command::InForce(change, late) => self.outputs.push_back(Output::Applied(CallId(change.0), late)),
        }
    }

    /// Completes the controller's report with what only the node knows, and gives it to the NSLP.
    fn take_report(&mut self, request: RequestId, mut report: NodeReport, proven: Option<Proven>) {
        self.fill_in(&mut report.modules);
        if let Some((arrived, asked)) = self.arrived.remove(&request) {
            let took = self.now.instant.since(arrived);
            report.took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
            let (outcome, took_us) = (report.outcome.clone(), report.took_us);
            self.outputs.push_back(Output::Notice(Notice::Answered { request, outcome, took_us, asked, proven }));
        }
        self.nslp.handle_report(self.now, request, report);
    }
}

fn wants_counters(body: &Body) -> bool {
    let Body::Probe(probe) = body else { return false };
    probe.ask.iter().any(|ask| matches!(ask, Ask::Modules | Ask::Load))
}

pub(crate) fn mri(call: &ApiCall) -> Option<&Mri> {
    match call {
        ApiCall::SendMessage { mri, .. } | ApiCall::InvalidateRoutingState { mri, .. } => Some(mri),
        // These need no address of the node, but must not overtake the message that they are about.
        ApiCall::AbortMessage { mri, .. } => Some(mri),
        ApiCall::SetStateLifetime { mri, .. } => mri.as_ref(),
        ApiCall::AnswerQuery { .. } | ApiCall::SetPeering { .. } => None,
    }
}

/// Returns the end of a flow toward which an MRI points.
pub(crate) fn toward(mri: &Mri) -> Option<IpAddr> {
    let (source, destination) = mri.addresses()?;
    Some(if mri.direction()? == Direction::Downstream { destination } else { source })
}
