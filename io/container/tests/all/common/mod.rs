// SPDX-License-Identifier: Apache-2.0
//! A launcher and containers that run the probe.
#![allow(dead_code, reason = "each test program uses another part")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use netserv_container::{
    ContainerError, ControlChannel, ControlError, HostRing, LaunchSpec, Launcher, LauncherConfig, Process,
};
use netserv_model::effect::ModuleSlot;
use netserv_model::manifest::ModuleLimits;
use netserv_model::policy::ContainerLimits;
use netserv_model::{Flavour, UserId};
use netserv_skips::skipped;
use netserv_wire::container::frames::{FromWorker, ToWorker};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

pub const PROBE: &str = env!("CARGO_BIN_EXE_container-probe");

pub const LIMITS: ContainerLimits =
    ContainerLimits { memory_bytes: 32 << 20, cpu_permille: 1000, pids: 16, disk_bytes: 1 << 20 };

/// Returns whether containers can be made here, and says so if not.
pub fn can_run(test: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skipped(test, "containers with all their walls need root");
    }
    root
}

/// A launcher with a state directory and an instance name of its own.
pub struct Node {
    pub launcher: Launcher,
    pub instance: String,
    directory: tempfile::TempDir,
}

impl Node {
    pub fn start() -> Node {
        Node::start_with(|config| config)
    }

    pub fn start_with(change: impl FnOnce(LauncherConfig) -> LauncherConfig) -> Node {
        let instance = unique_instance();
        let directory = tempfile::tempdir().unwrap();
        let launcher = Launcher::start(&change(config(directory.path(), &instance))).unwrap();
        Node { launcher, instance, directory }
    }

    pub fn launch(&self, limits: &ContainerLimits) -> Guest {
        self.try_launch(limits).unwrap()
    }

    pub fn try_launch(&self, limits: &ContainerLimits) -> Result<Guest, ContainerError> {
        self.launch_as(&LaunchSpec::new(user(), Flavour::Wasm, limits))
    }

    pub fn launch_as(&self, spec: &LaunchSpec<'_>) -> Result<Guest, ContainerError> {
        let (control, mut rings, process) = self.launcher.launch(spec)?.split();
        Ok(Guest { control, ring: rings.swap_remove(0), process })
    }

    pub fn state_dir(&self) -> &Path {
        self.directory.path()
    }
}

pub fn user() -> &'static UserId {
    static USER: LazyLock<UserId> = LazyLock::new(|| "janedoe".parse().unwrap());
    &USER
}

pub fn config(state_dir: &Path, instance: &str) -> LauncherConfig {
    LauncherConfig { program: PROBE.into(), ..LauncherConfig::new(PROBE, state_dir, instance) }
}

pub fn unique_instance() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("ns-container-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A container that runs the probe.
pub struct Guest {
    pub control: ControlChannel,
    pub ring: HostRing,
    pub process: Process,
}

impl Guest {
    pub fn ready(&mut self) {
        let frame = self.receive();
        let exit = if frame.is_none() { self.process.wait(Duration::from_secs(1)) } else { None };
        assert!(matches!(frame, Some(FromWorker::Ready { abi: 1, .. })), "{frame:?} {exit:?}");
    }

    /// Has the probe try something, and returns what came of it.
    pub fn attempt(&self, name: &str) -> String {
        self.attempt_on(name, &[])
    }

    pub fn attempt_on(&self, name: &str, properties: &[(&str, String)]) -> String {
        self.start_attempt(name, properties);
        match self.receive() {
            Some(FromWorker::Log { text, .. }) => text,
            other => panic!("{name}: {other:?}"),
        }
    }

    pub fn start_attempt(&self, name: &str, properties: &[(&str, String)]) {
        let properties: BTreeMap<String, String> =
            properties.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        let module = format!("probe.test/{name}@1.0.0").parse().unwrap();
        let load = ToWorker::Load {
            slot: ModuleSlot(2),
            module,
            properties,
            limits: ModuleLimits::default(),
            state_schema: 1,
            parts: vec![],
            server: None,
            blocks: BTreeSet::new(),
            parallel: false,
        };
        self.control.send(&load, &[]).unwrap();
    }

    /// Waits for the next frame; nothing if the probe ends first.
    pub fn receive(&self) -> Option<FromWorker> {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            match self.control.receive() {
                Ok(Some(frame)) => return Some(frame),
                Ok(None) => wait_for(&self.control, until),
                Err(ControlError::Closed) => return None,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

pub fn wait_for(fd: impl std::os::fd::AsFd, until: Instant) {
    let left = until.saturating_duration_since(Instant::now());
    assert!(!left.is_zero(), "nothing came within the time");
    poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&Timespec::try_from(left).unwrap())).unwrap();
}

/// The cgroup directories of an instance, wherever they are mounted.
pub fn cgroups_of(instance: &str) -> Vec<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let places = mounts.lines().filter(|line| line.contains(" - cgroup")).filter_map(|line| line.split(' ').nth(4));
    let parents = places.map(|place| Path::new(place).join(format!("netserv-{instance}")));
    parents.filter(|parent| parent.exists()).collect()
}

pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub fn is_alive(pid: i32) -> bool {
    rustix::process::test_kill_process(rustix::process::Pid::from_raw(pid).unwrap()).is_ok()
}
