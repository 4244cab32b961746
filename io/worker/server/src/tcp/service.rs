// SPDX-License-Identifier: Apache-2.0
//! Modules that handle TCP connections as events: one instance for all connections of a module, whose calls follow each
//! other. The node has the sockets, the buffers and the back-pressure; see `wit/deps/netserv-tcp/tcp.wit`.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use netserv_model::{Refusal, RefusalKind};
use netserv_wire::container::frames::LogLevel;
use netserv_worker_base::failure::no_state;
use netserv_worker_wasm::one_line;
use tokio::sync::{MutexGuard, Notify, watch};
use tokio::time::{Instant, timeout, timeout_at};
use wasmtime::Store;
use wasmtime::component::Resource;
use wasmtime_wasi::p2::DynPollable;
use wasmtime_wasi::p2::bindings::io::poll::{Host as Pollables, HostPollable as _};

use super::buffers::Buffers;
use super::guest::{Handler, HandlerPre};
use super::table::{self, Connection, ConnectionTable, Sides};
use super::wit::{Action, Decision, Flow, Side};
use crate::carrier::Carrier;
use crate::component::{CheckedComponent, failed, started};
use crate::egress::Egress;
use crate::engine::ServerEngine;
use crate::limits;
use crate::module::Module;
use crate::state::{ServerState, Sockets};

/// One version of a module that handles connections as events.
pub struct TcpService {
    engine: Arc<ServerEngine>,
    module: Arc<Module>,
    /// Nothing once it is not called any more.
    guest: tokio::sync::Mutex<Option<Guest>>,
    /// The version to which connections were handed over.
    heir: OnceLock<Arc<TcpService>>,
    /// Raised for who has the instance only to wait for what is watched.
    is_wanted: Notify,
    /// What the module knows of its connections.
    pub(crate) connections: Arc<ConnectionTable>,
    /// What connections read into.
    pub(crate) buffers: Buffers,
    /// How long its connections may do nothing.
    pub(crate) times: Times,
    stage: watch::Sender<Stage>,
    ended: Mutex<Option<Ended>>,
}

/// How long connections may do nothing.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// One that is being closed, while what was sent before does not go.
    pub closing: Duration,
    /// One to the module's own port, while nothing comes or goes.
    pub idle: Duration,
}

impl Default for Times {
    fn default() -> Times {
        Times { closing: limits::TCP_CLOSING_TIME_MAX, idle: limits::TCP_IDLE_TIME_MAX }
    }
}

/// Told once, when the module cannot go on.
type Ended = Box<dyn FnOnce(Refusal) + Send>;

struct Guest {
    store: Store<ServerState>,
    instance: Handler,
    carrier: Carrier,
}

/// How far the service's end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Open,
    /// It takes no new connections of others.
    Finishing,
    /// It takes no new connections.
    Ending,
    /// It is not called any more, and connections go on without it.
    Draining,
    /// It is not called any more.
    Ended,
}

/// Calls the version of the module that has a connection. Its calls wait for each other; nothing if it has failed, or fails by this.
macro_rules! call {
    ($service:ident, $connection:ident, $method:ident $(, $argument:expr)*) => {
        loop {
            let owner = $service.owner($connection);
            let mut guest = owner.enter_guest().await;
            // It may have been handed over meanwhile.
            if Arc::ptr_eq(&owner, &$service.owner($connection)) {
                break call_in!(owner, guest, $method $(, $argument)*);
            }
        }
    };
}

/// The same for who is with the module already.
macro_rules! call_in {
    ($service:ident, $guest:ident, $method:ident $(, $argument:expr)*) => {{
        if $service.stage() >= Stage::Draining {
            None
        } else if let Some(Guest { store, instance, .. }) = $guest.as_mut() {
            // What it did not get in another call has nothing to do with this one.
            store.data_mut().cap.denied = None;
            let called = $service.engine.pace(instance.$method(&mut *store $(, $argument)*));
            match timeout($service.patience(), called).await {
                Ok(Ok(value)) => Some(value),
                Ok(Err(error)) => {
                    $service.fail(failed(&error, store.data()));
                    None
                }
                Err(_) => {
                    let words = concat!("the module did not come back from ", stringify!($method));
                    $service.fail(Refusal::new(RefusalKind::Stalled, words));
                    None
                }
            }
        } else {
            None
        }
    }};
}

impl TcpService {
    /// Starts the module's one instance. `ended` is called if the module fails by itself.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn start(
        engine: &Arc<ServerEngine>,
        component: CheckedComponent,
        module: &Arc<Module>,
        times: Times,
        ended: impl FnOnce(Refusal) + Send + 'static,
    ) -> Result<Arc<TcpService>, Refusal> {
        let pre = HandlerPre::new(component.pre)?;
        let mut state = ServerState::new(module, Sockets::Permitted(None), Egress::new(module));
        let connections = Arc::clone(&state.tcp);
        connections.open();
        state.tcp = Arc::clone(&connections);
        let mut store = engine.store(state);
        let made = engine.pace(pre.instantiate(&mut store));
        let made = timeout(limits::START_TIME_MAX, made).await;
        let (instance, carrier) = started(made, store.data())?;
        let service = Arc::new(TcpService {
            engine: Arc::clone(engine),
            module: Arc::clone(module),
            guest: tokio::sync::Mutex::new(Some(Guest { store, instance, carrier })),
            heir: OnceLock::new(),
            is_wanted: Notify::new(),
            connections,
            buffers: Buffers::default(),
            times,
            stage: watch::Sender::new(Stage::Open),
            ended: Mutex::new(Some(Box::new(ended))),
        });
        tokio::spawn(keep_time(Arc::downgrade(&service)));
        tokio::spawn(keep_watch(Arc::downgrade(&service)));
        Ok(service)
    }

    /// Returns the module.
    pub(crate) fn module(&self) -> &Arc<Module> {
        &self.module
    }

    /// Adds a connection, unless there are as many as there may be. [`TcpService::depart`] must follow.
    pub(super) fn enter(&self, sides: Sides) -> Option<(u64, Arc<Connection>)> {
        self.module.counts.connection();
        let most = usize::try_from(self.module.limits.connections).unwrap_or(usize::MAX);
        let takes = match self.stage() {
            Stage::Open => true,
            // It may need some of its own for those that it has.
            Stage::Finishing => sides == Sides::Server && self.connections.count_taken() > 0,
            Stage::Ending | Stage::Draining | Stage::Ended => false,
        };
        let entered = if takes { self.connections.enter(sides, most) } else { None };
        if entered.is_none() {
            self.module.counts.refused();
        }
        entered
    }

    /// Forgets a connection that is over, whichever version has it.
    pub(super) fn depart(self: &Arc<Self>, id: u64, connection: &Connection) {
        connection.gone();
        self.owner(connection).leave(id);
    }

    /// Forgets a connection.
    fn leave(&self, id: u64) {
        self.connections.leave(id);
        // Whoever waits for the end looks again.
        self.stage.send_if_modified(|stage| matches!(stage, Stage::Finishing | Stage::Ending | Stage::Draining));
    }

    /// Calls the module no more, and has connections between two others go on without it; waits for their end.
    pub(crate) async fn drain(&self) {
        let mut guest = self.enter_guest().await;
        // Who waits for the module gets nothing from it, and no connection comes after those below.
        self.advance(Stage::Draining);
        for (_, connection) in self.connections.all() {
            let is_relayed = connection.other(Side::Client).is_some() && connection.other(Side::Server).is_some();
            connection.advance(if is_relayed { table::Stage::Spliced } else { table::Stage::Closing });
        }
        drop(guest.take());
        drop(guest);
        self.emptied(Stage::Draining).await;
    }

    /// Has the module go on with the connections that it has, and waits for the end of those that it did not open itself.
    pub(crate) async fn finish(&self) {
        self.advance(Stage::Finishing);
        self.emptied(Stage::Finishing).await;
    }

    /// Returns whether it goes on with what it has.
    pub(crate) fn is_finishing(&self) -> bool {
        self.stage() == Stage::Finishing
    }

    /// Goes on toward the end; never back.
    fn advance(&self, to: Stage) {
        self.stage.send_if_modified(|stage| std::mem::replace(stage, to.max(*stage)) < to);
    }

    /// Waits until there are no connections that it waits for, or the end has come further than `stage`.
    async fn emptied(&self, stage: Stage) {
        let mut left = self.stage.subscribe();
        let count = match stage {
            Stage::Finishing => ConnectionTable::count_taken,
            Stage::Open | Stage::Ending | Stage::Draining | Stage::Ended => ConnectionTable::count,
        };
        while count(&self.connections) > 0 && self.stage() == stage {
            // The sender is this service's own.
            let _ = left.changed().await;
        }
    }

    /// Returns whether the module could not go on.
    pub(crate) fn has_failed(&self) -> bool {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Returns whether it takes new connections.
    pub(crate) fn is_open(&self) -> bool {
        self.stage() == Stage::Open
    }

    /// Ends what [`TcpService::drain`] and [`TcpService::finish`] wait for.
    pub(crate) fn cut(&self) {
        self.stage.send_replace(Stage::Ended);
        self.connections.abort_all();
    }

    /// Ends all connections, those under way after [`STOP_TIME_MAX`](limits::STOP_TIME_MAX) at the latest.
    pub async fn stop(&self) {
        self.advance(Stage::Ending);
        let _ = timeout(limits::STOP_TIME_MAX, self.emptied(Stage::Ending)).await;
        self.hand_over_spliced();
        self.cut();
        // Connections that the next version has may last for hours, and need nothing of this one's instance.
        drop(self.enter_guest().await.take());
    }

    /// Hands the connections over to the next version, those that both agree on. Events wait meanwhile: what belongs together is
    /// never with two versions at a time.
    pub async fn hand_over(&self, heir: &Arc<TcpService>) {
        let (mut guest, mut next) = (self.enter_guest().await, heir.enter_guest().await);
        // There is one next version.
        if self.heir.set(Arc::clone(heir)).is_err() {
            return;
        }
        self.hand_over_spliced();
        let until = Instant::now() + limits::TCP_HAND_OVER_TIME_MAX;
        for (id, connection) in self.connections.all() {
            if Instant::now() >= until {
                return;
            }
            let Some(flow) = connection.flow().filter(|_| connection.stage() == table::Stage::Open) else { continue };
            let Some(Some(state)) = call_in!(self, guest, export_connection, id) else { continue };
            if state.len() > limits::TCP_STATE_BYTES_MAX || !heir.has_room_for(id, &connection) {
                continue;
            }
            if call_in!(heir, next, import_connection, id, flow, &state) == Some(true) {
                self.pass_on(id, &connection, heir);
            } else {
                heir.connections.leave(id);
            }
        }
    }

    /// Hands over the connections that go on without the module, of which the next version is told nothing. One that becomes such a
    /// connection afterwards follows when this version ends.
    fn hand_over_spliced(&self) {
        let Some(heir) = self.heir.get() else { return };
        for (id, connection) in self.connections.all() {
            if connection.stage() == table::Stage::Spliced && heir.has_room_for(id, &connection) {
                connection.untold();
                self.pass_on(id, &connection, heir);
            }
        }
    }

    /// Offers a connection of the version before to this one, unless it has as many as it may have, or ends itself.
    fn has_room_for(&self, id: u64, connection: &Arc<Connection>) -> bool {
        let most = usize::try_from(self.module.limits.connections).unwrap_or(usize::MAX);
        self.is_open() && self.connections.offer(id, connection, most)
    }

    /// Gives a connection that was offered to the next version.
    fn pass_on(&self, id: u64, connection: &Connection, heir: &Arc<TcpService>) {
        heir.connections.take();
        connection.handed_over();
        self.leave(id);
        // It may have ended meanwhile, and then nobody else forgets it.
        if connection.is_gone() {
            heir.leave(id);
        }
    }

    /// Reports what the module says of its state, between two events; nothing if it says nothing.
    /// If it traps or does not come back, it has failed, which is told after the report.
    pub(crate) async fn export_state(&self, report: impl FnOnce(Result<Option<Vec<u8>>, Refusal>)) {
        let mut guest = self.enter_guest().await;
        let Some(Guest { store, carrier, .. }) = guest.as_mut().filter(|_| self.stage() != Stage::Ended) else {
            return report(Err(Refusal::new(RefusalKind::NotRunning, "the module ends at the moment")));
        };
        let said = carrier.export(&self.engine, store).await;
        let failure = said.as_ref().err().filter(|refusal| refusal.kind != RefusalKind::StateRefused).cloned();
        report(said.map_err(|refusal| no_state(&refusal)));
        if let Some(failure) = failure {
            self.fail(failure);
        }
    }

    /// Has the module take what another instance said, before it is told of connections.
    ///
    /// # Errors
    /// It takes none, refuses, or fails.
    pub(crate) async fn import_state(&self, state: &[u8]) -> Result<(), Refusal> {
        let mut guest = self.enter_guest().await;
        let Some(Guest { store, carrier, .. }) = guest.as_mut() else {
            return Err(Refusal::new(RefusalKind::NotRunning, "the module ends at the moment"));
        };
        carrier.import(&self.engine, store, state).await
    }

    /// Returns the version that has a connection which this one took.
    pub(super) fn owner(self: &Arc<Self>, connection: &Connection) -> Arc<TcpService> {
        let next = |owner: &Arc<TcpService>| owner.heir.get().cloned();
        let owners = std::iter::successors(Some(Arc::clone(self)), next);
        owners.take(connection.hand_overs() + 1).last().unwrap_or_else(|| Arc::clone(self))
    }

    pub(crate) async fn connect(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        id: u64,
        flow: Flow,
    ) -> Option<Decision> {
        loop {
            let owner = self.owner(connection);
            let mut guest = owner.enter_guest().await;
            if !Arc::ptr_eq(&owner, &self.owner(connection)) {
                continue;
            }
            // A version that has handed over its connections is told of no further one.
            if let Some(heir) = owner.heir.get()
                && heir.has_room_for(id, connection)
            {
                owner.pass_on(id, connection, heir);
                continue;
            }
            let decision = call_in!(owner, guest, connect, id, &flow);
            // Before whoever waits to hand it over looks.
            connection.known(Some(flow));
            return decision;
        }
    }

    pub(crate) async fn data(
        self: &Arc<Self>,
        connection: &Connection,
        id: u64,
        source: Side,
        bytes: &[u8],
    ) -> Option<Action> {
        call!(self, connection, data, id, source, bytes)
    }

    pub(crate) async fn end(self: &Arc<Self>, connection: &Connection, id: u64, source: Side) -> Option<()> {
        call!(self, connection, end, id, source)
    }

    pub(crate) async fn closed(self: &Arc<Self>, connection: &Connection, id: u64) -> Option<()> {
        // Whoever was never told of it is not told of its end.
        if connection.is_untold() { None } else { call!(self, connection, closed, id) }
    }

    pub(super) async fn opened(self: &Arc<Self>, connection: &Connection, id: u64) -> Option<()> {
        loop {
            let owner = self.owner(connection);
            let mut guest = owner.enter_guest().await;
            if Arc::ptr_eq(&owner, &self.owner(connection)) {
                let opened = call_in!(owner, guest, opened, id);
                connection.known(None);
                return opened;
            }
        }
    }

    pub(super) async fn room(self: &Arc<Self>, connection: &Connection, id: u64, to: Side) -> Option<()> {
        call!(self, connection, room, id, to)
    }

    async fn timer(&self, id: u32) -> Option<()> {
        let mut guest = self.enter_guest().await;
        call_in!(self, guest, timer, id)
    }

    /// Waits until what is watched is ready, or somebody else wants the module, and tells it.
    async fn watch(&self) {
        let mut guest = self.guest.lock().await;
        let (tokens, pollables): (Vec<u32>, Vec<u32>) = self.connections.watched().into_iter().unzip();
        if tokens.is_empty() {
            return;
        }
        let Some(own) = guest.as_mut() else { return };
        let mut stage = self.stage.subscribe();
        let pollables: Vec<Resource<DynPollable>> = pollables.into_iter().map(Resource::new_borrow).collect();
        let ready = tokio::select! {
            biased;
            _ = stage.wait_for(|stage| *stage >= Stage::Draining) => return,
            // Somebody may want the module at any time, and what is watched has its turn all the same.
            ready = Pollables::poll(&mut own.store.data_mut().table, pollables) => ready,
            () = self.is_wanted.notified() => return,
        };
        let ready = match ready {
            Ok(ready) => ready,
            // It has dropped what it watches, or has lost all its resources.
            Err(error) => return self.fail(Refusal::new(RefusalKind::Trapped, one_line(&error))),
        };
        for token in ready.into_iter().filter_map(|place| tokens.get(usize::try_from(place).ok()?)) {
            // One that was ready before may have had it forgotten.
            let Some(pollable) = self.connections.unwatch(*token) else { continue };
            let Some(own) = guest.as_mut() else { return };
            let dropped = own.store.data_mut().table.drop(Resource::new_own(pollable));
            if let Err(error) = dropped {
                return self.fail(Refusal::new(RefusalKind::Trapped, one_line(&error)));
            }
            call_in!(self, guest, ready, *token);
        }
    }

    /// Waits for the module, and lets nobody keep it who only waits for what it watches.
    async fn enter_guest(&self) -> MutexGuard<'_, Option<Guest>> {
        if let Ok(guest) = self.guest.try_lock() {
            return guest;
        }
        self.is_wanted.notify_one();
        self.guest.lock().await
    }

    /// Returns how much memory the instance has taken.
    pub(crate) async fn memory_bytes(&self) -> u64 {
        self.enter_guest().await.as_ref().map_or(0, |guest| guest.store.data().cap.used())
    }

    fn stage(&self) -> Stage {
        *self.stage.borrow()
    }

    /// How long the module may take for an event.
    fn patience(&self) -> Duration {
        Duration::from_millis(u64::from(self.module.limits.request_ms))
    }

    /// Gives the module up, whose state nobody knows.
    fn fail(&self, refusal: Refusal) {
        self.module.counts.failed();
        self.stage.send_replace(Stage::Ended);
        self.connections.abort_all();
        self.module.log(LogLevel::Error, refusal.to_string().as_bytes());
        if let Some(ended) = self.ended.lock().unwrap_or_else(PoisonError::into_inner).take() {
            ended(refusal);
        }
    }
}

/// Calls the module's timers when they are due.
async fn keep_time(service: Weak<TcpService>) {
    let Some(connections) = service.upgrade().map(|service| Arc::clone(&service.connections)) else { return };
    loop {
        let changed = connections.timers_changed();
        match connections.next_timer() {
            Some(due) => {
                let _ = timeout_at(due, changed).await;
            }
            // Nobody may set one any more, and nobody tells of that.
            None => {
                let _ = timeout(LOOK_TIME, changed).await;
            }
        }
        let Some(service) = service.upgrade() else { return };
        if service.stage() >= Stage::Draining {
            return;
        }
        while let Some(id) = connections.due_timer(Instant::now()) {
            service.timer(id).await;
        }
    }
}

/// Tells the module when what it watches is ready.
async fn keep_watch(service: Weak<TcpService>) {
    let Some(connections) = service.upgrade().map(|service| Arc::clone(&service.connections)) else { return };
    loop {
        let _ = timeout(LOOK_TIME, connections.watches_changed()).await;
        loop {
            let Some(service) = service.upgrade() else { return };
            if service.stage() >= Stage::Draining {
                return;
            }
            if connections.watched().is_empty() {
                break;
            }
            service.watch().await;
        }
    }
}

const LOOK_TIME: Duration = Duration::from_secs(1);
