// SPDX-License-Identifier: Apache-2.0
//! Puts a node together and runs it.

use std::io::IsTerminal;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use netserv_container::{LauncherConfig, MediaFiles};
use netserv_model::effect::{InstalledRecord, Stored};
use netserv_model::policy::NodePolicy;
use netserv_netlink::routes::LocalAddresses;
use netserv_node::recording::{self, Header};
use netserv_packet_loop::PacketEvent;
use netserv_packet_loop::thread::PacketSender;
use netserv_plane::{MARK_DEFAULT, Passage};
use netserv_repository::limits::CODE_DIR_BYTES_MAX;
use netserv_repository::{AddressAsker, Compiled, FetchLimits, IsOwn, ListAsker, Repository, Sources, engine_name};
use netserv_signal::{Interceptor, SignalConfig, SignalSocket};
use rand::TryRng;
use rand::rngs::SysRng;
use tokio::net::UnixListener;
use tokio::sync::{mpsc, watch};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::api::{self, Api, AuditFiles};
use crate::applications;
use crate::audit;
use crate::audit::folder::Folder;
use crate::clock::Clock;
use crate::conditions;
use crate::config::domain::networks_of;
use crate::config::{Config, Dataplane, Role, Signaling, engines};
use crate::control_loop::{ControlLoop, Parts};
use crate::effects::networks::Networks;
use crate::effects::networks::jobs::{self as network_jobs, NetworkJob};
use crate::effects::packages::code::Compositions;
use crate::effects::packages::{self, Packages};
use crate::effects::store::Store;
use crate::effects::workers::launches::{self, Disk, RealTime};
use crate::effects::workers::{self, WorkersParts};
use crate::effects::{Effects, Holders, ModuleOwners, Owners, filters, routes, store};
use crate::event::{Event, Wish, WorkerEvent};
use crate::inbox::{SignalingWays, Ways, inbox};
use crate::limits::EVENTS_MAX;
use crate::logs::{self, Logs, wall};
use crate::machine::about::About;
use crate::machine::doctor;
use crate::machine::keeper::Keeper;
use crate::machine::maintenance::Mark;
use crate::machine::notices::Notices;
use crate::machine::own_addresses;
use crate::machine::plane::{self, Plane};
use crate::machine::runtimes::Runtimes;
use crate::machine::session_secret;
use crate::machine::state_dir;
use crate::machine::sweep::{lock, sweep};
use crate::metrics::gauges::ApplicationCounts;
use crate::newsfeed::NewsFeed;
use crate::operator::Operator;
use crate::record::Recording;
use crate::signal::{Ports, RouterAlert, SignalIo};
use crate::tls::Tls;
use crate::unix_socket::{self, OWNER, OWNER_AND_GROUP};

/// Runs the node until it is told to stop.
///
/// # Errors
/// The configuration is wrong, a port is taken, or the machine lacks something; the error says what.
pub fn run(config_path: Option<&Path>, record: Option<&Path>) -> Result<()> {
    let config = Config::load_or_default(config_path)?;
    let logs = start_logging();
    state_dir::make_private_files();
    state_dir::open(&config.state_dir).with_context(|| {
        format!("cannot make {} and keep it from others; set `state-dir`", config.state_dir.display())
    })?;
    let _lock = lock(&config.state_dir)?;
    raise_open_files();
    sweep(&config)?;
    let runtimes = Runtimes::find(&config);
    let keeper = start_launcher(&config, &runtimes)?;
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build()?;
    let files = Files { config: config_path.map(Path::to_owned), record: record.map(Path::to_owned) };
    let result = runtime.block_on(run_node(config, files, logs, runtimes, keeper));
    // Downloads that are under way end by their own deadline; nobody waits for them.
    runtime.shutdown_timeout(Duration::from_millis(100));
    result
}

fn start_logging() -> Logs {
    let logs = Logs::default();
    let usual = || Targets::new().with_default(LevelFilter::INFO);
    let wanted = std::env::var("RUST_LOG").ok().and_then(|text| text.parse::<Targets>().ok());
    let terminal = tracing_subscriber::fmt::layer()
        .log_internal_errors(false)
        .with_writer(std::io::stderr)
        .fmt_fields(logs::fields())
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false);
    tracing_subscriber::registry()
        .with(terminal.with_filter(wanted.unwrap_or_else(usual)))
        .with(logs.clone().with_filter(usual()))
        .init();
    logs
}

/// Allows as many open files as the system grants. A container takes five, and a usual soft limit is 1024.
fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    let (from, to) = (current.unwrap_or(u64::MAX), maximum.unwrap_or(u64::MAX));
    match raised {
        Ok(()) => tracing::debug!(from, to, "open files allowed"),
        Err(error) => tracing::warn!(%error, from, to, "the limit of open files stays as it is"),
    }
}

/// Starts the launcher of a node. One that cannot be started is no reason not to run: the machine may get what it lacks,
/// and until then requests for modules are refused with the reason.
fn start_launcher(config: &Config, runtimes: &Runtimes) -> Result<Option<Arc<Keeper>>> {
    if config.role == Role::Host {
        return Ok(None);
    }
    let worker = worker_path(config)?;
    for line in &runtimes.missing {
        tracing::info!("not on this machine: {line}");
    }
    let jvm = runtimes.jvm.as_ref();
    let launcher = LauncherConfig::new(worker, &config.state_dir, &config.instance());
    let media = media_files(config);
    let jvm_files = jvm.map(|jvm| jvm.files.clone());
    let name_servers = config.name_servers().to_vec();
    let authorities = config.blocks.http_client.file().map(Path::to_path_buf);
    let files = LauncherConfig { jvm: jvm_files, media, name_servers, authorities, ..launcher };
    let keeper = Arc::new(Keeper::new(files));
    match keeper.launcher() {
        Ok(launcher) => {
            for line in &launcher.report().missing {
                tracing::warn!("not enforced on this machine: {line}");
            }
        }
        Err(refusal) => tracing::error!(%refusal, "requests for modules will be refused"),
    }
    if let Some(jvm) = jvm {
        tracing::info!(java = %jvm.files.java_home.display(), "OSGi modules run on {}", jvm.engine);
        jvm.make_archive(&config.state_dir, keeper.clone());
    }
    Ok(Some(keeper))
}

/// Looks for what media jobs are made of, if the operator offers them.
fn media_files(config: &Config) -> Option<MediaFiles> {
    if !config.blocks.has("media") {
        return None;
    }
    let files = config.blocks.media.files();
    files.inspect_err(|missing| tracing::info!("not on this machine: media jobs: {missing}")).ok()
}

fn worker_path(config: &Config) -> Result<PathBuf> {
    let path = if config.worker.as_os_str().is_empty() {
        std::env::current_exe()?.with_file_name("netserv-worker")
    } else {
        config.worker.clone()
    };
    ensure!(path.exists(), "{} is not there; set `worker` to where netserv-worker is", path.display());
    Ok(path)
}

/// Files that the command line names.
struct Files {
    config: Option<PathBuf>,
    record: Option<PathBuf>,
}

async fn run_node(
    config: Config,
    files: Files,
    logs: Logs,
    runtimes: Runtimes,
    keeper: Option<Arc<Keeper>>,
) -> Result<()> {
    let clock = Clock::start();
    // Before the socket is there: who finds it makes requests that are not older than the node.
    let begun = clock.now();
    let (Ways { events, signaling: signaling_ways }, inbox) = inbox();
    let listener = unix_socket::bind(&config.socket, OWNER_AND_GROUP, "socket")?;
    let application_listener = application_socket(&config)?;
    let (worker_events, worker_inbox) = mpsc::channel(EVENTS_MAX);
    let reports = worker_events.clone();
    // The packet thread never waits: a report that finds no room is made again by the next look.
    let report = Arc::new(move |event: PacketEvent| reports.try_send(WorkerEvent::Packet(event)).is_ok());
    let operator = Operator::new(&config)?;
    let Plane { why, devices, planes, packets, filters, counters, signaling } = Plane::start(&config, report)?;
    let (routes, addresses) = routes::start(events.clone(), config.signaling.ingress.clone())?;
    let own_addresses = addresses.all().iter().map(|local| local.address).collect();
    let signal = start_signaling(&config, addresses, signaling, signaling_ways)?;
    let database = config.state_dir.join("node.db");
    let records = Store::open(&database)?;
    let installed = records.all().unwrap_or_else(|error| {
        tracing::error!(%error, "the stored modules cannot be read");
        Vec::new()
    });
    // Billing goes by it: rather no node than one that counts from nothing.
    let messages = records.messages().context("messages to modules cannot be read")?;
    // An older list might be taken in its place: rather no node.
    let lists = records.lists().context("revocation lists cannot be read")?;
    let usage = records.usage().context("what was used before cannot be read")?;
    let notices = Notices::default();
    let (modules, repository) = match keeper {
        Some(keeper) => {
            let (logs, notices) = (logs.clone(), notices.clone());
            let parts = ModuleParts { runtimes: &runtimes, keeper, logs, installed: &installed, notices };
            let (sender, workers) = (packets.sender(), (worker_events, worker_inbox));
            let (owners, repository) = start_modules(&config, parts, sender, &events, workers)?;
            (Some(owners), Some(repository))
        }
        None => (None, None),
    };
    let packages = modules.as_ref().map(|modules: &ModuleOwners| modules.packages.clone());
    let (store, writes) = store::start(records, repository, &installed, config.state_dir.join(STORAGE))?;
    let owners = Owners { filters: filters::start(filters, packets.sender())?, store, routes, modules };
    let (effects, answers) = Effects::new(owners);
    let mut policy = config.policy(&|interface| networks_of(signal.addresses(), interface))?;
    runtimes.add_to(&mut policy);
    operator.add_to(&mut policy);
    let mark = Mark::of(&config.state_dir);
    let maintenance = config.role == Role::Node && mark.is_set();
    policy.maintenance = maintenance;
    let missing = doctor::missing(&config).into_iter().chain(runtimes.missing.clone()).collect();
    let mut header = header(&config, own_addresses, policy)?;
    header.config.nslp.session_secret =
        Some(session_secret::read_or_make(&config.state_dir, files.record.is_some(), random_bytes)?);
    let recording = files.record.map(|path| Recording::start(&path, &header)).transpose()?;
    let (in_force, seen) = watch::channel(Arc::new(config.clone()));
    let application_counts = Arc::new(ApplicationCounts::default());
    let started = wall();
    let news = NewsFeed::new(started);
    let (audit, audits) = audit::start(&config.state_dir, &config.node, config.audit, clock)?;
    let audit_files =
        AuditFiles::new(Folder::of(&config.state_dir, config.audit.file_bytes_max, config.audit.files_max));
    let control = ControlLoop::new(Parts {
        clock,
        node: header.node(),
        effects,
        signal,
        packets,
        application_counts: application_counts.clone(),
        recording,
        about: About { started, driver: why, runtimes, missing, notices, devices, planes },
        operator: operator.clone(),
        mark,
        maintenance,
        config_path: files.config,
        config: in_force,
        news: news.clone(),
        audit,
        events: events.clone(),
    });
    let api = Api { control: events.clone(), logs, news, config: seen, audit: audit_files };
    tokio::spawn(api::serve(listener, api));
    if let Some(listener) = application_listener {
        tokio::spawn(applications::serve(listener, events.clone(), application_counts));
    }
    conditions::start(&operator, &config, counters, events.clone(), packages.as_ref())?;
    tokio::spawn(system_signals(events));
    tracing::info!(node = %config.node, role = config.role.as_str(), socket = %config.socket.display(), "ready");
    control.run(begun, Stored { installed, usage, messages, lists }, inbox, answers).await;
    // What was to be stored is, and SQLite's log is in the database.
    if writes.join().is_err() {
        tracing::error!("the thread for the store ended by a fault");
    }
    if audits.is_some_and(|audits| audits.join().is_err()) {
        tracing::error!("the thread for the audit log ended by a fault");
    }
    // They are ours; if somebody removed them, that is as good.
    let _ = std::fs::remove_file(&config.socket);
    let _ = config.signaling.applications.is_on().then(|| std::fs::remove_file(&config.signaling.applications.socket));
    tracing::info!("stopped");
    Ok(())
}

/// Returns the socket of programs that are NSLPs, if there is to be one.
fn application_socket(config: &Config) -> Result<Option<UnixListener>> {
    let applications = &config.signaling.applications;
    if !applications.is_on() {
        return Ok(None);
    }
    let listener = unix_socket::bind(&applications.socket, OWNER, "signaling.applications.socket")?;
    if !applications.group.is_empty() {
        unix_socket::give_to_group(&applications.socket, &applications.group)
            .context("cannot give signaling.applications.socket to signaling.applications.group")?;
    }
    Ok(Some(listener))
}

/// What a node needs to run modules.
struct ModuleParts<'a> {
    runtimes: &'a Runtimes,
    keeper: Arc<Keeper>,
    logs: Logs,
    installed: &'a [InstalledRecord],
    notices: Notices,
}

fn start_modules(
    config: &Config,
    parts: ModuleParts<'_>,
    packets: PacketSender,
    news: &mpsc::Sender<Event>,
    (events, inbox): (mpsc::Sender<WorkerEvent>, mpsc::Receiver<WorkerEvent>),
) -> Result<(ModuleOwners, Arc<Repository>)> {
    let ModuleParts { runtimes, keeper, logs, installed, notices } = parts;
    let store = Store::open(&config.state_dir.join("node.db"))?;
    let networks = network_jobs::start(Networks::new(store, config.instance(), notices)?)?;
    for record in installed {
        let (user, module) = (record.user.clone(), record.module.name.clone());
        // It was started just now.
        let _ = networks.send(NetworkJob::Installed(user, module));
    }
    let asked = networks.clone();
    let is_own = own_addresses::is_own(move |address| network_jobs::has_address(&asked, address))?;
    let proofs = Arc::new(AddressAsker::new(&is_own));
    let holders = config.rpki.open()?.map(Holders::new);
    let lists = ListAsker::new(is_own.clone());
    let repository = Arc::new(open_repository(config, is_own)?);
    let disk = disk(config, installed);
    let stored = Some(disk.directory.clone());
    let Dataplane { real_time, cores, .. } = &config.dataplane;
    let real_time = RealTime::on(if *real_time { cores.clone() } else { Vec::new() });
    let launches = launches::start_thread(keeper.clone(), disk, packets.lanes(), real_time, events.clone())?;
    let limits = FetchLimits {
        time: Duration::from_secs(config.fetch.timeout_s),
        bytes: config.fetch.bytes_max,
        ..FetchLimits::default()
    };
    let (flavours, engine) = (runtimes.flavours.clone(), engine_name(&worker_path(config)?)?);
    let compositions = Arc::new(Compositions::open(config.state_dir.join("compositions"))?);
    let compiled = match config.code_dir.as_os_str().is_empty() {
        true => None,
        false => Some(Compiled::open(&config.code_dir, CODE_DIR_BYTES_MAX).context("code-dir")?),
    };
    let packages = Packages {
        repository: repository.clone(),
        limits,
        compile_cpu_time: Duration::from_secs(config.fetch.compile_cpu_s),
        engine,
        keeper: keeper.clone(),
        flavours,
        compiled: compiled.map(Arc::new),
        compositions,
    };
    let packages = packages::start(packages)?;
    let (workers, jobs) = mpsc::unbounded_channel();
    let wishes = Box::new(wishes(networks.clone(), events.clone()));
    let news = news.clone();
    let held = repository.clone();
    let node = config.about.info(&config.node);
    let parts = WorkersParts { launches, keeper, repository: held, packets, wishes, news, events, logs, stored, node };
    workers::start(parts, &config.blocks, jobs, inbox)?;
    Ok((ModuleOwners { packages, networks, workers, proofs, holders, lists }, repository))
}

/// Returns what hands workers' wishes to the thread for networks.
fn wishes(networks: std::sync::mpsc::Sender<NetworkJob>, events: mpsc::Sender<WorkerEvent>) -> impl Fn(Wish) + Send {
    move |wish| {
        let job = match wish {
            Wish::Sockets(wish) => {
                let (events, made_for) = (events.clone(), wish.clone());
                // There is room, or nobody waits for them: a worker asks for few at a time.
                let then = move |sockets| drop(events.try_send(WorkerEvent::Sockets(made_for, sockets)));
                NetworkJob::Sockets(wish, Box::new(then))
            }
            Wish::DropListeners(worker, slot) => NetworkJob::DropListeners(worker, slot),
            Wish::Leave(user) => NetworkJob::Leave(user),
        };
        // The node may be ending.
        let _ = networks.send(job);
    }
}

/// The folder of what modules keep, below the state directory.
const STORAGE: &str = "store";

/// Says what workers may keep on disk; what is there of users that are not known any more is removed.
fn disk(config: &Config, installed: &[InstalledRecord]) -> Disk {
    let directory = config.state_dir.join(STORAGE);
    // Strangers are known by what they have installed.
    let named = config.users.iter().map(|user| &user.name);
    let strangers = installed.iter().filter(|record| record.evidence.is_some()).map(|record| &record.user);
    let users = named.chain(strangers).cloned().collect();
    match netserv_container::retain_storage(&directory, &users) {
        Ok(0) => {}
        Ok(files) => tracing::info!(files, "removed what modules of users kept who are gone"),
        Err(error) => tracing::warn!(%error, "what modules of users kept who are gone stays"),
    }
    let (kv_bytes, cache_bytes) = config.blocks.file_bytes();
    Disk { directory, kv_bytes, cache_bytes }
}

fn start_signaling(
    config: &Config,
    addresses: LocalAddresses,
    passage: Option<Passage>,
    ways: SignalingWays<Event>,
) -> Result<SignalIo> {
    let signal_config = SignalConfig { port: netserv_wire::gist::UDP_PORT, mark: MARK_DEFAULT };
    let socket = SignalSocket::open(signal_config).context(
        "cannot open UDP port 270, the port of GIST; run as root or give the process CAP_NET_BIND_SERVICE and CAP_NET_RAW",
    )?;
    let interceptor = match config.intercepts() {
        true => Some(
            Interceptor::open(&plane::driver_config(config, config.signaling.queue), passage)
                .context("passing Queries cannot be intercepted; run as root, or set signaling.intercept = false")?,
        ),
        false => None,
    };
    let signaling = &config.signaling;
    let router_alert = RouterAlert { is_on: signaling.send_router_alert, except: signaling.no_router_alert.clone() };
    SignalIo::start(socket, interceptor, ports(signaling)?, router_alert, addresses, ways)
}

/// Returns where peers connect: no plain connection is as much as accepted where TLS is required.
fn ports(signaling: &Signaling) -> Result<Ports> {
    if !signaling.tls.is_on() {
        return Ok(Ports { plain: Some(signaling.tcp_port), tls: None });
    }
    let tls = Arc::new(Tls::new(signaling.tls.read()?)?);
    tls.warn_of_own();
    let plain = (!signaling.tls.require).then_some(signaling.tcp_port);
    Ok(Ports { plain, tls: Some((signaling.tls.port, tls)) })
}

fn open_repository(config: &Config, is_own: IsOwn) -> Result<Repository> {
    let allowed = |scheme: &str| config.fetch.schemes.iter().any(|allowed| allowed == scheme);
    let hosts = (!config.fetch.hosts.is_empty()).then(|| config.fetch.hosts.clone());
    let file_roots = if allowed("file") { config.fetch.file_roots.clone() } else { Vec::new() };
    let (own_addresses, put_hosts) = (config.fetch.own_addresses, config.fetch.put_hosts.clone());
    let (https, http) = (allowed("https"), allowed("http"));
    let sources = Sources { https, http, hosts, own_addresses, file_roots, put_hosts };
    let repository = netserv_repository::Config { sources, is_own, store_bytes_max: config.fetch.cache_bytes_max };
    let dir = config.state_dir.join("packages");
    Repository::open(&dir, repository).with_context(|| format!("cannot open {}", dir.display()))
}

/// Returns what the node is made from: its identity and its seed are new at each start.
fn header(config: &Config, own_addresses: Vec<IpAddr>, policy: NodePolicy) -> Result<Header> {
    Ok(Header {
        recording: recording::VERSION,
        software: env!("CARGO_PKG_VERSION").to_owned(),
        config: engines::node(config, &random_bytes()?, own_addresses),
        policy,
        seed: random_bytes()?,
    })
}

fn random_bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    SysRng.try_fill_bytes(&mut bytes).context("the system gives no random bytes")?;
    Ok(bytes)
}

async fn system_signals(events: mpsc::Sender<Event>) {
    use tokio::signal::unix::{SignalKind, signal};
    let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()].map(signal);
    let [Ok(mut terminate), Ok(mut interrupt), Ok(mut hangup)] = kinds else {
        return tracing::error!("signals cannot be waited for");
    };
    loop {
        let event = tokio::select! {
            _ = terminate.recv() => Event::Stop,
            _ = interrupt.recv() => Event::Stop,
            _ = hangup.recv() => Event::Reload,
        };
        if events.send(event).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_start_has_the_identity_or_the_seed_of_another() {
        let config = Config::default();
        let start = || header(&config, Vec::new(), config.policy(&|_| Vec::new()).unwrap()).unwrap();
        let (first, second) = (start(), start());
        let identities = [&first, &second].map(|header| &header.config.gist.peer_identity);
        assert_eq!(identities.map(|identity| identity.len()), [16, 16]);
        assert_ne!(identities[0], identities[1]);
        assert_ne!(first.seed, second.seed);
    }
}
