// SPDX-License-Identifier: Apache-2.0
//! What programs that are NSLPs call: checked, put in GIST's words, and refused with cause and fix.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use netserv_gist::{ApiCall, ApiError, MessageHandle, SendOptions, SiiHandle, StateUse, TransferAttributes};
use netserv_model::SessionId;
use netserv_model::application::{
    AbortMessage, AbortSession, ApplicationCall, ApplicationError, ApplicationErrorKind as Kind, ApplicationEvent,
    InvalidateRoutingState, Register, Registered, RoutingState, SendMessage, SetStateLifetime, VERSION,
};

use crate::applications::{ApplicationConfig, ClientId, Told, mri_of};
use crate::drain::{mri, toward};
use crate::limits::{
    APPLICATION_BYTES_MAX, APPLICATION_MESSAGES_MAX, APPLICATION_NAME_CHARS_MAX, APPLICATION_TIMEOUT_MAX,
};
use crate::node::Node;
use crate::output::Output;
use crate::routes;

impl Node {
    /// Takes a call of a program.
    pub(crate) fn application(&mut self, client: ClientId, line: u64, call: ApplicationCall) {
        let handle = match &call {
            ApplicationCall::SendMessage(SendMessage { handle, .. })
            | ApplicationCall::AbortMessage(AbortMessage { handle }) => Some(*handle),
            ApplicationCall::Register(_)
            | ApplicationCall::AbortSession(_)
            | ApplicationCall::SetStateLifetime(_)
            | ApplicationCall::InvalidateRoutingState(_) => None,
        };
        let known = self.applications.get(client).map(|application| application.nslp_id);
        let result = match (call, known) {
            (ApplicationCall::Register(_), Some(_)) => {
                Err((Kind::Order, "the program is registered already".to_owned()))
            }
            (ApplicationCall::Register(register), None) => self.register(client, register),
            (_, None) => Err((Kind::Order, "the program is not registered".to_owned())),
            (ApplicationCall::SendMessage(message), Some(nslp_id)) => self.send(client, line, nslp_id, message),
            (ApplicationCall::AbortMessage(AbortMessage { handle }), Some(nslp_id)) => {
                self.abort_message(client, nslp_id, handle)
            }
            (ApplicationCall::AbortSession(AbortSession { session }), Some(nslp_id)) => {
                self.abort_session(client, nslp_id, session);
                Ok(())
            }
            (ApplicationCall::SetStateLifetime(lifetime), Some(nslp_id)) => {
                self.set_lifetime(client, line, nslp_id, &lifetime)
            }
            (ApplicationCall::InvalidateRoutingState(doubt), Some(nslp_id)) => {
                self.invalidate(client, line, nslp_id, &doubt)
            }
        };
        if let Err((kind, cause)) = result {
            self.refuse(client, line, handle, kind, cause);
        }
    }

    /// Forgets a program: what it waited for ends, and Queries for it go on.
    pub(crate) fn application_gone(&mut self, client: ClientId) {
        if let Some(nslp_id) = self.applications.remove(client) {
            self.gist.unhost(self.now.instant, nslp_id);
        }
    }

    /// Goes on with a call now that the node's own address is known, or that there is no route; not if its program is gone.
    pub(crate) fn application_from(&mut self, client: ClientId, line: u64, call: ApiCall, local: Option<IpAddr>) {
        if self.applications.get(client).is_none() {
            return;
        }
        let own = handle_of(&call);
        let result = self.call_gist_from(call, local);
        let Err(error) = result else {
            self.applications.counters.sent += u64::from(own.is_some());
            return;
        };
        let handle = own.and_then(|own| self.applications.ended(own)).map(|sent| sent.handle);
        let kind = match error {
            ApiError::QueueFull | ApiError::TableFull => Kind::TooManyWaiting,
            ApiError::UnknownPeer(_) => Kind::UnknownPeer,
            ApiError::NotWaiting => Kind::NotWaiting,
            ApiError::UnknownNslp(_)
            | ApiError::TooLarge { .. }
            | ApiError::NoHops
            | ApiError::SecureUnsupported
            | ApiError::VersionMismatch
            | ApiError::OwnDestination
            | ApiError::NoAddress
            | ApiError::NoRoute
            | ApiError::UnknownQuery(_)
            | ApiError::TooManyRules(_) => Kind::Refused,
        };
        // GIST's handle is none of the program's business.
        let forgotten = kind == Kind::UnknownPeer;
        let cause = if forgotten { "the node has forgotten that peer".to_owned() } else { error.to_string() };
        self.refuse(client, line, handle, kind, cause);
    }

    fn register(&mut self, client: ClientId, register: Register) -> Result<(), Refused> {
        let Register { version, nslp_id, router_alert, name } = register;
        if version != VERSION {
            return Err((Kind::Version, format!("the program speaks version {version}, the node {VERSION}")));
        }
        if name.chars().count() > APPLICATION_NAME_CHARS_MAX || name.chars().any(char::is_control) {
            let cause =
                format!("a name has at most {APPLICATION_NAME_CHARS_MAX} characters, and no control characters");
            return Err((Kind::Malformed, cause));
        }
        let router_alert = allowed(&self.application_config, nslp_id, router_alert)?;
        self.gist.host(nslp_id, router_alert).map_err(|error| {
            let kind = match error {
                netserv_gist::HostError::Taken(_) => Kind::Taken,
                netserv_gist::HostError::Full => Kind::TooManyPrograms,
            };
            (kind, error.to_string())
        })?;
        self.applications.add(client, nslp_id, router_alert, name);
        let registered = Registered { version: VERSION, node: self.name.clone(), nslp_id, router_alert };
        self.outputs.push_back(Output::Application(client, ApplicationEvent::Registered(registered)));
        Ok(())
    }

    /// Sends a message of a program.
    fn send(&mut self, client: ClientId, line: u64, nslp_id: u16, message: SendMessage) -> Result<(), Refused> {
        let SendMessage { handle, session, flow, data, reliable, secure, inside, peer, timeout_ms, hops, .. } = message;
        let options =
            SendOptions { state: state_of(message.state), priority: message.priority, ip_ttl: message.ip_ttl };
        let bytes = data.0.len();
        if let Some(application) = self.applications.get(client) {
            if application.handles.contains_key(&handle) {
                return Err((Kind::HandleInUse, format!("message {handle} has no status yet")));
            }
            let many = application.handles.len() >= APPLICATION_MESSAGES_MAX;
            if many || application.bytes + bytes > APPLICATION_BYTES_MAX {
                let cause = format!(
                    "{APPLICATION_MESSAGES_MAX} messages, or {APPLICATION_BYTES_MAX} bytes of them, are without status"
                );
                return Err((Kind::TooManyWaiting, cause));
            }
        }
        let mri = mri_of(&flow).map_err(|cause| (Kind::Malformed, cause.to_owned()))?;
        if !toward(&mri).is_some_and(is_unicast) {
            return Err((Kind::Refused, "the message goes to the end of a flow that is no unicast address".to_owned()));
        }
        let sii = peer.map(|name| self.peer(client, name)).transpose()?;
        let timeout = Duration::from_millis(timeout_ms).min(APPLICATION_TIMEOUT_MAX);
        let attributes = TransferAttributes { reliable, secure, inside };
        self.may_wait()?;
        let Some(handle) = self.applications.send(client, handle, bytes, (session, &mri)) else { return Ok(()) };
        let data = data.0;
        let call =
            ApiCall::SendMessage { handle, nslp_id, session, mri, attributes, sii, timeout, data, hops, options };
        self.call_for(client, line, call);
        Ok(())
    }

    /// Takes a message of a program back, which still waits for a route of the kernel or of GIST, or for a connection.
    fn abort_message(&mut self, client: ClientId, nslp_id: u16, handle: u64) -> Result<(), Refused> {
        let not_waiting = || (Kind::NotWaiting, format!("no message {handle} waits to be sent"));
        let (own, sent) = self.applications.waiting(client, handle).ok_or_else(not_waiting)?;
        let (session, mri) = (sent.session, sent.mri.clone());
        if self.routes.withdraw(own) {
            if let Told::Client(client, words) = self.applications.cancelled(nslp_id, own) {
                self.outputs.push_back(Output::Application(client, words));
            }
            return Ok(());
        }
        let call = ApiCall::AbortMessage { nslp_id, session, mri, handle: own };
        // No address of the node's is in what it does.
        let result = self.gist.handle_api(self.now.instant, call, Ipv4Addr::UNSPECIFIED.into());
        result.map_err(|_| not_waiting())
    }

    /// Takes all messages of a session back that still wait; those that were sent have their status on its way.
    fn abort_session(&mut self, client: ClientId, nslp_id: u16, session: SessionId) {
        for handle in self.applications.waiting_of(client, session) {
            let _ = self.abort_message(client, nslp_id, handle);
        }
    }

    fn set_lifetime(
        &mut self,
        client: ClientId,
        line: u64,
        nslp_id: u16,
        lifetime: &SetStateLifetime,
    ) -> Result<(), Refused> {
        let mri = lifetime.flow.as_ref().map(mri_of).transpose();
        let mri = mri.map_err(|cause| (Kind::Malformed, cause.to_owned()))?;
        let is_about_one = mri.is_some();
        let (session, lifetime) = (lifetime.session, Duration::from_millis(lifetime.lifetime_ms).min(LIFETIME_MAX));
        let call = ApiCall::SetStateLifetime { nslp_id, session, mri, lifetime };
        if is_about_one {
            // It must not overtake a message of the flow that waits for a route.
            self.may_wait()?;
            self.call_for(client, line, call);
            return Ok(());
        }
        // No address of the node's is in what it does.
        let result = self.gist.handle_api(self.now.instant, call, Ipv4Addr::UNSPECIFIED.into());
        result.map_err(|error| (Kind::Refused, error.to_string()))
    }

    fn invalidate(
        &mut self,
        client: ClientId,
        line: u64,
        nslp_id: u16,
        doubt: &InvalidateRoutingState,
    ) -> Result<(), Refused> {
        let mri = mri_of(&doubt.flow).map_err(|cause| (Kind::Malformed, cause.to_owned()))?;
        let data = doubt.data.as_ref().map(|data| data.0.clone());
        self.may_wait()?;
        let call = ApiCall::InvalidateRoutingState { nslp_id: Some(nslp_id), session: None, mri, bad: doubt.bad, data };
        self.call_for(client, line, call);
        Ok(())
    }

    /// Gives a call to GIST with the node's own address toward the flow's end, which may have to be asked for.
    fn call_for(&mut self, client: ClientId, line: u64, call: ApiCall) {
        match mri(&call).and_then(toward) {
            Some(destination) => self.look(destination, routes::Waiter::Application(client, line, Box::new(call))),
            None => self.application_from(client, line, call, None),
        }
    }

    fn may_wait(&self) -> Result<(), Refused> {
        if self.routes.is_full_of_applications() {
            return Err((Kind::TooManyWaiting, "too many calls of programs wait for routes".to_owned()));
        }
        Ok(())
    }

    fn peer(&mut self, client: ClientId, name: u64) -> Result<SiiHandle, Refused> {
        let unknown = || (Kind::UnknownPeer, format!("no peer that this connection heard of lately is number {name}"));
        self.applications.peer(client, name).ok_or_else(unknown)
    }

    fn refuse(&mut self, client: ClientId, line: u64, handle: Option<u64>, kind: Kind, cause: String) {
        self.applications.counters.refused += 1;
        let error = ApplicationError { handle, ..ApplicationError::new(kind, cause, Some(line)) };
        self.outputs.push_back(Output::Application(client, ApplicationEvent::Error(error)));
    }
}

/// What is wrong with a call, and the same for people.
type Refused = (Kind, String);

/// Returns the value of the Router Alert Option for an NSLP, if the operator or a registry's range lets it have that.
fn allowed(config: &ApplicationConfig, nslp_id: u16, router_alert: Option<u16>) -> Result<u16, Refused> {
    let not_allowed = |cause: String| Err((Kind::NotAllowed, cause));
    if let Some(named) = config.nslps.get(&nslp_id) {
        return match router_alert {
            Some(other) if other != *named => not_allowed(format!("NSLP {nslp_id} has Router Alert value {named}")),
            Some(_) | None => Ok(*named),
        };
    }
    if !PRIVATE_NSLPS.contains(&nslp_id) {
        return not_allowed(format!("NSLP {nslp_id} is not for private use, and the operator does not name it"));
    }
    match router_alert {
        None => Ok(config.router_alert),
        Some(value) if EXPERIMENTAL_ROUTER_ALERTS.contains(&value) => Ok(value),
        Some(value) => not_allowed(format!("Router Alert value {value} is not experimental")),
    }
}

/// Returns whether an address may be one host's beyond this node.
fn is_unicast(address: IpAddr) -> bool {
    let broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
    !(broadcast || address.is_multicast() || address.is_unspecified() || address.is_loopback())
}

fn state_of(state: RoutingState) -> StateUse {
    match state {
        RoutingState::Needed => StateUse::Needed,
        RoutingState::Queried => StateUse::Queried,
        RoutingState::NotNeeded => StateUse::NotNeeded,
    }
}

fn handle_of(call: &ApiCall) -> Option<MessageHandle> {
    match call {
        ApiCall::SendMessage { handle, .. } => Some(*handle),
        ApiCall::SetStateLifetime { .. }
        | ApiCall::InvalidateRoutingState { .. }
        | ApiCall::AbortMessage { .. }
        | ApiCall::AnswerQuery { .. }
        | ApiCall::SetPeering { .. } => None,
    }
}

/// NSLPIDs for private and experimental use (RFC 5971 §9).
const PRIVATE_NSLPS: std::ops::RangeInclusive<u16> = 32_704..=32_767;
/// Router Alert values for experiments (RFC 5350).
const EXPERIMENTAL_ROUTER_ALERTS: std::ops::RangeInclusive<u16> = 65_503..=65_534;
/// How long routing state lives at most without messages.
const LIFETIME_MAX: Duration = Duration::from_secs(24 * 3600);
