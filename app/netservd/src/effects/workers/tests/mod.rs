// SPDX-License-Identifier: Apache-2.0
//! The workers over the dummy driver, with the containers' other ends in the test's hands.

mod ending;
mod life;
mod load;
mod media;
mod meters;
mod networks;
mod outbox;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use netserv_container::{Container, DetachedContainer, LauncherConfig};
use netserv_model::PublicKey;
use netserv_model::effect::{EffectOutcome, ModuleLoad};
use netserv_model::manifest::{Manifest, ModuleLimits};
use netserv_packet_loop::thread::{PacketThread, PacketThreadConfig};
use netserv_plane::dummy::{Dummy, Plane};
use netserv_repository::package::{self, SigningKey};
use netserv_repository::{FetchLimits, Sources};
use netserv_wire::container::frames::LogLevel;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::*;
use crate::effects::ticket::Answer;
use crate::event::{CodeParts, Launched};
use crate::limits::LOG_LINES_PER_CONTAINER_MAX;

/// Room in the test's store for one package and not for two.
const STORE_BYTES: u64 = 40_000;

#[tokio::test]
async fn nobody_waits_for_containers_that_start() {
    let mut rig = Rig::new();
    let users: Vec<UserId> = (0..100).map(|number| format!("user{number}").parse().unwrap()).collect();
    for user in &users {
        rig.ask(user.as_str());
    }
    let launches: Vec<Launch> = rig.launches.try_iter().map(started).collect();
    assert!(launches.iter().map(|launch| &launch.worker.user).eq(&users), "each is asked for once, in order");
    let containers: Vec<DetachedContainer> = launches.into_iter().map(|launch| rig.launch(launch)).collect();
    assert!(containers.iter().all(|container| container.send(&ready())));
    let mut readied = BTreeSet::new();
    for _ in &users {
        let Some(News { worker, what: WorkerNews::Ready { .. }, .. }) = rig.next().await else { panic!("not ready") };
        readied.insert(worker.user);
    }
    assert!(users.into_iter().collect::<BTreeSet<_>>() == readied);
}

#[tokio::test]
async fn a_container_that_is_not_wanted_any_more_is_ended() {
    let mut rig = Rig::new();
    for end in [Rig::stop, |rig: &mut Rig, user: &str| drop(rig.ask(user))] {
        rig.ask("alice");
        let early = started(rig.launches.try_recv().unwrap());
        end(&mut rig, "alice");
        assert!(rig.launch(early).is_let_go());
    }
    let wanted = started(rig.launches.try_recv().unwrap());
    assert!(!rig.launch(wanted).is_let_go(), "the one that was asked for last");
}

#[tokio::test]
async fn a_container_that_cannot_be_started_is_told_with_its_reason() {
    let mut rig = Rig::new();
    rig.ask("alice");
    let Launch { worker, generation, .. } = started(rig.launches.try_recv().unwrap());
    let refusal = Refusal::new(RefusalKind::NodeFailed, "no more places");
    rig.workers.launched(Launched { worker: worker.clone(), generation, result: Err(refusal.clone()) });
    let (generation, what) = (EffectId(generation), WorkerNews::Died { refusal, culprit: None });
    assert_eq!(rig.workers.poll_news(), Some(News { worker, generation, what }));
}

#[tokio::test]
async fn how_a_container_ended_is_learned_without_waiting() {
    let mut rig = Rig::new();
    let mut container = rig.start("alice").await;
    container.hang_up();
    rig.hear().await;
    assert_eq!(rig.workers.poll_news(), None, "nobody knows yet how it ended");
    // Its death will be told, and no module is to blame for what is asked of it until then.
    assert_eq!(rig.load_from(load("alice"), LoadFiles::default()), None);
    rig.unload("alice");
    assert_eq!(rig.workers.poll_news(), None);
    container.report_signal(11).unwrap();
    let Some(News { what: WorkerNews::Died { refusal, .. }, .. }) = rig.next().await else { panic!("no death") };
    assert!(refusal.detail.contains("signal 11"), "{refusal}");
}

#[tokio::test]
async fn a_container_whose_end_nobody_tells_is_given_up() {
    let mut rig = Rig::new();
    let mut container = rig.start("alice").await;
    container.hang_up();
    let Some(News { what: WorkerNews::Died { refusal, .. }, .. }) = rig.next().await else { panic!("no death") };
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
    let mut heard = Vec::new();
    let started = Instant::now();
    for name in ["alice", "bob"] {
        rig.workers.container_changed(&ContainerEvent {
            worker: id(name),
            generation: rig.generation(name),
            overdue: false,
        });
    }
    for _ in 0..4 * usize::try_from(LOG_LINES_PER_CONTAINER_MAX).unwrap() / FRAMES_BATCH {
        fill();
        heard.push(rig.workers.unheard.front().expect("both have more to say").worker.clone());
        rig.workers.hear_one();
    }
    let turns = [id("alice"), id("bob")].into_iter().cycle().take(heard.len());
    assert!(turns.eq(heard), "they are not heard in turn");
    let seconds = u32::try_from(started.elapsed().as_secs()).unwrap() + 1;
    for user in ["alice", "bob"] {
        let lines = rig.logs.since(0).iter().filter(|line| line.source == user).count();
        let lines = u32::try_from(lines).unwrap();
        assert!(
            lines > 0 && lines <= seconds * (LOG_LINES_PER_CONTAINER_MAX + 1),
            "{user} wrote {lines} lines in {seconds} s"
        );
    }
}

#[tokio::test]
async fn what_modules_counted_is_told_when_all_have_said_so_or_had_their_time() {
    let mut rig = Rig::new();
    let container = rig.start("alice").await;
    for answers in [true, false] {
        let ticket = rig.ticket();
        rig.workers.carry_out(WorkersJob::Measure(ticket));
        assert_eq!(container.receive(), Some(ToWorker::Stats));
        assert!(rig.answers.try_recv().is_err(), "the worker has not said");
        if answers {
            assert!(container.send(&FromWorker::StatsDone { storage: StorageFailures::default() }));
            rig.hear().await;
        } else {
            measure::until(rig.workers.measuring.as_ref()).await;
            rig.workers.end_measuring();
        }
        let outcome = rig.answers.try_recv().unwrap().outcome;
        assert!(matches!(outcome, EffectOutcome::Measured(_)), "{outcome:?}");
    }
}

struct Rig {
    workers: Workers,
    events: mpsc::Receiver<WorkerEvent>,
    launches: Receiver<launches::Job>,
    wishes: Receiver<Wish>,
    answers: UnboundedReceiver<Answer>,
    tickets: UnboundedSender<Answer>,
    next_effect: u64,
    repository: Arc<Repository>,
    logs: Logs,
    _packets: PacketThread,
    _plane: Plane,
    dir: tempfile::TempDir,
}

struct Published {
    url: String,
    digest: Digest,
}

impl Rig {
    fn new() -> Rig {
        let dir = tempfile::tempdir().unwrap();
        let sources = Sources { file_roots: vec![dir.path().to_owned()], ..Sources::default() };
        let config = netserv_repository::Config {
            sources,
            store_bytes_max: STORE_BYTES,
            ..netserv_repository::Config::default()
        };
        let repository = Arc::new(Repository::open(&dir.path().join("packages"), config).unwrap());
        let (jobs, launches) = channel();
        let (asked, wishes) = channel();
        let (sender, events) = mpsc::channel(4096);
        let (dummy, plane) = Dummy::new();
        let packets =
            PacketThread::start(vec![Box::new(dummy)], &PacketThreadConfig::default(), Arc::new(|_| true)).unwrap();
        let (tickets, answers) = unbounded_channel();
        let logs = Logs::default();
        let parts = WorkersParts {
            launches: jobs,
            // It is never asked for a launcher.
            keeper: Arc::new(Keeper::new(LauncherConfig::new("no-worker", dir.path(), "no-instance"))),
            repository: repository.clone(),
            packets: packets.sender(),
            wishes: Box::new(move |wish| drop(asked.send(wish))),
            // The tests take news themselves.
            news: mpsc::channel(1).0,
            events: sender,
            logs: logs.clone(),
            stored: None,
            node: NodeInfo::default(),
        };
        let workers = Workers::new(parts, super::media::Media::new(&Blocks::default()));
        let (next_effect, _packets, _plane) = (0, packets, plane);
        Rig {
            workers,
            events,
            launches,
            wishes,
            answers,
            tickets,
            next_effect,
            repository,
            logs,
            _packets,
            _plane,
            dir,
        }
    }

    fn ticket(&mut self) -> Ticket {
        self.next_effect += 1;
        Ticket::new(EffectId(self.next_effect), self.tickets.clone())
    }

    /// Asks for a worker without network; returns why it was refused.
    fn ask(&mut self, user: &str) -> Option<Refusal> {
        self.ask_in(user, Ok(None))
    }

    fn ask_in(&mut self, user: &str, network: Result<Option<UserNetwork>, Refusal>) -> Option<Refusal> {
        let (worker, limits, ticket) = (id(user), ContainerLimits::default(), self.ticket());
        let permits = Box::new(self.workers.permits(&worker.user));
        self.workers.carry_out(WorkersJob::Start { worker, limits, permits, network, ticket });
        self.answered()
    }

    /// Holds a user's containers to this.
    fn permit(&mut self, user: &str, permits: Permits) {
        let ticket = self.ticket();
        self.workers.carry_out(WorkersJob::Permit(id(user).user, Box::new(permits), Ok(()), ticket));
        assert_eq!(self.answered(), None);
    }

    fn stop(&mut self, user: &str) {
        let ticket = self.ticket();
        self.workers.carry_out(WorkersJob::Stop(id(user), ticket));
        assert_eq!(self.answered(), None);
    }

    fn unload(&mut self, user: &str) {
        let ticket = self.ticket();
        self.workers.carry_out(WorkersJob::Unload(id(user), ModuleSlot(0), ticket));
        assert_eq!(self.answered(), None);
    }

    /// Has a module loaded; returns why it was refused.
    fn load_from(&mut self, load: ModuleLoad, files: LoadFiles) -> Option<Refusal> {
        let ticket = self.ticket();
        let loading = Loading { load, files, listeners: Ok(Vec::new()) };
        self.workers.carry_out(WorkersJob::Load(Box::new(loading), ticket));
        self.answered()
    }

    /// Returns why the last job was refused, if it was.
    fn answered(&mut self) -> Option<Refusal> {
        match self.answers.try_recv().expect("each job is answered at once").outcome {
            EffectOutcome::Refused(refusal) => Some(refusal),
            EffectOutcome::Done => None,
            other @ (EffectOutcome::Fetched { .. }
            | EffectOutcome::Exported { .. }
            | EffectOutcome::Measured(_)
            | EffectOutcome::Metered(_)
            | EffectOutcome::Routed(_)
            | EffectOutcome::Vouched(_)
            | EffectOutcome::Held(_)
            | EffectOutcome::Listed(_)) => panic!("{other:?}"),
        }
    }

    /// Starts a container, and hears that it is ready.
    async fn start(&mut self, user: &str) -> DetachedContainer {
        self.ask(user);
        let launch = started(self.launches.try_recv().unwrap());
        let container = self.launch(launch);
        assert!(container.send(&ready()));
        let news = self.next().await;
        assert!(
            matches!(&news, Some(News { what: WorkerNews::Ready { .. }, worker, .. }) if *worker == id(user)),
            "{news:?}"
        );
        container
    }

    fn launch(&mut self, launch: Launch) -> DetachedContainer {
        let Launch { worker, generation, .. } = launch;
        let (container, theirs) = Container::detached(&worker.user).unwrap();
        self.workers.launched(Launched { worker, generation, result: Ok(container) });
        theirs
    }

    fn generation(&self, user: &str) -> u64 {
        self.workers.workers[&id(user)].generation
    }

    /// Hears containers until there is something for the controller.
    async fn next(&mut self) -> Option<News> {
        loop {
            if let Some(event) = self.workers.poll_news() {
                return Some(event);
            }
            self.hear().await;
        }
    }

    /// Waits until a container's socket or process changes, and looks at it.
    async fn hear(&mut self) {
        match tokio::time::timeout(Duration::from_secs(60), self.events.recv()).await {
            Ok(Some(WorkerEvent::Container(event))) => self.workers.container_changed(&event),
            Ok(_) => panic!("an event of another kind"),
            Err(_) => panic!("no event"),
        }
    }

    fn publish(&self, version: &str) -> Published {
        let code = [b"\0asm".as_slice(), &[0; 10_000]].concat();
        let mut package = package::build(manifest(version), &[(Flavour::Wasm, &code)]).unwrap();
        package::sign(&mut package, &key()).unwrap();
        let path = self.dir.path().join(version);
        std::fs::write(&path, package.to_bytes()).unwrap();
        Published { url: url(&path), digest: package.digest() }
    }

    /// Brings a package into the store; it is held no longer.
    fn fetch(&self, package: &Published) -> Result<(), Refusal> {
        let keys = [PublicKey(key().verifying_key().to_bytes())];
        self.repository
            .fetch(&"jane".parse().unwrap(), &package.url, package.digest, &keys, &FetchLimits::default())
            .map(drop)
    }
}

fn started(job: launches::Job) -> Launch {
    match job {
        launches::Job::Start(launch) => launch,
        launches::Job::Media(_) | launches::Job::Limit(..) => panic!("something else is to be done"),
    }
}

/// Returns the manifest of a packet module.
fn manifest(version: &str) -> Manifest {
    let manifest = format!(r#"{{"manifest":1,"name":"example.org/m","version":"{version}","packet":{{"abi":1}}}}"#);
    netserv_repository::manifest::parse(manifest.as_bytes()).unwrap()
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

fn ready() -> FromWorker {
    FromWorker::Ready { abi: 1, engine: "test".to_owned() }
}

fn load(user: &str) -> ModuleLoad {
    ModuleLoad {
        worker: id(user),
        slot: ModuleSlot(0),
        module: "example.org/m@1.0.0".parse().unwrap(),
        digest: Digest([1; 32]),
        properties: BTreeMap::new(),
        limits: ModuleLimits::default(),
        state_schema: 1,
        packet: true,
        parallel: false,
        processors: 1,
        server: None,
        chain: Vec::new(),
        blocks: ["kv".to_owned()].into(),
        messages: Vec::new(),
        state: None,
    }
}
