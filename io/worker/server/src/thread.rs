// SPDX-License-Identifier: Apache-2.0
//! The server thread: it starts, replaces and stops modules; their connections are tasks beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use netserv_model::effect::ModuleSlot;
use netserv_model::{ModuleName, Refusal, RefusalKind};
use netserv_worker_base::error::ServeError;
use netserv_worker_base::failure::no_carrier;
use netserv_worker_base::sys;
use netserv_worker_wasm::one_line;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::command::{Program, Role};
use super::component::{self, CheckedComponent, ComponentKind};
use super::connect_to::ConnectTo;
use super::engine::ServerEngine;
use super::http::service::HttpService;
use super::http::site::{HttpSite, Version};
use super::intercepts::Intercepts;
use super::listeners::{Handler, Listeners, places, tcp_ports};
use super::module::Module;
use super::orders::{Order, Report, Reports, ServerLoad};
use super::takers::Taker;
use super::tcp::connection;
use super::tcp::service::{TcpService, Times};
use super::tls;
use crate::limits;

/// Starts the thread, in a container of `memory_bytes`.
///
/// # Errors
/// The kernel has no threads left.
pub fn start(
    orders: UnboundedReceiver<Order>,
    reports: Reports,
    memory_bytes: u64,
) -> Result<std::thread::JoinHandle<()>, ServeError> {
    let builder = std::thread::Builder::new().name("server".to_owned());
    let thread = builder.spawn(move || match prepare(memory_bytes) {
        Ok((engine, runtime)) => {
            runtime.block_on(Servers::new(engine, reports).run(orders));
            // Name servers that do not answer must not hold up the end.
            runtime.shutdown_background();
        }
        Err(refusal) => refuse_all(orders, &reports, &refusal),
    });
    thread.map_err(|error| ServeError::Engine("the server thread", error.to_string()))
}

fn prepare(memory_bytes: u64) -> Result<(ServerEngine, Runtime), Refusal> {
    let failed = |what: &str| Refusal::new(RefusalKind::NodeFailed, what);
    let engine = ServerEngine::without_compiler(memory_bytes);
    let engine = engine.map_err(|error| failed(&format!("the engine does not start: {}", one_line(&error))))?;
    let runtime = runtime().map_err(|error| failed(&format!("the server thread does not start: {error}")))?;
    Ok((engine, runtime))
}

fn refuse_all(mut orders: UnboundedReceiver<Order>, reports: &Reports, refusal: &Refusal) {
    while let Some(order) = orders.blocking_recv() {
        if let Order::Load(load) = order {
            let (slot, ticket, refusal) = (load.module.slot, load.ticket, refusal.clone());
            reports.send(Report::Failed { slot, ticket, refusal });
        }
    }
}

/// Returns what runs the tasks of server modules: on this thread, or on several if there are more processors.
///
/// # Errors
/// The kernel has no threads or descriptors left.
pub fn runtime() -> std::io::Result<Runtime> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from).min(limits::SERVER_THREADS_MAX);
    let mut builder = if processors > 1 { Builder::new_multi_thread() } else { Builder::new_current_thread() };
    if processors > 1 {
        builder.worker_threads(processors);
    }
    // Tasks that compute until their beat ends must not keep connections unnoticed for as many beats as is usual.
    builder.event_interval(limits::TASKS_BETWEEN_EVENTS);
    builder.thread_name("server").max_blocking_threads(limits::LOOKUP_THREADS_MAX).enable_all().build()
}

struct Servers {
    engine: Arc<ServerEngine>,
    reports: Reports,
    running: BTreeMap<ModuleSlot, Running>,
    /// What was unloaded, and still has requests under way.
    retiring: JoinSet<()>,
    /// What was drained, and may still have connections.
    draining: BTreeMap<ModuleSlot, Draining>,
    ports: Listeners,
    intercepts: Intercepts,
    /// How many versions that take connections over have been loaded.
    taken: u64,
}

/// One module at work. Its next version is loaded in another place beside it.
struct Running {
    name: ModuleName,
    work: Work,
}

/// The connections of a module that is gone.
enum Draining {
    Http(Arc<HttpSite>),
    Tcp(Arc<TcpService>),
}

impl Draining {
    fn cut(&self) {
        match self {
            Draining::Http(site) => site.cut(),
            Draining::Tcp(service) => service.cut(),
        }
    }
}

enum Work {
    /// Versions of one module share the site.
    Http {
        site: Arc<HttpSite>,
        version: Version,
        resident: Option<Program>,
    },
    Tcp(Arc<TcpService>),
    Command(Program),
}

impl Servers {
    fn new(engine: ServerEngine, reports: Reports) -> Servers {
        let intercepts = Intercepts::new(reports.clone());
        let (engine, retiring, ports) = (Arc::new(engine), JoinSet::new(), Listeners::default());
        Servers {
            engine,
            reports,
            running: BTreeMap::new(),
            retiring,
            draining: BTreeMap::new(),
            ports,
            intercepts,
            taken: 0,
        }
    }

    async fn run(mut self, mut orders: UnboundedReceiver<Order>) {
        loop {
            let order = tokio::select! {
                order = orders.recv() => order,
                Some(_) = self.retiring.join_next() => continue,
            };
            match order {
                Some(Order::Load(load)) => self.load(*load).await,
                Some(Order::Unload(slot)) => self.unload(slot),
                Some(Order::Drain { slot, ticket, finish }) => self.drain(slot, ticket, finish),
                Some(Order::Export(slot)) => self.export(slot),
                Some(Order::Sockets { v6, sockets }) => self.intercepts.supply(v6, sockets),
                Some(Order::End) | None => break,
            }
        }
        for (slot, running) in std::mem::take(&mut self.running) {
            self.ports.close(slot);
            self.intercepts.close(slot);
            self.retire(running);
        }
        self.draining.values().for_each(Draining::cut);
        let retired = async { while self.retiring.join_next().await.is_some() {} };
        // What takes longer ends with the runtime.
        let _ = timeout(limits::STOP_TIME_MAX, retired).await;
    }

    async fn load(&mut self, load: ServerLoad) {
        let (slot, ticket) = (load.module.slot, load.ticket);
        match self.start(load).await {
            Ok(()) => {
                self.reports.send(Report::Loaded { slot, ticket });
                if let Some(program) = self.running.get(&slot).and_then(|running| running.work.program()) {
                    program.open_gate();
                }
            }
            Err(refusal) => {
                self.unload(slot);
                self.reports.send(Report::Failed { slot, ticket, refusal });
            }
        }
        sys::give_back_program();
    }

    /// Starts a module.
    ///
    /// # Errors
    /// Why it does not run.
    async fn start(&mut self, load: ServerLoad) -> Result<(), Refusal> {
        let ServerLoad { module, ticket, code, tls, listeners, state } = load;
        let component = component::load(&self.engine, code, &module.blocks)?;
        if state.is_some() && component.kind == ComponentKind::Command {
            // It would run before it could be asked.
            return Err(no_carrier("server"));
        }
        if CACHES.iter().any(|cache| component.imports(cache)) {
            module.cache.prepare();
        }
        let [inbox, topics] = ["netserv:control/inbox", "netserv:control/topics"].map(|name| component.imports(name));
        module.control.open_for_server(inbox, topics);
        let mut work = self.work(component, &module, ticket, tls).await?;
        if let Some(state) = state {
            work.import_state(&state).await?;
        }
        self.open(&module, &work, listeners)?;
        match &mut work {
            Work::Http { site, version, resident } => {
                if let Some(program) = resident {
                    self.hand_over(&module, program, Role::Resident).await;
                }
                site.replace(version.clone());
            }
            Work::Tcp(_) => {}
            Work::Command(program) => self.hand_over(&module, program, Role::Alone).await,
        }
        let running = Running { name: module.name.name.clone(), work };
        if let Some(old) = self.running.insert(module.slot, running) {
            self.retire(old);
        }
        Ok(())
    }

    /// Ends the versions of a module before `program`, once it wants a port or a message: two cannot have the same. Of versions that
    /// answer requests beside a resident one, only the programs end. If it ended instead, the node hears of that, and the others go on.
    async fn hand_over(&mut self, module: &Module, program: &mut Program, role: Role) {
        let mut others = self.running.values().filter(|running| running.name == module.name.name);
        if !others.any(|other| role == Role::Alone || other.work.program().is_some()) {
            // One that ends at once is refused with its own words, and not installed first.
            program.is_at_gate(limits::SETTLE_TIME_MAX).await;
        } else if program.is_at_gate(limits::HANDOVER_TIME_MAX).await {
            self.stop(module, role).await;
        }
    }

    async fn work(
        &self,
        component: CheckedComponent,
        module: &Arc<Module>,
        ticket: u64,
        tls: Option<std::fs::File>,
    ) -> Result<Work, Refusal> {
        let (slot, reports) = (module.slot, self.reports.clone());
        let ended = move |refusal| reports.send(Report::Failed { slot, ticket, refusal });
        ConnectTo::check(&module.properties)?;
        match component.kind {
            ComponentKind::Http => {
                let tls = tls.map(|pem| tls::certificate(pem, &module.properties)).transpose()?;
                let tls_names = Arc::new(tls_names(module, tls.as_ref())?);
                let tls = tls.map(|certificate| certificate.acceptor);
                let program = component.has_resident.then(|| component.clone());
                let service = Arc::new(HttpService::start(&self.engine, component, module).await?);
                let version = Version { service, tls, tls_names };
                let resident = match program {
                    Some(program) => Some(Program::start(&self.engine, program, module, Role::Resident, ended).await?),
                    None => None,
                };
                let old = self.running.values().find_map(|running| running.site_of(&module.name.name));
                let site = old.unwrap_or_else(|| Arc::new(HttpSite::new(version.clone())));
                Ok(Work::Http { site, version, resident })
            }
            ComponentKind::Tcp => {
                no_tls_names(module)?;
                let service = TcpService::start(&self.engine, component, module, Times::default(), ended).await?;
                let before = self.running.values().find_map(|running| running.tcp_of(&module.name.name));
                if let Some(before) = before {
                    service.connections.join(&before.connections);
                }
                connection::bind(&service);
                Ok(Work::Tcp(service))
            }
            ComponentKind::Command => {
                no_tls_names(module)?;
                Ok(Work::Command(Program::start(&self.engine, component, module, Role::Alone, ended).await?))
            }
        }
    }

    /// Opens the way to a module.
    fn open(&mut self, module: &Module, work: &Work, listeners: [Option<OwnedFd>; 2]) -> Result<(), Refusal> {
        let network = module.network();
        let Some(handler) = work.handler() else {
            self.ports.close(module.slot);
            self.intercepts.close(module.slot);
            return Ok(());
        };
        let owner = (module.slot, &module.name.name);
        self.ports.open(owner, &tcp_ports(&network.listen)?, &places(&network.addresses), &handler)?;
        if network.intercept.is_empty() {
            self.intercepts.close(module.slot);
            return Ok(());
        }
        let (ticket, name, filters, refuse) = (self.taken, module.name.name.clone(), network.intercept, network.refuse);
        self.taken += 1;
        self.intercepts.open(module.slot, listeners, Taker { ticket, name, filters, refuse, handler })
    }

    /// Asks a module for its state; the answer is reported.
    fn export(&self, slot: ModuleSlot) {
        let reports = self.reports.clone();
        let report = move |said| reports.send(Report::Exported { slot, said });
        match self.running.get(&slot).map(|running| &running.work) {
            Some(Work::Http { version, .. }) => {
                let service = Arc::clone(&version.service);
                tokio::spawn(async move { report(service.export_state().await) });
            }
            Some(Work::Tcp(service)) => {
                let service = Arc::clone(service);
                tokio::spawn(async move { service.export_state(report).await });
            }
            Some(Work::Command(_)) => report(Ok(None)),
            None => report(Err(Refusal::new(RefusalKind::NotRunning, "the module does not run at the moment"))),
        }
    }

    /// Ends what is in a place. If another version of it is there, that has its ports and connections.
    fn unload(&mut self, slot: ModuleSlot) {
        if let Some(draining) = self.draining.remove(&slot) {
            self.end_draining(&draining);
        }
        self.intercepts.close(slot);
        let Some(running) = self.running.remove(&slot) else { return self.ports.close(slot) };
        let heir = self.running.iter().find(|(_, other)| other.name == running.name);
        if let Some((heir, other)) = heir
            && let Some(handler) = other.work.handler()
        {
            self.ports.leave(slot, *heir, &handler);
            if let (Work::Http { site, version, .. }, Work::Http { version: own, .. }) = (&other.work, &running.work)
                && site.is_served_by(own)
            {
                site.replace(version.clone());
            }
        }
        self.ports.close(slot);
        self.retire(running);
    }

    /// Ends what is in a place, but for connections that go on: without it, or with a module of events if `finish`. If another version is
    /// there, that has them.
    fn drain(&mut self, slot: ModuleSlot, ticket: u64, finish: bool) {
        let reports = self.reports.clone();
        let drained = move || reports.send(Report::Drained { slot, ticket });
        let name = self.running.get(&slot).map(|running| running.name.clone());
        let others = self.running.iter().filter(|(place, _)| **place != slot);
        if name.is_none_or(|name| others.map(|(_, other)| &other.name).any(|other| *other == name)) {
            self.unload(slot);
            return drained();
        }
        self.intercepts.close(slot);
        self.ports.close(slot);
        match self.running.remove(&slot).map(|running| running.work) {
            Some(Work::Http { site, resident, .. }) => {
                self.draining.insert(slot, Draining::Http(Arc::clone(&site)));
                self.retiring.spawn(async move {
                    if let Some(program) = resident {
                        program.stop().await;
                    }
                    site.drain().await;
                    drained();
                });
            }
            Some(Work::Tcp(service)) => {
                self.draining.insert(slot, Draining::Tcp(Arc::clone(&service)));
                self.retiring.spawn(async move {
                    match finish {
                        true => service.finish().await,
                        false => service.drain().await,
                    }
                    drained();
                });
            }
            Some(work @ Work::Command(_)) => {
                self.retiring.spawn(async move {
                    work.stop().await;
                    drained();
                });
            }
            None => drained(),
        }
    }

    /// Ends what is left of a module that is gone. Where it goes on with its connections and there is a version again, that has them.
    fn end_draining(&mut self, draining: &Draining) {
        if let Draining::Tcp(service) = draining
            && service.is_finishing()
            && let Some(heir) = self.running.values().find_map(|other| other.tcp_of(&service.module().name.name))
        {
            let service = Arc::clone(service);
            self.retiring.spawn(async move {
                service.hand_over(&heir).await;
                service.stop().await;
            });
            return;
        }
        draining.cut();
    }

    /// Ends what ran, or leaves its connections to the version that has them.
    fn retire(&mut self, old: Running) {
        match old.work {
            Work::Http { site, version, .. } if self.running.values().any(|other| other.has(&site)) => {
                // Who ends the site waits for its connections, and so for this version's requests.
                tokio::spawn(version.retire());
            }
            Work::Tcp(service) => {
                let heir = self.running.values().find_map(|other| other.tcp_of(&old.name));
                self.retiring.spawn(async move {
                    if let Some(heir) = heir {
                        service.hand_over(&heir).await;
                    }
                    service.stop().await;
                });
            }
            work @ (Work::Http { .. } | Work::Command(_)) => {
                self.retiring.spawn(work.stop());
            }
        }
    }

    /// Ends all versions of a module, and waits for that; for a resident program only the programs.
    async fn stop(&mut self, module: &Module, role: Role) {
        let mut slots = Vec::new();
        for (slot, running) in self.running.iter_mut().filter(|(_, running)| running.name == module.name.name) {
            match &mut running.work {
                Work::Http { resident, .. } if role == Role::Resident => {
                    if let Some(program) = resident.take() {
                        program.stop().await;
                    }
                }
                Work::Tcp(_) if role == Role::Resident => {}
                Work::Http { .. } | Work::Tcp(_) | Work::Command(_) => slots.push(*slot),
            }
        }
        for slot in slots {
            self.ports.close(slot);
            self.intercepts.close(slot);
            if let Some(running) = self.running.remove(&slot) {
                running.work.stop().await;
            }
        }
    }
}

/// The interfaces of the cache.
const CACHES: [&str; 2] = ["netserv:cache/store", "netserv:cache/entries"];

/// Returns the names that an HTTP module serves by TLS in the place of their servers, in small letters.
///
/// # Errors
/// [`RefusalKind::BadManifest`] with a name that is not in its certificate.
fn tls_names(module: &Module, certificate: Option<&tls::Certificate>) -> Result<BTreeSet<String>, Refusal> {
    let names = module.network().intercept_tls;
    let is_covered = |name: &str| certificate.is_some_and(|certificate| certificate.covers(name));
    match names.iter().find(|name| !is_covered(name)) {
        Some(name) => {
            let detail = format!("server.intercept-tls has `{name}`, which is not in the package's certificate");
            Err(Refusal::new(RefusalKind::BadManifest, detail))
        }
        None => Ok(names.into_iter().map(|name| name.to_ascii_lowercase()).collect()),
    }
}

/// # Errors
/// [`RefusalKind::BadManifest`] if a module that does not answer HTTP requests names some.
fn no_tls_names(module: &Module) -> Result<(), Refusal> {
    match module.network().intercept_tls.is_empty() {
        true => Ok(()),
        false => {
            let detail = "server.intercept-tls is for components that export wasi:http/incoming-handler";
            Err(Refusal::new(RefusalKind::BadManifest, detail))
        }
    }
}

impl Running {
    /// Returns the site, if this is a version of the HTTP module of that name.
    fn site_of(&self, name: &ModuleName) -> Option<Arc<HttpSite>> {
        match &self.work {
            Work::Http { site, .. } if self.name == *name => Some(Arc::clone(site)),
            Work::Http { .. } | Work::Tcp(_) | Work::Command(_) => None,
        }
    }

    /// Returns the service, if this is a version of the TCP module of that name.
    fn tcp_of(&self, name: &ModuleName) -> Option<Arc<TcpService>> {
        match &self.work {
            Work::Tcp(service) if self.name == *name => Some(Arc::clone(service)),
            Work::Http { .. } | Work::Tcp(_) | Work::Command(_) => None,
        }
    }

    fn has(&self, wanted: &Arc<HttpSite>) -> bool {
        self.site_of(&self.name).is_some_and(|site| Arc::ptr_eq(&site, wanted))
    }
}

impl Work {
    fn handler(&self) -> Option<Handler> {
        match self {
            Work::Http { site, .. } => Some(Handler::Http(Arc::clone(site))),
            Work::Tcp(service) => Some(Handler::Tcp(Arc::clone(service))),
            Work::Command(_) => None,
        }
    }

    /// Returns the program that it is, or has beside it.
    fn program(&self) -> Option<&Program> {
        match self {
            Work::Http { resident, .. } => resident.as_ref(),
            Work::Command(program) => Some(program),
            Work::Tcp(_) => None,
        }
    }

    /// Has the module take what another instance said of its state.
    async fn import_state(&self, state: &[u8]) -> Result<(), Refusal> {
        match self {
            Work::Http { version, .. } => version.service.import_state(state).await,
            Work::Tcp(service) => service.import_state(state).await,
            // None is started with a state.
            Work::Command(_) => Err(no_carrier("server")),
        }
    }

    async fn stop(self) {
        match self {
            Work::Http { site, version, resident } => {
                site.stop().await;
                version.service.end();
                drop(resident);
            }
            Work::Tcp(service) => service.stop().await,
            Work::Command(program) => program.stop().await,
        }
    }
}
