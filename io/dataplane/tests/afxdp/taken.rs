// SPDX-License-Identifier: Apache-2.0
//! What others take away under the driver: its program, its own device, and what that needs.

use std::process::Command;
use std::time::{Duration, Instant};

use ipnet::IpNet;
use netserv_model::Filter;
use netserv_model::effect::FilterId;
use netserv_plane::{Batch, Change, Driver};
use netserv_plane_nfqueue::limits::CHANGES_AT_A_TIME;

use crate::common::Chain;
use crate::{Afxdp, Flow, ROUTER, SENDER, idle, open, pass};

/// Goal: a module that fails closed sees each packet while the program is off all devices, over IPv4 and IPv6, and the program is
/// there again soon, for modules that fail open, too. Method: `bpftool link detach`.
#[test]
fn packets_do_not_go_past_a_module_that_fails_closed_when_the_program_is_taken_off() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open("off", &["udp port 5061"]);
    driver.filters().change(&[Change::InstallClosed(FilterId(7), &"udp port 5060".parse().unwrap())]).unwrap();
    idle(&mut driver);
    for device in ["left", "right"] {
        // What `ip` can do changes nothing.
        chain.try_run(ROUTER, &["ip", "link", "set", device, "xdp", "off"]);
        chain.try_run(ROUTER, &["ip", "link", "set", device, "xdpgeneric", "off"]);
    }
    for v6 in [false, true] {
        let flow = Flow::new(&chain, v6, 5060);
        assert_eq!(detach(&chain), 2);
        for number in 0..20 {
            flow.send(&[number]);
            assert_eq!(pass(&mut driver, 1), 1, "v6: {v6}");
            assert_eq!(flow.received().unwrap(), [number]);
        }
        let open = Flow::new(&chain, v6, 5061);
        let until = Instant::now() + Duration::from_secs(10);
        while {
            open.send(b"x");
            let seen = pass_what_comes(&mut driver);
            assert_eq!(open.received().unwrap(), b"x");
            seen == 0
        } {
            assert!(Instant::now() < until, "the program stays off");
        }
    }
}

/// Goal: the same with filters by addresses of whatever length, however many have come and gone, and were there before.
#[test]
fn a_filter_by_any_prefix_is_guarded() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open("prefixes", &[]);
    let filter = |number| format!("udp dst 172.16.{}.{} port 9", number >> 8, number & 255);
    let before: Vec<Filter> = (0..50 * CHANGES_AT_A_TIME).map(|number| filter(number).parse().unwrap()).collect();
    let install: Vec<Change<'_>> =
        (100_000..).zip(&before).map(|(id, filter)| Change::Install(FilterId(id), filter)).collect();
    driver.filters().change(&install).unwrap();
    idle(&mut driver);
    let (v4, v6) = (Flow::new(&chain, false, 5060), Flow::new(&chain, true, 5060));
    for (number, bits) in (4..=128).step_by(7).chain([31, 32, 128, 0, 24]).enumerate() {
        let id = |of: usize| FilterId(4 * number as u64 + of as u64);
        let (source, destination) = if number % 2 == 0 { ("src", "dst") } else { ("dst", "src") };
        let mut filters = Vec::new();
        for flow in [&v4, &v6] {
            let (from, to) = (flow.sender.local_addr().unwrap().ip(), flow.to.ip());
            let bits = bits.min(if flow.to.is_ipv6() { 128 } else { 32 });
            let own = if destination == "dst" { to } else { from };
            filters.push(format!("udp {destination} {}", IpNet::new(own, bits).unwrap().trunc()));
        }
        // Of the same sets, for others.
        filters.extend([format!("udp {source} 192.0.2.0/24"), format!("udp {source} 2001:db8:9::/48")]);
        let filters: Vec<Filter> = filters.iter().map(|text| text.parse().unwrap()).collect();
        let changes: Vec<Change<'_>> =
            filters.iter().enumerate().map(|(of, filter)| Change::InstallClosed(id(of), filter)).collect();
        driver.filters().change(&changes).unwrap();
        idle(&mut driver);
        for flow in [&v4, &v6] {
            detach(&chain);
            flow.send(&[bits]);
            assert_eq!(pass(&mut driver, 1), 1, "{filters:?}");
            assert_eq!(flow.received().unwrap(), [bits]);
        }
        let removals: Vec<Change<'_>> = (0..4).map(|of| Change::Remove(id(of))).collect();
        driver.filters().change(&removals).unwrap();
    }
}

/// Goal: what a user's filters want, as many as it may have, costs packets for others on their way through the kernel at most
/// as much again. Method: the quickest of interleaved rounds.
#[test]
fn guarded_filters_cost_packets_of_others_little() {
    const FILTERS: u64 = 63 * 64;
    // The least of several: in a round on a busy machine, others take the core in between.
    const ROUNDS_MAX: u32 = 20;
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open("costs", &[]);
    driver.filters().change(&[Change::InstallClosed(FilterId(0), &"udp dst 192.0.2.1".parse().unwrap())]).unwrap();
    idle(&mut driver);
    let filter = |number| format!("udp dst 172.16.{}.{} port {}", number >> 8, number & 255, 1024 + number);
    let filters: Vec<Filter> = (1..=FILTERS).map(|number| filter(number).parse().unwrap()).collect();
    let install: Vec<Change<'_>> =
        (1..).zip(&filters).map(|(id, filter)| Change::InstallClosed(FilterId(id), filter)).collect();
    let remove: Vec<Change<'_>> = (1..=FILTERS).map(|id| Change::Remove(FilterId(id))).collect();
    let other = Flow::new(&chain, false, 9);
    let round = || {
        let start = Instant::now();
        for _ in 0..500 {
            other.send(b"x");
            assert_eq!(other.received().unwrap(), b"x");
        }
        start.elapsed()
    };
    let (mut without, mut with) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS_MAX {
        without = without.min(round());
        install.chunks(CHANGES_AT_A_TIME).for_each(|some| driver.filters().change(some).unwrap());
        with = with.min(round());
        remove.chunks(CHANGES_AT_A_TIME).for_each(|some| driver.filters().change(some).unwrap());
        if with < 2 * without {
            break;
        }
    }
    eprintln!("500 packets: {without:?}, with {FILTERS} filters for others {with:?}");
    assert!(with < 2 * without, "{without:?}, with filters for others {with:?}");
}

/// Goal: packets that only the kernel can forward get there again after others took away the driver's own device, set it down, or set
/// it otherwise.
#[test]
fn the_way_to_the_kernel_comes_back() {
    let Some(chain) = Chain::new(3) else { return };
    chain.run(SENDER, &["sysctl", "-qw", "net.ipv4.ip_no_pmtu_disc=1"]);
    chain.run(ROUTER, &["ip", "link", "set", "right", "mtu", "1300"]);
    let _entered = chain.enter(ROUTER);
    let mut driver = open("way", &["udp port 5060"]);
    let (v4, v6) = (Flow::new(&chain, false, 5060), Flow::new(&chain, true, 5060));
    for taking in [
        "true",
        "ip link set nsv-way down",
        "ip link del nsv-way",
        "sysctl -qw net.ipv4.conf.all.rp_filter=1",
        "ip address flush dev nsv-way",
        "sysctl -qw net.ipv4.conf.nsv-way.rp_filter=1",
        "sysctl -qw net.ipv4.conf.nsv-way.forwarding=0 net.ipv6.conf.nsv-way.forwarding=0",
        "sysctl -qw net.ipv4.ip_forward=0 net.ipv4.ip_forward=1",
        "sysctl -qw net.ipv6.conf.left.forwarding=0 net.ipv6.conf.right.forwarding=0",
        "ip link del nsv-way",
    ] {
        chain.run(ROUTER, &["sh", "-ec", taking]);
        let until = Instant::now() + Duration::from_secs(10);
        // Too long for the way out, so that the kernel takes it apart.
        while {
            v4.send(&[1; 1400]);
            pass_what_comes(&mut driver);
            v4.receiver.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
            v4.received().is_none()
        } {
            assert!(Instant::now() < until, "{taking}");
        }
        v6.send(b"six");
        pass_what_comes(&mut driver);
        assert_eq!(v6.received().unwrap(), b"six");
        while v4.received().is_some() {}
    }
}

/// Goal: packets that only the kernel can forward get there wherever it checks sources. Method: they go in fragments.
#[test]
fn the_way_to_the_kernel_is_open_where_sources_are_checked() {
    for check in ["1", "2"] {
        let Some(chain) = Chain::new(3) else { return };
        chain.run(SENDER, &["sysctl", "-qw", "net.ipv4.ip_no_pmtu_disc=1"]);
        chain.run(ROUTER, &["ip", "link", "set", "right", "mtu", "1300"]);
        chain.run(ROUTER, &["sysctl", "-qw", &format!("net.ipv4.conf.all.rp_filter={check}")]);
        let _entered = chain.enter(ROUTER);
        let mut driver = open("checked", &["udp port 5060"]);
        let flow = Flow::new(&chain, false, 5060);
        flow.send(&[1; 1400]);
        assert_eq!(pass(&mut driver, 1), 1);
        assert_eq!(flow.received(), Some(vec![1; 1400]), "rp_filter={check}");
    }
}

/// Passes what comes within a while, and returns how much that was.
fn pass_what_comes(driver: &mut Afxdp) -> usize {
    let mut batch = Batch::new();
    let until = Instant::now() + Duration::from_millis(100);
    let mut count = 0;
    while Instant::now() < until {
        driver.receive(&mut batch, Some(Duration::from_millis(20))).unwrap();
        count += batch.len();
        batch.iter().for_each(|packet| driver.finish(packet.id, netserv_plane::Final::Pass));
        driver.flush().unwrap();
    }
    count
}

/// Takes the router's program off all devices, as `bpftool link detach` does. Returns from how many.
fn detach(chain: &Chain) -> usize {
    let about = chain.run(ROUTER, &["ip", "link", "show", "left"]);
    let mut words = about.split_whitespace().skip_while(|word| !word.starts_with("prog/xdp")).skip(2);
    let Some(program) = words.next() else { return 0 };
    let process = std::process::id().to_string();
    let output = Command::new("python3").args(["-c", DETACH, &process, program]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().unwrap_or_else(|_| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)))
}

/// `BPF_LINK_GET_FD_BY_ID` and `BPF_LINK_DETACH`.
const DETACH: &str = "
import ctypes, glob, os, re, struct, sys
system = ctypes.CDLL(None, use_errno=True)
def bpf(command, *words):
    attributes = ctypes.create_string_buffer(struct.pack(f'{len(words)}I', *words), 128)
    result = system.syscall({'x86_64': 321, 'aarch64': 280}[os.uname().machine], command, attributes, 128)
    assert result >= 0, ctypes.get_errno()
    return result
links = set()
for name in glob.glob(f'/proc/{sys.argv[1]}/fdinfo/*'):
    try:
        text = open(name).read()
    except OSError:
        continue
    found = re.search(r'^link_id:\\s*(\\d+)', text, re.M)
    if found and re.search(rf'^prog_id:\\s*{sys.argv[2]}$', text, re.M):
        links.add(int(found.group(1)))
for link in links:
    bpf(34, bpf(30, link, 0, 0))
print(len(links))
";
