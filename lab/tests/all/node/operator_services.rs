// SPDX-License-Identifier: Apache-2.0
//! The operator's services: modules that a node runs by itself while a condition over its own counters holds.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::{Driver, eventually};
use crate::node::control_loop::Over;
use netserv_api::{ModuleList, OperatorServiceInfo};
use netserv_lab::flood::{Flood, Kind};
use netserv_lab::netns::{Lab, is_root};
use netserv_lab::node::FILES_ALLOWED;
use netserv_lab::patience::grown;
use netserv_lab::topology::{Kind as Machine, Topology};
use netserv_model::api::UsageReport;
use netserv_skips::skipped;

over_one_driver! {
    afxdp: []
    nfqueue: [a_flood_of_syns_starts_the_service_and_its_end_stops_it]
}

/// SYNs that come in a second, over the bound of the condition.
const RATE: u32 = 5_000;
const BOUND: u32 = 1_000;
/// How long a service may take to be in force after a flood begins, on a machine that does other things too.
const IN_FORCE_MAX: Duration = Duration::from_secs(4);

/// Goal: a flood of SYNs to one address has the module run, which sees the flood and nothing else; it goes when the flood is over, a
/// restart forgets it, and nobody is charged. Method: real SYNs through the node, over IPv4 and IPv6, beside packets that no
/// condition is about.
fn a_flood_of_syns_starts_the_service_and_its_end_stops_it(driver: Driver) {
    if !is_root() {
        return skipped("a_flood_of_syns_starts_the_service_and_its_end_stops_it", "not root, so no namespaces");
    }
    let chain = [("sender", Machine::Host), ("n1", Machine::Node), ("receiver", Machine::Host)];
    let mut lab = Lab::up(Topology::chain(&chain)).unwrap();
    lab.use_driver(driver.name());
    let vendor = lab.user("vendor", &[]).unwrap();
    let package = lab.package("net-monitor", &vendor).unwrap();
    lab.serve_http("sender").unwrap();
    let url = lab.publish("sender", &package).unwrap();
    let (v4, v6) = (lab.v4("receiver"), lab.v6("receiver"));
    let service = format!(
        "{FILES_ALLOWED}[[service]]\nname = 'guard'\nmodule = '{}'\nurl = '{url}'\ndigest = '{}'\nsigner = '{}'\n\
         filters = ['tcp syn dst {v4}/32', 'tcp syn dst {v6}/128']\nhold-s = 1\n\
         when = ['syns/s to {v4} > {BOUND}', 'syns/s to {v6} > {BOUND}', 'packets/s to 198.51.100.0/24 > 0']\n",
        package.module, package.digest, vendor.public
    );
    lab.start_netservd("n1", "node", &[], &service).unwrap();
    eventually("nothing is wanted, and its package is there", || {
        let service = guard(&lab);
        service.ready
            && service.conditions.iter().all(|condition| condition.per_second == 0)
            && !service.wanted
            && !service.installed
    });
    let text = String::from_utf8(lab.netserv("n1", &["node", "status"]).unwrap().stdout).unwrap();
    assert!(
        text.contains("service  guard, ") && text.contains(&format!("when     syns/s to {v4}/32 > 1000: ")),
        "{text}"
    );
    assert_eq!(modules(&lab).modules, []);
    for (network, to) in [("10.77.0.0", IpAddr::from(v4)), ("fd77::", IpAddr::from(v6))] {
        let network: IpAddr = network.parse().unwrap();
        let kind = Kind::Syns { network, bits: if network.is_ipv4() { 16 } else { 64 }, port: 80 };
        let flood = Flood { kind, to, destination: to, rate: RATE, time: Duration::from_secs(6) };
        let is_over = AtomicBool::new(false);
        std::thread::scope(|threads| {
            let begun = Instant::now();
            // As long as it is looked at, which on a busy machine is longer.
            threads.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    flood.send(&lab, "sender", "n1").unwrap();
                }
            });
            let _over = Over(&is_over);
            eventually("the service runs", || guard(&lab).installed);
            let took = begun.elapsed();
            println!("{}: in force {} ms after the flood began", driver.name(), took.as_millis());
            assert!(took < grown(IN_FORCE_MAX), "{took:?}");
            eventually("the module sees the flood", || {
                modules(&lab).modules.first().is_some_and(|m| m.packets.seen > 500)
            });
            eventually("the condition is seen to hold", || {
                guard(&lab).conditions.iter().any(|condition| condition.per_second > u64::from(BOUND))
            });
        });
        eventually("the service has stopped", || modules(&lab).modules.is_empty() && !guard(&lab).installed);
    }
    let output = lab.netserv("n1", &["-j", "node", "usage"]).unwrap();
    let usage: UsageReport = serde_json::from_slice(&output.stdout).unwrap();
    assert!(usage.users.is_empty() && usage.others.is_none(), "the operator is charged: {usage:?}");
}

fn guard(lab: &Lab) -> OperatorServiceInfo {
    lab.info("n1").unwrap().services.into_iter().next().unwrap_or_else(|| OperatorServiceInfo {
        name: String::new(),
        module: "example.org/none@0.0.0".parse().unwrap(),
        ready: false,
        wanted: false,
        installed: false,
        refused: None,
        conditions: Vec::new(),
    })
}

fn modules(lab: &Lab) -> ModuleList {
    lab.modules("n1").unwrap()
}
