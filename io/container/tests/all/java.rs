// SPDX-License-Identifier: Apache-2.0
//! Java workers: what one that was taken over cannot do, what Java needs, and how it shares a container with another.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::common::{Guest, LIMITS, Node, PROBE, can_run, cgroups_of, eventually, user};
use netserv_container::limits::{JAVA_OPEN_FILES_MAX, NETWORK_OPEN_FILES_MAX, SPARES};
use netserv_container::network::{ContainerNetwork, NetworkSpec};
use netserv_container::{ARCHIVE_FILE, BuildLimits, ContainerError, ExitCause, JvmFiles, LaunchSpec, LauncherConfig};
use netserv_model::container_link::container_link;
use netserv_model::policy::ContainerLimits;
use netserv_model::{Flavour, UserId};
use netserv_skips::skipped;
use netserv_wire::container::frames::{FromWorker, ToWorker};
use rustix::thread::UnshareFlags;

const JAVA_LIMITS: ContainerLimits =
    ContainerLimits { memory_bytes: 128 << 20, cpu_permille: 2000, pids: 64, disk_bytes: 1 << 20 };

#[test]
fn everything_but_javas_own_work_is_refused() {
    let Some(node) = JavaNode::start("everything_but_javas_own_work_is_refused") else { return };
    let mut guest = node.launch(None);
    guest.ready();
    let refused = [
        "mount",
        "new-mount-api",
        "umount",
        "chroot",
        "mknod",
        "unshare-user",
        "setns",
        "fork",
        "vfork",
        "clone-files",
        "clone-user",
        "forget-file",
        "execveat",
        "socket-inet",
        "socket-packet",
        "socket-netlink",
        "socket-unix",
        "tcp",
        "udp6",
        "raw-socket",
        "listen",
        "bpf",
        "io-uring",
        "userfaultfd",
        "perf",
        "ptrace",
        "keyctl",
        "setuid",
        "capset",
        "init-module",
        "reboot",
        "clock",
        "hostname",
        "personality",
        "tty",
        "raise-limit",
        "outlive-parent",
        "block-eventfd",
        "close-eventfd",
        "copy-eventfd",
        "copy-eventfd-by-fcntl",
        "replace-eventfd",
        "receive-elsewhere",
        "send-descriptor",
        "send-descriptors",
        "signal-owner",
        "map-data",
        "watch-files",
        "watch-more",
        "signals-own",
        "signals-eventfd",
    ];
    for attempt in refused {
        assert_eq!(guest.attempt(attempt), format!("refused {}", libc::EPERM), "{attempt}");
    }
    for attempt in ["clone3", "exec-self"] {
        assert_eq!(guest.attempt(attempt), format!("refused {}", libc::ENOSYS), "{attempt}");
    }
    for attempt in ["block-own", "read-ahead", "send-own", "random", "write-null", "write-data"] {
        assert_eq!(guest.attempt(attempt), "done", "{attempt}");
    }
    for attempt in ["write-root", "make-directory", "write-worker", "write-random"] {
        let said = guest.attempt(attempt);
        let expected = [libc::EROFS, libc::EACCES, libc::ETXTBSY, libc::EEXIST].map(|error| format!("refused {error}"));
        assert!(expected.contains(&said), "{attempt}: {said}");
    }
    assert_eq!(guest.attempt("read-proc"), format!("refused {}", libc::ENOENT));
    let pid = [("pid", std::process::id().to_string())];
    assert_eq!(guest.attempt_on("kill-host", &pid), format!("refused {}", libc::EPERM));
    assert_eq!(guest.attempt_on("signal-host", &pid), format!("refused {}", libc::ESRCH));
}

#[test]
fn the_file_system_shows_java_and_no_other_program() {
    let Some(node) = JavaNode::start("the_file_system_shows_java_and_no_other_program") else { return };
    let mut guest = node.launch(None);
    guest.ready();
    let list = guest.attempt("programs");
    let loader = |path: &&str| path.contains("/ld-linux") || path.contains("/ld-2") || path.contains(".so");
    let others: Vec<&str> = list.split_whitespace().filter(|path| !loader(path)).collect();
    assert_eq!(others, ["/worker"]);
    let open = guest.attempt("open-files");
    assert!(open.ends_with(&format!("then {}", libc::EMFILE)), "{open}");
    let files: u64 = open.split(' ').next().unwrap().parse().unwrap();
    assert!((JAVA_OPEN_FILES_MAX - 16..JAVA_OPEN_FILES_MAX).contains(&files), "{open}");
}

/// With a network come TCP and UDP, and no other sockets; the worker is in that network and no other.
#[test]
fn a_network_brings_tcp_and_udp_only() {
    let Some(node) = JavaNode::start("a_network_brings_tcp_and_udp_only") else { return };
    let network = Network::new();
    let mut guest = node.launch(Some(&network.inside));
    guest.ready();
    check_sockets(&mut guest, &network, &["receive-elsewhere"]);
    assert_eq!(guest.attempt("interfaces"), "2", "loopback and its own link");
}

/// What the kernel keeps for sockets counts too, under version 1 by a counter of its own.
#[test]
fn memory_of_sockets_has_a_limit() {
    let Some(node) = JavaNode::start("memory_of_sockets_has_a_limit") else { return };
    let network = Network::new();
    let limits = ContainerLimits { memory_bytes: 32 << 20, ..JAVA_LIMITS };
    let spec = LaunchSpec { network: Some(&network.inside), ..LaunchSpec::new(user(), Flavour::Osgi, &limits) };
    let mut guest = node.node.launch_as(&spec).unwrap();
    guest.ready();
    let said = guest.attempt("fill-sockets");
    let kept: u64 = said.split(' ').next().unwrap().parse().unwrap();
    assert!((1 << 20..limits.memory_bytes).contains(&kept), "{said}");
}

/// A Wasm worker in a container with a network has what a Java worker has there, and never `sendmsg`.
#[test]
fn a_wasm_worker_gets_tcp_and_udp_only() {
    let Some(node) = JavaNode::start("a_wasm_worker_gets_tcp_and_udp_only") else { return };
    let network = Network::new();
    let spec = LaunchSpec { network: Some(&network.inside), ..LaunchSpec::new(user(), Flavour::Wasm, &LIMITS) };
    let mut guest = node.node.launch_as(&spec).unwrap();
    guest.ready();
    let also_refused = ["fork", "clone-user", "execveat", "bpf", "ptrace", "mount", "send-own"];
    check_sockets(&mut guest, &network, &also_refused);
    assert_eq!(guest.attempt("interfaces"), "0", "it asks nothing of links");
    let open = guest.attempt("open-files");
    let files: u64 = open.split(' ').next().unwrap().parse().unwrap();
    assert!((1024..NETWORK_OPEN_FILES_MAX).contains(&files), "{open}");
}

/// Checks that a worker in a network is in that one, and has TCP and UDP there and no other way out.
fn check_sockets(guest: &mut Guest, network: &Network, also_refused: &[&str]) {
    let entered = fs::read_link(format!("/proc/{}/ns/net", guest.process.pid())).unwrap();
    assert_eq!(entered.to_string_lossy(), network.name());
    for attempt in ["tcp", "udp6", "listen", "keep-alive"] {
        assert_eq!(guest.attempt(attempt), "done", "{attempt}");
    }
    for attempt in REFUSED_IN_NETWORKS.iter().chain(also_refused) {
        assert_eq!(guest.attempt(attempt), format!("refused {}", libc::EPERM), "{attempt}");
    }
}

/// What no worker may do in a network, of whichever flavour.
const REFUSED_IN_NETWORKS: [&str; 18] = [
    "raw-socket",
    "ping-socket",
    "sctp-socket",
    "socket-packet",
    "socket-netlink",
    "socket-unix",
    "upper-layer",
    "attach-filter",
    "attach-group-filter",
    "attach-bpf",
    "signals-own",
    "signals-eventfd",
    "setns",
    "io-uring",
    "block-eventfd",
    "send-descriptor",
    "send-descriptors",
    "tty",
];

#[test]
fn two_workers_of_a_container_share_its_limits() {
    let Some(node) = JavaNode::start("two_workers_of_a_container_share_its_limits") else { return };
    let limits = ContainerLimits { pids: 8, ..JAVA_LIMITS };
    let mut first = node.node.launch(&limits);
    let beside = Some(first.process.pid());
    let spec = LaunchSpec { beside, ..LaunchSpec::new(user(), Flavour::Osgi, &limits) };
    let mut second = node.node.launch_as(&spec).unwrap();
    first.ready();
    second.ready();
    let groups = |guest: &Guest| fs::read_to_string(format!("/proc/{}/cgroup", guest.process.pid())).unwrap();
    assert_eq!(groups(&first), groups(&second));
    // Another user's worker is not one to join, whatever its number.
    let stranger: UserId = "mallory".parse().unwrap();
    let spec = LaunchSpec { beside, ..LaunchSpec::new(&stranger, Flavour::Osgi, &limits) };
    let mut third = node.node.launch_as(&spec).unwrap();
    third.ready();
    assert_ne!(groups(&first), groups(&third));
    // Eight processes and threads for both: the other worker is one of them.
    assert_eq!(second.attempt("threads"), format!("7 then {}", libc::EAGAIN));
    assert_eq!(first.attempt("threads"), format!("1 then {}", libc::EAGAIN));
    assert_eq!(third.attempt("threads"), format!("8 then {}", libc::EAGAIN));

    // The groups stay until the last worker is gone.
    let count = || cgroups_of(&node.node.instance).iter().map(|parent| children(parent)).max().unwrap_or(0);
    first.process.kill();
    first.process.wait(Duration::from_secs(60)).unwrap();
    assert_eq!(second.attempt("write-data"), "done");
    assert!(groups(&second).contains("netserv-"));
    drop((second, third));
    eventually("its groups go", || count() <= SPARES);
}

#[test]
fn the_memory_limit_is_for_both_workers_and_blamed_on_who_was_killed() {
    let Some(node) = JavaNode::start("the_memory_limit_is_for_both_workers_and_blamed_on_who_was_killed") else {
        return;
    };
    let mut first = node.node.launch(&JAVA_LIMITS);
    let beside = Some(first.process.pid());
    let spec = LaunchSpec { beside, ..LaunchSpec::new(user(), Flavour::Osgi, &JAVA_LIMITS) };
    let mut second = node.node.launch_as(&spec).unwrap();
    let mut innocent = node.launch(None);
    for guest in [&mut first, &mut second, &mut innocent] {
        guest.ready();
    }
    second.start_attempt("memory", &[]);
    assert_eq!(second.process.wait(Duration::from_secs(60)).unwrap().cause, ExitCause::OutOfMemory);
    // Under version 2 the kernel takes the whole container, under version 1 its largest process.
    if let Some(exit) = first.process.wait(Duration::from_millis(200)) {
        assert_eq!(exit.cause, ExitCause::OutOfMemory);
    } else {
        first.process.kill();
        let cause = first.process.wait(Duration::from_secs(60)).unwrap().cause;
        assert_eq!(cause, ExitCause::Signal(libc::SIGKILL), "the other worker's end is not told twice");
    }
    assert_eq!(innocent.attempt("write-data"), "done");
}

#[test]
fn a_node_without_java_says_so() {
    if !can_run("a_node_without_java_says_so") {
        return;
    }
    let node = Node::start();
    let launch = || node.launch_as(&LaunchSpec::new(user(), Flavour::Osgi, &JAVA_LIMITS)).err().unwrap();
    assert!(launch().to_string().contains("this node has no Java"), "{}", launch());
    node.launch(&LIMITS).ready();
}

#[test]
fn java_that_is_damaged_leaves_wasm_working() {
    if !can_run("java_that_is_damaged_leaves_wasm_working") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start_with(|config| LauncherConfig {
        jvm: Some(JvmFiles { java_home: directory.path().to_owned(), ..files(directory.path(), Path::new("/")) }),
        ..config
    });
    assert!(node.launcher.report().missing.iter().any(|line| line.starts_with("Java workers: ")));
    let error = node.launch_as(&LaunchSpec::new(user(), Flavour::Osgi, &JAVA_LIMITS)).err().unwrap();
    assert!(matches!(&error, ContainerError::Start { detail, .. } if detail.contains("lib")), "{error}");
    node.launch(&LIMITS).ready();
}

/// Every Java of this machine starts in a container, makes an archive of its classes there, and uses it in another.
#[test]
fn java_starts_and_uses_an_archive() {
    for home in installations() {
        let Some(node) = JavaNode::start_with("java_starts_and_uses_an_archive", &home) else { return };
        let mut guest = node.launch(None);
        guest.ready();
        let attempt = |guest: &Guest, options: &str| {
            let home = node.home.to_str().unwrap().to_owned();
            guest.attempt_on("java", &[("home", home), ("options", options.to_owned())])
        };
        assert_eq!(attempt(&guest, "-Xmx16m"), "done", "{}", home.display());
        let archive = node.archive.join(ARCHIVE_FILE);
        node.node.launcher.archive(&archive, &BuildLimits::ARCHIVE).unwrap();
        assert!(fs::metadata(&archive).unwrap().len() > 100_000);
        assert_eq!(fs::read_dir(&node.archive).unwrap().count(), 1, "nothing else is left");
        // With `on`, Java does not start if it cannot use the archive; this container was there before it.
        let mut guest = node.launch(None);
        guest.ready();
        let options = format!("-XX:SharedArchiveFile=/java/archive/{ARCHIVE_FILE}\n-Xshare:on");
        assert_eq!(attempt(&guest, &options), "done", "{}", home.display());
    }
}

/// The real worker, if it is built: it gets ready and loads its archive, in the least memory that is given by default.
#[test]
fn the_real_worker_gets_ready() {
    const TEST: &str = "the_real_worker_gets_ready";
    let Some((worker, host)) = real_worker() else {
        return skipped(TEST, "netserv-jvm and its jars are not built");
    };
    for home in installations() {
        let Some(node) =
            JavaNode::start_as(TEST, &home, |files| JvmFiles { worker: worker.clone(), host: host.clone(), ..files })
        else {
            return;
        };
        let ready = || {
            let begun = Instant::now();
            let limits = ContainerLimits::default();
            let mut guest = node.node.launch_as(&LaunchSpec::new(user(), Flavour::Osgi, &limits)).unwrap();
            let mut frame = guest.receive();
            // Without storage there is no file for kv state, which it says.
            while let Some(FromWorker::Log { .. }) = frame {
                frame = guest.receive();
            }
            let took = begun.elapsed();
            if frame.is_none() {
                panic!("{}: {:?}", home.display(), guest.process.wait(Duration::from_secs(1)));
            }
            assert!(matches!(&frame, Some(FromWorker::Ready { .. })), "{frame:?}");
            let kib = resident_kib(guest.process.pid());
            guest.control.send(&ToWorker::Shutdown, &[]).unwrap();
            assert_eq!(guest.process.wait(Duration::from_secs(60)).unwrap().cause, ExitCause::Code(0));
            (took, kib)
        };
        let without = ready();
        node.node.launcher.archive(&node.archive.join(ARCHIVE_FILE), &BuildLimits::ARCHIVE).unwrap();
        let with = ready();
        eprintln!("{}: ready after {without:?} KiB, with the archive {with:?} KiB", home.display());
    }
}

/// Goal: jars that others take the place of under a running node are those of its start for all its containers.
#[test]
fn jars_that_are_replaced_stay_those_of_the_start() {
    let test = "jars_that_are_replaced_stay_those_of_the_start";
    let Some(home) = installations().pop() else { return skipped(test, "no Java 17 or later in /usr/lib/jvm") };
    let mut host = PathBuf::new();
    let with_jar = |files: JvmFiles| {
        host.clone_from(&files.host);
        fs::write(files.host.join("host/first.jar"), "first").unwrap();
        files
    };
    let Some(node) = JavaNode::start_as(test, &home, with_jar) else { return };
    let jar = |node: &JavaNode| {
        let mut guest = node.launch(None);
        guest.ready();
        let (path, length) = ("/java/host/first.jar".to_owned(), "5".to_owned());
        guest.attempt_on("store-read", &[("path", path), ("length", length)])
    };
    assert_eq!(jar(&node), "first");
    // As a package manager does, and as one who installs by hand.
    fs::remove_file(host.join("host/first.jar")).unwrap();
    assert_eq!(jar(&node), "first");
    fs::remove_dir_all(&host).unwrap();
    fs::create_dir_all(host.join("host")).unwrap();
    fs::write(host.join("host/first.jar"), "later").unwrap();
    assert_eq!(jar(&node), "first");
}

/// A node with a Java worker that is the probe.
struct JavaNode {
    node: Node,
    home: PathBuf,
    archive: PathBuf,
    _directory: tempfile::TempDir,
}

impl JavaNode {
    /// Nothing if containers or Java are not to be had here.
    fn start(test: &str) -> Option<JavaNode> {
        let Some(home) = installations().pop() else {
            skipped(test, "no Java 17 or later in /usr/lib/jvm");
            return None;
        };
        JavaNode::start_with(test, &home)
    }

    fn start_with(test: &str, home: &Path) -> Option<JavaNode> {
        JavaNode::start_as(test, home, |files| files)
    }

    fn start_as(test: &str, home: &Path, change: impl FnOnce(JvmFiles) -> JvmFiles) -> Option<JavaNode> {
        if !can_run(test) {
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let files = change(files(directory.path(), home));
        let archive = files.archive.clone();
        let node = Node::start_with(|config| LauncherConfig { jvm: Some(files), ..config });
        Some(JavaNode { node, home: home.to_owned(), archive, _directory: directory })
    }

    fn launch(&self, network: Option<&ContainerNetwork>) -> Guest {
        let spec = LaunchSpec { network, ..LaunchSpec::new(user(), Flavour::Osgi, &JAVA_LIMITS) };
        self.node.launch_as(&spec).unwrap()
    }
}

fn files(directory: &Path, home: &Path) -> JvmFiles {
    let host = directory.join("host");
    fs::create_dir_all(host.join("host")).unwrap();
    JvmFiles {
        worker: PROBE.into(),
        java_home: home.to_owned(),
        host,
        archive: directory.join("archive"),
        name_servers: vec![],
    }
}

/// The worker and the directory of its jars, where a build leaves them.
fn real_worker() -> Option<(PathBuf, PathBuf)> {
    let worker = Path::new(PROBE).with_file_name("netserv-jvm");
    let built = [worker.with_file_name("netserv-java"), Path::new(env!("CARGO_MANIFEST_DIR")).join("../../java/dist")];
    let has_jars = |path: &PathBuf| fs::read_dir(path.join("host")).is_ok_and(|mut jars| jars.next().is_some());
    let host = built.into_iter().find(has_jars)?;
    worker.exists().then_some((worker, host))
}

fn resident_kib(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// The Java installations of this machine that are new enough, oldest first.
fn installations() -> Vec<PathBuf> {
    let entries = fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten();
    let mut homes: Vec<PathBuf> = entries.filter_map(|entry| fs::canonicalize(entry.path()).ok()).collect();
    homes.retain(|home| version(home).is_some_and(|version| version >= 17));
    homes.sort_by_key(|home| version(home));
    homes.dedup();
    homes
}

fn version(home: &Path) -> Option<u32> {
    let release = fs::read_to_string(home.join("release")).ok()?;
    let line = release.lines().find_map(|line| line.strip_prefix("JAVA_VERSION=\""))?;
    line.split(['.', '"', '+', '-']).next()?.parse().ok()
}

/// A container's network on a node that is a namespace by itself.
struct Network {
    inside: ContainerNetwork,
    /// Keeps the node's end of the link.
    _node: File,
}

impl Network {
    fn new() -> Network {
        let make = || {
            #[allow(deprecated, reason = "the new form is unsafe for the sake of another flag")]
            rustix::thread::unshare(UnshareFlags::NEWNET).unwrap();
            let addresses = vec!["10.72.9.1".parse().unwrap()];
            let spec = NetworkSpec {
                name: container_link("t", 1),
                addresses,
                listen: vec![],
                connect: vec![],
                rate: Default::default(),
            };
            Network {
                inside: ContainerNetwork::create(&spec).unwrap(),
                _node: File::open("/proc/thread-self/ns/net").unwrap(),
            }
        };
        std::thread::spawn(make).join().unwrap()
    }

    /// Returns its name as `/proc/PID/ns/net` shows it.
    fn name(&self) -> String {
        format!("net:[{}]", rustix::fs::fstat(self.inside.netns()).unwrap().st_ino)
    }
}

fn children(parent: &Path) -> usize {
    fs::read_dir(parent).into_iter().flatten().flatten().filter(|entry| entry.path().is_dir()).count()
}
