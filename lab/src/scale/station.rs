// SPDX-License-Identifier: Apache-2.0
//! A node without machine: the real GIST and NSLP, with a controller that installs at once whatever it is asked for.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use netserv_gist::{ApiCall, Config, Counter, Engine, Transmit};
use netserv_model::request::{Body, NodeReport, Outcome, Request, Verb};
use netserv_model::route::RouteChange;
use netserv_model::{Instant, NodeId, Now, SessionId};
use netserv_node::nslp::{self, LocalId, LocalPath, LocalRequest, Nslp};

/// The NSLPID and the Router Alert value, as `netservd` has them by default.
const NSLP: u16 = 32704;
const RAO: u16 = 65503;
/// Larger than any table here gets.
const MANY: usize = 10_000_000;

/// One node.
pub(super) struct Station {
    pub(super) engine: Engine,
    pub(super) nslp: Nslp,
    pub(super) address: IpAddr,
    name: NodeId,
    /// When it is to be woken.
    pub(super) armed: Option<Instant>,
    pub(super) restarts: u32,
}

/// What came out of a station.
pub(super) enum Output {
    Send(Transmit),
    /// Its controller was asked for a session's module.
    Asked(SessionId),
    /// A request of one of its own clients was answered: whether by the whole path.
    Answered {
        whole: bool,
        took: Duration,
    },
}

impl Station {
    pub(super) fn new(vertex: u32, restarts: u32, run: u32, change: fn(&mut Config)) -> Station {
        let name: NodeId = format!("v{vertex}").parse().expect("a good name");
        let address = address(vertex, ROUTER);
        let mut identity = vec![0; 16];
        identity[..4].copy_from_slice(&vertex.to_be_bytes());
        identity[4..8].copy_from_slice(&restarts.to_be_bytes());
        let mut seed = [0; 32];
        seed[..16].copy_from_slice(&identity);
        seed[16..20].copy_from_slice(&run.to_be_bytes());
        let mut config = Config::new(identity);
        config.hosted.insert(NSLP, RAO);
        (config.routes_max, config.routes_per_site_max) = (MANY, MANY);
        config.associations_max = MANY;
        change(&mut config);
        let mut signaling = nslp::Config::new(name.clone(), NSLP);
        signaling.own_addresses = vec![address];
        signaling.leases_max = MANY;
        let mut engine = Engine::new(config, seed);
        engine.set_own_addresses([address]);
        Station { engine, nslp: Nslp::new(signaling, seed), address, name, armed: None, restarts }
    }

    /// Asks for something along a path, for a client.
    pub(super) fn ask(&mut self, now: Now, session: SessionId, message: String, source: IpAddr, destination: IpAddr) {
        let path = Some(LocalPath { source, destination });
        let request = LocalRequest { id: LocalId(0), message, path, session: Some(session), timeout: Duration::ZERO };
        self.nslp.handle_local(now, request).expect("requests here are good and not too many at a time");
    }

    /// Moves things between the engines until something comes out.
    pub(super) fn poll_output(&mut self, now: Now) -> Option<Output> {
        loop {
            if let Some(call) = self.nslp.poll_api_call() {
                self.call(now, call);
            } else if let Some(event) = self.engine.poll_event() {
                self.nslp.handle_event(now, event);
            } else if let Some(transmit) = self.engine.poll_transmit() {
                return Some(Output::Send(transmit));
            } else if let Some((id, request)) = self.nslp.poll_request() {
                let report = self.report(&request);
                self.nslp.handle_report(now, id, report);
                return Some(Output::Asked(request.session));
            } else if let Some((_, result)) = self.nslp.poll_result() {
                let whole = result.incomplete.is_none();
                return Some(Output::Answered { whole, took: Duration::from_micros(result.took_us) });
            } else if self.nslp.poll_withdrawal().is_none() && self.nslp.poll_notify().is_none() {
                return None;
            }
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Now) {
        self.engine.handle_timeout(now.instant);
        self.nslp.handle_timeout(now);
    }

    /// Returns when it is to be woken.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let timers = [self.engine.poll_timeout(), self.nslp.poll_timeout()];
        timers.into_iter().flatten().map(|(at, _)| at).min()
    }

    pub(super) fn count(&self, counter: Counter) -> u64 {
        self.engine.counters().get(counter)
    }

    fn call(&mut self, now: Now, call: ApiCall) {
        let handle = if let ApiCall::SendMessage { handle, .. } = &call { Some(*handle) } else { None };
        let result = self.engine.handle_api(now.instant, call, self.address);
        if let (Err(error), Some(handle)) = (result, handle) {
            self.nslp.handle_api_error(now, handle, error);
        }
    }

    fn report(&self, request: &Request) -> NodeReport {
        let outcome = match (&request.body, request.body.verb()) {
            (Body::Setup(setup), _) => Outcome::Installed { lease_s: setup.ttl.as_secs() },
            (_, Verb::Remove) => Outcome::Removed,
            (_, Verb::Tell) => Outcome::Told,
            (_, _) => Outcome::Probed,
        };
        NodeReport {
            node: self.name.clone(),
            address: self.address,
            outcome,
            took_us: 0,
            hop: None,
            load: None,
            modules: Vec::new(),
            blocks: Vec::new(),
            environments: Vec::new(),
            policy: None,
        }
    }
}

/// The host number of a vertex's router.
pub(super) const ROUTER: u32 = 1;
/// Hosts that a vertex has addresses for.
pub(super) const HOSTS: u32 = 1 << HOST_BITS;
const HOST_BITS: u32 = 10;

/// Returns the address of a host behind a vertex.
pub(super) fn address(vertex: u32, host: u32) -> IpAddr {
    Ipv4Addr::from_bits(10 << 24 | vertex << HOST_BITS | host).into()
}

/// Returns a change of routes toward all hosts behind a vertex.
pub(super) fn toward(vertex: u32) -> RouteChange {
    let prefix = format!("{}/{}", address(vertex, 0), u32::BITS - HOST_BITS);
    RouteChange::Toward(vec![prefix.parse().expect("a good prefix")])
}

/// Returns the vertex that an address lies behind.
pub(super) fn owner(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(v4) => (v4.to_bits() & 0x00ff_ffff) >> HOST_BITS,
        IpAddr::V6(_) => unreachable!("all addresses here are of IPv4"),
    }
}
