// SPDX-License-Identifier: Apache-2.0
//! `netserv-jvm test`: recorded tests of bundles.
//!
//! All tests run in one JVM. A module that does not come back, or that ends the JVM, takes it along; the tests behind
//! it run in a new one, in the same process.

mod watch;

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use netserv_model::dependency::BLOCKS_OF_TESTS;
use netserv_model::effect::ModuleSlot;
use netserv_model::limits::PACKET_BYTES_MAX;
use netserv_model::manifest::ModuleLimits;
use netserv_model::{Instant, ModuleRef, Refusal, RefusalKind};
use netserv_wire::container::ring::{Answer, Ingress};
use netserv_worker_base::clock;
use netserv_worker_base::error::ServeError;
use netserv_worker_jvm::bundles::{self, Bundles};
use netserv_worker_jvm::home::{JavaHome, Places};
use netserv_worker_jvm::options::Archive;
use netserv_worker_jvm::outbox::{FromJava, Outbox};
use netserv_worker_jvm::start::{Host, Purpose, RingParts, broken};
use netserv_worker_jvm::{BundleLoad, control};
use rustix::event::{PollFd, PollFlags};

use self::watch::Watch;
use crate::tools::pcap::Captured;
use crate::tools::test::case::{self, Case, Finished, Tested, at};
use crate::tools::test::jobs::{self, Jobs};

/// Bytes of memory that the JVM is sized for.
const MEMORY_BYTES: u64 = 256 << 20;
/// How long a bundle may take to start, to stop, or to say what it counted, all with a JVM that has just begun.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// What a call may take beyond its limit, while classes are loaded and compiled for the first time.
const CALL_SLACK: Duration = Duration::from_millis(500);
const SLOT: ModuleSlot = ModuleSlot(0);

/// The arguments of `test`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    test: jobs::Args,
    /// The directory of the Java that is used; else JAVA_HOME says, or the search path.
    #[arg(long)]
    java_home: Option<PathBuf>,
    /// The directory with the host's and the blocks' jar files; else `netserv-java` beside this program.
    #[arg(long)]
    java: Option<PathBuf>,
    /// Tests that were run already, of which one ended the JVM.
    #[arg(long, hide = true, default_value_t = 0)]
    skip: usize,
}

/// Runs the tests, and prints one line of JSON per test. Returns whether all passed.
///
/// # Errors
/// They cannot be run.
pub fn run(args: &Args) -> anyhow::Result<bool> {
    let jobs = Jobs::read(&args.test, |build| build.bundle.as_ref())?;
    let count = jobs.iter().len();
    // A test that ended a JVM before did not pass.
    let mut all_passed = args.skip == 0;
    if args.skip >= count {
        return Ok(all_passed);
    }
    let data = Scratch::new().context("cannot make a directory to run bundles in")?;
    let bundles = Bundles::open(&data.0)?;
    let watch = Arc::new(Watch::new(jobs, data.0.clone()));
    let host = start(args, &data.0, Arc::clone(&watch))?;
    let blocks = BLOCKS_OF_TESTS.map(str::to_owned).into();
    let mut bench = Bench { host, bundles, watch: Arc::clone(&watch), due: None, blocks };
    let guard = Arc::clone(&watch);
    std::thread::spawn(move || guard.run());
    for (number, job) in watch.jobs().iter().enumerate().skip(args.skip) {
        watch.begin(number);
        let report = case::run(&job.case, |first, output| {
            Run::start(&mut bench, &watch.jobs().code, &job.case, number, first, output)
        });
        let is_stalled = report.failure.as_ref().is_some_and(|failure| failure.kind == RefusalKind::Stalled);
        all_passed &= watch.finish(report)?;
        if is_stalled {
            // The host ends a JVM in which a thread of a module is left.
            watch.go_on();
        }
    }
    Ok(all_passed)
}

fn start(args: &Args, data: &Path, watch: Arc<Watch>) -> anyhow::Result<Host> {
    let home = match &args.java_home {
        Some(path) => JavaHome::open(path)?,
        None => JavaHome::find()?,
    };
    let java = match &args.java {
        Some(java) => java.clone(),
        None => std::env::current_exe()?.with_file_name("netserv-java"),
    };
    let places = Places { host: java.join("host"), blocks: java.join("blocks"), data: data.to_owned() };
    let purpose =
        Purpose { home: &home, places: &places, memory_bytes: MEMORY_BYTES, archive: Archive::Default, test: true };
    let outbox = Outbox::leak()?;
    let handler = Box::new(move |end| watch.jvm_ended(end, outbox));
    Ok(Host::start(&purpose, RingParts::new()?, outbox, handler)?)
}

/// A directory that is taken away at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> std::io::Result<Scratch> {
        let path = std::env::temp_dir().join(format!("netserv-jvm-{}-{}", std::process::id(), clock::wall_ns()));
        std::fs::create_dir(&path)?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The host with what tests need around it.
struct Bench {
    host: Host,
    bundles: Bundles,
    watch: Arc<Watch>,
    due: Option<Instant>,
    blocks: BTreeSet<String>,
}

/// One module under test.
struct Run<'a> {
    bench: &'a mut Bench,
    time: Duration,
    call_max: Duration,
    finished: Finished,
    jar: PathBuf,
}

/// What the node is waited for to tell.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Awaited {
    Loaded,
    StatsDone,
}

impl<'a> Run<'a> {
    fn start(
        bench: &'a mut Bench,
        code: &Path,
        case: &Case,
        number: usize,
        first: Duration,
        output: &mut Vec<Captured>,
    ) -> Result<Run<'a>, Refusal> {
        let failed = |error: String| Refusal::new(RefusalKind::NodeFailed, error);
        bench.host.outbox.set_now(at(first).instant);
        let file = File::open(code).map_err(|error| failed(format!("cannot read {}: {error}", code.display())))?;
        let jar = bench.bundles.add(file)?;
        // Each test has a name of its own, and so kv state of its own.
        let module: ModuleRef =
            format!("example.org/tested-{number}@1.0.0").parse().map_err(|error| failed(format!("{error}")))?;
        let ModuleLimits { call_ms, .. } = case.limits;
        let call_max = Duration::from_millis(call_ms.into()) + CALL_SLACK;
        let mut run = Run { bench, time: first, call_max, finished: Finished::default(), jar };
        let load = BundleLoad {
            slot: SLOT,
            module: &module,
            jar: &run.jar,
            properties: &case.properties,
            limits: &case.limits,
            state_schema: 1,
            blocks: &run.bench.blocks,
            control: control::open(Vec::new()),
        };
        run.bench.host.bridge.load(&load).map_err(|thrown| failed(thrown.to_string()))?;
        run.wait(Awaited::Loaded, output).map_err(|error| failed(error.to_string()))?;
        match run.finished.failure.take() {
            Some(refusal) => Err(refusal),
            None => Ok(run),
        }
    }

    /// Lets Java run what is due, and takes what it tells. Returns the last thing that is waited for.
    fn idle(&mut self, output: &mut Vec<Captured>) -> Result<Option<Awaited>, ServeError> {
        let Bench { host, watch, .. } = &mut *self.bench;
        let now = at(self.time).instant;
        host.outbox.set_now(now);
        let (due, injected) =
            watch.over(self.call_max, || Ok((host.bridge.idle(now)?, host.bridge.injected()?))).map_err(broken)?;
        self.bench.due = due;
        self.take_injected(injected, output);
        Ok(self.report())
    }

    fn take_injected(&self, count: i32, output: &mut Vec<Captured>) {
        let time = self.time;
        self.bench.host.batch.take_injected(count, |_, packet| output.push(Captured { time, packet: packet.to_vec() }));
    }

    /// Takes what Java tells. Returns the last thing that is waited for.
    fn report(&mut self) -> Option<Awaited> {
        let outbox = self.bench.host.outbox;
        self.finished.log.extend(outbox.take_logs().into_iter().flat_map(|(_, lines)| lines));
        let mut last = None;
        while let Some(event) = outbox.poll_event() {
            match event {
                FromJava::Ready(_) => {}
                FromJava::Loaded(_) => last = Some(Awaited::Loaded),
                FromJava::Failed(_, refusal) => {
                    self.finished.failure.get_or_insert(refusal);
                    last.get_or_insert(Awaited::Loaded);
                }
                FromJava::Stats(SLOT, packets, counters) => {
                    self.finished.packets = packets;
                    self.finished.counters = counters;
                }
                FromJava::Stats(..) => {}
                FromJava::StatsDone => last = Some(Awaited::StatsDone),
            }
        }
        last
    }

    /// Waits for an answer of Java's, at most [`ANSWER_MAX`].
    fn wait(&mut self, awaited: Awaited, output: &mut Vec<Captured>) -> Result<(), ServeError> {
        let until = clock::monotonic() + ANSWER_MAX;
        loop {
            let outbox = self.bench.host.outbox;
            if outbox.poll_raised()? {
                let told = [self.report(), self.idle(output)?];
                if told.contains(&Some(awaited)) {
                    return Ok(());
                }
            }
            if clock::monotonic() >= until {
                let detail = "the module does not start or stop in time";
                self.bench.watch.abandon(&Refusal::new(RefusalKind::Stalled, detail));
            }
            let mut fds = [PollFd::new(outbox, PollFlags::IN)];
            match rustix::event::poll(&mut fds, Some(&clock::until(until))) {
                Ok(1..) => outbox.handle_readable()?,
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(ServeError::Io("poll", error.into())),
            }
        }
    }

    fn try_process(&mut self, packets: Vec<Vec<u8>>, output: &mut Vec<Captured>) -> Result<(), ServeError> {
        let Bench { host, watch, .. } = &mut *self.bench;
        host.outbox.set_now(at(self.time).instant);
        let ingress = Ingress { interface: 1, timestamp_ns: at(self.time).instant.as_nanos() };
        // A packet that no slot holds is never shown to modules.
        let shown = packets.iter().filter(|packet| packet.len() <= PACKET_BYTES_MAX);
        let mut count = 0;
        for packet in shown {
            host.put(count, packet);
            host.batch.write(count, count, packet.len(), ingress, 1 << SLOT.0);
            count += 1;
        }
        let injected = watch.over(self.call_max, || host.bridge.process(count)).map_err(broken)?;
        self.take_injected(injected, output);
        let mut index = 0;
        for packet in packets {
            if packet.len() > PACKET_BYTES_MAX {
                output.push(Captured { time: self.time, packet });
                continue;
            }
            let left = self.bench.host.batch.read(index);
            let left = left.ok_or_else(|| ServeError::Broken("the Java host left no verdict".to_owned()))?;
            match left.answer {
                Answer::Pass => output.push(Captured { time: self.time, packet }),
                Answer::Modified => {
                    output.push(Captured { time: self.time, packet: self.bench.host.get(index, left.length) });
                }
                Answer::Drop | Answer::Failed => {}
            }
            index += 1;
        }
        self.idle(output).map(drop)
    }

    fn try_finish(&mut self, output: &mut Vec<Captured>) -> Result<(), ServeError> {
        // The first for hosts that say nothing of a module that is gone, the last to know that it is.
        let bridge = &self.bench.host.bridge;
        bridge.stats().and_then(|()| bridge.unload(SLOT)).map_err(broken)?;
        self.wait(Awaited::StatsDone, output)?;
        self.bench.host.bridge.stats().map_err(broken)?;
        self.wait(Awaited::StatsDone, output)
    }

    fn note(&mut self, result: Result<(), ServeError>) {
        if let Err(error) = result {
            let refusal = Refusal::new(RefusalKind::NodeFailed, error.to_string());
            self.finished.failure.get_or_insert(refusal);
        }
    }
}

impl Tested for Run<'_> {
    fn process(&mut self, time: Duration, packets: Vec<Vec<u8>>, output: &mut Vec<Captured>) {
        self.time = time;
        let result = self.try_process(packets, output);
        self.note(result);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.bench.due
    }

    fn handle_timeout(&mut self, time: Duration, output: &mut Vec<Captured>) {
        self.time = time;
        let before = self.bench.due;
        let result = self.idle(output).map(drop);
        self.note(result);
        if self.bench.due == before {
            // A host that does not do what is due would be asked for ever.
            self.bench.due = None;
        }
    }

    fn finish(mut self, output: &mut Vec<Captured>) -> Finished {
        let result = self.try_finish(output);
        self.note(result);
        bundles::remove(&self.jar);
        self.bench.host.outbox.renew_log(SLOT);
        self.bench.due = None;
        self.finished
    }
}
