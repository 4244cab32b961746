// SPDX-License-Identifier: Apache-2.0
//! What a worker that was taken over can do, and cannot.

use std::fs;
use std::time::Duration;

use crate::common::{LIMITS, Node, can_run, config, unique_instance, user};
use netserv_container::limits::{DATA_ENTRIES_MAX, OPEN_FILES_MAX};
use netserv_container::{ExitCause, Launcher, LauncherConfig};
use netserv_model::RefusalKind;
use netserv_model::limits::AUTHORITIES_BYTES_MAX;
use netserv_model::policy::ContainerLimits;

#[test]
fn everything_but_the_workers_own_work_is_refused() {
    if !can_run("everything_but_the_workers_own_work_is_refused") {
        return;
    }
    let node = Node::start();
    let mut guest = node.launch(&LIMITS);
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
        "execveat",
        "socket-inet",
        "socket-packet",
        "socket-netlink",
        "socket-unix",
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
        "send-descriptor",
        "send-descriptors",
        "signal-owner",
        "watch-files",
        "watch-more",
        "machine",
        "signals-own",
        "signals-eventfd",
    ];
    for attempt in refused {
        assert_eq!(guest.attempt(attempt), format!("refused {}", libc::EPERM), "{attempt}");
    }
    for attempt in ["clone3", "exec-self"] {
        assert_eq!(guest.attempt(attempt), format!("refused {}", libc::ENOSYS), "{attempt}");
    }
}

#[test]
fn processes_of_the_host_are_out_of_reach() {
    if !can_run("processes_of_the_host_are_out_of_reach") {
        return;
    }
    let node = Node::start();
    let mut guest = node.launch(&LIMITS);
    guest.ready();
    let pid = [("pid", std::process::id().to_string())];
    assert_eq!(guest.attempt_on("kill-host", &pid), format!("refused {}", libc::EPERM));
    assert_eq!(guest.attempt_on("trace-host", &pid), format!("refused {}", libc::EPERM));
    // The call is allowed, because `abort` needs it, but in the container's pid namespace there is no such process.
    assert_eq!(guest.attempt_on("signal-host", &pid), format!("refused {}", libc::ESRCH));
}

#[test]
fn the_file_system_shows_the_worker_and_one_writable_directory() {
    if !can_run("the_file_system_shows_the_worker_and_one_writable_directory") {
        return;
    }
    let node = Node::start();
    let mut guest = node.launch(&LIMITS);
    guest.ready();
    let list = guest.attempt("list");
    let files: Vec<&str> = list.split_whitespace().filter(|path| !path.ends_with('/')).collect();
    let worker_or_library = |path: &&str| {
        let others = ["/worker", "/data", "/store", "/store/kv", "/store/cache", "/lib", "/lib64", "/usr"];
        let names = ["/etc", "/etc/hosts", "/etc/nsswitch.conf", "/etc/resolv.conf"];
        others.contains(path) || names.contains(path) || path.contains("/lib")
    };
    assert!(files.contains(&"/worker") && files.iter().all(worker_or_library), "{files:?}");
    for attempt in ["write-root", "make-directory"] {
        let said = guest.attempt(attempt);
        let expected = [libc::EROFS, libc::EACCES].map(|error| format!("refused {error}"));
        assert!(expected.contains(&said), "{attempt}: {said}");
    }
    let said = guest.attempt("write-worker");
    assert!(said.starts_with("refused"), "{said}");
    for attempt in ["read-proc", "read-etc"] {
        assert_eq!(guest.attempt(attempt), format!("refused {}", libc::ENOENT), "{attempt}");
    }
    assert_eq!(guest.attempt("write-data"), "done");
    assert_eq!(guest.attempt("exec-data"), format!("refused {}", libc::ENOSPC), "the probe is larger than its quota");
}

#[test]
fn the_operators_authorities_are_where_workers_look_for_them() {
    if !can_run("the_operators_authorities_are_where_workers_look_for_them") {
        return;
    }
    let (file, longest) = (tempfile::NamedTempFile::new().unwrap(), usize::try_from(AUTHORITIES_BYTES_MAX).unwrap());
    let text = format!("-----BEGIN CERTIFICATE-----{}", "x".repeat(longest - 27));
    fs::write(file.path(), &text).unwrap();
    let authorities = Some(file.path().to_owned());
    let node = Node::start_with(|config| LauncherConfig { authorities: authorities.clone(), ..config });
    let mut guest = node.launch(&LIMITS);
    guest.ready();
    let read = |length: usize| {
        guest.attempt_on("store-read", &[("path", "/etc/authorities.pem".to_owned()), ("length", length.to_string())])
    };
    assert_eq!(read(27), "-----BEGIN CERTIFICATE-----");
    assert_eq!(read(longest + 1), "refused 0", "it is there to its end, and no further");

    fs::write(file.path(), text + "x").unwrap();
    let directory = tempfile::tempdir().unwrap();
    let config = config(directory.path(), &unique_instance());
    let error = Launcher::start(&LauncherConfig { authorities, ..config }).unwrap_err().to_string();
    assert!(error.contains("build the root") && error.contains("over 524288 bytes"), "{error}");
}

#[test]
fn nothing_in_the_writable_directory_can_be_executed() {
    if !can_run("nothing_in_the_writable_directory_can_be_executed") {
        return;
    }
    let node = Node::start();
    let mut guest = node.launch(&ContainerLimits { disk_bytes: 256 << 20, memory_bytes: 256 << 20, ..LIMITS });
    guest.ready();
    assert_eq!(guest.attempt("exec-data"), format!("refused {}", libc::ENOSYS));
    assert_eq!(guest.attempt("map-data"), format!("refused {}", libc::EPERM));
}

#[test]
fn the_writable_directory_has_its_quota() {
    if !can_run("the_writable_directory_has_its_quota") {
        return;
    }
    let node = Node::start();
    let mut guest = node.launch(&LIMITS);
    guest.ready();
    let said = guest.attempt("fill-data");
    let (written, error) = said.split_once(" then ").unwrap();
    assert!(written.parse::<u64>().unwrap() <= LIMITS.disk_bytes, "{said}");
    assert!([libc::ENOSPC, libc::EFBIG].contains(&error.parse().unwrap()), "{said}");
}

#[test]
fn files_are_counted() {
    if !can_run("files_are_counted") {
        return;
    }
    let node = Node::start();
    let mut guest = node.launch(&LIMITS);
    guest.ready();
    let many = guest.attempt("many-files");
    let (files, error) = many.split_once(" then ").unwrap();
    assert!((DATA_ENTRIES_MAX - 8..=DATA_ENTRIES_MAX).contains(&files.parse().unwrap()), "{many}");
    assert_eq!(error, libc::ENOSPC.to_string());
    let open = guest.attempt("open-files");
    let (files, error) = open.split_once(" then ").unwrap();
    assert!((OPEN_FILES_MAX - 16..OPEN_FILES_MAX).contains(&files.parse().unwrap()), "{open}");
    assert_eq!(error, libc::EMFILE.to_string());
}

#[test]
fn the_kernel_says_that_no_right_is_left() {
    if !can_run("the_kernel_says_that_no_right_is_left") {
        return;
    }
    let node = Node::start();
    let mut guest = node.launch(&LIMITS);
    guest.ready();
    let status = fs::read_to_string(format!("/proc/{}/status", guest.process.pid())).unwrap();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(&format!("{name}:"))).unwrap();
        line.split_whitespace().map(str::to_owned).collect::<Vec<String>>()
    };
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert_eq!(field(set), ["0000000000000000"], "{set}");
    }
    assert_eq!(field("NoNewPrivs"), ["1"]);
    assert_eq!(field("Seccomp"), ["2"]);
    assert_eq!(field("Seccomp_filters"), ["3"]);
    assert!(field("Groups").is_empty());
    let user = field("Uid");
    assert!(user.iter().all(|id| id.parse::<u32>().unwrap() >= 64_000), "{user:?}");
    assert_eq!(field("Gid"), user);
    assert_eq!(field("NSpid").last().map(String::as_str), Some("1"));
    for namespace in ["mnt", "pid", "ipc", "uts", "net"] {
        let of = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/{namespace}")).unwrap();
        assert_ne!(of("self"), of(&guest.process.pid().to_string()), "{namespace}");
    }
}

#[test]
fn two_containers_of_a_node_are_two_users() {
    if !can_run("two_containers_of_a_node_are_two_users") {
        return;
    }
    let node = Node::start();
    let guests = [node.launch(&LIMITS), node.launch(&LIMITS)];
    let user = |pid: i32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        status.lines().find(|line| line.starts_with("Uid:")).unwrap().to_owned()
    };
    assert_ne!(user(guests[0].process.pid()), user(guests[1].process.pid()));
}

#[test]
fn threads_end_at_the_limit() {
    if !can_run("threads_end_at_the_limit") {
        return;
    }
    let node = Node::start();
    let mut guest = node.launch(&ContainerLimits { pids: 8, ..LIMITS });
    guest.ready();
    assert_eq!(guest.attempt("threads"), format!("8 then {}", libc::EAGAIN));
}

#[test]
fn other_limits_hold_while_the_container_runs() {
    if !can_run("other_limits_hold_while_the_container_runs") {
        return;
    }
    let node = Node::start();
    let limit = |limits: &ContainerLimits| node.launcher.limit(user(), limits);
    limit(&LIMITS).expect("nobody runs");
    let mut guest = node.launch(&LIMITS);
    guest.ready();
    assert_eq!(guest.attempt("hold"), "held");
    limit(&ContainerLimits { memory_bytes: 24 << 20, cpu_permille: 200, pids: 8, ..LIMITS }).unwrap();
    let share: u32 = guest.attempt("cpu").parse().unwrap();
    assert!((100..350).contains(&share), "{share}");
    assert_eq!(guest.attempt("threads"), format!("8 then {}", libc::EAGAIN));
    let refused = limit(&ContainerLimits { memory_bytes: 16 << 20, cpu_permille: 1000, ..LIMITS }).unwrap_err();
    assert!(refused.to_string().contains("memory"), "{refused}");
    let share: u32 = guest.attempt("cpu").parse().unwrap();
    assert!(share < 350, "a refused change changes nothing: {share}");
    limit(&LIMITS).unwrap();
    guest.start_attempt("memory", &[]);
    assert_eq!(guest.process.wait(Duration::from_secs(60)).unwrap().cause, ExitCause::OutOfMemory);
}

#[test]
fn a_memory_hog_is_killed_and_the_node_learns_why() {
    if !can_run("a_memory_hog_is_killed_and_the_node_learns_why") {
        return;
    }
    let node = Node::start();
    let mut guest = node.launch(&LIMITS);
    let mut other = node.launch(&LIMITS);
    guest.ready();
    guest.start_attempt("memory", &[]);
    let exit = guest.process.wait(Duration::from_secs(60)).unwrap();
    assert_eq!(exit.cause, ExitCause::OutOfMemory);
    assert_eq!(exit.refusal().kind, RefusalKind::MemoryLimit);
    other.ready();
    assert_eq!(other.attempt("write-data"), "done", "the other container goes on");
}

#[test]
fn a_processor_hog_gets_its_share() {
    if !can_run("a_processor_hog_gets_its_share") {
        return;
    }
    let node = Node::start();
    let mut guest = node.launch(&ContainerLimits { cpu_permille: 200, ..LIMITS });
    guest.ready();
    let permille: u32 = guest.attempt("cpu").parse().unwrap();
    assert!((20..=240).contains(&permille), "{permille} ‰ of a processor");
}

#[test]
fn the_machines_walls_are_all_reported() {
    if !can_run("the_machines_walls_are_all_reported") {
        return;
    }
    let node = Node::start();
    let report = node.launcher.report();
    eprintln!("enforced: {:#?}\nmissing: {:#?}", report.enforced, report.missing);
    for word in ["memory limits", "cpu limits", "pids limits", "namespaces", "user ids"] {
        let lines = report.enforced.iter().chain(&report.missing);
        assert_eq!(lines.filter(|line| line.contains(word)).count(), 1, "{word}");
    }
}
