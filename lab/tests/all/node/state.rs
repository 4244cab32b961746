// SPDX-License-Identifier: Apache-2.0
//! What modules remember outlives their worker, their node, and its kill; and goes with their user.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Driver, Serving, eventually};
use netserv_model::request::{ModuleState, Outcome};

const LISTEN: &str = "listen = ['tcp port 80']\n";

#[test]
fn kv_state_outlives_worker_node_and_module() {
    let Some(mut net) = Serving::start("kv_state_outlives_worker_node_and_module", Driver::Nfqueue, LISTEN) else {
        return;
    };
    let file = net.lab.state_dir("node").join("store/alice.wasm.kv");
    let receiver = net.lab.v4("receiver").to_string();
    let filter = format!("udp dst {}/32 port 9999", net.lab.v4("sender"));
    net.install("guard", &net.alice, &["--filter", &filter]);
    send_one(&net);
    eventually("a packet is counted", || says(&net, &format!("{receiver} 1 allowed")));
    net.curl("receiver", &["-X", "POST", &format!("http://{}/block/{receiver}", net.address(&net.alice, false))]);
    let kept = |packets: u64| [format!("seen/{receiver}").as_bytes(), &packets.to_le_bytes()].concat();
    eventually("both are on disk", || has(&file, &kept(1)) && has(&file, format!("blocked/{receiver}").as_bytes()));

    // A worker that is killed costs at most what was not written yet.
    let worker = worker_of(&net);
    assert!(Command::new("kill").args(["-9", &worker.to_string()]).status().unwrap().success());
    eventually("another one runs", || worker_if_any(&net).is_some_and(|pid| pid != worker));
    eventually("it remembers", || says(&net, &format!("{receiver} 1 blocked")));

    // So does a node that is killed, as in a power cut.
    net.lab.kill("node", "netservd").unwrap();
    net.lab.restart_netservd("node").unwrap();
    eventually("it remembers", || says(&net, &format!("{receiver} 1 blocked")));

    // A node that is stopped loses nothing, also of the last moment: the module writes its counts as it ends. Its server
    // answers a moment before its filters are there.
    eventually("it runs", || net.status(&net.alice, "guard").unwrap().state == ModuleState::Running);
    eventually("its filters are there", || {
        net.lab.metrics("node").unwrap().contains("netserv_effects{state=\"open\"} 0\n")
    });
    send_one(&net);
    eventually("the packet was seen", || net.status(&net.alice, "guard").unwrap().packets.dropped == 1);
    net.lab.stop("node", "netservd").unwrap();
    assert!(has(&file, &kept(2)));
    net.lab.restart_netservd("node").unwrap();
    eventually("it remembers", || says(&net, &format!("{receiver} 2 blocked")));

    // Who removes a module finds its state when it is installed again.
    assert_eq!(net.request(&net.alice, &["remove", "example.org/guard"]), Outcome::Removed);
    eventually("its worker ends", || worker_if_any(&net).is_none());
    net.install("guard", &net.alice, &["--filter", &filter]);
    eventually("it remembers", || says(&net, &format!("{receiver} 2 blocked")));
    assert!(file.with_file_name("alice.wasm.cache").exists());

    // A file that was damaged costs what it held, and is counted.
    net.lab.stop("node", "netservd").unwrap();
    std::fs::write(&file, vec![7; usize::try_from(file.metadata().unwrap().len()).unwrap()]).unwrap();
    net.lab.restart_netservd("node").unwrap();
    eventually("the module runs", || says(&net, ""));
    let metrics = net.lab.metrics("node").unwrap();
    let count =
        |what: &str| format!("netserv_storage_failures_total{{user=\"alice\",flavour=\"wasm\",what=\"{what}\"}} ");
    assert!(metrics.contains(&(count("kv") + "1\n")) && metrics.contains(&(count("cache") + "0\n")), "{metrics}");

    // A user that is gone takes everything along.
    net.lab.stop("node", "netservd").unwrap();
    let config = net.lab.dir().join("node.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    let (others, _) = text.split_once("[[user]]").unwrap();
    std::fs::write(&config, others).unwrap();
    net.lab.restart_netservd("node").unwrap();
    assert!(!file.exists() && !file.with_file_name("alice.wasm.cache").exists());
}

/// Goal: nobody but the node's user reads packages with their keys, compiled code, modules' state or the database; and who
/// may use the node's socket still can. Method: look at everything in the directory while modules run, and once more after
/// it was opened to others.
#[test]
fn the_state_directory_is_closed_to_others() {
    let Some(mut net) = Serving::start("the_state_directory_is_closed_to_others", Driver::Nfqueue, LISTEN) else {
        return;
    };
    let filter = format!("udp dst {}/32 port 9999", net.lab.v4("sender"));
    net.install("guard", &net.alice, &["--filter", &filter]);
    let directory = net.lab.state_dir("node");
    let is_open = |path: &Path| path.symlink_metadata().unwrap().permissions().mode() & 0o077 != 0;
    let mut all = everything_in(&directory);
    for kind in ["node.db", ".cwasm", ".nsm", "alice.wasm.kv"] {
        assert!(all.iter().any(|path| path.to_str().unwrap().ends_with(kind)), "no {kind} in {all:?}");
    }
    // Java's archive is for workers, which have users of their own, to map.
    all.retain(|path| is_open(path) && !path.starts_with(directory.join("jvm")));
    assert_eq!(all, Vec::<PathBuf>::new());
    assert_eq!(net.lab.socket("node").metadata().unwrap().permissions().mode() & 0o777, 0o660);

    net.lab.stop("node", "netservd").unwrap();
    std::fs::set_permissions(&directory, Permissions::from_mode(0o755)).unwrap();
    net.lab.restart_netservd("node").unwrap();
    assert!(!is_open(&directory));
    assert!(net.lab.log("node", "netservd").contains("others could read the state directory"));
}

/// Returns a directory and what is below it.
fn everything_in(directory: &Path) -> Vec<PathBuf> {
    let mut all = vec![directory.to_owned()];
    let mut next = 0;
    while let Some(path) = all.get(next).cloned() {
        next += 1;
        if path.symlink_metadata().unwrap().is_dir() {
            all.extend(path.read_dir().unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    all
}

fn send_one(net: &Serving) {
    let line = format!("echo hello > /dev/udp/{}/9999", net.lab.v4("sender"));
    assert!(net.lab.command("receiver", "bash").args(["-c", &line]).status().unwrap().success());
}

fn says(net: &Serving, text: &str) -> bool {
    let status = net.status(&net.alice, "guard");
    let Some(page) = status.and_then(|status| status.addresses.into_iter().find(|address| address.is_ipv4())) else {
        return false;
    };
    net.get("receiver", page, "/senders").is_some_and(|all| all.contains(text))
}

fn has(file: &Path, bytes: &[u8]) -> bool {
    let content = std::fs::read(file).unwrap_or_default();
    content.windows(bytes.len()).any(|window| window == bytes)
}

fn worker_of(net: &Serving) -> u32 {
    worker_if_any(net).unwrap()
}

/// Returns the worker of the node's only container.
fn worker_if_any(net: &Serving) -> Option<u32> {
    let netservd = net.lab.pid("node", "netservd").unwrap();
    let mut workers = children(netservd).into_iter().flat_map(children);
    // A spare of the launcher's has its name still.
    let is_worker = |pid: &u32| {
        let line = std::fs::read_to_string(PathBuf::from(format!("/proc/{pid}/cmdline"))).unwrap_or_default();
        line.starts_with("netserv-worker\0serve")
    };
    workers.find(is_worker)
}

fn children(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.map(|task| std::fs::read_to_string(task.path().join("children")).unwrap_or_default());
    lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect()
}
