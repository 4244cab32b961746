// SPDX-License-Identifier: Apache-2.0
//! A node whose disk is full, or whose database is none.

use std::io::Write as _;
use std::path::PathBuf;

use crate::common::{ask_udp, eventually, request_as};
use netserv_lab::netns::{Lab, is_root, wait_until};
use netserv_lab::node::FILES_ALLOWED;
use netserv_lab::node::{LabPackage, LabUser};
use netserv_lab::topology::{Kind, Topology};
use netserv_model::RefusalKind;
use netserv_model::request::{ModuleState, Outcome};
use netserv_skips::skipped;

/// Bytes of the disk that the node's state is on.
const DISK_BYTES: usize = 32 * 1024 * 1024;
/// What the node's log says of each change that it could not store.
const NOT_STORED: &str = "after a restart, a module will be as it was before";

/// Goal: with a full disk, a package that is not there is refused with `node-failed`; what needs no room for packages is
/// done, and the node counts and logs that it is not stored; packets and probes go on. With room again, all is as before,
/// and a restart restores what was stored then.
/// Method: the node's state directory is a small file system of its own, which the test fills up.
#[test]
fn a_full_disk_refuses_packages_and_is_told_and_the_node_goes_on() {
    let Some(mut net) = SmallDisk::start("a_full_disk_refuses_packages_and_is_told_and_the_node_goes_on") else {
        return;
    };
    let (echo, monitor) = (net.publish("echo"), net.publish("net-monitor"));
    let filter = format!("udp dst {}/32 port 44444", net.lab.v4("sender"));
    let installed = |outcome: &Outcome| matches!(outcome, Outcome::Installed { .. });
    assert!(installed(&net.setup(&echo, &filter)));
    assert_eq!((net.not_stored(), net.echoed()), (0, true));

    let filler = net.fill();
    // The package of echo is there; that of net-monitor would have to be written.
    let refused = net.setup(&monitor, &filter);
    let Outcome::Refused(refusal) = &refused else { panic!("{refused:?}") };
    assert_eq!(refusal.kind, RefusalKind::NodeFailed, "{refusal}");
    assert!(refusal.detail.contains("the download cannot be kept: No space left on device"), "{refusal}");
    let refreshed = net.setup(&echo, &filter);
    assert!(matches!(refreshed, Outcome::Refreshed { .. }), "{refreshed:?}");
    assert_eq!(net.not_stored(), 1);
    assert_eq!(net.remove(&echo), Outcome::Removed);
    assert_eq!(net.not_stored(), 2);
    assert!(!net.echoed());
    let again = net.setup(&echo, &filter);
    assert!(installed(&again), "{again:?}");
    assert_eq!((net.not_stored(), net.echoed()), (3, true));
    eventually("what was used is not stored either", || net.events("usage-store-failure") > 0);
    let log = net.lab.log("node", "netservd");
    assert_eq!(log.matches(NOT_STORED).count(), 3, "{log}");
    assert!(!log.contains("panicked"), "{log}");

    std::fs::remove_file(filler).unwrap();
    assert!(installed(&net.setup(&monitor, &filter)));
    assert!(matches!(net.setup(&echo, &filter), Outcome::Refreshed { .. }));
    assert_eq!((net.not_stored(), net.echoed()), (3, true));
    net.lab.stop("node", "netservd").unwrap();
    net.lab.restart_netservd("node").unwrap();
    for (package, _) in [&echo, &monitor] {
        eventually("what is stored runs again", || {
            let modules = net.lab.modules("node").unwrap().modules;
            let ours = modules.iter().find(|status| status.module.to_string() == package.module);
            ours.is_some_and(|status| status.state == ModuleState::Running)
        });
    }
    eventually("the module answers", || net.echoed());
}

/// Goal: a file that is not a database stops the start, and the error has its name and what to do.
///
/// What is no database is not taken for an empty one.
#[test]
fn a_database_that_is_none_stops_the_start_by_its_name() {
    let Some(mut net) = SmallDisk::start("a_database_that_is_none_stops_the_start_by_its_name") else { return };
    net.lab.stop("node", "netservd").unwrap();
    let database = net.disk().join("node.db");
    let text = "no database, but more than a page of text\n".repeat(1000);
    std::fs::write(&database, &text).unwrap();
    // Its log would bring the tables back.
    assert!(!database.with_extension("db-wal").exists(), "who is asked to stop writes all into the database");
    let error = format!("{:#}", net.lab.restart_netservd("node").unwrap_err());
    let named = format!("{}", net.lab.state_dir("node").join("node.db").display());
    assert!(error.contains(&named) && error.contains("move it away"), "{error}");
    assert!(!error.contains("panicked"), "{error}");
    assert_eq!(std::fs::read_to_string(&database).unwrap(), text, "it is left as it is");
}

/// `sender – node – receiver`, with the node's state directory on a small disk.
struct SmallDisk {
    lab: Lab,
    user: LabUser,
    /// The process whose mount namespace has the disk.
    holder: u32,
}

impl SmallDisk {
    fn start(test: &str) -> Option<SmallDisk> {
        if !is_root() {
            skipped(test, "not root, so no namespaces");
            return None;
        }
        let chain = [("sender", Kind::Host), ("node", Kind::Node), ("receiver", Kind::Host)];
        let mut lab = Lab::up(Topology::chain(&chain)).unwrap();
        let user = lab.user("janedoe", &[&format!("{}/32", lab.v4("sender"))]).unwrap();
        let directory = lab.state_dir("node");
        std::fs::create_dir(&directory).unwrap();
        // Mounted where only this process and the node see it, so that nothing is left to unmount.
        let mount =
            format!("mount -t tmpfs -o size={DISK_BYTES},mode=700 none {} && exec sleep infinity", directory.display());
        let mut holder = lab.command("node", "unshare");
        let holder = lab.start("node", "disk", holder.args(["--mount", "sh", "-c", &mount])).unwrap();
        let is_mounted = || {
            let mounts = std::fs::read_to_string(format!("/proc/{holder}/mounts")).unwrap();
            mounts.contains(&format!(" {} ", directory.display()))
        };
        assert!(wait_until(std::time::Duration::from_secs(10), is_mounted), "{}", lab.log("node", "disk"));
        lab.use_wrapper(&["nsenter", &format!("--mount=/proc/{holder}/ns/mnt"), "--"]);
        lab.start_netservd("node", "node", std::slice::from_ref(&user), FILES_ALLOWED).unwrap();
        lab.use_wrapper(&[]);
        lab.start_netservd("sender", "host", &[], "").unwrap();
        lab.use_wrapper(&["nsenter", &format!("--mount=/proc/{holder}/ns/mnt"), "--"]);
        lab.serve_http("sender").unwrap();
        Some(SmallDisk { lab, user, holder })
    }

    fn publish(&self, module: &str) -> (LabPackage, String) {
        let package = self.lab.package(module, &self.user).unwrap();
        let url = self.lab.publish("sender", &package).unwrap();
        (package, url)
    }

    fn setup(&self, (package, url): &(LabPackage, String), filter: &str) -> Outcome {
        self.request(&["setup", &package.path.to_string_lossy(), "--url", url, "--filter", filter])
    }

    fn remove(&self, (package, _): &(LabPackage, String)) -> Outcome {
        self.request(&["remove", package.module.split('@').next().unwrap()])
    }

    fn request(&self, args: &[&str]) -> Outcome {
        let to = self.lab.v4("receiver").to_string();
        let result = request_as(&self.lab, &self.user, &[args, &["--to", &to]].concat());
        result.nodes.into_iter().find(|node| node.node.as_str() == "node").unwrap().outcome
    }

    fn echoed(&self) -> bool {
        ask_udp(&self.lab, "receiver", self.lab.v4("sender").into(), 44444, "hello").as_deref() == Some("hello")
    }

    /// Returns how many changes the node counted that it could not store.
    fn not_stored(&self) -> u64 {
        self.events("store-failure")
    }

    fn events(&self, event: &str) -> u64 {
        let metrics = self.lab.metrics("node").unwrap();
        let counted = format!("netserv_controller_events_total{{event=\"{event}\"}} ");
        metrics.lines().find_map(|line| line.strip_prefix(&counted)).unwrap().parse().unwrap()
    }

    /// Returns where the disk is to be found from outside.
    fn disk(&self) -> PathBuf {
        let inside = self.lab.state_dir("node");
        PathBuf::from(format!("/proc/{}/root", self.holder)).join(inside.strip_prefix("/").unwrap())
    }

    /// Takes all room that is left on the disk; returns the file that has it.
    fn fill(&self) -> PathBuf {
        let path = self.disk().join("filler");
        let mut file = std::fs::File::create(&path).unwrap();
        let mut size = 1024 * 1024;
        // The last ones are small, so that no page is left.
        while size > 0 {
            if file.write_all(&vec![0; size]).is_err() {
                size /= 2;
            }
        }
        path
    }
}
