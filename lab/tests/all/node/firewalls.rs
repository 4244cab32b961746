// SPDX-License-Identifier: Apache-2.0
//! Beside other programs that own rules of the packet filter, and those who clean it: what modules see meets the rules of others, and
//! nothing goes past a module that fails closed, whatever they do.
//!
//! Method of all: a module on n1 that fails closed takes REGISTERs alone, and a host sends INVITEs and REGISTERs of both versions
//! of IP all the time.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{Driver, Net, ask_udp, eventually, net};
use netserv_lab::node::module_wasm;
use netserv_model::request::Outcome;

over_each_driver!(
    nothing_goes_past_who_fails_closed_while_others_clean_up,
    nothing_goes_past_who_fails_closed_while_others_change_devices,
    networkd_leaves_modules_their_packets,
    networkmanager_leaves_modules_their_packets,
    firewalld_and_modules_keep_out_of_each_others_way,
    rules_of_docker_hold_for_what_modules_see
);

/// Goal: what `iptables`, `nft` and `ip` can take away at once takes no packet past the module.
fn nothing_goes_past_who_fails_closed_while_others_clean_up(driver: Driver) {
    let test = "nothing_goes_past_who_fails_closed_while_others_clean_up";
    let Some(calls) = Calls::start(test, driver) else { return };
    for _ in 0..5 {
        calls.on_node(
            "for t in raw mangle nat filter; do iptables -t $t -F; iptables -t $t -X; ip6tables -t $t -F; ip6tables -t $t -X; done; \
             nft flush ruleset; printf '*mangle\nCOMMIT\n' | iptables-restore; ip rule flush; \
             ip rule add priority 32766 lookup main",
        );
        calls.go_on(Version::Both);
    }
    calls.end();
}

/// Goal: what `ip`, `tc`, `sysctl` and `bpftool` can do to the devices takes no packet past the module, and packets arrive again.
/// Method: half of it while the kernel has a rule, so that what the module passed goes on by the kernel.
fn nothing_goes_past_who_fails_closed_while_others_change_devices(driver: Driver) {
    let test = "nothing_goes_past_who_fails_closed_while_others_change_devices";
    let Some(calls) = Calls::start(test, driver) else { return };
    let own = "$(ls /proc/sys/net/ipv4/conf | grep ^nsv-)";
    let for_each = |devices: &str, what: &str| format!("for d in {devices}; do {what}; done");
    let detach = with(calls.net.lab.command("n1", "python3"), &["-c", DETACH]).status();
    assert!(detach.unwrap().success());
    calls.go_on(Version::Both);
    for taking in [
        for_each("to-sender to-r", "ip link set dev $d xdp off || true; ip link set dev $d xdpgeneric off || true"),
        for_each("to-sender to-r", "tc qdisc replace dev $d root pfifo; tc qdisc add dev $d clsact; tc qdisc del dev $d root"),
        ROUTES_GO.replace("{}", &for_each("to-sender to-r", "ip link set $d down; ip link set $d up")),
        ROUTES_GO.replace("{}", "for v in -4 -6; do ip $v route flush table main; ip $v neigh flush all; done"),
        "sysctl -qw net.ipv4.ip_forward=0 net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=0 net.ipv6.conf.all.forwarding=1".to_owned(),
        "for t in iptables ip6tables; do $t -A FORWARD -p tcp --dport 1 -j DROP; done".to_owned(),
        for_each(own, "ip link set $d down"),
        for_each(own, "ip link del $d"),
        "sysctl -qw net.ipv4.conf.all.rp_filter=1".to_owned(),
    ] {
        calls.on_node(&taking);
        calls.go_on(Version::Both);
    }
    calls.end();
}

/// Goal (systemd 19106): networkd configures the devices beside the node, also after a device was down and when it is started again, and
/// the module's packets arrive and go on to be seen.
fn networkd_leaves_modules_their_packets(driver: Driver) {
    let Some(mut calls) = Calls::start("networkd_leaves_modules_their_packets", driver) else { return };
    let dir = calls.net.lab.dir().join("networkd");
    std::fs::create_dir_all(&dir).unwrap();
    calls.on_node(&NETWORKD_FILES.replace("{}", &text(&dir)));
    for _ in 0..2 {
        let daemon = format!(
            "{OWN_MOUNTS}; mkdir -p /run/systemd/netif; chown systemd-network: /run/systemd/netif; \
             cp -r {} /run/systemd/network; chmod -R a+rX /run/systemd/network; exec /lib/systemd/systemd-networkd",
            text(&dir)
        );
        let daemon = with(calls.net.lab.command("n1", "unshare"), &["-m", "sh", "-ec", &daemon]);
        start(&mut calls.net, "networkd", daemon);
        let configures = |log: &str| ["to-sender", "to-r"].iter().all(|d| log.contains(&format!("{d}: Configuring")));
        eventually("networkd configures", || configures(&calls.net.lab.log("n1", "networkd")));
        calls.go_on(Version::Both);
        calls.on_node("for d in to-sender to-r; do ip link set $d down; done; sleep 1; for d in to-sender to-r; do ip link set $d up; done");
        calls.go_on(Version::Both);
        calls.net.lab.stop("n1", "networkd").unwrap();
        calls.go_on(Version::Both);
    }
    calls.end();
}

/// Goal: NetworkManager has the devices beside the node, takes them down and up again, and the module's packets arrive and go on to be
/// seen.
fn networkmanager_leaves_modules_their_packets(driver: Driver) {
    let Some(mut calls) = Calls::start("networkmanager_leaves_modules_their_packets", driver) else { return };
    let dir = calls.net.lab.dir().join("nm");
    std::fs::create_dir_all(dir.join("connections")).unwrap();
    let bus = format!("unix:path={}", dir.join("bus").display());
    std::fs::write(dir.join("bus.conf"), BUS.replace("{bus}", &bus)).unwrap();
    let connections = text(&dir.join("connections"));
    let config = format!("[main]\nplugins=keyfile\nauth-polkit=false\n[keyfile]\npath={connections}\n");
    std::fs::write(dir.join("nm.conf"), config).unwrap();
    let run = |program: &str, args: &[&str]| {
        let mut command = calls.net.lab.command("n1", program);
        command.args(args).env("DBUS_SYSTEM_BUS_ADDRESS", &bus).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let daemon = run("dbus-daemon", &["--nofork", "--nopidfile", "--config-file", &text(&dir.join("bus.conf"))]);
    let manager = format!(
        "{OWN_MOUNTS}; mount -t tmpfs tmpfs /var/lib/NetworkManager; \
         exec NetworkManager --no-daemon --config {}/nm.conf --config-dir {0}/connections",
        dir.display()
    );
    let manager = run("unshare", &["-m", "sh", "-ec", &manager]);
    let mut running = run("nmcli", &["general", "status"]);
    let [mut profiles, mut off, mut on] =
        [NM_PROFILES, "nmcli networking off", "nmcli networking on"].map(|script| run("sh", &["-ec", script]));
    start(&mut calls.net, "bus", daemon);
    eventually("the bus is there", || dir.join("bus").exists());
    start(&mut calls.net, "manager", manager);
    eventually("NetworkManager runs", || running.status().unwrap().success());
    calls.go_on(Version::Both);
    assert!(profiles.status().unwrap().success());
    calls.go_on(Version::Both);
    assert!(off.status().unwrap().success());
    calls.stand_still(Version::Both);
    assert!(on.status().unwrap().success());
    calls.go_on(Version::Both);
    calls.net.lab.stop("n1", "manager").unwrap();
    calls.go_on(Version::Both);
    calls.end();
}

/// Goal (moby and firewalld in the field): firewalld's zones hold for what the module sees, its reloads and its end take nothing of ours
/// away, and the other way round.
fn firewalld_and_modules_keep_out_of_each_others_way(driver: Driver) {
    let test = "firewalld_and_modules_keep_out_of_each_others_way";
    let Some(mut calls) = Calls::start(test, driver) else { return };
    let dir = calls.net.lab.dir().join("firewalld");
    std::fs::create_dir_all(dir.join("etc")).unwrap();
    let (bus, etc) = (format!("unix:path={}", dir.join("bus").display()), dir.join("etc"));
    std::fs::write(dir.join("bus.conf"), BUS.replace("{bus}", &bus)).unwrap();
    if driver == Driver::Afxdp {
        // The page says so: packets of IPv6 come back from modules by a device of the driver's.
        std::fs::write(etc.join("firewalld.conf"), "DefaultZone=public\nIPv6_rpfilter=no\n").unwrap();
    }
    let run = |program: &str, args: &[&str]| {
        let mut command = calls.net.lab.command("n1", program);
        command.args(args).env("DBUS_SYSTEM_BUS_ADDRESS", &bus).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let daemon = run("dbus-daemon", &["--nofork", "--nopidfile", "--config-file", &text(&dir.join("bus.conf"))]);
    let firewalld = run("firewalld", &["--nofork", "--nopid", "--system-config", &text(&etc)]);
    let mut running = run("firewall-cmd", &["--state"]);
    let [mut trusting, mut reload, mut whole] =
        [&["--set-default-zone=trusted"][..], &["--reload"], &["--complete-reload"]]
            .map(|args| run("firewall-cmd", args));
    start(&mut calls.net, "bus", daemon);
    eventually("the bus is there", || dir.join("bus").exists());
    start(&mut calls.net, "firewalld", firewalld);
    eventually("firewalld runs", || running.status().unwrap().success());
    // Its zone of the start takes no packets for others.
    calls.stand_still(Version::Both);
    assert!(trusting.status().unwrap().success());
    calls.go_on(Version::Both);
    for command in [&mut reload, &mut whole] {
        assert!(command.status().unwrap().success(), "{command:?}");
        calls.go_on(Version::Both);
    }
    calls.net.lab.stop("n1", "firewalld").unwrap();
    calls.go_on(Version::Both);
    calls.end();
}

/// Goal: Docker's policy for forwarded packets, which it sets when it starts, holds for what the module sees, as for all others, and what
/// the operator permits in `DOCKER-USER` goes on. Method: the rules that dockerd 20.10.24 writes.
fn rules_of_docker_hold_for_what_modules_see(driver: Driver) {
    let Some(calls) = Calls::start("rules_of_docker_hold_for_what_modules_see", driver) else { return };
    calls.on_node(&format!("iptables-restore --noflush << 'END'\n{DOCKER}END\n"));
    calls.stand_still(Version::Four);
    calls.go_on(Version::Six);
    calls.on_node("iptables -I DOCKER-USER -j ACCEPT");
    calls.go_on(Version::Both);
    // As it does when a network comes and goes.
    calls.on_node(
        "iptables -t nat -A POSTROUTING -s 172.18.0.0/16 ! -o br-1 -j MASQUERADE; iptables -t nat -F POSTROUTING",
    );
    calls.go_on(Version::Both);
    calls.end();
}

/// Calls that come all the time, and a module that takes some of them.
struct Calls {
    net: Net,
}

#[derive(Clone, Copy)]
enum Version {
    Four,
    Six,
    Both,
}

/// What arrived so far.
#[derive(Clone, Copy)]
struct Arrived {
    invites: u64,
    registers: [u64; 2],
}

impl Calls {
    fn start(test: &str, driver: Driver) -> Option<Calls> {
        let mut net = net(test, driver)?;
        let (v4, v6) = (net.lab.v4("sender").to_string(), net.lab.v6("sender").to_string());
        let project = net.lab.dir().join("closed.toml");
        std::fs::write(&project, MANIFEST).unwrap();
        let path = net.lab.dir().join("closed.nsm");
        let package = net.lab.package_from(&project, &module_wasm("sip-filter").unwrap(), &path, &net.user).unwrap();
        let url = net.lab.publish("sender", &package).unwrap();
        let second = format!("udp dst {v6}/128 port 5060");
        let result = net.setup_with(
            &package,
            &url,
            &format!("udp dst {v4}/32 port 5060"),
            &["--node", "n1", "--filter", &second],
        );
        assert!(result.nodes.iter().any(|node| matches!(node.outcome, Outcome::Installed { .. })), "{result:?}");
        let sink = net.lab.command("sender", "python3");
        start(&mut net, "sink", with(sink, &["-c", SINK]));
        eventually("it listens", || net.lab.sockets_at("sender", "udp", 5070) > 0);
        let source = net.lab.command("receiver", "python3");
        start(&mut net, "source", with(source, &["-c", SOURCE, &v4, &v6]));
        let calls = Calls { net };
        calls.go_on(Version::Both);
        Some(calls)
    }

    fn on_node(&self, script: &str) {
        self.net.lab.run("n1", "sh", &["-ec", script]).unwrap();
    }

    /// Waits until REGISTERs arrive.
    fn go_on(&self, version: Version) {
        let before = self.arrived();
        eventually("REGISTERs arrive", || {
            let now = self.arrived();
            version.places().iter().all(|place| now.registers[*place] > before.registers[*place] + 20)
        });
    }

    /// Waits until REGISTERs arrive no more.
    fn stand_still(&self, version: Version) {
        let mut last = self.arrived();
        eventually("no REGISTER arrives", || {
            std::thread::sleep(std::time::Duration::from_millis(300));
            let now = self.arrived();
            let still = version.places().iter().all(|place| now.registers[*place] == last.registers[*place]);
            last = now;
            still
        });
    }

    fn arrived(&self) -> Arrived {
        let mut said = None;
        eventually("the sink answers", || {
            said = ask_udp(&self.net.lab, "sender", [127, 0, 0, 1].into(), 5070, "count");
            said.is_some()
        });
        let counts: Vec<u64> = said.unwrap().split(' ').map(|count| count.parse().unwrap()).collect();
        Arrived { invites: counts[0], registers: [counts[1], counts[2]] }
    }

    fn end(self) {
        assert_eq!(self.arrived().invites, 0, "INVITEs went past the module");
    }
}

impl Version {
    fn places(self) -> &'static [usize] {
        match self {
            Version::Four => &[0],
            Version::Six => &[1],
            Version::Both => &[0, 1],
        }
    }
}

fn start(net: &mut Net, name: &str, mut command: Command) {
    net.lab.start("n1", name, &mut command).unwrap();
}

fn with(mut command: Command, args: &[&str]) -> Command {
    command.args(args);
    command
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

const MANIFEST: &str = "
manifest = 1
name = 'example.org/closed'
version = '1.0.0'
dependencies = ['packet>=1', 'match>=1', 'sip>=1']
[packet]
abi = 1
on-failure = 'closed'
[limits]
memory-bytes = 1048576
counters = 4
[properties]
agents = ''
methods = 'REGISTER'
malformed = 'drop'
";

const BUS: &str = r#"<busconfig><type>system</type><listen>{bus}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow user="*"/><allow own="*"/><allow send_destination="*" eavesdrop="true"/>
<allow eavesdrop="true"/></policy></busconfig>"#;

/// Does something, and puts the node's routes back.
const ROUTES_GO: &str = "\
for d in to-sender to-r; do echo 1 > /proc/sys/net/ipv6/conf/$d/keep_addr_on_down; done
four=$(ip -4 route show | sort) six=$(ip -6 route show | grep -v ^fe80 | sort)
{}
sleep 1
for d in to-sender to-r; do ip -6 route replace fe80::/64 dev $d proto kernel metric 256; done
for way in 'grep -v via' 'grep via'; do
  echo \"$four\" | $way | while read -r route; do ip -4 route replace $route; done
  echo \"$six\" | $way | while read -r route; do ip -6 route replace $route; done
done";

/// What daemons keep is theirs alone, and a `/sys` that cannot be written tells them that there is no udev.
const OWN_MOUNTS: &str =
    "mount --make-rprivate /; mount -t sysfs -o ro sysfs /sys; mount -t tmpfs tmpfs /run; mkdir -p /run/systemd";

const NETWORKD_FILES: &str = "\
for d in to-sender to-r; do
  {
    printf '[Match]\nName=%s\n[Network]\nIPv6AcceptRA=no\n' $d
    ip -o addr show dev $d scope global | while read -r _ _ _ address _; do
      printf '[Address]\nAddress=%s\nBroadcast=no\n' $address
    done
    for v in -4 -6; do
      ip $v route show dev $d | grep via | while read -r to _ gateway _; do
        printf '[Route]\nDestination=%s\nGateway=%s\n' $to $gateway
      done
    done
  } > {}/10-$d.network
done";

const NM_PROFILES: &str = "\
for d in to-sender to-r; do
  set -- connection add type ethernet ifname $d con-name $d ipv4.method manual ipv6.method manual
  for v in 4 6; do
    addresses=$(ip -o -$v addr show dev $d scope global | while read -r _ _ _ address _; do printf '%s,' $address; done)
    routes=$(ip -$v route show dev $d | grep via | while read -r to _ gateway _; do printf '%s %s,' $to $gateway; done)
    set -- \"$@\" ipv$v.addresses \"${addresses%,}\" ipv$v.routes \"${routes%,}\"
  done
  nmcli \"$@\"
done
for d in to-sender to-r; do nmcli connection up $d; done";

/// Takes the XDP programs of this namespace's processes off, as `bpftool link detach` does (`BPF_LINK_GET_FD_BY_ID`, `BPF_LINK_DETACH`).
const DETACH: &str = "
import ctypes, glob, os, re, struct
system = ctypes.CDLL(None, use_errno=True)
def bpf(command, *words):
    attributes = ctypes.create_string_buffer(struct.pack(f'{len(words)}I', *words), 128)
    result = system.syscall({'x86_64': 321, 'aarch64': 280}[os.uname().machine], command, attributes, 128)
    assert result >= 0, ctypes.get_errno()
    return result
links = set()
for process in glob.glob('/proc/[0-9]*'):
    try:
        if os.readlink(process + '/ns/net') != os.readlink('/proc/self/ns/net'):
            continue
        for name in glob.glob(process + '/fdinfo/*'):
            text = open(name).read()
            found = re.search(r'^link_id:\\s*(\\d+)', text, re.M)
            if found and 'xdp' in text:
                links.add(int(found.group(1)))
    except OSError:
        pass
for link in links:
    bpf(34, bpf(30, link, 0, 0))
";

const DOCKER: &str = "\
*filter
:FORWARD DROP [0:0]
:DOCKER - [0:0]
:DOCKER-ISOLATION-STAGE-1 - [0:0]
:DOCKER-ISOLATION-STAGE-2 - [0:0]
:DOCKER-USER - [0:0]
-A FORWARD -j DOCKER-USER
-A FORWARD -j DOCKER-ISOLATION-STAGE-1
-A FORWARD -o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -o docker0 -j DOCKER
-A FORWARD -i docker0 ! -o docker0 -j ACCEPT
-A FORWARD -i docker0 -o docker0 -j ACCEPT
-A DOCKER-ISOLATION-STAGE-1 -i docker0 ! -o docker0 -j DOCKER-ISOLATION-STAGE-2
-A DOCKER-ISOLATION-STAGE-1 -j RETURN
-A DOCKER-ISOLATION-STAGE-2 -o docker0 -j DROP
-A DOCKER-ISOLATION-STAGE-2 -j RETURN
-A DOCKER-USER -j RETURN
COMMIT
*nat
:DOCKER - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
-A OUTPUT ! -d 127.0.0.0/8 -m addrtype --dst-type LOCAL -j DOCKER
-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE
-A DOCKER -i docker0 -j RETURN
COMMIT
";

const SINK: &str = "
import selectors, socket
counts, ends = [0, 0, 0], selectors.DefaultSelector()
for port in (5060, 5070):
    end = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    end.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    end.bind(('::', port))
    ends.register(end, selectors.EVENT_READ, port)
while True:
    for key, _ in ends.select():
        data, source = key.fileobj.recvfrom(65536)
        if key.data == 5070:
            key.fileobj.sendto(' '.join(map(str, counts)).encode(), source)
        elif data.startswith(b'REGISTER'):
            counts[1 if source[0].startswith('::ffff:') else 2] += 1
        else:
            counts[0] += 1
";

const SOURCE: &str = "
import socket, sys, time
ends = [(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), sys.argv[1]), (socket.socket(socket.AF_INET6, socket.SOCK_DGRAM), sys.argv[2])]
number = 0
while True:
    for method in ('INVITE', 'REGISTER'):
        for end, host in ends:
            number += 1
            lines = [f'{method} sip:a@example.org SIP/2.0', f'Via: SIP/2.0/UDP a.example;branch=z9hG4bK{number}',
                     'From: <sip:a@example.org>;tag=1', 'To: <sip:b@example.org>', f'Call-ID: {number}',
                     f'CSeq: 1 {method}', 'Max-Forwards: 70', 'Content-Length: 0', '', '']
            try:
                end.sendto('\\r\\n'.join(lines).encode(), (host, 5060))
            except OSError:
                pass
    time.sleep(0.002)
";
