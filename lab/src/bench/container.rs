// SPDX-License-Identifier: Apache-2.0
//! Service containers: how long one takes to start, what it takes of the machine's memory.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use netserv_container::{BuildLimits, ControlChannel, HostRing, LaunchSpec, Launcher, LauncherConfig, Process};
use netserv_model::effect::ModuleSlot;
use netserv_model::manifest::ModuleLimits;
use netserv_model::policy::ContainerLimits;
use netserv_model::{Flavour, UserId};
use netserv_wire::container::frames::{FromWorker, PartKind, ToWorker};
use netserv_wire::state::{ModuleState, StatePart};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::MemfdFlags;

use super::Plan;
use super::goals::Goal;
use super::summary::{Figure, Row};
use crate::netns::program;
use crate::node::module_wasm;

/// How long a worker may take to answer.
const ANSWER_WAIT: Duration = Duration::from_secs(10);
/// Containers that are held at the same time.
const HELD: usize = 50;
/// Entries of a state of 1 MB.
const STATE_ENTRIES: u32 = 1000;
/// Bytes of the value of each.
const STATE_VALUE_BYTES: usize = 1000;
/// The kernel's unit in ours.
pub const MB_PER_KIB: f64 = 1024.0 / 1e6;

/// Measures starts and memory of containers with net-monitor in them.
///
/// # Errors
/// A container cannot be started.
pub fn measure(plan: &Plan) -> Result<Vec<Figure>> {
    let host = Host::start()?;
    let code = host.compile("net-monitor")?;
    let (mut launched, mut ready, mut loaded) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..plan.container_starts {
        let started = Instant::now();
        let guest = host.launch()?;
        launched.push(millis(started.elapsed()));
        guest.expect_ready()?;
        ready.push(millis(started.elapsed()));
        guest.load(&code)?;
        loaded.push(millis(started.elapsed()));
    }
    let one = host.launch()?;
    one.expect_ready()?;
    let empty = Memory::of(one.pid())?;
    one.load(&code)?;
    let alone = Memory::of(one.pid())?;
    let (exported, imported) = moved(&host, &code, plan.container_starts)?;
    let many = host.many(&code)?;
    let private: Vec<f64> = many.iter().map(|memory| memory.private_mb).collect();
    let shared_out: Vec<f64> = many.iter().map(|memory| memory.proportional_mb).collect();
    let how = format!(
        "launch() of the container crate with the real worker, until it says Ready and until net-monitor is loaded; \
         memory from /proc/PID/smaps_rollup of the worker. Resident counts the program file's pages in full, although \
         all workers share them; private is what one more container costs. Last rows: {HELD} containers at a time. State: 1 MB in kv, \
         from the question to the last byte, and a load with it from the load to Loaded, checked and given to the module."
    );
    let rows = vec![
        Row::new("launch() returns after", "ms", &launched),
        Row::new("the worker is ready after", "ms", &ready),
        Row::new("net-monitor is loaded after", "ms", &loaded),
        Row::new("resident, no module", "MB", &[empty.resident_mb]),
        Row::new("resident, net-monitor", "MB", &[alone.resident_mb]).goal(Goal::ContainerMemory),
        Row::new("proportional, net-monitor", "MB", &[alone.proportional_mb]),
        Row::new("private, net-monitor", "MB", &[alone.private_mb]),
        Row::new("1 MB of state is written after", "ms", &exported).goal(Goal::StateMoves),
        Row::new("net-monitor is loaded with it after", "ms", &imported).goal(Goal::StateMoves),
        Row::new(format!("proportional, one of {HELD}"), "MB", &shared_out),
        Row::new(format!("private, one of {HELD}"), "MB", &private),
    ];
    Ok(vec![Figure { name: "Containers", how, rows }])
}

/// Returns how long net-monitor takes to begin with 1 MB of state, and to say it, each so many times.
fn moved(host: &Host, code: &Path, times: usize) -> Result<(Vec<f64>, Vec<f64>)> {
    let keys: Vec<[u8; 4]> = (0..STATE_ENTRIES).map(u32::to_be_bytes).collect();
    let value = vec![b'x'; STATE_VALUE_BYTES];
    let state = ModuleState {
        module: "example.org/net-monitor".parse()?,
        schema: 1,
        parts: BTreeMap::from([(StatePart::Packet, [0, 0, 0, 0, 0, 0, 0, 1].as_slice())]),
        entries: keys.iter().map(|key| (key.as_slice(), value.as_slice())).collect(),
    };
    let bytes = state.to_bytes()?;
    let (mut exported, mut imported) = (Vec::new(), Vec::new());
    for _ in 0..times {
        let guest = host.launch()?;
        guest.expect_ready()?;
        let mut given = File::from(rustix::fs::memfd_create("state", MemfdFlags::CLOEXEC)?);
        given.write_all(&bytes)?;
        let began = Instant::now();
        guest.load_with(code, Some(&given))?;
        imported.push(millis(began.elapsed()));
        let began = Instant::now();
        let read = guest.export()?;
        exported.push(millis(began.elapsed()));
        ensure!(read == bytes, "the state is another one than the module began with");
    }
    Ok((exported, imported))
}

/// Memory of one process, in MB.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Pages that it has in memory, whoever else has them too.
    pub resident_mb: f64,
    /// The same, each page divided by the number of those who have it.
    pub proportional_mb: f64,
    /// Pages that nobody else has.
    pub private_mb: f64,
}

impl Memory {
    /// Reads what a process takes.
    ///
    /// # Errors
    /// It has ended.
    pub fn of(pid: u32) -> Result<Memory> {
        let path = format!("/proc/{pid}/smaps_rollup");
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        let megabytes = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name));
            let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
            number.map(|kib| kib * MB_PER_KIB).with_context(|| format!("{path} has no {name}"))
        };
        Ok(Memory {
            resident_mb: megabytes("Rss:")?,
            proportional_mb: megabytes("Pss:")?,
            private_mb: megabytes("Private_Clean:")? + megabytes("Private_Dirty:")?,
        })
    }
}

/// A launcher of containers.
pub(super) struct Host {
    // Before the directory, which the launcher uses until it ends.
    launcher: Launcher,
    dir: Dir,
}

struct Dir(PathBuf);

impl Drop for Dir {
    fn drop(&mut self) {
        // It is in the directory for temporary files, where what is left hurts nobody.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Host {
    pub(super) fn start() -> Result<Host> {
        let instance = format!("nslab-bench-{}", std::process::id());
        let dir = Dir(std::env::temp_dir().join(&instance));
        std::fs::create_dir_all(&dir.0)?;
        let mut config = LauncherConfig::new(program("netserv-worker")?, &dir.0, &instance);
        config.program = program("netservd")?;
        Ok(Host { launcher: Launcher::start(&config)?, dir })
    }

    pub(super) fn compile(&self, module: &str) -> Result<PathBuf> {
        let code = self.dir.0.join(format!("{module}.cwasm"));
        let compiled = self.launcher.compile(&module_wasm(module)?, &code, &BuildLimits::CODE);
        compiled.map_err(|refusal| anyhow::anyhow!("{module}: {refusal}"))?;
        Ok(code)
    }

    fn launch(&self) -> Result<Guest> {
        self.launch_for("janedoe", 1)
    }

    /// Starts a container of a user, for so many lanes.
    pub(super) fn launch_for(&self, user: &str, lanes: usize) -> Result<Guest> {
        let user: UserId = user.parse()?;
        let limits = ContainerLimits::default();
        let spec = LaunchSpec { lanes, ..LaunchSpec::new(&user, Flavour::Wasm, &limits) };
        let (control, rings, process) = self.launcher.launch(&spec)?.split();
        Ok(Guest { control, rings, process })
    }

    /// Holds many containers with the module at a time, and returns the memory of each.
    fn many(&self, code: &Path) -> Result<Vec<Memory>> {
        let guests = (0..HELD).map(|_| self.launch()).collect::<Result<Vec<Guest>>>()?;
        for guest in &guests {
            guest.expect_ready()?;
            guest.load(code)?;
        }
        guests.iter().map(|guest| Memory::of(guest.pid())).collect()
    }
}

/// A container.
pub(super) struct Guest {
    control: ControlChannel,
    /// By lane.
    pub(super) rings: Vec<HostRing>,
    process: Process,
}

impl Guest {
    pub(super) fn pid(&self) -> u32 {
        self.process.pid().unsigned_abs()
    }

    pub(super) fn expect_ready(&self) -> Result<()> {
        let answer = self.answer()?;
        ensure!(matches!(answer, FromWorker::Ready { .. }), "the worker said {answer:?} and not that it is ready");
        Ok(())
    }

    pub(super) fn load(&self, code: &Path) -> Result<()> {
        self.load_with(code, None)
    }

    fn export(&self) -> Result<Vec<u8>> {
        let (mut pipe, theirs) = std::io::pipe()?;
        self.control.send(&ToWorker::Export { slot: ModuleSlot(0) }, &[theirs.as_fd()])?;
        drop(theirs);
        let mut state = Vec::new();
        pipe.read_to_end(&mut state)?;
        let answer = self.answer()?;
        ensure!(
            matches!(answer, FromWorker::Exported { refusal: None, .. }),
            "the worker said {answer:?} and no state"
        );
        Ok(state)
    }

    fn load_with(&self, code: &Path, state: Option<&File>) -> Result<()> {
        let code = File::open(code)?;
        let mut parts = vec![(PartKind::Packet, code.as_fd())];
        parts.extend(state.map(|state| (PartKind::State, state.as_fd())));
        let load = ToWorker::Load {
            slot: ModuleSlot(0),
            module: "example.org/net-monitor@1.0.0".parse()?,
            properties: BTreeMap::new(),
            limits: ModuleLimits { timers: 1, counters: 1024, kv_entries: 65_536, ..ModuleLimits::default() },
            state_schema: 1,
            parts: parts.iter().map(|(kind, _)| *kind).collect(),
            server: None,
            blocks: ["control", "kv", "node", "state"].map(str::to_owned).into(),
            parallel: false,
        };
        self.control.send(&load, &parts.iter().map(|(_, file)| *file).collect::<Vec<_>>())?;
        let answer = self.answer()?;
        ensure!(matches!(answer, FromWorker::Loaded { .. }), "the worker said {answer:?} and not that it is loaded");
        Ok(())
    }

    fn answer(&self) -> Result<FromWorker> {
        let until = Instant::now() + ANSWER_WAIT;
        loop {
            if let Some(frame) = self.control.receive()? {
                return Ok(frame);
            }
            let left = until.saturating_duration_since(Instant::now());
            ensure!(!left.is_zero(), "the worker does not answer");
            let timeout = Timespec::try_from(left)?;
            // An interrupted wait only means that the loop looks again.
            let _ = poll(&mut [PollFd::new(&self.control, PollFlags::IN)], Some(&timeout));
        }
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
