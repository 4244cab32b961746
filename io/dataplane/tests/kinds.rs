// SPDX-License-Identifier: Apache-2.0
//! What each driver does with each kind of packet, as `docs/packets.md` says.
#![allow(clippy::unwrap_used, reason = "a test program")]

#[path = "common/mod.rs"]
mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use common::Chain;
use common::contract::{RECEIVER, ROUTER, SENDER};
use netserv_dataplane::DriverKind;
use netserv_model::effect::FilterId;
use netserv_plane::{Batch, Change, Counters, Driver, DriverConfig, Final};

/// Lanes of each driver, and queues of each veth.
pub(crate) const LANES: usize = 1;

const KINDS: [&str; 14] = [
    "plain",
    "large send (GSO)",
    "VLAN tag",
    "options or extension headers",
    "a dozen extension headers",
    "UDP without checksum",
    "UDP with a wrong checksum",
    "TTL 1",
    "of 4,000 bytes",
    "first fragment",
    "later fragment",
    "ICMP error",
    "padded",
    "cut short",
];

/// Goal: the table of the page is what each driver does that there is. `NETSERV_REWRITE=1` writes it anew.
#[test]
fn drivers_do_what_the_page_says_with_each_kind_of_packet() {
    let mut columns = Vec::new();
    for plane in DriverKind::ALL.into_iter().rev().filter(|plane| *plane != DriverKind::Dummy) {
        for closed in [false, true] {
            let mut cells = BTreeMap::new();
            for mtu in [1500, 9000] {
                let Some(chain) = Chain::new(3) else { return };
                cells.extend(column(&chain, plane, closed, mtu));
            }
            columns.push((plane, closed, cells));
        }
    }
    let mut table = String::from("|  |");
    columns.iter().for_each(|(plane, closed, _)| {
        write!(table, " `{plane}`, {} |", if *closed { "closed" } else { "open" }).unwrap();
    });
    table += "\n|---|---|---|---|---|\n";
    for kind in KINDS {
        for version in [4, 6] {
            let key = (kind, version);
            let cells: Vec<&str> =
                columns.iter().filter_map(|(.., cells)| cells.get(&key).map(String::as_str)).collect();
            if !cells.is_empty() {
                writeln!(table, "| {kind}, IPv{version} | {} |", cells.join(" | ")).unwrap();
            }
        }
    }
    assert!(!table.contains("gone"), "packets that are in no counter:\n{table}");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/packets.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let wanted = format!("{before}{BEGIN}\n{table}{END}{after}");
    if std::env::var_os("NETSERV_REWRITE").is_some() {
        std::fs::write(&page, wanted).unwrap();
    } else {
        assert!(text == wanted, "docs/packets.md is out of date: run the test with NETSERV_REWRITE=1\n{table}");
    }
}

const BEGIN: &str = "<!-- table of kinds -->";
const END: &str = "<!-- end of the table -->";

/// What became of the packets of one driver that suit links of a size, by kind and version of IP.
fn column(chain: &Chain, plane: DriverKind, closed: bool, mtu: u32) -> BTreeMap<(&'static str, u8), String> {
    for (node, device) in [(SENDER, "right"), (ROUTER, "left"), (ROUTER, "right"), (RECEIVER, "left")] {
        chain.run(node, &["ip", "link", "set", device, "mtu", &mtu.to_string()]);
    }
    let _entered = chain.enter(ROUTER);
    let driver = plane.open(&DriverConfig::new("kinds")).unwrap();
    let filter = "udp port 5060".parse().unwrap();
    let change =
        if closed { Change::InstallClosed(FilterId(1), &filter) } else { Change::Install(FilterId(1), &filter) };
    driver.filters().change(&[change]).unwrap();
    let (sniffer, arrived) = Sniffer::start(chain);
    let mut source = Source::start(chain);
    let (mut number, mut cells) = (0, BTreeMap::new());
    let mut rig = Rig { driver, batch: Batch::new(), seen: BTreeSet::new(), arrived, arrivals: BTreeSet::new() };
    // Neighbours have to be found first.
    for version in [4, 6] {
        let until = Instant::now() + Duration::from_secs(60);
        while {
            number += 1;
            source.send("plain", version, number);
            rig.wait(number, Duration::from_millis(200));
            !rig.arrivals.contains(&number)
        } {
            assert!(Instant::now() < until, "nothing arrives");
        }
    }
    for kind in KINDS.into_iter().filter(|kind| (*kind == "of 4,000 bytes") == (mtu == 9000)) {
        for version in [4, 6] {
            if kind == "a dozen extension headers" && version == 4 {
                continue;
            }
            number += 1;
            let before = rig.driver.counters();
            source.send(kind, version, number);
            // What arrives after it says that it will not, but for what goes another way.
            source.send("plain", version, 1_000_000 + number);
            rig.wait(1_000_000 + number, Duration::from_secs(60));
            rig.wait(number, Duration::from_millis(50));
            cells.insert((kind, version), rig.cell(kind, number, before));
        }
    }
    drop(sniffer);
    cells
}

struct Rig {
    driver: Box<dyn Driver>,
    batch: Batch,
    seen: BTreeSet<u32>,
    arrived: Receiver<u32>,
    arrivals: BTreeSet<u32>,
}

impl Rig {
    /// Passes what comes until a packet has arrived, or for so long.
    fn wait(&mut self, number: u32, at_most: Duration) {
        let until = Instant::now() + at_most;
        while !self.arrivals.contains(&number) && Instant::now() < until {
            self.driver.receive(&mut self.batch, Some(Duration::from_millis(10))).unwrap();
            for packet in self.batch.iter() {
                self.seen.extend(marked(packet.bytes));
                self.driver.finish(packet.id, Final::Pass);
            }
            self.driver.flush().unwrap();
            self.arrivals.extend(self.arrived.try_iter());
        }
    }

    fn cell(&self, kind: &str, number: u32, before: Counters) -> String {
        let now = self.driver.counters();
        let text = match (self.seen.contains(&number), self.arrivals.contains(&number)) {
            (true, true) => "seen",
            (true, false) => "seen, then the kernel's to drop",
            (false, true) => "passes unseen",
            (false, false) if now.lost > before.lost => "dropped, as lost",
            // Nobody forwards these, with or without a node.
            (false, false)
                if matches!(kind, "VLAN tag" | "cut short" | "TTL 1" | "later fragment" | "first fragment") =>
            {
                "the kernel's to drop"
            }
            (false, false) => "gone",
        };
        text.to_owned()
    }
}

/// Returns the number in a packet of ours.
fn marked(bytes: &[u8]) -> Option<u32> {
    let at = bytes.windows(4).position(|window| window == b"kind")?;
    std::str::from_utf8(bytes.get(at + 4..at + 12)?).ok()?.parse().ok()
}

/// What arrives at the receiver.
struct Sniffer(Child);

impl Sniffer {
    fn start(chain: &Chain) -> (Sniffer, Receiver<u32>) {
        let mut child = python(chain, RECEIVER, &["-c", SNIFFER]);
        let (sender, receiver): (Sender<u32>, _) = channel();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        std::thread::spawn(move || {
            lines.map_while(Result::ok).for_each(|line| {
                let _ = sender.send(line.parse().unwrap());
            });
        });
        (Sniffer(child), receiver)
    }
}

impl Drop for Sniffer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What sends.
struct Source {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Source {
    fn start(chain: &Chain) -> Source {
        let address = |node: usize, device: &str| {
            chain.run(node, &["cat", &format!("/sys/class/net/{device}/address")]).trim().to_owned()
        };
        let (own, router) = (address(SENDER, "right"), address(ROUTER, "left"));
        let mut child = python(chain, SENDER, &["-c", include_str!("kinds.py"), "right", &own, &router]);
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Source { child, input, output }
    }

    fn send(&mut self, kind: &str, version: u8, number: u32) {
        writeln!(self.input, "{kind} {version} {number}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        assert_eq!(line, "sent\n", "{kind} {version}");
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn python(chain: &Chain, node: usize, args: &[&str]) -> Child {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &chain.names()[node], "python3"]).args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

const SNIFFER: &str = "
import re, socket
end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
end.bind(('left', 3))
print('ready', flush=True)
while True:
    data, about = end.recvfrom(65536)
    found = re.search(rb'kind(\\d{8})', data)
    if found and about[2] != 4:
        print(int(found.group(1)), flush=True)
";
