// SPDX-License-Identifier: Apache-2.0
//! A running module moves between nodes by `netserv relocate`, while its packets come, and while whatever takes part is killed.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::store::StateStore;
use common::{Driver, Net, eventually, net_with};
use netserv_lab::netns::program;
use netserv_lab::node::LabPackage;
use netserv_model::request::{ModuleState, ModuleStatus};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde::Deserialize;

/// Packets a second while it moves.
const RATE: u64 = 500;
/// For how long they come.
const SECONDS: u64 = 8;
/// Relocations of a test, and of a measurement, in each of which something is killed.
const KILLS: u32 = 4;
const KILLS_MEASURED: u32 = 100;
/// How long a module may be nowhere where code is optimised.
const STILL_MAX: Duration = Duration::from_millis(50);

/// What the command says.
#[derive(Debug, Deserialize)]
struct Relocated {
    node: String,
    epoch: u64,
    resumed: bool,
    state: Option<State>,
}

#[derive(Debug, Deserialize)]
struct State {
    still_ms: u64,
}

/// Goal: what net-monitor counts goes on on the other node; no packet is counted twice, and no more are missed than come while it
/// stands still, which is said. Method: `sender – n1 – r – n2 – receiver`, a steady stream of numbered datagrams from the receiver.
#[test]
fn counts_go_on_over_relocations() {
    let Some(mut moving) = Moving::up("counts_go_on_over_relocations", Driver::Afxdp) else { return };
    moving.count_over(2);
}

/// Goal: as above, and it is nowhere for 50 ms at most.
#[test]
#[ignore = "a measurement"]
fn relocations_take_little_time() {
    let Some(mut moving) = Moving::up("relocations_take_little_time", Driver::Afxdp) else { return };
    let still = moving.count_over(6);
    // The first time, a node has everything to fetch.
    assert!(still[2..].iter().all(|still| *still <= STILL_MAX), "{still:?}, {STILL_MAX:?} is the goal");
}

/// Goal: whatever of the command and the two nodes is killed at whatever time, the same command ends with the module on the node that it
/// is to be on, and nowhere else.
#[test]
fn there_is_one_owner_after_a_kill() {
    kill_some("there_is_one_owner_after_a_kill", KILLS, 1);
}

/// The same, a hundred times.
#[test]
#[ignore = "a soak"]
fn there_is_one_owner_after_each_of_many_kills() {
    kill_some("there_is_one_owner_after_each_of_many_kills", KILLS_MEASURED, 2);
}

fn kill_some(test: &str, kills: u32, seed: u64) {
    let Some(mut moving) = Moving::up(test, Driver::Nfqueue) else { return };
    let mut random = StdRng::seed_from_u64(seed);
    let mut took = moving.relocate("n1", "n2").1;
    for number in 0..kills {
        let (old, new) = if number % 2 == 0 { ("n2", "n1") } else { ("n1", "n2") };
        let victim = ["netserv", old, new][random.random_range(0..3)];
        let begun = Instant::now();
        let mut command = moving.command(old, new).spawn().unwrap();
        std::thread::sleep(took.mul_f64(random.random_range(0.0..1.2)));
        let at = begun.elapsed();
        if victim == "netserv" {
            let _ = command.kill();
        } else {
            moving.net.lab.kill(victim, "netservd").unwrap();
            moving.net.lab.restart_netservd(victim).unwrap();
        }
        let first = ended(command);
        let mut tries = 0;
        eventually("the same command ends", || {
            tries += 1;
            let output = moving.command(old, new).output().unwrap();
            took = took.max(Duration::from_millis(1));
            output.status.success()
        });
        println!("{number}: {victim} killed after {at:?}, {first}, {tries} more");
        for node in [old, new] {
            eventually("it runs again", || moving.states(node).iter().all(|state| *state == ModuleState::Running));
        }
        assert_eq!((moving.states(old).len(), moving.states(new).len()), (0, 1), "{number}: {victim} at {at:?}");
    }
}

fn ended(mut command: Child) -> String {
    let status = command.wait().unwrap();
    status.code().map_or("killed".to_owned(), |code| format!("ended with {code}"))
}

struct Moving {
    net: Net,
    package: LabPackage,
    url: String,
    store: StateStore,
    moved: u32,
}

impl Moving {
    /// Returns a network in whose first node net-monitor counts what goes to the sender.
    fn up(test: &str, driver: Driver) -> Option<Moving> {
        let mut net = net_with(test, driver, "", &[])?;
        let config = StateStore::config(&net.lab, "sender");
        for node in ["n1", "n2"] {
            net.lab.stop(node, "netservd").unwrap();
            net.lab.start_netservd(node, "node", std::slice::from_ref(&net.user), &config).unwrap();
        }
        let store = StateStore::open(&mut net.lab, "sender");
        let (package, url) = net.publish("net-monitor");
        let filter = format!("udp dst {}/32", net.lab.v4("sender"));
        let set_up = net.setup_with(&package, &url, &filter, &["--node", "n1", "--epoch", "1"]);
        assert!(set_up.nodes.iter().any(|node| node.node.as_str() == "n1" && node.outcome.is_ok()), "{set_up:?}");
        Some(Moving { net, package, url, store, moved: 0 })
    }

    fn command(&mut self, old: &str, new: &str) -> Command {
        self.moved += 1;
        let lab = &self.net.lab;
        let mut command = Command::new(program("netserv").unwrap());
        command.arg("--socket").arg(lab.socket("sender")).env("NO_COLOR", "1").args(["-j", "relocate"]);
        command.arg(&self.package.path).args(["--url", &self.url, "--to", &lab.v4("receiver").to_string()]);
        command.args(["--filter", &format!("udp dst {}/32", lab.v4("sender"))]);
        command.args(["--old-node", old, "--node", new, "--store", &self.store.url(&format!("s{}", self.moved))]);
        command.args(["--user", &self.net.user.name, "--key"]).arg(&self.net.user.key);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Moves the module. Returns what is said, and how long that took.
    fn relocate(&mut self, old: &str, new: &str) -> (Relocated, Duration) {
        let begun = Instant::now();
        let output = self.command(old, new).output().unwrap();
        let took = begun.elapsed();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        (serde_json::from_slice(&output.stdout).unwrap(), took)
    }

    /// Moves the module so many times while packets come. Returns for how long it stood still at most each time.
    fn count_over(&mut self, times: u32) -> Vec<Duration> {
        let sender = self.net.lab.v4("sender");
        let script = format!(
            "import socket, time\n\
             end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
             begun = time.monotonic()\n\
             for number in range({count}):\n\
             \x20   time.sleep(max(0, begun + number / {RATE} - time.monotonic()))\n\
             \x20   end.sendto(b'%d' % number, ('{sender}', 7777))\n",
            count = RATE * SECONDS
        );
        let mut stream = self.net.lab.command("receiver", "python3").args(["-c", &script]).spawn().unwrap();
        let mut still = Vec::new();
        for number in 0..times {
            let (old, new) = if number % 2 == 0 { ("n1", "n2") } else { ("n2", "n1") };
            let (told, took) = self.relocate(old, new);
            println!("{told:?} in {took:?}");
            assert_eq!((&*told.node, told.epoch, told.resumed), (new, u64::from(number) + 2, false));
            still.push(Duration::from_millis(told.state.unwrap().still_ms));
            assert_eq!((self.states(old).len(), self.states(new)), (0, vec![ModuleState::Running]));
        }
        assert!(stream.try_wait().unwrap().is_none(), "packets have to come all the time");
        assert!(stream.wait().unwrap().success());
        let owner = if times.is_multiple_of(2) { "n1" } else { "n2" };
        let missed = u64::try_from(still.iter().sum::<Duration>().as_millis()).unwrap() * RATE / 1000 + 1;
        let least = RATE * SECONDS - missed;
        eventually("what was counted is told", || self.counted(owner) >= least);
        let counted = self.counted(owner);
        println!("{counted} of {} counted, {still:?}", RATE * SECONDS);
        assert!(counted <= RATE * SECONDS, "{counted}: some twice");
        still
    }

    fn status(&self, node: &str) -> Vec<ModuleStatus> {
        self.net.lab.modules(node).unwrap().modules
    }

    fn states(&self, node: &str) -> Vec<ModuleState> {
        self.status(node).iter().map(|status| status.state).collect()
    }

    fn counted(&self, node: &str) -> u64 {
        let sender = format!(" {} ", self.net.lab.v4("sender"));
        let counters = self.status(node).into_iter().flat_map(|status| status.counters);
        counters.filter(|(name, _)| name.contains(&sender)).map(|(_, count)| count).sum()
    }
}
