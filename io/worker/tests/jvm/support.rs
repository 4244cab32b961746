// SPDX-License-Identifier: Apache-2.0
//! JVMs and the stand-in of the host for tests.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use netserv_model::effect::ModuleSlot;
use netserv_model::manifest::ModuleLimits;
use netserv_wire::container::frames::{FromWorker, LogLevel};

use crate::node::Node;
use crate::shared;

/// The Java runtimes of this machine that run bundles, at least one, by their release.
pub fn java_homes() -> Vec<PathBuf> {
    let installed = std::fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten().map(|entry| entry.path());
    let named = std::env::var_os("JAVA_HOME").map(PathBuf::from);
    let homes: BTreeSet<PathBuf> = installed
        .chain(named)
        .filter_map(|home| home.canonicalize().ok())
        .filter(|home| netserv_worker_jvm::home::JavaHome::open(home).is_ok())
        .collect();
    assert!(!homes.is_empty(), "no Java of release 17 or later; install openjdk-17-jdk-headless, or set JAVA_HOME");
    homes.into_iter().collect()
}

/// Returns one of them.
pub fn java_home() -> PathBuf {
    java_homes().remove(0)
}

/// Returns the directory of the stand-in's jar file, which is compiled once.
pub fn host_jars() -> PathBuf {
    shared::file("stand-in", |folder| {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/java/org/netserv/host");
        let sources = ["Bridge.java", "media/MediaNative.java"].map(|source| sources.join(source));
        let classes = folder.join("classes");
        run(Command::new(tool("javac")).args(["--release", "17", "-d"]).arg(&classes).args(sources));
        let jar = folder.join("host.jar");
        run(Command::new(tool("jar")).arg("cf").arg(jar).arg("-C").arg(classes).arg("."));
    })
}

/// Returns a program of a JDK.
pub fn tool(name: &str) -> PathBuf {
    let tools = java_homes().into_iter().map(|home| home.join("bin").join(name));
    tools.into_iter().find(|tool| tool.is_file()).expect("a JDK, not only a runtime")
}

pub fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A worker with the stand-in, and its directory.
pub struct Worker {
    pub node: Node,
    pub data: tempfile::TempDir,
}

impl Worker {
    pub fn start() -> Worker {
        Worker::start_on(&java_home(), Stdio::inherit())
    }

    pub fn start_on(java_home: &Path, stderr: Stdio) -> Worker {
        let mut worker = Worker::begin(java_home, stderr);
        let FromWorker::Ready { abi: 1, engine } = worker.node.frame() else { panic!("ready") };
        assert!(engine.starts_with("stand-in on Java "), "{engine}");
        worker
    }

    /// Starts a worker, and does not wait for it.
    pub fn begin(java_home: &Path, stderr: Stdio) -> Worker {
        let data = tempfile::tempdir().unwrap();
        let mut command = serve(java_home, &host_jars(), data.path());
        command.stderr(stderr);
        Worker { node: Node::start(command), data }
    }

    pub fn load_with(&mut self, slot: u8, name: &str, jar: &[u8]) -> FromWorker {
        let path = self.data.path().join("from.jar");
        std::fs::write(&path, jar).unwrap();
        self.node.load_file(slot, name, Some(&File::open(path).unwrap()), ModuleLimits::default())
    }

    pub fn load(&mut self, slot: u8, name: &str) {
        assert_eq!(self.load_with(slot, name, b"a jar"), FromWorker::Loaded { slot: ModuleSlot(slot) });
    }

    /// Waits for the next log line.
    pub fn line(&mut self) -> (Option<u8>, LogLevel, String) {
        let frame = self.node.frame();
        let FromWorker::Log { slot, level, text } = frame else { panic!("{frame:?}") };
        (slot.map(|slot| slot.0), level, text)
    }
}

/// Returns the command of a worker whose host is in a directory.
pub fn serve(java_home: &Path, host: &Path, data: &Path) -> Command {
    serve_within(64 << 20, java_home, host, data)
}

/// The same in a container with so many bytes of memory.
pub fn serve_within(memory_bytes: u64, java_home: &Path, host: &Path, data: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_netserv-jvm"));
    command.env_clear().args(["serve", "--memory-bytes", &memory_bytes.to_string(), "--java-home"]).arg(java_home);
    command.arg("--host").arg(host).arg("--data").arg(data);
    command
}
