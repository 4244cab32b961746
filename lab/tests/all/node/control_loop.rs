// SPDX-License-Identifier: Apache-2.0
//! What is slow around a node does not hold up its control loop.

use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::request_as;
use netserv_lab::histogram::Histogram;
use netserv_lab::netns::{Lab, is_root};
use netserv_lab::node::FILES_ALLOWED;
use netserv_lab::node::{LabPackage, LabUser, module_component};
use netserv_lab::topology::{Kind, Topology};
use netserv_model::api::RequestResult;
use netserv_model::request::Outcome;
use netserv_skips::skipped;

/// How long the database is locked at a time. The node waits up to five seconds for it.
const LOCK_TIME: Duration = Duration::from_secs(2);
/// How long one turn of [`TURNS`] may wait. The other one may have had to wait for a thread that had no processor.
const WAIT: Duration = Duration::from_millis(1);
const TURNS: u64 = 500;
/// How long any turn may wait: a fortieth of what the database takes.
const WAIT_MAX: Duration = Duration::from_millis(50);

/// Goal: of 500 turns of the control loop 499 wait for at most a millisecond, and none for over 50, whatever they wait for but a
/// processor, while the database is locked for two seconds again and again. How long a turn computes depends on how the node is
/// built and is not held here.
/// Method: alice installs and removes a module with a filter, and bob has a server installed and then refreshes a module, which
/// takes the database; probes go through GIST, and the API is asked all the time. Then the node's own histogram is read.
#[test]
fn no_turn_waits_while_the_store_is_slow() {
    let test = "no_turn_waits_while_the_store_is_slow";
    if module_component("hello-http").is_err() {
        return skipped(test, "the sample modules are not built: ./dev build");
    }
    let Some(net) = SlowNet::start(test) else { return };
    let (echo, hello) = (net.publish("echo", &net.alice), net.publish("hello-http", &net.bob));
    let filter = format!("udp dst {}/32 port 44444", net.lab.v4("sender"));
    // Both are in the store of packages before it matters how long things take.
    net.setup(&net.alice, &echo, &["--filter", &filter]);
    net.setup(&net.bob, &hello, &[]);
    net.remove(&net.alice, &echo);
    net.remove(&net.bob, &hello);
    let before = net.histograms();

    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (net, is_over, echo) = (&net, &is_over, &echo);
        // Also if the test fails, so that those who ask come to an end.
        let _over = Over(is_over);
        scope.spawn(move || net.ask_until(is_over));
        scope.spawn(move || net.probe_until(is_over));
        let _lock = net.lock_database();
        let alice = scope.spawn(move || {
            net.setup(&net.alice, echo, &["--filter", &filter]);
            net.remove(&net.alice, echo);
        });
        let (mut slowest, begun) = (Duration::ZERO, Instant::now());
        let is_enough = |slowest| slowest >= LOCK_TIME / 2 && net.turns_since(&before) > 2 * TURNS;
        while !alice.is_finished() || !is_enough(slowest) && begun.elapsed() < 30 * LOCK_TIME {
            slowest = slowest.max(timed(|| net.setup(&net.bob, &hello, &[])));
        }
        assert!(slowest >= LOCK_TIME / 2, "a refresh took {slowest:?} at most, so the store was not slow");
    });

    let [waits, turns] = net.histograms();
    let (waits, turns) = (waits.since(&before[0]), turns.since(&before[1]));
    eprintln!("waits of turns: {waits}\nturns: {turns}");
    assert!(waits.count() > 2 * TURNS, "{waits}");
    assert!(waits.above(WAIT) <= waits.count() / TURNS, "turns that waited for more than {WAIT:?}: {waits}");
    assert_eq!(waits.above(WAIT_MAX), 0, "turns that waited for more than {WAIT_MAX:?}: {waits}");
}

/// `sender – node – receiver`.
struct SlowNet {
    lab: Lab,
    alice: LabUser,
    bob: LabUser,
}

impl SlowNet {
    fn start(test: &str) -> Option<SlowNet> {
        if !is_root() {
            skipped(test, "not root, so no namespaces");
            return None;
        }
        let chain = [("sender", Kind::Host), ("node", Kind::Node), ("receiver", Kind::Host)];
        let mut lab = Lab::up(Topology::chain(&chain)).unwrap();
        let own = format!("{}/32", lab.v4("sender"));
        let [alice, bob] = ["alice", "bob"].map(|name| lab.user(name, &[&own]).unwrap());
        let bob = LabUser { extra: "listen = ['tcp port 80']\n".to_owned(), ..bob };
        // The driver whose filters are rules of the kernel's firewall.
        lab.use_driver("nfqueue");
        let extra = format!("{FILES_ALLOWED}\n[network]\nprefixes = [\"10.99.7.0/29\"]\n");
        lab.start_netservd("node", "node", &[alice.clone(), bob.clone()], &extra).unwrap();
        lab.start_netservd("sender", "host", &[], "").unwrap();
        lab.serve_http("sender").unwrap();
        Some(SlowNet { lab, alice, bob })
    }

    fn publish(&self, module: &str, user: &LabUser) -> (LabPackage, String) {
        let package = self.lab.package(module, user).unwrap();
        let url = self.lab.publish("sender", &package).unwrap();
        (package, url)
    }

    fn setup(&self, user: &LabUser, (package, url): &(LabPackage, String), more: &[&str]) {
        let file = package.path.to_string_lossy();
        let result = self.request(user, &[&["setup", &file, "--url", url], more].concat());
        let good = |outcome: &Outcome| matches!(outcome, Outcome::Installed { .. } | Outcome::Refreshed { .. });
        assert!(result.nodes.iter().any(|node| good(&node.outcome)), "{result:?}");
    }

    fn remove(&self, user: &LabUser, (package, _): &(LabPackage, String)) {
        let result = self.request(user, &["remove", package.module.split('@').next().unwrap()]);
        assert!(result.nodes.iter().any(|node| node.outcome == Outcome::Removed), "{result:?}");
    }

    fn request(&self, user: &LabUser, args: &[&str]) -> RequestResult {
        let to = self.lab.v4("receiver").to_string();
        request_as(&self.lab, user, &[args, &["--to", &to, "--timeout", "60s"]].concat())
    }

    fn ask_until(&self, is_over: &AtomicBool) {
        while !is_over.load(Ordering::Relaxed) {
            for path in ["/v1/node", "/v1/modules", "/metrics"] {
                self.lab.get("node", path).unwrap();
            }
        }
    }

    fn probe_until(&self, is_over: &AtomicBool) {
        while !is_over.load(Ordering::Relaxed) {
            let result = self.request(&self.alice, &["probe"]);
            assert!(result.nodes.iter().any(|node| node.outcome == Outcome::Probed), "{result:?}");
        }
    }

    /// Has another process take the database's lock again and again.
    fn lock_database(&self) -> Running {
        let mut python = Command::new("python3");
        python.args(["-c", LOCK]).arg(self.lab.state_dir("node").join("node.db"));
        Running(python.arg(LOCK_TIME.as_secs_f64().to_string()).spawn().unwrap())
    }

    fn turns_since(&self, before: &[Histogram; 2]) -> u64 {
        self.histograms()[0].since(&before[0]).count()
    }

    fn histograms(&self) -> [Histogram; 2] {
        let metrics = self.lab.get("node", "/metrics").unwrap();
        ["control_loop_wait_seconds", "control_loop_turn_seconds"].map(|name| Histogram::read(&metrics, name).unwrap())
    }
}

/// Takes the lock for writing on a database for some time, again and again.
const LOCK: &str = "
import sqlite3, sys, time
database = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
while True:
    database.execute('BEGIN IMMEDIATE')
    time.sleep(float(sys.argv[2]))
    database.execute('COMMIT')
    time.sleep(0.3)
";

/// A process that ends with this.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Says that something is over when it is dropped.
pub struct Over<'a>(pub &'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn timed(work: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    work();
    begun.elapsed()
}
