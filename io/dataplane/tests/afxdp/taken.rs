// SPDX-License-Identifier: Apache-2.0
//! What others take away under the driver: its program, its own device, and what that needs.

use std::process::Command;
use std::time::{Duration, Instant};

use netserv_dataplane::{Batch, Change, Driver};
use netserv_model::effect::FilterId;

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
        batch.iter().for_each(|packet| driver.finish(packet.id, netserv_dataplane::Final::Pass));
        driver.flush().unwrap();
    }
    count
}

/// Takes the router's program off all devices, as `bpftool link detach` does. Returns from how many.
fn detach(chain: &Chain) -> usize {
    let about = chain.run(ROUTER, &["ip", "link", "show", "left"]);
    let mut words = about.split_whitespace().skip_while(|word| !word.starts_with("prog/xdp")).skip(2);
    let (process, program) = (std::process::id().to_string(), words.next().unwrap());
    let output = Command::new("python3").args(["-c", DETACH, &process, program]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().unwrap_or_else(|_| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)))
}

/// `BPF_LINK_GET_FD_BY_ID` and `BPF_LINK_DETACH`.
const DETACH: &str = "
import ctypes, glob, re, struct, sys
system = ctypes.CDLL(None, use_errno=True)
def bpf(command, *words):
    attributes = ctypes.create_string_buffer(struct.pack(f'{len(words)}I', *words), 128)
    result = system.syscall(321, command, attributes, 128)
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
