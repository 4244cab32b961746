// SPDX-License-Identifier: Apache-2.0
//! A SIP provider in a lab: Kamailio with the agent beside it, two nodes on the way, and phones behind them.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use netserv_api::AgentStatus;

use crate::netns::{Lab, program};
use crate::node::FILES_ALLOWED;
use crate::node::{LabUser, workspace};
use crate::patience::grown;
use crate::phones::Told;
use crate::topology::{Impairment, Kind, Link, Machine, Topology};
use crate::voip::{documented, rpc};
use crate::{agent, callers};

/// `sender – n1 – r – n2 – home – receiver`: the provider at the one end, phones at the other, and a host `caller` at r.
pub struct SipProvider {
    /// The network.
    pub lab: Lab,
    /// Who the provider is for the nodes.
    pub user: LabUser,
}

/// What phones a run has.
#[derive(Clone, Copy, Debug)]
pub struct Phones {
    /// How many.
    pub count: usize,
    /// The number of the first one's user.
    pub first: usize,
    /// Milliseconds between two keep-alives of each.
    pub every_ms: u64,
    /// For how long they send some.
    pub seconds: u64,
    /// How: words with commas between, or nothing for all.
    pub forms: &'static str,
    /// Whether by TCP.
    pub tcp: bool,
}

/// Where Kamailio's log lines go.
const LOG: &str = "127.0.0.1:5514";

impl SipProvider {
    /// Builds the network with the daemons of nodes and of the provider, without a SIP server and an agent. Phones are behind a router or
    /// a NAT. Nodes take their packets by that driver, or by the one that they choose.
    ///
    /// # Errors
    /// A daemon does not start.
    pub fn up(driver: Option<&str>, home: Kind) -> Result<SipProvider> {
        let mut topology = Topology::chain(&[
            ("sender", Kind::Host),
            ("n1", Kind::Node),
            ("r", Kind::Router),
            ("n2", Kind::Node),
            ("home", home),
            ("receiver", Kind::Host),
        ]);
        topology.machines.push(Machine { name: "caller".to_owned(), kind: Kind::Host });
        topology.links.push(Link { a: "caller".to_owned(), b: "r".to_owned(), impairment: Impairment::default() });
        let mut lab = Lab::up(topology)?;
        if let Some(driver) = driver {
            lab.use_driver(driver);
        }
        let mut user =
            lab.user("voip", &[&format!("{}/32", lab.v4("sender")), &format!("{}/128", lab.v6("sender"))])?;
        // Interception needs a network of the container's.
        user.extra = "connect = [\"tcp port 5060\"]\n".to_owned();
        for (name, prefixes) in
            [("n1", "\"10.99.1.0/29\", \"fd99:1::/125\""), ("n2", "\"10.99.2.0/29\", \"fd99:2::/125\"")]
        {
            let extra = format!("osgi.enabled = false\n{FILES_ALLOWED}[network]\nprefixes = [{prefixes}]\n");
            lab.start_netservd(name, "node", std::slice::from_ref(&user), &extra)?;
        }
        lab.start_netservd("sender", "host", &[], "")?;
        lab.serve_http("sender")?;
        Ok(SipProvider { lab, user })
    }

    /// Starts Kamailio on the provider's machine; if it is slow, each call takes 5 ms of its only process.
    ///
    /// # Errors
    /// It does not start.
    pub fn start_server(&mut self, slow: bool) -> Result<()> {
        self.start_server_with(if slow { &["SLOW=1"] } else { &[] })
    }

    /// Starts Kamailio with what lab/voip/edge.cfg may have defined.
    ///
    /// # Errors
    /// It does not start.
    pub fn start_server_with(&mut self, defined: &[&str]) -> Result<()> {
        let (v4, v6) = (self.lab.v4("sender"), self.lab.v6("sender"));
        let mut command = self.lab.command("sender", "/usr/sbin/kamailio");
        command.arg("-f").arg(workspace().join("lab/voip/edge.cfg")).args(["-DD", "-m", "64", "-M", "8"]);
        command.args([
            "-A",
            &format!("AGENT=\"{LOG}\""),
            "-A",
            &format!("RPC=\"{}\"", self.path("rpc.sock").display()),
        ]);
        command.args(defined.iter().flat_map(|defined| ["-A", defined]));
        for listen in
            [format!("udp:{v4}:5060"), format!("udp:[{v6}]:5060"), format!("tcp:{v4}:5060"), format!("tcp:[{v6}]:5060")]
        {
            command.args(["-l", &listen]);
        }
        command.arg("-Y").arg(self.lab.dir()).arg("-P").arg(self.path("kamailio.pid"));
        self.lab.start("sender", "kamailio", &mut command)?;
        self.lab.wait_for_start(("sender", "kamailio"), "answer", |lab| statistic(lab, "rcv_requests").is_ok())
    }

    /// Returns a statistic of Kamailio's core, such as `rcv_requests_notify`.
    ///
    /// # Errors
    /// It does not answer.
    pub fn statistic(&self, name: &str) -> Result<u64> {
        statistic(&self.lab, name)
    }

    /// Has both nodes have sip-edge with these properties, without an agent.
    ///
    /// # Errors
    /// The module is not built, or a node refuses it.
    pub fn install_edge(&self, properties: &[&str]) -> Result<()> {
        let package = self.lab.package("sip-edge", &self.user)?;
        let url = self.lab.publish("sender", &package)?;
        let (v4, v6) = (self.lab.v4("sender"), self.lab.v6("sender"));
        let mut args: Vec<String> = vec!["setup".to_owned(), package.path.display().to_string()];
        let mut option = |name: &str, value: String| args.extend([name.to_owned(), value]);
        for (name, value) in
            [("--url", url), ("--user", self.user.name.clone()), ("--key", self.user.key.display().to_string())]
        {
            option(name, value);
        }
        option("--to", self.lab.v4("receiver").to_string());
        option("--property", format!("server={v4} {v6}"));
        properties.iter().for_each(|property| option("--property", (*property).to_owned()));
        for own in [format!("{v4}/32"), format!("{v6}/128")] {
            option("--filter", format!("udp dst {own} port 5060"));
            option("--filter", format!("udp src {own} sport 5060"));
            option("--intercept", format!("tcp dst {own} port 5060"));
        }
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let result = self.lab.request("sender", &args)?;
        let is_there = result.nodes.len() == 2 && result.nodes.iter().all(|node| node.outcome.is_ok());
        ensure!(is_there, "no sip-edge: {result:?}");
        Ok(())
    }

    /// Starts the agent with the first configuration of docs/apps/sip.md: the module sip-edge for whoever keeps alive or calls.
    ///
    /// # Errors
    /// The module is not built, or the agent does not start.
    pub fn start_agent(&mut self) -> Result<()> {
        self.start_agent_with("", 30)
    }

    /// Starts it with further properties of the module, as TOML after a comma, and another idle time.
    ///
    /// # Errors
    /// The module is not built, or the agent does not start.
    pub fn start_agent_with(&mut self, properties: &str, idle_s: u64) -> Result<()> {
        self.start_agent_by(&[
            ("idle-s = 60", &format!("idle-s = {idle_s}")),
            (" }\nserver = \"done\"", &format!("{properties} }}\nserver = \"done\"")),
        ])
    }

    /// Starts it with other words in the place of some of the page's.
    ///
    /// # Errors
    /// The module is not built, or the agent does not start.
    pub fn start_agent_by(&mut self, others: &[(&str, &str)]) -> Result<()> {
        let package = self.lab.package("sip-edge", &self.user)?;
        let url = self.lab.publish("sender", &package)?;
        let block = documented("[[log]]\nname = \"kamailio\"")?;
        let own = [
            ("192.0.2.7", self.lab.v4("sender").to_string()),
            ("2001:db8::7", self.lab.v6("sender").to_string()),
            ("127.0.0.1:5514", LOG.to_owned()),
            ("/run/kamailio/rpc.sock", self.path("rpc.sock").display().to_string()),
            ("example.org/sip-edge@1.0.0", package.module.to_string()),
            ("https://www.example.org/sip-edge.nsm", url),
            ("sha256:…", package.digest.to_string()),
        ];
        let text = own.iter().fold(block, |text, (page, lab)| text.replace(page, lab));
        agent::start(&mut self.lab, &self.user, &others.iter().fold(text, |text, (page, own)| text.replace(page, own)))
    }

    /// Returns how things are for the agent.
    ///
    /// # Errors
    /// It does not answer.
    pub fn agent(&self) -> Result<AgentStatus> {
        agent::status(&self.lab)
    }

    /// Switches the rule.
    ///
    /// # Errors
    /// The agent does not answer.
    pub fn switch(&self, on: bool) -> Result<()> {
        agent::switch(&self.lab, "sip", on)
    }

    /// Returns the server's address of a version of IP, with its port.
    pub fn server(&self, v6: bool) -> SocketAddr {
        let ip = if v6 { IpAddr::from(self.lab.v6("sender")) } else { self.lab.v4("sender").into() };
        SocketAddr::new(ip, 5060)
    }

    /// Starts phones at the receiver.
    ///
    /// # Errors
    /// The program is not there.
    pub fn start_phones(&self, v6: bool, phones: Phones) -> Result<Child> {
        Ok(self.phones_command(v6, phones)?.stdout(Stdio::piped()).spawn()?)
    }

    /// Starts phones as [`SipProvider::start_phones`], which go on beyond their time until [`told`] is called.
    ///
    /// # Errors
    /// The program is not there.
    pub fn keep_phones(&self, v6: bool, phones: Phones) -> Result<Child> {
        let mut command = self.phones_command(v6, phones)?;
        command.arg("--until-input-ends");
        Ok(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?)
    }

    fn phones_command(&self, v6: bool, phones: Phones) -> Result<Command> {
        let local = if v6 { IpAddr::from(self.lab.v6("receiver")) } else { self.lab.v4("receiver").into() };
        let mut command = self.lab.command("receiver", program("netserv-lab")?);
        command.args(["phones", "--server", &self.server(v6).to_string(), "--local", &local.to_string()]);
        command.args([
            "--phones",
            &phones.count.to_string(),
            "--first",
            &phones.first.to_string(),
            "--every-ms",
            &phones.every_ms.to_string(),
        ]);
        command.args(["--seconds", &phones.seconds.to_string()]);
        if phones.tcp {
            command.arg("--tcp");
        }
        if !phones.forms.is_empty() {
            command.args(["--forms", phones.forms]);
        }
        Ok(command)
    }

    /// Runs phones at the receiver.
    ///
    /// # Errors
    /// They cannot be run.
    pub fn phones(&self, v6: bool, phones: Phones) -> Result<Told> {
        told(self.start_phones(v6, phones)?)
    }

    /// Has callers at the receiver send so many calls a second each, over IPv6 or IPv4, for some seconds; returns what became of them.
    /// Those over IPv4 have addresses of their own, of those over IPv6 there can be one.
    ///
    /// # Errors
    /// They cannot be run.
    pub fn callers(&self, rates: &[(bool, u32)], seconds: u64) -> Result<Vec<callers::Told>> {
        let output = self.callers_command(rates, seconds)?.stdout(Stdio::piped()).spawn()?.wait_with_output()?;
        ensure!(output.status.success(), "the callers failed");
        serde_json::from_slice(&output.stdout).context("the callers say nothing")
    }

    /// The same, but they end sooner, as soon as what became of their calls so far is as it should be.
    ///
    /// # Errors
    /// They cannot be run.
    pub fn callers_until(
        &self,
        rates: &[(bool, u32)],
        seconds: u64,
        is_enough: impl Fn(&[callers::Told]) -> bool,
    ) -> Result<Vec<callers::Told>> {
        let mut command = self.callers_command(rates, seconds)?;
        let mut callers = command.arg("--follow").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut input = callers.stdin.take();
        let mut told = Vec::new();
        for line in BufReader::new(callers.stdout.take().context("they have an output")?).lines() {
            told = serde_json::from_str(&line?).context("the callers say something else")?;
            if is_enough(&told) {
                drop(input.take());
            }
        }
        ensure!(callers.wait()?.success() && !told.is_empty(), "the callers failed");
        Ok(told)
    }

    fn callers_command(&self, rates: &[(bool, u32)], seconds: u64) -> Result<Command> {
        let mut command = self.lab.command("receiver", program("netserv-lab")?);
        command.arg("callers");
        for v6 in [false, true] {
            command.args(["--server", &self.server(v6).to_string()]);
        }
        command.args(["--seconds", &seconds.to_string()]);
        for (number, (v6, rate)) in rates.iter().enumerate() {
            let [a, b, c, d] = self.lab.v4("receiver").octets();
            let address = Ipv4Addr::from([a, b, c, d + 10 * u8::try_from(number)?]);
            if number > 0 && !v6 {
                // It is there already if callers were before.
                let add = format!(
                    "ip addr add {address}/32 dev $(ip -o -4 addr show to {} | cut -d' ' -f2)",
                    self.lab.v4("receiver")
                );
                self.lab.command("receiver", "bash").args(["-c", &add]).stderr(Stdio::null()).status()?;
            }
            let source = if *v6 { IpAddr::from(self.lab.v6("receiver")) } else { address.into() };
            command.arg(format!("{source}={rate}"));
        }
        Ok(command)
    }

    /// Has the host outside call each of these phones once, so many a second; returns how many took their call.
    ///
    /// # Errors
    /// It cannot.
    pub fn call_phones(&self, v6: bool, phones: Phones, rate: usize) -> Result<usize> {
        let local = if v6 { IpAddr::from(self.lab.v6("caller")) } else { self.lab.v4("caller").into() };
        let mut command = self.lab.command("caller", program("netserv-lab")?);
        command.args(["callers", "--server", &self.server(v6).to_string()]);
        command.args(["--phones", &phones.count.to_string(), "--first", &phones.first.to_string()]);
        let time = grown(Duration::from_secs(u64::try_from(phones.count.div_ceil(rate))? + 1));
        command.args(["--seconds", &time.as_secs().to_string(), &format!("{local}={rate}")]);
        let output = command.stdout(Stdio::piped()).spawn()?.wait_with_output()?;
        ensure!(output.status.success(), "the caller failed");
        let told: Vec<callers::Told> = serde_json::from_slice(&output.stdout)?;
        Ok(told.iter().map(|told| told.taken).sum::<u32>() as usize)
    }

    /// Returns the counters of the module on a node; nothing if it is not there.
    pub fn counters(&self, node: &str) -> Option<BTreeMap<String, u64>> {
        let modules = self.lab.modules(node).ok()?.modules;
        let module = modules.into_iter().find(|status| status.module.name.as_str().ends_with("/sip-edge"))?;
        Some(module.counters)
    }

    /// Returns one of them.
    pub fn counter(&self, node: &str, name: &str) -> Option<u64> {
        self.counters(node)?.get(name).copied()
    }

    /// Returns a file of the lab's.
    pub fn path(&self, name: &str) -> PathBuf {
        self.lab.dir().join(name)
    }
}

/// Returns a statistic of Kamailio's core.
fn statistic(lab: &Lab, name: &str) -> Result<u64> {
    let text = rpc(lab, "stats.get_statistics", &format!("\"{name}\""))?;
    let number = text.split(" = ").nth(1).and_then(|rest| rest.split('"').next()?.trim().parse().ok());
    number.with_context(|| format!("no statistic {name}: {text}"))
}

/// Waits for phones; those of [`SipProvider::keep_phones`] end once they have had their time.
///
/// # Errors
/// They could not do what they were to.
pub fn told(phones: Child) -> Result<Told> {
    let output = phones.wait_with_output()?;
    ensure!(output.status.success(), "the phones failed");
    serde_json::from_slice(&output.stdout).context("the phones say nothing")
}
