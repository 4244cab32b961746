// SPDX-License-Identifier: Apache-2.0
//! Interception of TCP between a client and a server, on a router with a container: the test is the module's worker.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::triple::{ENDS, LONG, Lab, SHORT, accept, at, filters, inside, is_idle, pass, run};
use netserv_container::network::limits::{
    INTERCEPTS_EACH, INTERCEPTS_MAX, NODE_INTERCEPTS_MAX, TRANSPARENT_SOCKETS_MAX,
};
use netserv_container::network::{
    ContainerNetwork, HostIntercepts, Intercept, Listeners, NetworkError, remove_networks,
};
use netserv_model::Filter;
use netserv_patience::grown;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{connect, sockopt};

#[test]
fn a_connection_is_taken_over_and_both_ends_see_each_other() {
    let Some(lab) = Lab::start("a_connection_is_taken_over_and_both_ends_see_each_other") else { return };
    // The way back is checked strictly everywhere but where containers send.
    fs::write("/proc/sys/net/ipv4/conf/all/rp_filter", "1").unwrap();
    fs::write("/proc/sys/net/ipv4/conf/eth2/rp_filter", "1").unwrap();
    fs::write("/proc/sys/net/ipv4/conf/eth1/rp_filter", "1").unwrap();
    let network = lab.container(1, &["10.72.9.1", "fd72:9::1"]);
    let intercepting = Intercepting::start(&lab, &network, &["tcp port 80"], false);
    for (client, server) in ENDS {
        let listener = lab.server(|| TcpListener::bind(at(server, 80)).unwrap());
        let mut stream = lab.client(|| TcpStream::connect_timeout(&at(server, 80), LONG)).unwrap();
        let mut taken = intercepting.accept(server);
        assert_eq!(taken.peer_addr().unwrap(), stream.local_addr().unwrap(), "the module sees the client");
        assert_eq!(taken.local_addr().unwrap(), at(server, 80), "and the server");
        assert_eq!(stream.peer_addr().unwrap(), at(server, 80), "the client sees the server");
        let mut onward = intercepting.open(&network, client, at(server, 80)).unwrap();
        let mut arrived = accept(&listener);
        assert_eq!(arrived.peer_addr().unwrap().ip(), client.parse::<IpAddr>().unwrap(), "the server sees the client");
        pass(&mut stream, &mut taken, b"request");
        pass(&mut onward, &mut arrived, b"changed request");
        pass(&mut arrived, &mut onward, b"answer");
        pass(&mut taken, &mut stream, b"changed answer");
        // One half closes, the other goes on.
        stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(taken.read(&mut [0; 8]).unwrap(), 0);
        pass(&mut taken, &mut stream, &[7; 200_000]);
        let other = lab.client(|| TcpStream::connect_timeout(&at(server, 81), SHORT)).unwrap_err();
        assert_eq!(other.kind(), ErrorKind::ConnectionRefused, "another port is the server's own");
    }
}

/// Goal: where IPv6 is switched off for all links, connections over IPv4 are taken over.
#[test]
fn connections_are_taken_over_without_ipv6() {
    let Some(lab) = Lab::start("connections_are_taken_over_without_ipv6") else { return };
    for of in ["all", "default"] {
        fs::write(format!("/proc/sys/net/ipv6/conf/{of}/disable_ipv6"), "1").unwrap();
    }
    let network = lab.container(1, &["10.72.9.1"]);
    let intercepting = Intercepting::start(&lab, &network, &["tcp port 80"], false);
    let (client, server) = ENDS[0];
    let listener = lab.server(|| TcpListener::bind(at(server, 80)).unwrap());
    let mut stream = lab.client(|| TcpStream::connect_timeout(&at(server, 80), LONG)).unwrap();
    let mut taken = intercepting.accept(server);
    let mut onward = intercepting.open(&network, client, at(server, 80)).unwrap();
    let mut arrived = accept(&listener);
    pass(&mut stream, &mut taken, b"request");
    pass(&mut onward, &mut arrived, b"request");
    assert!(lab.host.restore().unwrap().is_empty(), "nothing is missing");
}

/// Goal: what a module sends gets over a bound on the way that neither end knows of as fast as what the ends send themselves.
/// Method: routers behind both links, or the node's own link, carry 1,400 bytes, and tell so whoever sends more. 100 kB go to
/// the client, to the server, and over a connection that was there before and is not the module's, to which nobody but the
/// routers says anything.
#[test]
fn a_bound_on_the_way_is_heard_of() {
    let Some(lab) = Lab::start("a_bound_on_the_way_is_heard_of") else { return };
    let network = lab.container(1, &["10.72.9.1", "fd72:9::1"]);
    let filters = ["tcp src 10.72.0.0/18 port 79-80", "tcp src fd72::/17 port 80"];
    let [far_client, other_client] = [11, 12].map(|number| Far::start(&lab.client, 1, number));
    let far_server = Far::start(&lab.server, 2, 13);
    for (version, (near_client, near_server)) in ENDS.into_iter().enumerate() {
        let listener = lab.server(|| TcpListener::bind(at(near_server, 80)).unwrap());
        let connect = |far: &Far| far.inside(|| TcpStream::connect_timeout(&at(near_server, 80), LONG).unwrap());
        let mut before = connect(&other_client);
        let mut arrived = accept(&listener);
        let intercepting = Intercepting::start(&lab, &network, &filters, false);

        let mut stream = connect(&far_client);
        pass_quickly("to the client", &mut intercepting.accept(near_server), &mut stream);
        let server = at(&far_server.addresses[version], 80);
        let listener = far_server.inside(|| TcpListener::bind(server).unwrap());
        let mut onward = intercepting.open(&network, near_client, server).unwrap();
        pass_quickly("to the server", &mut onward, &mut accept(&listener));
        pass_quickly("past the module", &mut arrived, &mut before);
        intercepting.end(&network);
    }
    let [third_client, fourth_client] = [14, 15].map(|number| Far::start(&lab.client, 1, number));
    run(&format!("ip -n {} link set eth1 mtu 1400", lab.router));
    for (_, near_server) in ENDS {
        let listener = lab.server(|| TcpListener::bind(at(near_server, 80)).unwrap());
        let connect = |far: &Far| far.inside(|| TcpStream::connect_timeout(&at(near_server, 80), LONG).unwrap());
        let mut before = connect(&fourth_client);
        let mut arrived = accept(&listener);
        let intercepting = Intercepting::start(&lab, &network, &filters, false);
        let mut stream = connect(&third_client);
        pass_quickly("over the node's link", &mut intercepting.accept(near_server), &mut stream);
        pass_quickly("over the node's link, past the module", &mut arrived, &mut before);
        intercepting.end(&network);
    }
}

fn pass_quickly(what: &str, from: &mut TcpStream, to: &mut TcpStream) {
    let begun = Instant::now();
    let address = to.local_addr().unwrap();
    from.set_write_timeout(Some(LONG)).unwrap();
    pass(from, to, &[7; 100_000]);
    let took = begun.elapsed();
    println!("{what}: {address}: {took:?}");
    assert!(took < grown(Duration::from_millis(500)), "{what}: {address}: {took:?}");
}

/// A machine behind an end, which is its router and carries 1,400 bytes to it.
struct Far {
    name: String,
    addresses: [String; 2],
}

impl Far {
    fn start(near: &str, place: u8, number: u8) -> Far {
        let name = format!("{near}-{number}");
        run(&format!("ip netns add {name}"));
        let far = Far { name, addresses: [format!("10.72.{number}.2"), format!("fd72:{number}::2")] };
        let (name, device) = (&far.name, format!("far{number}"));
        run(&format!("ip -n {near} link add {device} mtu 1400 type veth peer name eth0 netns {name}"));
        for (name, device, link_local) in [(near, device.as_str(), "fe80::1"), (name, "eth0", "fe80::2")] {
            run(&format!("ip -n {name} link set {device} up addrgenmode none"));
            run(&format!("ip -n {name} address add {link_local}/64 dev {device} nodad"));
        }
        run(&format!("ip netns exec {near} sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1"));
        let routers = [format!("10.72.{number}.1"), format!("fd72:{number}::1")];
        let nears = [format!("10.72.{place}.2"), format!("fd72:{place}::2")];
        for (((address, router), near_end), bits) in far.addresses.iter().zip(routers).zip(nears).zip([24, 64]) {
            run(&format!("ip -n {near} address add {router}/{bits} dev {device} nodad"));
            run(&format!("ip -n {name} address add {address}/{bits} dev eth0 nodad"));
            run(&format!("ip -n {name} route add default via {router}"));
            run(&format!("ip route add {address} via {near_end}"));
        }
        far
    }

    fn inside<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        inside(File::open(format!("/run/netns/{}", self.name)).unwrap().as_fd(), act)
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "delete", &self.name]).status();
    }
}

/// Goal: whatever goes of the node's end of a link comes back, and with it connections that a module takes over and those to the
/// container's own addresses. A link that goes down takes routes and neighbours along, and `ip` takes single ones.
#[test]
fn what_goes_of_a_link_comes_back() {
    let Some(lab) = Lab::start("what_goes_of_a_link_comes_back") else { return };
    let own = ["10.72.9.1", "fd72:9::1"];
    let network = lab.container(1, &own);
    network.permit(&filters(&["tcp port 9000-9009"]), &[], Default::default()).unwrap();
    let intercepting = Intercepting::start(&lab, &network, &["tcp port 80"], false);
    let link = network.name();
    let takings = [
        format!("ip link set {link} down; ip link set {link} up"),
        format!("ip link set {link} down"),
        format!("ip addr flush dev {link}"),
        format!("for v in -4 -6; do ip $v neigh flush nud all dev {link}; done"),
        format!("for v in -4 -6; do ip $v route flush dev {link}; done"),
    ];
    for (number, taking) in takings.iter().enumerate() {
        Command::new("sh").args(["-ec", taking]).status().unwrap();
        let restored = [network.restore_link().unwrap(), lab.host.restore().unwrap()].concat();
        assert!(!restored.is_empty(), "{taking}");
        let again = [network.restore_link().unwrap(), lab.host.restore().unwrap()].concat();
        assert!(again.is_empty(), "{taking}: {again:?}");
        for ((_, server), own) in ENDS.into_iter().zip(own) {
            let mut stream = lab.client(|| TcpStream::connect_timeout(&at(server, 80), LONG)).unwrap();
            let mut taken = intercepting.accept(server);
            pass(&mut stream, &mut taken, b"request");
            pass(&mut taken, &mut stream, b"answer");
            let port = 9000 + u16::try_from(number).unwrap();
            let listener = inside(network.netns(), || TcpListener::bind(at(own, port)).unwrap());
            lab.client(|| TcpStream::connect_timeout(&at(own, port), LONG))
                .unwrap_or_else(|error| panic!("{taking}: {own}: {error}"));
            drop(listener);
        }
    }
}

/// Goal: rules of policy routing before ours are told of, unless they are about other packets than those that are taken over.
#[test]
fn rules_of_others_before_ours_are_told_of() {
    let Some(lab) = Lab::start("rules_of_others_before_ours_are_told_of") else { return };
    let network = lab.container(1, &["10.72.9.1", "fd72:9::1"]);
    let before = |rules: &[&str]| {
        rules.iter().for_each(|rule| run(&format!("ip {rule}")));
        lab.host.preceding().unwrap()
    };
    assert_eq!(before(&["rule add prio 1000 from 10.72.1.0/24 lookup 100"]), [""; 0], "nothing is taken over");
    let intercepting = Intercepting::start(&lab, &network, &["tcp port 80"], false);
    let others = [
        "rule add prio 1001 iif lo lookup 100",
        "rule add prio 1002 fwmark 0x1 lookup 100",
        "rule add prio 9000 from all lookup 100",
        "-6 rule add prio 1003 to fd72:2::/64 iif eth1 lookup 100",
    ];
    let expected = ["1000: from 10.72.1.0/24 lookup 100", "1003: from all to fd72:2::/64 iif eth1 lookup 100"];
    assert_eq!(before(&others), expected);
    intercepting.end(&network);
}

#[test]
fn connections_that_were_there_before_go_on() {
    let Some(lab) = Lab::start("connections_that_were_there_before_go_on") else { return };
    let network = lab.container(1, &["10.72.9.1", "fd72:9::1"]);
    for (_, server) in ENDS {
        let listener = lab.server(|| TcpListener::bind(at(server, 80)).unwrap());
        let mut before = lab.client(|| TcpStream::connect_timeout(&at(server, 80), LONG)).unwrap();
        let mut arrived = accept(&listener);
        let mut intercepting = Intercepting::start(&lab, &network, &["tcp port 80"], false);
        pass(&mut before, &mut arrived, &[1; 100_000]);
        pass(&mut arrived, &mut before, &[2; 100_000]);
        let mut during = lab.client(|| TcpStream::connect_timeout(&at(server, 80), LONG)).unwrap();
        let mut taken = intercepting.accept(server);
        // Nobody takes new ones: those that were taken go on, and so do those that were not.
        intercepting.suspend(&network);
        let mut after = lab.client(|| TcpStream::connect_timeout(&at(server, 80), LONG)).unwrap();
        let mut untouched = accept(&listener);
        pass(&mut after, &mut untouched, b"untouched");
        pass(&mut during, &mut taken, b"taken");
        pass(&mut taken, &mut during, b"taken");
        pass(&mut before, &mut arrived, b"before");
        // No interception any more.
        intercepting.end(&network);
        pass(&mut after, &mut untouched, &[3; 100_000]);
        pass(&mut before, &mut arrived, &[4; 100_000]);
        // What was taken over cannot go on, and its client learns it: the server knows no such connection.
        during.set_read_timeout(Some(LONG)).unwrap();
        during.write_all(b"?").unwrap();
        assert_eq!(during.read(&mut [0; 8]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    }
}

#[test]
fn when_nobody_takes_connections_they_pass_or_are_reset() {
    let Some(lab) = Lab::start("when_nobody_takes_connections_they_pass_or_are_reset") else { return };
    let network = lab.container(1, &["10.72.9.1", "fd72:9::1"]);
    for refuse in [false, true] {
        for (_, server) in ENDS {
            let listener = lab.server(|| TcpListener::bind(at(server, 80)).unwrap());
            let mut intercepting = Intercepting::start(&lab, &network, &["tcp port 80"], refuse);
            let connect = || lab.client(|| TcpStream::connect_timeout(&at(server, 80), LONG));
            let taken = connect().unwrap();
            drop(intercepting.accept(server));
            drop(taken);
            // As when the worker dies: the kernel closes what listens.
            intercepting.listeners = None;
            check_untaken(connect(), &listener, refuse);
            intercepting.suspend(&network);
            check_untaken(connect(), &listener, refuse);
        }
    }
    assert_eq!(network.dropped().unwrap()["refused-intercepted"], 4);
}

fn check_untaken(connected: io::Result<TcpStream>, listener: &TcpListener, refuse: bool) {
    if refuse {
        assert_eq!(connected.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    } else {
        pass(&mut connected.unwrap(), &mut accept(listener), b"untouched");
    }
}

/// Goal: the sockets that a worker gets lead nowhere but where its filters are about. They may bind to every address.
#[test]
fn other_addresses_and_ports_cannot_be_taken() {
    let Some(lab) = Lab::start("other_addresses_and_ports_cannot_be_taken") else { return };
    let network = lab.container(1, &["10.72.9.1", "fd72:9::1"]);
    let filters = ["tcp src 10.72.1.0/24 port 80", "tcp src fd72:1::/64 port 80"];
    let intercepting = Intercepting::start(&lab, &network, &filters, false);
    for ((client, server), (stranger, node)) in
        ENDS.into_iter().zip([("10.72.3.9", "10.72.2.1"), ("fd72:3::9", "fd72:2::1")])
    {
        let open = lab.server(|| [80, 81].map(|port| TcpListener::bind(at(server, port)).unwrap()));
        let node_service = TcpListener::bind(at(node, 80)).unwrap();
        let try_open = |source: &str, to: SocketAddr| intercepting.open(&network, source, to);
        assert!(try_open(client, at(server, 80)).is_ok());
        accept(&open[0]);
        for (source, to) in
            [(stranger, at(server, 80)), (client, at(server, 81)), (client, at(node, 80)), (server, at(client, 80))]
        {
            let begun = Instant::now();
            let refused = try_open(source, to).unwrap_err();
            assert!(begun.elapsed() < LONG, "{source} to {to}: {refused}");
        }
        assert!(is_idle(&open[0]) && is_idle(&open[1]) && is_idle(&node_service), "{server}");
        // Its own addresses are no part of it.
        let own = network.addresses().into_iter().find(|own| own.is_ipv4() == at(server, 80).is_ipv4()).unwrap();
        assert!(inside(network.netns(), || TcpStream::connect_timeout(&at(server, 80), SHORT)).is_err(), "{own}");
    }
    assert!(network.dropped().unwrap()["spoofed"] > 0);
    // Past the rules inside, there are those of the node.
    let receiver = lab.server(|| std::net::UdpSocket::bind(at("::", 9001)).unwrap());
    receiver.set_read_timeout(Some(SHORT)).unwrap();
    for (source, expected) in [("10.72.9.1", true), ("10.72.1.2", false), ("10.72.3.9", false)] {
        inside(network.netns(), || assert!(frame_from(source, 17).status().unwrap().success()));
        assert_eq!(receiver.recv_from(&mut [0; 64]).is_ok(), expected, "{source}");
    }
}

/// Goal: who took over a worker can use its sockets for nothing else: not to listen at the container's own address, and not
/// to open connections in the place of a server.
#[test]
fn sockets_neither_listen_nor_open_past_what_is_granted() {
    let Some(lab) = Lab::start("sockets_neither_listen_nor_open_past_what_is_granted") else { return };
    let network = lab.container(1, &["10.72.9.1", "fd72:9::1"]);
    let filters = ["tcp src 10.72.1.0/24 port 80", "tcp src fd72:1::/64 port 80"];
    let intercepting = Intercepting::start(&lab, &network, &filters, false);
    for ((client, server), own) in ENDS.into_iter().zip(["10.72.9.1", "fd72:9::1"]) {
        let victim = lab.client(|| TcpListener::bind(at(client, 9002)).unwrap());
        assert!(intercepting.open_from(&network, at(server, 80), at(client, 9002)).is_err());
        assert!(is_idle(&victim));

        let socket = network.transparent_sockets(at(own, 0).is_ipv6(), 1).unwrap().pop().unwrap();
        rustix::net::bind(&socket, &at(own, 2222)).unwrap();
        rustix::net::listen(&socket, 1).unwrap();
        assert!(lab.client(|| TcpStream::connect_timeout(&at(own, 2222), SHORT)).is_err());
        assert!(is_idle(&TcpListener::from(socket)));
    }
}

#[test]
fn the_node_itself_and_another_containers_flows_are_left_alone() {
    let Some(lab) = Lab::start("the_node_itself_and_another_containers_flows_are_left_alone") else { return };
    let [first, second] = [1, 2].map(|n| lab.container(n, &[&format!("10.72.9.{n}"), &format!("fd72:9::{n}")]));
    let one = Intercepting::start(&lab, &first, &["tcp port 80"], false);
    let two = Intercepting::start(&lab, &second, &["tcp port 90"], false);
    for (client, server) in ENDS {
        let node = TcpListener::bind(at(if client.contains(':') { "fd72:1::1" } else { "10.72.1.1" }, 80)).unwrap();
        let mut stream = lab.client(|| TcpStream::connect_timeout(&node.local_addr().unwrap(), LONG)).unwrap();
        pass(&mut stream, &mut accept(&node), b"to the node");
        let [web, other] = [80, 90].map(|port| lab.server(|| TcpListener::bind(at(server, port)).unwrap()));
        for (port, intercepting, idle) in [(80, &one, &two), (90, &two, &one)] {
            let _stream = lab.client(|| TcpStream::connect_timeout(&at(server, port), LONG)).unwrap();
            drop(intercepting.accept(server));
            assert!(idle.is_idle(server));
        }
        assert!(is_idle(&web) && is_idle(&other));
    }
}

#[test]
fn a_container_with_one_version_of_ip_intercepts_both() {
    let Some(lab) = Lab::start("a_container_with_one_version_of_ip_intercepts_both") else { return };
    for (number, address) in [(1, "10.72.9.1"), (2, "fd72:9::2")] {
        let network = lab.container(number, &[address]);
        let intercepting = Intercepting::start(&lab, &network, &["tcp port 80"], false);
        for (client, server) in ENDS {
            let listener = lab.server(|| TcpListener::bind(at(server, 80)).unwrap());
            let mut stream = lab.client(|| TcpStream::connect_timeout(&at(server, 80), LONG)).unwrap();
            let mut taken = intercepting.accept(server);
            pass(&mut stream, &mut taken, b"request");
            let mut onward = intercepting.open(&network, client, at(server, 80)).unwrap();
            pass(&mut onward, &mut accept(&listener), b"request");
        }
        intercepting.end(&network);
    }
}

/// Goal: a router whose links have no IPv4 at all.
#[test]
fn a_node_with_ipv6_only_intercepts() {
    let Some(lab) = Lab::start("a_node_with_ipv6_only_intercepts") else { return };
    for (name, device) in [(&lab.router, "eth1"), (&lab.router, "eth2"), (&lab.client, "eth1"), (&lab.server, "eth2")] {
        run(&format!("ip -n {name} -4 address flush dev {device}"));
    }
    let network = lab.container(1, &["fd72:9::1"]);
    let intercepting = Intercepting::start(&lab, &network, &["tcp dst fd72:2::/64 port 80"], false);
    let (client, server) = ENDS[1];
    let listener = lab.server(|| TcpListener::bind(at(server, 80)).unwrap());
    let mut stream = lab.client(|| TcpStream::connect_timeout(&at(server, 80), LONG)).unwrap();
    pass(&mut stream, &mut intercepting.accept(server), b"request");
    let mut onward = intercepting.open(&network, client, at(server, 80)).unwrap();
    pass(&mut onward, &mut accept(&listener), b"request");
}

/// Goal: a container that takes nothing over any more is reached at its addresses as before: another module may be there, or come.
#[test]
fn the_container_s_own_addresses_outlast_it() {
    let Some(lab) = Lab::start("the_container_s_own_addresses_outlast_it") else { return };
    let network = lab.container(1, &["10.72.9.1", "fd72:9::1"]);
    let routes = || {
        let shown = |version| Command::new("ip").args([version, "route", "show", "proto", "78"]).output();
        ["-4", "-6"].map(|version| String::from_utf8(shown(version).unwrap().stdout).unwrap())
    };
    let before = routes();
    assert!(before[0].contains("10.72.9.1 dev") && before[1].contains("fd72:9::1 dev"), "{before:?}");
    let intercepting = Intercepting::start(&lab, &network, &["tcp port 80"], false);
    intercepting.end(&network);
    assert_eq!(routes(), before);
}

#[test]
fn nothing_is_left_when_it_ends() {
    let Some(lab) = Lab::start("nothing_is_left_when_it_ends") else { return };
    let network = lab.container(1, &["10.72.9.1", "fd72:9::1"]);
    let intercepting = Intercepting::start(&lab, &network, &["tcp port 80"], false);
    assert!(has_rules() && lab.host.dropped(&network).unwrap()["spoofed"] == 0);
    intercepting.end(&network);
    assert!(!has_rules());
    // As after a crash.
    let host = HostIntercepts::open("crashed").unwrap();
    host.set(&network, &filters(&["tcp port 80"])).unwrap();
    std::mem::forget((host, network));
    assert!(has_rules());
    assert_eq!(remove_networks(&lab.instance()).unwrap(), 1);
    assert!(!has_rules());
    // The name is free again, and nothing is led to what is gone.
    let network = lab.container(1, &["10.72.9.1", "fd72:9::1"]);
    let intercepting = Intercepting::start(&lab, &network, &["tcp port 80"], false);
    network.remove().unwrap();
    for (_, server) in ENDS {
        let listener = lab.server(|| TcpListener::bind(at(server, 80)).unwrap());
        let mut stream = lab.client(|| TcpStream::connect_timeout(&at(server, 80), LONG)).unwrap();
        pass(&mut stream, &mut accept(&listener), b"the link is gone");
    }
    intercepting.host.forget(&network).unwrap();
    assert!(!has_rules());
}

#[test]
fn bounds_are_kept_and_what_is_no_flow_is_refused() {
    let Some(lab) = Lab::start("bounds_are_kept_and_what_is_no_flow_is_refused") else { return };
    let network = lab.container(1, &["10.72.9.1"]);
    let host = HostIntercepts::open(&lab.instance()).unwrap();
    let intercept = |filter: &str| Intercept { filter: filter.parse().unwrap(), ports: None, refuse: false };
    for bad in ["udp port 80", "ip dst 10.72.2.0/24", "tcp dst 10.72.2.0/24"] {
        assert!(matches!(network.intercept(&[intercept(bad)]), Err(NetworkError::Spec(_))), "{bad}");
        assert!(matches!(host.set(&network, &filters(&[bad])), Err(NetworkError::Spec(_))), "{bad}");
    }
    let many = vec![intercept("tcp port 80"); INTERCEPTS_MAX + 1];
    assert!(matches!(network.intercept(&many), Err(NetworkError::Spec(_))));
    network.intercept(&many[1..]).unwrap();
    assert_eq!(network.transparent_sockets(false, TRANSPARENT_SOCKETS_MAX).unwrap().len(), TRANSPARENT_SOCKETS_MAX);
    assert!(matches!(network.transparent_sockets(true, TRANSPARENT_SOCKETS_MAX + 1), Err(NetworkError::Spec(_))));
}

/// Goal: containers that intercept by as many filters as they get leave some for every other one, up to the node's bound. Method: the first two
/// have what a container may have, the third gets its own few, and so do all others.
#[test]
fn containers_that_intercept_much_leave_room_for_others() {
    let Some(lab) = Lab::start("containers_that_intercept_much_leave_room_for_others") else { return };
    let host = HostIntercepts::open(&lab.instance()).unwrap();
    let most = vec!["tcp dst 10.72.2.0/24 port 80"; INTERCEPTS_MAX];
    let mut left = NODE_INTERCEPTS_MAX;
    let mut networks = Vec::new();
    for number in 1.. {
        let network = lab.container(number, &[&format!("10.72.9.{number}")]);
        let sizes = [INTERCEPTS_MAX, INTERCEPTS_EACH];
        let Some(size) = sizes.into_iter().find(|size| host.set(&network, &filters(&most[..*size])).is_ok()) else {
            break;
        };
        assert_eq!(size == INTERCEPTS_MAX, number <= 2, "{number}");
        left -= size;
        networks.push(network);
    }
    assert_eq!((left, networks.len()), (0, 2 + (NODE_INTERCEPTS_MAX - 2 * INTERCEPTS_MAX) / INTERCEPTS_EACH));
    host.set(&networks[0], &[]).unwrap();
    host.set(&networks[2], &filters(&most)).unwrap();
}

/// Goal: whatever others take away of what leads packets to a module that fails closed, no packet of its flows goes past it, and the
/// connection goes on once it is there again. One that fails open is passed by meanwhile.
#[test]
fn nothing_goes_past_who_fails_closed_while_rules_are_gone() {
    let Some(lab) = Lab::start("nothing_goes_past_who_fails_closed_while_rules_are_gone") else { return };
    let network = lab.container(1, &["10.72.9.1", "fd72:9::1"]);
    let takings = [
        "for v in -4 -6; do ip $v rule del priority 7800; done",
        "for v in -4 -6; do ip $v route flush table $(ip $v rule show priority 7800 | sed 's/.*lookup //;s/ .*//'); done",
    ];
    for (port, refuse) in [(80, true), (81, false)] {
        let intercepting = Intercepting::start(&lab, &network, &[&format!("tcp port {port}")], refuse);
        for (_, server) in ENDS {
            let listener = lab.server(|| TcpListener::bind(at(server, port)).unwrap());
            for taking in takings {
                let stream = lab.client(|| TcpStream::connect_timeout(&at(server, port), LONG)).unwrap();
                drop((intercepting.accept(server), stream));
                Command::new("sh").args(["-ec", taking]).status().unwrap();
                Command::new("nft").args(["flush", "ruleset"]).status().unwrap();
                let astray = || lab.host.dropped(&network).unwrap()["astray"];
                let before = astray();
                let stream = lab.client(|| TcpStream::connect_timeout(&at(server, port), SHORT));
                assert_eq!((stream.is_err(), astray() > before), (refuse, refuse), "{server} {port}: {taking}");
                assert_eq!(is_idle(&listener), refuse, "{server} {port}: {taking}");
                assert!(!lab.host.restore().unwrap().is_empty() && intercepting.is_idle(server));
            }
            let stream = lab.client(|| TcpStream::connect_timeout(&at(server, port), LONG)).unwrap();
            drop((intercepting.accept(server), stream));
        }
        intercepting.end(&network);
    }
}

/// A module at work: what listens for it, and what leads packets there.
struct Intercepting {
    host: Arc<HostIntercepts>,
    filters: Vec<Filter>,
    refuse: bool,
    listeners: Option<[TcpListener; 2]>,
}

impl Intercepting {
    fn start(lab: &Lab, network: &ContainerNetwork, texts: &[&str], refuse: bool) -> Intercepting {
        let host = lab.host.clone();
        let Listeners { v4, v6, ports } = network.listeners().unwrap();
        let intercept = |filter: Filter| Intercept { filter, ports: Some(ports), refuse };
        let filters = filters(texts);
        network.intercept(&filters.iter().cloned().map(intercept).collect::<Vec<_>>()).unwrap();
        host.set(network, &filters).unwrap();
        let listener = |fd: OwnedFd| {
            let listener = TcpListener::from(fd);
            listener.set_nonblocking(false).unwrap();
            listener
        };
        Intercepting { host, filters, refuse, listeners: Some([v4.unwrap(), v6.unwrap()].map(listener)) }
    }

    fn accept(&self, server: &str) -> TcpStream {
        let [v4, v6] = self.listeners.as_ref().unwrap();
        let listener = if server.contains(':') { v6 } else { v4 };
        assert!(!is_idle(listener), "no connection came");
        accept(listener)
    }

    fn is_idle(&self, server: &str) -> bool {
        let [v4, v6] = self.listeners.as_ref().unwrap();
        is_idle(if server.contains(':') { v6 } else { v4 })
    }

    /// Goes on to a server with a client's address, as a program without any right does.
    fn open(&self, network: &ContainerNetwork, client: &str, server: SocketAddr) -> io::Result<TcpStream> {
        self.open_from(network, at(client, 0), server)
    }

    fn open_from(&self, network: &ContainerNetwork, client: SocketAddr, server: SocketAddr) -> io::Result<TcpStream> {
        let socket = network.transparent_sockets(server.is_ipv6(), 1).unwrap().pop().unwrap();
        rustix::net::bind(&socket, &client)?;
        match connect(&socket, &server) {
            Err(rustix::io::Errno::INPROGRESS) => {}
            other => other?,
        }
        let ready = poll(&mut [PollFd::new(&socket, PollFlags::OUT)], Some(&SHORT.try_into().unwrap()))?;
        if ready == 0 {
            return Err(ErrorKind::TimedOut.into());
        }
        sockopt::socket_error(&socket)??;
        let stream = TcpStream::from(socket);
        stream.set_nonblocking(false)?;
        Ok(stream)
    }

    fn suspend(&mut self, network: &ContainerNetwork) {
        let intercept = |filter: &Filter| Intercept { filter: filter.clone(), ports: None, refuse: self.refuse };
        network.intercept(&self.filters.iter().map(intercept).collect::<Vec<_>>()).unwrap();
    }

    fn end(self, network: &ContainerNetwork) {
        self.host.set(network, &[]).unwrap();
        network.intercept(&[]).unwrap();
    }
}

/// Returns whether anything of ours is in this namespace.
fn has_rules() -> bool {
    !leftovers().is_empty()
}

fn leftovers() -> String {
    let rules = ["-4", "-6"].map(|version| {
        let output = Command::new("ip").args([version, "rule", "show"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    });
    rules.concat().lines().filter(|line| line.contains("proto 78")).collect()
}

/// Sends an UDP packet of this source from inside, past the firewall there.
fn frame_from(source: &str, protocol: u8) -> Command {
    let script = format!(
        "import socket,struct\ns=socket.socket(socket.AF_PACKET,socket.SOCK_RAW)\ns.bind(('net0',0x800))\n\
         body=struct.pack('!HHHH',9001,9001,9,0)+b'x'\n\
         head=struct.pack('!BBHHHBBH4s4s',0x45,0,20+len(body),1,0,64,{protocol},0,socket.inet_aton('{source}'),\
         socket.inet_aton('10.72.2.2'))\n\
         sum=sum(struct.unpack('!10H',head));sum=(sum&0xffff)+(sum>>16);sum=~((sum&0xffff)+(sum>>16))&0xffff\n\
         head=head[:10]+struct.pack('!H',sum)+head[12:]\n\
         s.send(bytes.fromhex('024e53000001024e53000002')+b'\\x08\\x00'+head+body)"
    );
    let mut command = Command::new("/usr/bin/python3");
    command.args(["-c", &script]);
    command
}
