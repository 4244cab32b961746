// SPDX-License-Identifier: Apache-2.0
//! The server thread: it starts, replaces and stops modules; their connections are tasks beside it.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use netserv_model::command::ModuleSlot;
use netserv_model::{Refusal, RefusalKind};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::UnboundedReceiver;

use super::command::Program;
use super::component::{self, CheckedComponent, ComponentKind};
use super::engine::ServerEngine;
use super::http::HttpService;
use super::listeners::{Handler, Listeners, tcp_ports};
use super::module::Module;
use super::site::HttpSite;
use super::tcp::TcpService;
use super::tcp_intercept::Intercepts;
use super::{Load, Order, Report, Reports, tls};
use crate::engine::one_line;
use crate::error::ServeError;
use crate::{limits, sys};

/// Starts the thread.
///
/// # Errors
/// The kernel has no threads left.
pub fn start(orders: UnboundedReceiver<Order>, reports: Reports) -> Result<std::thread::JoinHandle<()>, ServeError> {
    let builder = std::thread::Builder::new().name("server".to_owned());
    let thread = builder.spawn(move || match prepare() {
        Ok((engine, runtime)) => runtime.block_on(Servers::new(engine, reports).run(orders)),
        Err(refusal) => refuse_all(orders, &reports, &refusal),
    });
    thread.map_err(|error| ServeError::Engine("the server thread", error.to_string()))
}

fn prepare() -> Result<(ServerEngine, Runtime), Refusal> {
    let failed = |what: &str| Refusal::new(RefusalKind::NodeFailed, what);
    let engine = ServerEngine::without_compiler();
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
    builder.thread_name("server").max_blocking_threads(limits::LOOKUP_THREADS_MAX).enable_all().build()
}

struct Servers {
    engine: Arc<ServerEngine>,
    reports: Reports,
    running: BTreeMap<ModuleSlot, Work>,
    ports: Listeners,
    intercepts: Intercepts,
}

/// One module at work.
enum Work {
    Http(Arc<HttpSite>),
    Tcp(Arc<TcpService>),
    Command(Program),
}

impl Servers {
    fn new(engine: ServerEngine, reports: Reports) -> Servers {
        let intercepts = Intercepts::new(reports.clone());
        Servers { engine: Arc::new(engine), reports, running: BTreeMap::new(), ports: Listeners::default(), intercepts }
    }

    async fn run(mut self, mut orders: UnboundedReceiver<Order>) {
        while let Some(order) = orders.recv().await {
            match order {
                Order::Load(load) => self.load(*load).await,
                Order::Unload(slot) => self.unload(slot),
                Order::Sockets { v6, sockets } => self.intercepts.supply(v6, sockets),
                Order::End => break,
            }
        }
        let mut stopping = tokio::task::JoinSet::new();
        for (slot, work) in std::mem::take(&mut self.running) {
            self.ports.close(slot);
            self.intercepts.close(slot);
            stopping.spawn(work.stop());
        }
        stopping.join_all().await;
    }

    async fn load(&mut self, load: Load) {
        let Load { module, ticket, code, tls, listeners } = load;
        let slot = module.slot;
        let started = match component::load(&self.engine, code, &module.blocks) {
            Ok(component) => self.start(component, &module, ticket, tls, listeners).await,
            Err(refusal) => Err(refusal),
        };
        sys::give_back_program();
        match started {
            Ok(()) => self.reports.send(Report::Loaded { slot, ticket }),
            Err(refusal) => {
                self.unload(slot);
                self.reports.send(Report::Failed { slot, ticket, refusal });
            }
        }
    }

    async fn start(
        &mut self,
        component: CheckedComponent,
        module: &Arc<Module>,
        ticket: u64,
        tls: Option<std::fs::File>,
        listeners: [Option<OwnedFd>; 2],
    ) -> Result<(), Refusal> {
        let network = module.network();
        let work = match component.kind {
            ComponentKind::Http => {
                let tls = tls.map(tls::acceptor).transpose()?;
                let service = Arc::new(HttpService::start(&self.engine, component, module).await?);
                Work::Http(self.site(module.slot, service, tls))
            }
            ComponentKind::Tcp => {
                let (slot, reports) = (module.slot, self.reports.clone());
                let ended = move |refusal| reports.send(Report::Failed { slot, ticket, refusal });
                Work::Tcp(TcpService::start(&self.engine, component, module, ended).await?)
            }
            ComponentKind::Command => {
                // Two versions cannot have the same port.
                self.stop(module.slot).await;
                let (slot, reports) = (module.slot, self.reports.clone());
                let ended = move |refusal| reports.send(Report::Failed { slot, ticket, refusal });
                Work::Command(Program::start(&self.engine, component, module, ended).await?)
            }
        };
        match work.handler() {
            Some(handler) => {
                let owner = (module.slot, &module.name.name);
                self.ports.open(owner, &tcp_ports(&network.listen)?, &network.addresses, &handler)?;
                if network.intercept.is_empty() {
                    self.intercepts.close(module.slot);
                } else {
                    self.intercepts.open(module.slot, listeners, &handler)?;
                }
            }
            None => {
                self.ports.close(module.slot);
                self.intercepts.close(module.slot);
            }
        }
        let goes_on = self.running.get(&module.slot).is_some_and(|old| work.goes_on(old));
        if let Some(old) = self.running.insert(module.slot, work)
            && !goes_on
        {
            tokio::spawn(old.stop());
        }
        Ok(())
    }

    /// Returns the site of a module's slot with `service` behind it: that of the version before, if there is one.
    fn site(
        &self,
        slot: ModuleSlot,
        service: Arc<HttpService>,
        tls: Option<tokio_rustls::TlsAcceptor>,
    ) -> Arc<HttpSite> {
        match self.running.get(&slot) {
            Some(Work::Http(site)) => {
                site.replace(service, tls);
                Arc::clone(site)
            }
            Some(Work::Tcp(_) | Work::Command(_)) | None => Arc::new(HttpSite::new(service, tls)),
        }
    }

    fn unload(&mut self, slot: ModuleSlot) {
        self.ports.close(slot);
        self.intercepts.close(slot);
        if let Some(work) = self.running.remove(&slot) {
            tokio::spawn(work.stop());
        }
    }

    async fn stop(&mut self, slot: ModuleSlot) {
        self.ports.close(slot);
        self.intercepts.close(slot);
        if let Some(work) = self.running.remove(&slot) {
            work.stop().await;
        }
    }
}

impl Work {
    fn handler(&self) -> Option<Handler> {
        match self {
            Work::Http(site) => Some(Handler::Http(Arc::clone(site))),
            Work::Tcp(service) => Some(Handler::Tcp(Arc::clone(service))),
            Work::Command(_) => None,
        }
    }

    /// Returns whether this is the same as `old`, with another version behind it.
    fn goes_on(&self, old: &Work) -> bool {
        match (self, old) {
            (Work::Http(new), Work::Http(old)) => Arc::ptr_eq(new, old),
            (Work::Http(_) | Work::Tcp(_) | Work::Command(_), _) => false,
        }
    }

    async fn stop(self) {
        match self {
            Work::Http(site) => site.stop().await,
            Work::Tcp(service) => service.stop().await,
            Work::Command(program) => program.stop().await,
        }
    }
}
