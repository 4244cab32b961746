// SPDX-License-Identifier: Apache-2.0
//! One vertex that signals: the engines and a stub of a controller.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use netserv_gist::Engine;
use netserv_model::request::{Body, NodeReport, Outcome, Request};
use netserv_model::{Instant, ModuleName, NodeId, Nonce, Refusal, RefusalKind, SessionId};
use netserv_nslp::Nslp;

/// A vertex that signals.
pub(super) struct Station {
    pub gist: Engine,
    pub nslp: Nslp,
    pub controller: Controller,
    /// When its next wake-up is in the queue.
    pub armed: Option<Instant>,
}

/// Answers requests as a controller would, with leases and nothing else.
pub(super) struct Controller {
    node: NodeId,
    host_only: bool,
    leases: BTreeMap<ModuleName, Instant>,
    /// How often each request was handed in.
    seen: BTreeMap<(SessionId, Nonce), u32>,
}

impl Controller {
    pub(super) fn new(node: NodeId, host_only: bool) -> Controller {
        Controller { node, host_only, leases: BTreeMap::new(), seen: BTreeMap::new() }
    }

    pub(super) fn handle_request(&mut self, now: Instant, request: &Request, took: Duration) -> NodeReport {
        *self.seen.entry((request.session, request.nonce)).or_default() += 1;
        self.leases.retain(|_, until| *until > now);
        let outcome = self.outcome(now, &request.body);
        NodeReport {
            node: self.node.clone(),
            address: IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED),
            outcome,
            took_us: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
            load: None,
            modules: Vec::new(),
            blocks: Vec::new(),
            environments: Vec::new(),
            policy: None,
        }
    }

    pub(super) fn leases(&self, now: Instant) -> usize {
        self.leases.values().filter(|until| **until > now).count()
    }

    pub(super) fn seen(&self) -> &BTreeMap<(SessionId, Nonce), u32> {
        &self.seen
    }

    fn outcome(&mut self, now: Instant, body: &Body) -> Outcome {
        let not_a_node = || Outcome::Refused(Refusal::new(RefusalKind::NotANode, "this is a host"));
        match body {
            Body::Probe(_) => Outcome::Probed,
            Body::Setup(_) | Body::Remove(_) if self.host_only => not_a_node(),
            Body::Setup(setup) => {
                let lease_s = setup.ttl.as_secs();
                match self.leases.insert(setup.module.name.clone(), now + setup.ttl) {
                    None => Outcome::Installed { lease_s },
                    Some(_) => Outcome::Refreshed { lease_s },
                }
            }
            Body::Remove(remove) => match self.leases.remove(&remove.module) {
                Some(_) => Outcome::Removed,
                None => Outcome::Refused(Refusal::new(RefusalKind::NotInstalled, "no such module")),
            },
        }
    }
}
