// SPDX-License-Identifier: Apache-2.0
//! The executor over the dummy driver, with the containers' other ends in the test's hands.

mod ending;
mod load;
mod media;
mod networks;
mod outbox;
mod workers;

use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use netserv_container::{Container, DetachedContainer, LauncherConfig};
use netserv_dataplane::Driver as _;
use netserv_dataplane::dummy::{Dummy, Plane};
use netserv_model::effect::Load;
use netserv_model::manifest::ModuleLimits;
use netserv_model::{SessionId, UnixTime};
use netserv_repository::package::{self, SigningKey};
use netserv_repository::{FetchLimits, Repository, Sources};
use netserv_wire::container::frames::LogLevel;

use super::*;
use crate::effects::workers::launches::Launch;
use crate::event::Launched;
use crate::limits::LOG_LINES_PER_CONTAINER_MAX;
use crate::machine::keeper::Keeper;
use crate::packet_loop::thread::PacketThreadConfig;

/// Room in the test's store for one package and not for two.
const STORE_BYTES: u64 = 40_000;

#[tokio::test]
async fn nobody_waits_for_containers_that_start() {
    let mut rig = Rig::new();
    let users: Vec<UserId> = (0..100).map(|number| format!("user{number}").parse().unwrap()).collect();
    for user in &users {
        rig.executor.carry_out(Command::StartWorker { worker: wasm(user), limits: ContainerLimits::default() });
    }
    let launches: Vec<Launch> = rig.launches.try_iter().map(started).collect();
    assert!(launches.iter().map(|launch| &launch.worker.user).eq(&users), "each is asked for once, in order");
    let containers: Vec<DetachedContainer> = launches.into_iter().map(|launch| rig.launch(launch)).collect();
    assert!(containers.iter().all(|container| container.send(&ready())));
    let mut readied = BTreeSet::new();
    for _ in &users {
        let Some(ControllerEvent::WorkerReady { worker }) = rig.next().await else { panic!("not ready") };
        readied.insert(worker.user);
    }
    assert!(users.into_iter().collect::<BTreeSet<_>>() == readied);
}

#[tokio::test]
async fn a_container_that_is_not_wanted_any_more_is_ended() {
    let mut rig = Rig::new();
    for end in [Command::StopWorker { worker: id("alice") }, start("alice")] {
        rig.executor.carry_out(start("alice"));
        let early = started(rig.launches.try_recv().unwrap());
        rig.executor.carry_out(end);
        assert!(rig.launch(early).is_let_go());
    }
    let wanted = started(rig.launches.try_recv().unwrap());
    assert!(!rig.launch(wanted).is_let_go(), "the one that was asked for last");
}

#[tokio::test]
async fn a_container_that_cannot_be_started_is_told_with_its_reason() {
    let mut rig = Rig::new();
    rig.executor.carry_out(start("alice"));
    let Launch { worker, generation, .. } = started(rig.launches.try_recv().unwrap());
    let refusal = Refusal::new(RefusalKind::NodeFailed, "no more places");
    rig.executor.launched(Launched { worker: worker.clone(), generation, result: Err(refusal.clone()) });
    assert_eq!(rig.executor.poll_event(), Some(ControllerEvent::WorkerDied { worker, refusal, culprit: None }));
}

#[tokio::test]
async fn how_a_container_ended_is_learned_without_waiting() {
    let mut rig = Rig::new();
    let mut container = rig.start("alice").await;
    container.hang_up();
    rig.hear().await;
    assert_eq!(rig.executor.poll_event(), None, "nobody knows yet how it ended");
    // Its death will be told, and no module is to blame for what is asked of it until then.
    rig.executor.carry_out(Command::Load(load("alice")));
    rig.executor.carry_out(Command::Unload { worker: id("alice"), slot: ModuleSlot(0) });
    assert_eq!(rig.executor.poll_event(), None);
    container.report_signal(11).unwrap();
    let Some(ControllerEvent::WorkerDied { refusal, .. }) = rig.next().await else { panic!("no death") };
    assert!(refusal.detail.contains("signal 11"), "{refusal}");
}

#[tokio::test]
async fn a_container_whose_end_nobody_tells_is_given_up() {
    let mut rig = Rig::new();
    let mut container = rig.start("alice").await;
    container.hang_up();
    let Some(ControllerEvent::WorkerDied { refusal, .. }) = rig.next().await else { panic!("no death") };
    assert!(refusal.detail.contains("control channel broke"), "{refusal}");
}

/// Goal: one container's flood of log lines neither fills the log nor keeps the others from being heard.
/// Method: two containers fill their sockets again and again, as fast as they are read.
#[tokio::test]
async fn floods_of_log_lines_are_bounded_and_heard_in_turn() {
    let mut rig = Rig::new();
    let containers = [rig.start("alice").await, rig.start("bob").await];
    let line = |slot| FromWorker::Log { slot, level: LogLevel::Info, text: "x".repeat(50) };
    let fill = || containers.iter().map(|container| while container.send(&line(None)) {}).count();
    fill();
    let (mut heard, mut kept) = (Vec::new(), BTreeMap::<UserId, u32>::new());
    let started = Instant::now();
    for name in ["alice", "bob"] {
        rig.executor.container_changed(&ContainerEvent {
            worker: id(name),
            generation: rig.generation(name),
            overdue: false,
        });
    }
    for _ in 0..4 * usize::try_from(LOG_LINES_PER_CONTAINER_MAX).unwrap() / FRAMES_BATCH {
        fill();
        let event = rig.executor.poll_unheard().expect("both have more to say");
        for entry in rig.executor.container_changed(&event) {
            *kept.entry(entry.worker.user).or_default() += 1;
        }
        heard.push(event.worker);
    }
    let turns = [id("alice"), id("bob")].into_iter().cycle().take(heard.len());
    assert!(turns.eq(heard), "they are not heard in turn");
    let seconds = u32::try_from(started.elapsed().as_secs()).unwrap() + 1;
    for (user, lines) in kept {
        assert!(lines <= seconds * (LOG_LINES_PER_CONTAINER_MAX + 1), "{user} wrote {lines} lines in {seconds} s");
    }
}

#[tokio::test]
async fn packages_of_installed_modules_stay_in_the_store() {
    let mut rig = Rig::new();
    let [first, second] = [rig.publish("1.0.0"), rig.publish("1.0.1")];
    rig.fetch(&first).unwrap();
    rig.executor.carry_out(Command::Store(record(first.digest)));
    rig.executor.carry_out(start("alice"));
    assert_eq!(rig.fetch(&second).unwrap_err().kind, RefusalKind::QuotaExceeded, "installed, and in no container");
    // As after a restart of the node: another executor, another view of the same store.
    let mut rig = rig.restart();
    assert_eq!(rig.executor.stored().unwrap().len(), 1);
    assert_eq!(rig.fetch(&second).unwrap_err().kind, RefusalKind::QuotaExceeded, "restored");
    // A renewed lease stores the module again.
    rig.executor.carry_out(Command::Store(record(first.digest)));
    rig.executor.carry_out(Command::Forget { user: id("alice").user, module: "example.org/m".parse().unwrap() });
    rig.fetch(&second).unwrap();
    assert_eq!(rig.repository.digests(), [second.digest]);
}

struct Rig {
    executor: Executor,
    events: mpsc::Receiver<Event>,
    launches: Receiver<Job>,
    repository: Arc<Repository>,
    _plane: Plane,
    dir: tempfile::TempDir,
}

struct Published {
    url: String,
    digest: Digest,
}

impl Rig {
    fn new() -> Rig {
        Rig::over(tempfile::tempdir().unwrap())
    }

    fn over(dir: tempfile::TempDir) -> Rig {
        let sources = Sources { file_roots: vec![dir.path().to_owned()], ..Sources::default() };
        let config = netserv_repository::Config {
            sources,
            store_bytes_max: STORE_BYTES,
            ..netserv_repository::Config::default()
        };
        let repository = Arc::new(Repository::open(&dir.path().join("packages"), config).unwrap());
        // It is never asked for a launcher.
        let keeper = Arc::new(Keeper::new(LauncherConfig::new("no-worker", dir.path(), "no-instance")));
        let (limits, engine) = (FetchLimits::default(), "engine".to_owned());
        let packages = Packages {
            repository: repository.clone(),
            limits,
            engine,
            keeper,
            gate: Arc::default(),
            compositions: Arc::default(),
            flavours: Flavour::ALL.to_vec(),
        };
        let (jobs, launches) = channel();
        let (sender, events) = mpsc::channel(4096);
        let (dummy, plane) = Dummy::new();
        let filters = dummy.filters();
        let parts = ExecutorParts {
            config_path: None,
            modules: Some(ModuleParts { packages, launches: jobs, networks: None, network_jobs: None }),
            store: Store::open(&dir.path().join("node.db")).unwrap(),
            filters,
            packets: PacketPort::start(Box::new(dummy), &PacketThreadConfig::default(), Arc::new(|_| true)).unwrap(),
            events: sender,
        };
        let executor = Executor::new(parts, &Config::default());
        Rig { executor, events, launches, repository, _plane: plane, dir }
    }

    fn restart(mut self) -> Rig {
        self.executor.stop();
        Rig::over(self.dir)
    }

    /// Starts a container, and hears that it is ready.
    async fn start(&mut self, user: &str) -> DetachedContainer {
        self.executor.carry_out(start(user));
        let launch = started(self.launches.try_recv().unwrap());
        let container = self.launch(launch);
        assert!(container.send(&ready()));
        assert_eq!(self.next().await, Some(ControllerEvent::WorkerReady { worker: id(user) }));
        container
    }

    fn launch(&mut self, launch: Launch) -> DetachedContainer {
        let Launch { worker, generation, .. } = launch;
        let (container, theirs) = Container::detached(&worker.user).unwrap();
        self.executor.launched(Launched { worker, generation, result: Ok(container) });
        theirs
    }

    fn generation(&self, user: &str) -> u64 {
        self.executor.workers[&id(user)].generation
    }

    /// Hears containers until there is something for the controller.
    async fn next(&mut self) -> Option<ControllerEvent> {
        loop {
            if let Some(event) = self.executor.poll_event() {
                return Some(event);
            }
            self.hear().await;
        }
    }

    /// Waits until a container's socket or process changes, and looks at it.
    async fn hear(&mut self) {
        match tokio::time::timeout(Duration::from_secs(10), self.events.recv()).await {
            Ok(Some(Event::Container(event))) => drop(self.executor.container_changed(&event)),
            Ok(_) => panic!("an event of another kind"),
            Err(_) => panic!("no event"),
        }
    }

    fn publish(&self, version: &str) -> Published {
        let manifest =
            format!("manifest = 1\nname = \"example.org/m\"\nversion = \"{version}\"\npacket = {{ abi = 1 }}\n");
        let mut package =
            package::build(&manifest, &[(Flavour::Wasm, &[b"\0asm".as_slice(), &[0; 10_000]].concat())]).unwrap();
        package::sign(&mut package, &key()).unwrap();
        let path = self.dir.path().join(version);
        std::fs::write(&path, package.to_bytes()).unwrap();
        Published { url: url(&path), digest: package.digest() }
    }

    /// Brings a package into the store; it is held no longer.
    fn fetch(&self, package: &Published) -> Result<(), Refusal> {
        let keys = [PublicKey(key().verifying_key().to_bytes())];
        self.repository.fetch(&package.url, package.digest, &keys, &FetchLimits::default()).map(drop)
    }
}

fn started(job: Job) -> Launch {
    match job {
        Job::Start(launch) => launch,
        Job::RemoveNetwork(user) => panic!("the network of {user} is to be removed"),
        Job::Media(_) => panic!("media is to be worked on"),
    }
}

fn url(path: &Path) -> String {
    format!("file://{}", path.display())
}

fn key() -> SigningKey {
    SigningKey::from_bytes(&[1; 32])
}

/// Returns the Wasm worker of `alice`, and the OSGi worker of `alice/osgi`.
fn id(name: &str) -> WorkerId {
    let (user, flavour) = name.split_once('/').unwrap_or((name, "wasm"));
    WorkerId::new(user.parse().unwrap(), flavour.parse().unwrap())
}

fn wasm(user: &UserId) -> WorkerId {
    WorkerId::new(user.clone(), Flavour::Wasm)
}

fn start(user: &str) -> Command {
    Command::StartWorker { worker: id(user), limits: ContainerLimits::default() }
}

fn ready() -> FromWorker {
    FromWorker::Ready { abi: 1, engine: "test".to_owned() }
}

fn load(user: &str) -> Load {
    Load {
        worker: id(user),
        slot: ModuleSlot(0),
        module: "example.org/m@1.0.0".parse().unwrap(),
        digest: Digest([1; 32]),
        properties: BTreeMap::new(),
        limits: ModuleLimits::default(),
        state_schema: 1,
        packet: true,
        server: None,
        chain: Vec::new(),
    }
}

fn record(digest: Digest) -> InstalledRecord {
    InstalledRecord {
        user: id("alice").user,
        module: "example.org/m@1.0.0".parse().unwrap(),
        url: String::new(),
        digest,
        session: SessionId([1; 16]),
        filters: vec![],
        properties: BTreeMap::new(),
        lease_until: UnixTime::from_secs(1),
        order: 1,
        flavour: Some(Flavour::Wasm),
    }
}
