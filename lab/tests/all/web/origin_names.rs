// SPDX-License-Identifier: Apache-2.0
//! An origin that is named, as providers name theirs, and a real name server.

use std::net::IpAddr;
use std::process::Command;
use std::time::Duration;

use crate::common::{eventually, request_as};
use netserv_lab::netns::{Lab, is_root};
use netserv_lab::node::FILES_ALLOWED;
use netserv_lab::node::LabUser;
use netserv_lab::patience::grown;
use netserv_lab::topology::{Kind, Topology};
use netserv_model::RefusalKind;
use netserv_skips::skipped;

const NAME: &str = "www.site.test";
/// Each of two addresses had five seconds; a head start is a quarter of one.
const SILENT_COST_MAX: Duration = Duration::from_secs(4);

/// Goal: a cache finds its origin by name, over IPv4 and IPv6, and an address that nobody answers at costs little. Method: dnsmasq on the sender;
/// its names change, and each request is one that the cache has to fetch.
#[test]
fn an_origin_is_found_by_its_name() {
    let test = "an_origin_is_found_by_its_name";
    if !is_root() {
        return skipped(test, "not root, so no namespaces");
    }
    let mut lab =
        Lab::up(Topology::chain(&[("sender", Kind::Host), ("n", Kind::Node), ("receiver", Kind::Host)])).unwrap();
    let (v4, v6) = (lab.v4("sender"), lab.v6("sender"));
    let dns = format!("connect = ['tcp', 'udp dst {v4}/32 port 53']\nlisten = ['tcp port 80']\n");
    let own = [format!("{v4}/32"), format!("{v6}/128")];
    let user = LabUser { extra: dns, ..lab.user("www", &[&own[0], &own[1]]).unwrap() };
    let network = format!(
        "osgi.enabled = false\n{FILES_ALLOWED}\n[network]\nprefixes = ['10.98.0.0/29', 'fd98::/125']\nname-servers = ['{v4}']\n"
    );
    lab.start_netservd("n", "node", std::slice::from_ref(&user), &network).unwrap();
    lab.start_netservd("sender", "host", &[], "").unwrap();
    lab.serve_http("sender").unwrap();
    let ends = [("sender", lab.topology().interfaces(0).1), ("receiver", lab.topology().interfaces(1).0)];
    for (machine, node) in ends {
        for via in [IpAddr::from(node.v4), node.v6.into()] {
            lab.run(machine, "ip", &["route", "add", "default", "via", &via.to_string()]).unwrap();
        }
    }
    std::fs::write(lab.dir().join("www/page.txt"), "the page").unwrap();
    let names = Names::start(&mut lab);
    let module = install(&lab, &user);

    let mut number = 0;
    let mut ask = || {
        number += 1;
        let url = format!("http://{module}/page.txt?{number}");
        let args = ["-s", "-m", "20", "-w", " %{http_code} %{time_total}", &url];
        let output = lab.command("receiver", "curl").args(args).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    for addresses in [[v4.into()], [IpAddr::from(v6)]] {
        names.say(&lab, &addresses);
        let answered = |text: &str| text.starts_with("the page 200 ");
        eventually("the origin is found", || answered(&ask()));
    }

    // Addresses of the sender's network that nobody has, and whose frames nobody takes.
    let silent = [IpAddr::from([10, 1, 0, 99]), "fd00:1::99".parse().unwrap()];
    for address in silent.map(|address| address.to_string()) {
        let args = ["neigh", "add", &address, "lladdr", "02:00:00:00:00:99", "dev", "to-sender"];
        assert!(lab.run("n", "ip", &args).unwrap().status.success());
    }
    for addresses in [[silent[0], v4.into()], [silent[1], v4.into()]] {
        names.say(&lab, &addresses);
        for _ in 0..4 {
            let answer = ask();
            let seconds = answer.strip_prefix("the page 200 ").and_then(|rest| rest.parse().ok());
            let took = seconds.map(Duration::from_secs_f64).unwrap_or_else(|| panic!("{addresses:?}: {answer}"));
            assert!(took < grown(SILENT_COST_MAX), "{addresses:?}: {took:?}");
        }
    }
}

/// A name server on the sender with one name.
struct Names {
    pid: u32,
}

impl Names {
    fn start(lab: &mut Lab) -> Names {
        std::fs::write(lab.dir().join("names"), "").unwrap();
        let mut command = lab.command("sender", "/usr/sbin/dnsmasq");
        let listen = format!("--listen-address={}", lab.v4("sender"));
        command.args(["-k", "--no-resolv", "--no-hosts", "--local-ttl=0", "--bind-interfaces", "--user=root", &listen]);
        command.args(["--conf-file=/dev/null", "--log-facility=-", "--local=/site.test/"]);
        command.arg(format!("--addn-hosts={}", lab.dir().join("names").display()));
        command.arg(format!("--pid-file={}", lab.dir().join("dnsmasq.pid").display()));
        let pid = lab.start("sender", "dnsmasq", &mut command).unwrap();
        lab.wait_for_start(("sender", "dnsmasq"), "listen", |lab| lab.sockets_at("sender", "udp", 53) > 0).unwrap();
        Names { pid }
    }

    /// Has the name have these addresses, and waits until the server has read them.
    fn say(&self, lab: &Lab, addresses: &[IpAddr]) {
        let text: String = addresses.iter().map(|address| format!("{address} {NAME}\n")).collect();
        std::fs::write(lab.dir().join("names"), text).unwrap();
        let read = |lab: &Lab| lab.log("sender", "dnsmasq").matches("read ").count();
        let before = read(lab);
        assert!(Command::new("kill").args(["-HUP", &self.pid.to_string()]).status().unwrap().success());
        eventually("the name server reads its names", || read(lab) > before);
    }
}

fn install(lab: &Lab, user: &LabUser) -> IpAddr {
    let package = lab.package("active-cdn", user).unwrap();
    let url = lab.publish("sender", &package).unwrap();
    let file = package.path.to_string_lossy().into_owned();
    let (origin, filter) = (format!("origin=http://{NAME}"), format!("tcp dst {}/32 port 80", lab.v4("sender")));
    let to = lab.v4("receiver").to_string();
    let args = ["setup", &file, "--url", &url, "--filter", &filter, "--property", &origin, "--to", &to];
    // While it is being compiled, each request may time out.
    eventually("it is installed", || {
        let result = request_as(lab, user, &args);
        result.nodes.iter().all(|node| {
            let is_late = node.outcome.is_refused_for(RefusalKind::Timeout);
            assert!(is_late || node.outcome.lease_s().is_some(), "{node:?}");
            !is_late
        })
    });
    let modules = lab.modules("n").unwrap().modules;
    modules.iter().flat_map(|status| &status.addresses).copied().find(IpAddr::is_ipv4).unwrap()
}
