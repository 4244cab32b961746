// SPDX-License-Identifier: Apache-2.0
//! The one instance of a module that handles connections, whichever version of `netserv:tcp/handler` it exports.

use netserv_model::{Refusal, RefusalKind};
use netserv_worker_wasm::one_line;
use wasmtime::Store;
use wasmtime::component::InstancePre;

use super::wit::{Action, Decision, Flow, Heirs, HeirsPre, Side, TcpHost, TcpHostPre, first};
use crate::carrier::{Carrier, CarrierPre};
use crate::state::ServerState;

/// What is needed to make an instance.
pub struct HandlerPre {
    version: Version,
    carrier: CarrierPre,
}

enum Version {
    /// Of 1.0.0.
    First(first::TcpHostPre<ServerState>),
    /// Of 1.1.0, with what hands connections over, if it has that.
    Second(TcpHostPre<ServerState>, Option<HeirsPre<ServerState>>),
}

/// An instance.
pub enum Handler {
    /// Of 1.0.0.
    First(first::TcpHost),
    /// Of 1.1.0.
    Second(TcpHost, Option<Heirs>),
}

impl HandlerPre {
    /// Looks at what a component exports.
    ///
    /// # Errors
    /// [`RefusalKind::AbiMismatch`] if it is neither version.
    pub fn new(pre: InstancePre<ServerState>) -> Result<HandlerPre, Refusal> {
        let carrier = CarrierPre::new(pre.clone());
        let version = match first::TcpHostPre::new(pre.clone()) {
            Ok(first) if TcpHostPre::new(pre.clone()).is_err() => Version::First(first),
            Ok(_) | Err(_) => TcpHostPre::new(pre.clone())
                .map(|second| Version::Second(second, HeirsPre::new(pre).ok()))
                .map_err(|error| Refusal::new(RefusalKind::AbiMismatch, one_line(&error)))?,
        };
        Ok(HandlerPre { version, carrier })
    }

    /// Makes an instance, with what carries its state.
    ///
    /// # Errors
    /// It traps, or there is no room.
    pub async fn instantiate(&self, store: &mut Store<ServerState>) -> wasmtime::Result<(Handler, Carrier)> {
        let (handler, instance) = match &self.version {
            Version::First(pre) => {
                let instance = pre.instance_pre().instantiate_async(&mut *store).await?;
                (Handler::First(first::TcpHost::new(&mut *store, &instance)?), instance)
            }
            Version::Second(pre, heirs) => {
                let instance = pre.instance_pre().instantiate_async(&mut *store).await?;
                let handler = TcpHost::new(&mut *store, &instance)?;
                // Of the same instance.
                let heirs = heirs.as_ref().map(|_| Heirs::new(&mut *store, &instance)).transpose()?;
                (Handler::Second(handler, heirs), instance)
            }
        };
        let carrier = self.carrier.of(store, &instance)?;
        Ok((handler, carrier))
    }
}

/// The events, as `wit/deps/netserv-tcp-1.1/tcp.wit` says. Each fails if the instance traps.
impl Handler {
    pub(super) async fn connect(
        &self,
        store: &mut Store<ServerState>,
        id: u64,
        flow: &Flow,
    ) -> wasmtime::Result<Decision> {
        match self {
            Handler::First(first) => {
                first.netserv_tcp_handler().call_connect(store, id, &flow.into()).await.map(Decision::from)
            }
            Handler::Second(second, _) => second.netserv_tcp_handler().call_connect(store, id, flow).await,
        }
    }

    pub(super) async fn data(
        &self,
        store: &mut Store<ServerState>,
        id: u64,
        source: Side,
        bytes: &[u8],
    ) -> wasmtime::Result<Action> {
        match self {
            Handler::First(first) => {
                first.netserv_tcp_handler().call_data(store, id, source.into(), bytes).await.map(Action::from)
            }
            Handler::Second(second, _) => second.netserv_tcp_handler().call_data(store, id, source, bytes).await,
        }
    }

    pub(super) async fn end(&self, store: &mut Store<ServerState>, id: u64, source: Side) -> wasmtime::Result<()> {
        match self {
            Handler::First(first) => first.netserv_tcp_handler().call_end(store, id, source.into()).await,
            Handler::Second(second, _) => second.netserv_tcp_handler().call_end(store, id, source).await,
        }
    }

    pub(super) async fn closed(&self, store: &mut Store<ServerState>, id: u64) -> wasmtime::Result<()> {
        match self {
            Handler::First(first) => first.netserv_tcp_handler().call_closed(store, id).await,
            Handler::Second(second, _) => second.netserv_tcp_handler().call_closed(store, id).await,
        }
    }

    pub(super) async fn timer(&self, store: &mut Store<ServerState>, id: u32) -> wasmtime::Result<()> {
        match self {
            Handler::First(first) => first.netserv_tcp_handler().call_timer(store, id).await,
            Handler::Second(second, _) => second.netserv_tcp_handler().call_timer(store, id).await,
        }
    }

    pub(super) async fn opened(&self, store: &mut Store<ServerState>, id: u64) -> wasmtime::Result<()> {
        match self {
            Handler::First(_) => Ok(()),
            Handler::Second(second, _) => second.netserv_tcp_handler().call_opened(store, id).await,
        }
    }

    pub(super) async fn room(&self, store: &mut Store<ServerState>, id: u64, to: Side) -> wasmtime::Result<()> {
        match self {
            Handler::First(_) => Ok(()),
            Handler::Second(second, _) => second.netserv_tcp_handler().call_room(store, id, to).await,
        }
    }

    pub(super) async fn ready(&self, store: &mut Store<ServerState>, token: u32) -> wasmtime::Result<()> {
        match self {
            Handler::First(_) => Ok(()),
            Handler::Second(second, _) => second.netserv_tcp_handler().call_ready(store, token).await,
        }
    }

    pub(super) async fn export_connection(
        &self,
        store: &mut Store<ServerState>,
        id: u64,
    ) -> wasmtime::Result<Option<Vec<u8>>> {
        match self {
            Handler::Second(_, Some(heirs)) => heirs.netserv_tcp_hand_over().call_export_connection(store, id).await,
            Handler::First(_) | Handler::Second(_, None) => Ok(None),
        }
    }

    pub(super) async fn import_connection(
        &self,
        store: &mut Store<ServerState>,
        id: u64,
        flow: Option<&Flow>,
        state: &[u8],
    ) -> wasmtime::Result<bool> {
        match self {
            Handler::Second(_, Some(heirs)) => {
                heirs.netserv_tcp_hand_over().call_import_connection(store, id, flow, state).await
            }
            Handler::First(_) | Handler::Second(_, None) => Ok(false),
        }
    }
}
