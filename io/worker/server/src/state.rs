// SPDX-License-Identifier: Apache-2.0
//! What one instance of a component has on the node's side.

use std::sync::Arc;

use netserv_wire::container::frames::LogLevel;
use wasmtime::component::ResourceTable;
use wasmtime::{Engine, Store, UpdateDeadline};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use super::accepted::Flow;
use super::blocks::state::BlockState;
use super::cap::Cap;
use super::egress::Egress;
use super::http::forwarding::Forwarding;
use super::http::presence::Presence;
use super::log_stream::{LogStream, SharedSaid};
use super::message_memory::MessageMemory;
use super::module::Module;
use super::sockets::{self, Gate};
use super::tcp::table::ConnectionTable;
use crate::limits;

/// The node's side of one instance.
pub struct ServerState {
    /// Where its own HTTP requests go. It goes before the resources that their bodies come from.
    pub egress: Egress,
    /// What WASI knows of it.
    pub wasi: WasiCtx,
    /// What `wasi:http` knows of it.
    pub http: WasiHttpCtx,
    /// Its resources.
    pub table: ResourceTable,
    /// What its HTTP messages take.
    pub messages: MessageMemory,
    /// What the building blocks keep for this instance.
    pub blocks: BlockState,
    /// Between whom the request came that it answers.
    pub flow: Option<Flow>,
    /// Whether the client of that request is there, if anybody looks.
    pub client: Option<Presence>,
    /// The request that it answers, if it may have the node send it on.
    pub forwarding: Option<Forwarding>,
    /// Its connections, if it handles them as events.
    pub tcp: Arc<ConnectionTable>,
    /// The cap on its memories and tables.
    pub cap: Cap,
    /// What it wrote as an error of late.
    pub said: SharedSaid,
    /// Whether it may have sockets of its own.
    pub has_sockets: bool,
    /// Where it waits for the version before it to leave, if it is a program.
    pub gate: Option<Gate>,
    /// The module that it is an instance of.
    pub module: Arc<Module>,
}

/// Whether an instance may use sockets of its own.
#[derive(Clone, Debug)]
pub enum Sockets {
    /// As the module's filters say; published ports and messages once the gate is open, if there is one.
    Permitted(Option<Gate>),
    /// None; the node has the sockets.
    None,
}

impl ServerState {
    /// Returns the node's side of an instance that has not done anything.
    pub fn new(module: &Arc<Module>, sockets: Sockets, egress: Egress) -> ServerState {
        let mut wasi = WasiCtx::builder();
        let said = SharedSaid::default();
        wasi.stdout(LogStream::new(module, LogLevel::Info, None));
        wasi.stderr(LogStream::new(module, LogLevel::Warn, Some(said.clone())));
        for (name, value) in &module.properties {
            wasi.env(name, value);
        }
        wasi.max_random_size(limits::SERVER_RANDOM_BYTES_MAX);
        let has_sockets = matches!(sockets, Sockets::Permitted(Some(_)));
        let (resources_max, gate) = match sockets {
            Sockets::Permitted(gate) => {
                sockets::permit(&mut wasi, module, gate.clone());
                (limits::RESOURCES_MAX, gate)
            }
            Sockets::None => (limits::REQUEST_RESOURCES_MAX, None),
        };
        let mut table = ResourceTable::new();
        table.set_max_capacity(resources_max);
        let mut http = WasiHttpCtx::new();
        http.set_field_size_limit(limits::FIELDS_BYTES_MAX);
        ServerState {
            wasi: wasi.build(),
            http,
            table,
            messages: MessageMemory::new(&module.message_memory),
            blocks: BlockState::new(module),
            egress,
            flow: None,
            client: None,
            forwarding: None,
            tcp: Arc::default(),
            cap: Cap::new(module.limits.memory_bytes),
            said,
            has_sockets,
            gate,
            module: Arc::clone(module),
        }
    }

    /// Returns a store that has it, with the bounds that it says; what [`ServerEngine::store`] calls.
    ///
    /// [`ServerEngine::store`]: crate::engine::ServerEngine::store
    pub fn into_store(self, engine: &Engine) -> Store<ServerState> {
        let call_bytes = usize::try_from(self.cap.allowed()).unwrap_or(usize::MAX).max(limits::CALL_BYTES_MIN);
        let mut store = Store::new(engine, self);
        // Lists whose elements are all the same bytes must not become as many copies.
        store.set_hostcall_fuel(call_bytes);
        store.limiter(|state| &mut state.cap);
        store.set_epoch_deadline(1);
        // Whoever computes for long lets the others of its thread go on after each step.
        store.epoch_deadline_callback(|_| Ok(UpdateDeadline::Yield(1)));
        store
    }

    /// Takes all resources from an instance whose HTTP messages need too much memory: it traps as soon as it uses one.
    fn weigh_messages(&mut self) {
        if let Err(denied) = self.messages.weigh(&mut self.table) {
            self.egress.break_off();
            self.table = ResourceTable::new();
            self.table.set_max_capacity(0);
            self.cap.denied = Some(denied);
        }
    }
}

impl WasiView for ServerState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl WasiHttpView for ServerState {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        self.weigh_messages();
        WasiHttpCtxView { hooks: &mut self.egress, table: &mut self.table, ctx: &mut self.http }
    }
}
