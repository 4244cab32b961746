// SPDX-License-Identifier: Apache-2.0
//! A network with a node whose users may have servers.

use std::net::IpAddr;
use std::process::Output;
use std::time::Duration;

use netserv_lab::netns::{Lab, host_port, is_root, wait_until};
use netserv_lab::node::{LabPackage, LabUser};
use netserv_lab::serving::network_with;
use netserv_model::RefusalKind;
use netserv_model::request::{ModuleStatus, Outcome};
use netserv_skips::skipped;

use super::{Driver, request_as, serving_net};

/// How long a server may take until it answers on a busy machine.
const ANSWER_WAIT: Duration = Duration::from_secs(20);

/// How often a SETUP is sent again whose module is still being compiled.
const COMPILE_TRIES: usize = 5;

/// `sender – node – receiver`, with a web server on the sender; alice and bob may listen on the ports that a test names,
/// carol nowhere.
pub struct Serving {
    pub lab: Lab,
    pub alice: LabUser,
    pub bob: LabUser,
    pub carol: LabUser,
}

impl Serving {
    /// Builds the network, or says that the test is skipped. `permits` are lines for alice and bob.
    pub fn start(test: &str, driver: Driver, permits: &str) -> Option<Serving> {
        Serving::with_prefixes(test, driver, &["10.99.7.0/29", "fd99:7::/64"], permits)
    }

    /// The same with a node that has further settings.
    pub fn with_settings(test: &str, driver: Driver, settings: &str, permits: &str) -> Option<Serving> {
        if !is_root() {
            skipped(test, "not root, so no namespaces");
            return None;
        }
        let users = [("alice", permits), ("bob", permits), ("carol", "")];
        let prefixes = ["10.99.7.0/29", "fd99:7::/64"];
        let (lab, [alice, bob, carol]) = network_with(settings, Some(driver.name()), &prefixes, users).unwrap();
        Some(Serving { lab, alice, bob, carol })
    }

    /// The same with prefixes of one's own for the containers.
    pub fn with_prefixes(test: &str, driver: Driver, prefixes: &[&str], permits: &str) -> Option<Serving> {
        let users = [("alice", permits), ("bob", permits), ("carol", "")];
        let (lab, [alice, bob, carol]) = serving_net(test, driver, prefixes, users)?;
        Some(Serving { lab, alice, bob, carol })
    }

    /// Packs, signs and installs one of the sample modules in Wasm, and asserts that it runs.
    pub fn install(&self, module: &str, user: &LabUser, more: &[&str]) -> LabPackage {
        let package = self.lab.package(module, user).unwrap();
        let mut outcome = self.setup(user, &package, more);
        // A large module may take longer to compile than a request may; the next one finds it compiled.
        let is_late = |outcome: &Outcome| outcome.is_refused_for(RefusalKind::Timeout);
        for _ in 0..COMPILE_TRIES {
            if is_late(&outcome) {
                outcome = self.setup(user, &package, more);
            }
        }
        // The one that was given up may have been carried out meanwhile.
        let installed =
            matches!(outcome, Outcome::Installed { .. } | Outcome::Replaced { .. } | Outcome::Refreshed { .. });
        assert!(installed, "{module}: {outcome:?}\n{}", self.lab.log("node", "netservd"));
        package
    }

    /// Publishes a package and sends its SETUP toward the receiver.
    pub fn setup(&self, user: &LabUser, package: &LabPackage, more: &[&str]) -> Outcome {
        let url = self.lab.publish("sender", package).unwrap();
        self.request(user, &[&["setup", &package.path.to_string_lossy(), "--url", &url], more].concat())
    }

    /// Sends a request toward the receiver, and returns what the node did.
    pub fn request(&self, user: &LabUser, args: &[&str]) -> Outcome {
        let to = self.lab.v4("receiver").to_string();
        let result = request_as(&self.lab, user, &[args, &["--to", &to]].concat());
        result.nodes.into_iter().find(|node| node.node.as_str() == "node").unwrap().outcome
    }

    /// Returns the status of a user's module, by the last part of its name.
    pub fn status(&self, user: &LabUser, module: &str) -> Option<ModuleStatus> {
        let ours = |status: &ModuleStatus| {
            status.user.as_str() == user.name && status.module.name.as_str().ends_with(&format!("/{module}"))
        };
        self.lab.modules("node").unwrap().modules.into_iter().find(ours)
    }

    /// Returns an address of the user's container.
    pub fn address(&self, user: &LabUser, six: bool) -> IpAddr {
        let modules = self.lab.modules("node").unwrap().modules;
        let status = modules.into_iter().find(|status| status.user.as_str() == user.name).unwrap();
        status.addresses.into_iter().find(|address| address.is_ipv6() == six).unwrap()
    }

    /// Waits until a server answers with a text.
    pub fn answers(&self, machine: &str, address: IpAddr, path: &str, text: &str) {
        let mut last = None;
        let answered = wait_until(ANSWER_WAIT, || {
            last = self.get(machine, address, path);
            last.as_ref().is_some_and(|body| body.contains(text))
        });
        assert!(answered, "{address}{path}: {last:?}\n{}", self.lab.log("node", "netservd"));
    }

    /// Asks a server once; nothing if it does not answer.
    pub fn get(&self, machine: &str, address: IpAddr, path: &str) -> Option<String> {
        let output = self.curl(machine, &[&format!("http://{}{path}", host_port(address, 80))]);
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs curl on a machine.
    pub fn curl(&self, machine: &str, args: &[&str]) -> Output {
        self.lab.command(machine, "curl").args(["-s", "-g", "-m", "5"]).args(args).output().unwrap()
    }
}
