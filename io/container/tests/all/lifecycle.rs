// SPDX-License-Identifier: Apache-2.0
//! Containers start, end, and leave nothing behind.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{LIMITS, Node, PROBE, can_run, cgroups_of, config, eventually, is_alive, unique_instance};
use netserv_container::limits::SPARES;
use netserv_container::{BuildLimits, ContainerError, ControlError, ExitCause, Launcher, cleanup_leftovers};
use netserv_model::RefusalKind;
use netserv_model::policy::ContainerLimits;
use netserv_skips::not_run;
use netserv_wire::container::frames::ToWorker;

#[test]
fn every_way_to_end_is_told_apart() {
    if !can_run("every_way_to_end_is_told_apart") {
        return;
    }
    let node = Node::start();
    let end = |attempt: &str| {
        let mut guest = node.launch(&LIMITS);
        guest.ready();
        assert_eq!(guest.process.exit(), None);
        match attempt {
            "shutdown" => guest.control.send(&ToWorker::Shutdown, &[]).unwrap(),
            "kill" => guest.process.kill(),
            other => guest.start_attempt(other, &[]),
        }
        let exit = guest.process.wait(Duration::from_secs(60)).unwrap().clone();
        assert!(guest.receive().is_none(), "the control channel closes");
        assert!(matches!(guest.control.send(&ToWorker::Stats, &[]), Err(ControlError::Closed)));
        exit
    };
    assert_eq!(end("shutdown").cause, ExitCause::Code(0));
    assert_eq!(end("exit").cause, ExitCause::Code(3));
    assert_eq!(end("exit-noisily").cause, ExitCause::Code(3), "whatever it wrote last");
    assert_eq!(end("kill").cause, ExitCause::Signal(libc::SIGKILL));
    assert!(matches!(end("crash").cause, ExitCause::Signal(_) | ExitCause::Code(127)));
    let exit = end("panic");
    assert_eq!(exit.cause, ExitCause::Code(101));
    assert!(exit.refusal().detail.contains("the probe's last words"), "{}", exit.refusal());
}

#[test]
fn a_hanging_container_dies_with_its_handle() {
    if !can_run("a_hanging_container_dies_with_its_handle") {
        return;
    }
    let node = Node::start();
    let mut guest = node.launch(&LIMITS);
    guest.ready();
    guest.start_attempt("hang", &[]);
    let pid = guest.process.pid();
    assert!(is_alive(pid));
    drop(guest);
    eventually("the process ends", || !is_alive(pid));
    eventually("its groups go", || cgroups_of(&node.instance).iter().all(|parent| children(parent) <= SPARES));
}

#[test]
fn a_hundred_containers_come_and_go() {
    if !can_run("a_hundred_containers_come_and_go") {
        return;
    }
    let node = Node::start();
    let mut times = vec![];
    let mut guests: Vec<_> = (0..100)
        .map(|_| {
            let started = Instant::now();
            let guest = node.launch(&LIMITS);
            times.push(started.elapsed());
            guest
        })
        .collect();
    guests.iter_mut().for_each(crate::common::Guest::ready);
    times.sort();
    eprintln!("start: median {:?}, 95 % {:?}, worst {:?}", times[50], times[95], times[99]);
    let pids: Vec<i32> = guests.iter().map(|guest| guest.process.pid()).collect();
    drop(guests);
    eventually("all processes end", || !pids.iter().any(|pid| is_alive(*pid)));
    eventually("all groups go", || cgroups_of(&node.instance).iter().all(|parent| children(parent) <= SPARES));
    // Their places, and with them their user ids, are free again.
    let mut again = node.launch(&LIMITS);
    again.ready();
    let status = fs::read_to_string(format!("/proc/{}/status", again.process.pid())).unwrap();
    assert!(status.contains("Uid:\t64000\t"), "{status}");
}

#[test]
fn the_launcher_leaves_nothing_when_it_is_dropped() {
    if !can_run("the_launcher_leaves_nothing_when_it_is_dropped") {
        return;
    }
    let node = Node::start();
    let mut guest = node.launch(&LIMITS);
    guest.ready();
    let (instance, pid) = (node.instance.clone(), guest.process.pid());
    assert!(!cgroups_of(&instance).is_empty());
    drop(node);
    assert!(!is_alive(pid));
    assert!(cgroups_of(&instance).is_empty());
    assert_eq!(guest.process.exit().map(|exit| exit.cause), Some(ExitCause::Signal(libc::SIGKILL)));
}

#[test]
fn a_launcher_that_ends_is_known_to_be_down() {
    if !can_run("a_launcher_that_ends_is_known_to_be_down") {
        return;
    }
    let told = |node: &Node| node.launcher.end();
    let killed = |node: &Node| {
        let pid = rustix::process::Pid::from_raw(node.launcher.pid().cast_signed()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    };
    for end in [&told as &dyn Fn(&Node), &killed] {
        let node = Node::start();
        let mut guest = node.launch(&LIMITS);
        guest.ready();
        assert!(node.launcher.is_up());
        end(&node);
        eventually("the launcher is down", || !node.launcher.is_up());
        assert!(guest.process.wait(Duration::from_secs(60)).is_some(), "its containers end");
        let refused = node.try_launch(&LIMITS);
        assert!(matches!(refused, Err(ContainerError::LauncherGone(_))));
        assert!(!node.launcher.is_up());
    }
}

#[test]
fn a_killed_node_takes_launcher_and_containers_along() {
    if !can_run("a_killed_node_takes_launcher_and_containers_along") {
        return;
    }
    let (directory, instance) = (tempfile::tempdir().unwrap(), unique_instance());
    let mut node = hold(directory.path(), &instance);
    let launcher = children_of(node.child.id());
    assert_eq!((node.pids.len(), launcher.len()), (3, 1));
    let mut all = vec![];
    eventually("a spare is made", || {
        all = children_of(launcher[0].unsigned_abs());
        all.len() == 3 + SPARES
    });
    node.kill();
    eventually("all containers end", || !node.pids.iter().any(|pid| is_alive(*pid)));
    eventually("the launcher ends", || !is_alive(launcher[0]));
    eventually("all spares end", || !all.iter().any(|pid| is_alive(*pid)));
    eventually("no group is left", || cgroups_of(&instance).is_empty());
}

/// Goal: a container starts whose process gets a hundredth of a processor, and one whose process is held up for three seconds.
#[test]
fn a_start_that_is_held_up_is_no_failure() {
    if !can_run("a_start_that_is_held_up_is_no_failure") {
        return;
    }
    let node = Node::start();
    let slow = node.launch(&ContainerLimits { cpu_permille: 10, ..LIMITS }).process.pid();
    // It is a child of the thread that started it.
    let children = fs::read_to_string("/proc/thread-self/children").unwrap();
    let launcher: u32 = children.trim().parse().unwrap();
    let mut spares = vec![];
    eventually("the slow one has ended, and all spares are made", || {
        spares = children_of(launcher);
        spares.len() == SPARES && !spares.contains(&slow)
    });
    let signal = move |signal| {
        for pid in &spares {
            rustix::process::kill_process(rustix::process::Pid::from_raw(*pid).unwrap(), signal).unwrap();
        }
    };
    signal(rustix::process::Signal::STOP);
    let resuming = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(3));
        signal(rustix::process::Signal::CONT);
    });
    node.launch(&LIMITS).ready();
    resuming.join().unwrap();
}

#[test]
fn a_killed_launcher_takes_containers_along_and_the_next_one_cleans_up() {
    if !can_run("a_killed_launcher_takes_containers_along_and_the_next_one_cleans_up") {
        return;
    }
    let (directory, instance) = (tempfile::tempdir().unwrap(), unique_instance());
    let mut node = hold(directory.path(), &instance);
    let in_use = Launcher::start(&config(directory.path(), &instance));
    assert!(matches!(in_use, Err(ContainerError::InUse(_))));
    for launcher in children_of(node.child.id()) {
        rustix::process::kill_process(rustix::process::Pid::from_raw(launcher).unwrap(), rustix::process::Signal::KILL)
            .unwrap();
    }
    eventually("all containers end", || !node.pids.iter().any(|pid| is_alive(*pid)));
    node.kill();
    assert!(!cgroups_of(&instance).is_empty(), "a killed launcher cannot remove its groups");
    assert!(cleanup_leftovers(directory.path(), &instance).unwrap() >= 3);
    assert!(cgroups_of(&instance).is_empty());
}

#[test]
fn processes_that_an_earlier_run_left_are_ended() {
    if !can_run("processes_that_an_earlier_run_left_are_ended") {
        return;
    }
    let (directory, instance) = (tempfile::tempdir().unwrap(), unique_instance());
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let pids = mounts.lines().find(|line| line.contains(" - cgroup ") && line.ends_with("pids"));
    let Some(pids) = pids.and_then(|line| line.split(' ').nth(4)) else {
        return not_run("processes_that_an_earlier_run_left_are_ended", "no v1 hierarchy for pids");
    };
    let mut stray = Command::new("sleep").arg("60").spawn().unwrap();
    let group = format!("{pids}/netserv-{instance}/7-janedoe");
    fs::create_dir_all(&group).unwrap();
    fs::write(format!("{group}/cgroup.procs"), stray.id().to_string()).unwrap();
    let launcher = Launcher::start(&config(directory.path(), &instance)).unwrap();
    assert!(!stray.wait().unwrap().success());
    assert!(!fs::exists(&group).unwrap());
    drop(launcher);
    assert!(cgroups_of(&instance).is_empty());
}

#[test]
fn what_cannot_be_started_is_an_error_with_its_step() {
    if !can_run("what_cannot_be_started_is_an_error_with_its_step") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("worker");
    fs::write(&script, "#!/bin/sh\n").unwrap();
    let mut with_script = config(directory.path(), &unique_instance());
    with_script.worker = script;
    let error = Launcher::start(&with_script).unwrap_err();
    assert!(matches!(&error, ContainerError::LauncherRefused(text) if text.contains("build the root")), "{error}");

    let node = Node::start();
    let tiny = ContainerLimits { memory_bytes: 1 << 20, ..LIMITS };
    let error = node.try_launch(&tiny).err().unwrap();
    assert!(matches!(error, ContainerError::Quota(_)), "{error}");
}

/// Goal: a compilation ends when its processor time is used up, with a reason of its own.
#[test]
fn a_compilation_without_end_uses_its_processor_time_and_no_more() {
    if !can_run("a_compilation_without_end_uses_its_processor_time_and_no_more") {
        return;
    }
    let node = Node::start();
    let (wasm, out) = (node.state_dir().join("a.wasm"), node.state_dir().join("a.cwasm"));
    fs::write(&wasm, b"burn").unwrap();
    let container = ContainerLimits { cpu_permille: 2000, ..LIMITS };
    let limits = BuildLimits { container, time: Duration::from_secs(240), cpu_time: Duration::from_secs(1) };
    let begun = Instant::now();
    let refusal = node.launcher.compile(&wasm, &out, &limits).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::CompileLimit, "{refusal}");
    assert!(refusal.detail.contains("used its 1 s of processor time"), "{refusal}");
    assert!(begun.elapsed() < limits.time, "long before its time is over");
    assert!(!out.exists());
}

#[test]
fn compilations_give_code_or_the_reason() {
    if !can_run("compilations_give_code_or_the_reason") {
        return;
    }
    let node = Node::start();
    let (wasm, out) = (node.state_dir().join("a.wasm"), node.state_dir().join("a.cwasm"));
    let limits = BuildLimits {
        container: ContainerLimits { memory_bytes: 32 << 20, disk_bytes: 1 << 20, ..LIMITS },
        time: Duration::from_millis(500),
        cpu_time: BuildLimits::CODE.cpu_time,
    };
    let compile = |input: &[u8]| {
        fs::write(&wasm, input).unwrap();
        node.launcher.compile(&wasm, &out, &limits)
    };
    compile(b"good").unwrap();
    assert_eq!(fs::read(&out).unwrap(), b"compiled good");
    let (second, both) = (node.state_dir().join("b.wasm"), node.state_dir().join("ab.cwasm"));
    fs::write(&second, b"next").unwrap();
    node.launcher.build(&[&wasm, &second, &wasm], &both, &limits, &mut |_| true).unwrap();
    assert_eq!(fs::read(&both).unwrap(), b"compiled good+next+good");
    for (input, kind) in [
        (&b"refuse"[..], RefusalKind::AbiMismatch),
        (b"crash", RefusalKind::BadCode),
        (b"nothing", RefusalKind::BadCode),
        (b"symlink", RefusalKind::BadCode),
        (b"memory", RefusalKind::MemoryLimit),
        (b"hang", RefusalKind::Timeout),
    ] {
        let refusal = compile(input).unwrap_err();
        assert_eq!(refusal.kind, kind, "{refusal}");
    }
    assert_eq!(fs::read(&out).unwrap(), b"compiled good", "a failure leaves the earlier output alone");
    let left = fs::read_dir(node.state_dir()).unwrap().flatten();
    let left: Vec<_> = left.filter(|entry| entry.path().extension().is_some_and(|end| end == "partial")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn without_root_containers_start_and_the_missing_walls_are_named() {
    const NOBODY: u32 = 65_534;
    if !can_run("without_root_containers_start_and_the_missing_walls_are_named") {
        return;
    }
    let user_namespaces =
        netserv_container::doctor().into_iter().find(|check| check.what == "user namespaces").unwrap();
    if !user_namespaces.ok {
        return not_run("the part without root", &format!("user namespaces: {}", user_namespaces.found));
    }
    let (directory, instance) = (tempfile::tempdir().unwrap(), unique_instance());
    std::os::unix::fs::chown(directory.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let program = directory.path().join("probe");
    fs::copy(PROBE, &program).unwrap();
    let mut command = Command::new(program);
    command.uid(NOBODY).gid(NOBODY);
    let mut node = hold_by(command, &directory.path().join("state"), &instance);
    assert_eq!(node.pids.len(), 3);
    let missing = |word: &str| node.missing.iter().any(|line| line.contains(word));
    assert!(missing("memory") && missing("user ids"), "{:?}", node.missing);
    let status = fs::read_to_string(format!("/proc/{}/status", node.pids[0])).unwrap();
    for line in ["Uid:\t65534\t", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "Seccomp:\t2"] {
        assert!(status.contains(line), "{line}: {status}");
    }
    node.kill();
    eventually("all containers end", || !node.pids.iter().any(|pid| is_alive(*pid)));
}

struct Held {
    child: std::process::Child,
    pids: Vec<i32>,
    missing: Vec<String>,
}

impl Held {
    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A node in a process of its own, with three containers.
fn hold(state_dir: &std::path::Path, instance: &str) -> Held {
    hold_by(Command::new(PROBE), state_dir, instance)
}

fn hold_by(mut command: Command, state_dir: &std::path::Path, instance: &str) -> Held {
    command.arg("hold").arg(state_dir).arg(instance).arg("3").stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let lines = lines.take_while(|line| line != "ready");
    let (missing, pids): (Vec<String>, Vec<String>) = lines.partition(|line| line.starts_with("missing: "));
    Held { child, pids: pids.iter().map(|pid| pid.parse().unwrap()).collect(), missing }
}

fn children_of(pid: u32) -> Vec<i32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

fn children(group: &std::path::Path) -> usize {
    fs::read_dir(group).into_iter().flatten().flatten().filter(|entry| entry.path().is_dir()).count()
}
