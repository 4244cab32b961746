// SPDX-License-Identifier: Apache-2.0
//! Bundles from Maven Central, as they are, as servers on addresses of their users' own.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use common::{Driver, eventually, request_as, serving_net};
use netserv_lab::netns::{Lab, host_port, wait_until};
use netserv_lab::node::{LabPackage, LabUser, workspace};
use netserv_model::request::Outcome;
use netserv_model::{Flavour, Refusal, RefusalKind};

/// How long a JVM with a servlet engine may take until it answers on a busy machine.
const ANSWER_WAIT: Duration = Duration::from_secs(20);

over_each_driver!(
    two_users_both_listen_on_port_80,
    bundles_as_they_are_answer_over_ipv4_and_ipv6,
    a_server_that_is_not_permitted_is_refused_up_front,
);

fn two_users_both_listen_on_port_80(driver: Driver) {
    let Some(net) = Net::start("two_users_both_listen_on_port_80", driver) else { return };
    let hello = |user: &LabUser| net.package("pax-hello", user);
    let addresses = [&net.alice, &net.bob].map(|user| {
        assert!(matches!(net.setup(user, &hello(user)), Outcome::Installed { .. }));
        net.address(user, false)
    });
    assert_ne!(addresses[0], addresses[1]);
    for address in addresses {
        net.answers("receiver", address, "/helloworld/hs", "Hello World");
    }
    // One leaves, the other goes on; what left answers no more.
    assert_eq!(net.request(&net.alice, &["remove", "example.org/pax-hello"]), Outcome::Removed);
    eventually("no answer", || net.get("receiver", addresses[0], "/helloworld/hs").is_none());
    net.answers("sender", addresses[1], "/helloworld/hs", "Hello World");
}

fn bundles_as_they_are_answer_over_ipv4_and_ipv6(driver: Driver) {
    let Some(net) = Net::start("bundles_as_they_are_answer_over_ipv4_and_ipv6", driver) else { return };
    let jolokia = net.package("jolokia", &net.alice);
    assert!(matches!(net.setup(&net.alice, &jolokia), Outcome::Installed { .. }));
    for six in [false, true] {
        net.answers("receiver", net.address(&net.alice, six), "/jolokia/version", "\"product\":\"felix\"");
    }
    // Only what is granted comes in.
    let address = net.address(&net.alice, false);
    let nc = net.lab.command("receiver", "nc").args(["-z", "-w", "1", &address.to_string(), "8080"]).status().unwrap();
    assert!(!nc.success());
}

fn a_server_that_is_not_permitted_is_refused_up_front(driver: Driver) {
    let test = "a_server_that_is_not_permitted_is_refused_up_front";
    let Some(net) = Net::start(test, driver) else { return };
    let hello = net.package("pax-hello", &net.carol);
    let Outcome::Refused(Refusal { kind, detail, .. }) = net.setup(&net.carol, &hello) else { panic!("not refused") };
    assert_eq!(kind, RefusalKind::NotPermitted);
    assert!(detail.contains("80"), "{detail}");
}

/// `sender – node – receiver`; alice and bob may listen on port 80, carol nowhere.
struct Net {
    lab: Lab,
    alice: LabUser,
    bob: LabUser,
    carol: LabUser,
}

impl Net {
    fn start(test: &str, driver: Driver) -> Option<Net> {
        let listen = "listen = ['tcp port 80']\n";
        let users = [("alice", listen), ("bob", listen), ("carol", "")];
        let (lab, [alice, bob, carol]) = serving_net(test, driver, &["10.99.7.0/29", "fd99:7::/64"], users)?;
        Some(Net { lab, alice, bob, carol })
    }

    fn package(&self, name: &str, user: &LabUser) -> LabPackage {
        let dir = workspace().join("java/samples/central").join(name);
        let bundle: PathBuf = dir.join("target").join(format!("{name}.jar"));
        assert!(bundle.exists(), "{} is not there; build it: ./dev build", bundle.display());
        let path = self.lab.dir().join(format!("{name}-{}.nsm", user.name));
        self.lab.package_of(&dir.join("netserv.toml"), &[(Flavour::Osgi, bundle)], &path, user).unwrap()
    }

    fn setup(&self, user: &LabUser, package: &LabPackage) -> Outcome {
        let url = self.lab.publish("sender", package).unwrap();
        self.request(user, &["setup", &package.path.to_string_lossy(), "--url", &url])
    }

    /// Sends a request toward the receiver, and returns what the node did.
    fn request(&self, user: &LabUser, args: &[&str]) -> Outcome {
        let to = self.lab.v4("receiver").to_string();
        let result = request_as(&self.lab, user, &[args, &["--to", &to]].concat());
        result.nodes.into_iter().find(|node| node.node.as_str() == "node").unwrap().outcome
    }

    /// Returns an address of the user's container.
    fn address(&self, user: &LabUser, six: bool) -> IpAddr {
        let modules = self.lab.modules("node").unwrap().modules;
        let status = modules.into_iter().find(|status| status.user.as_str() == user.name).unwrap();
        status.addresses.into_iter().find(|address| address.is_ipv6() == six).unwrap()
    }

    /// Waits until a server answers with a text.
    fn answers(&self, machine: &str, address: IpAddr, path: &str, text: &str) {
        let mut last = None;
        let answered = wait_until(ANSWER_WAIT, || {
            last = self.get(machine, address, path);
            last.as_ref().is_some_and(|body| body.contains(text))
        });
        assert!(answered, "{address}{path}: {last:?}\n{}", self.lab.log("node", "netservd"));
    }

    fn get(&self, machine: &str, address: IpAddr, path: &str) -> Option<String> {
        let url = format!("http://{}{path}", host_port(address, 80));
        let output = self.lab.command(machine, "curl").args(["-s", "-g", "-m", "5", &url]).output().unwrap();
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }
}
