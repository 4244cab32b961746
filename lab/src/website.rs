// SPDX-License-Identifier: Apache-2.0
//! A provider with a web site in a lab: nginx with the agent beside it, two nodes on the way, and clients behind a slow link.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use netserv_api::AgentStatus;
use netserv_model::request::ModuleStatus;

use crate::agent;
use crate::netns::Lab;
use crate::node::FILES_ALLOWED;
use crate::node::LabUser;
use crate::patience::grown;
use crate::topology::Topology;

/// `sender – n1 – r – n2 – receiver`: the site at the one end, clients at the other.
pub struct Website {
    /// The network.
    pub lab: Lab,
    /// Who the provider is for the nodes.
    pub user: LabUser,
}

/// How long a packet is on the slow link.
const SLOW_DELAY: Duration = Duration::from_millis(5);
/// How long curl waits, on a machine that is not busy.
const CURL_WAIT: Duration = Duration::from_secs(20);

impl Website {
    /// Builds the network with the daemons of nodes and of the provider. The last link carries so much; 0 is all there is.
    ///
    /// # Errors
    /// A daemon does not start.
    pub fn up(driver: Option<&str>, kbit_per_s: u32) -> Result<Website> {
        let mut topology = Topology::two_nodes();
        if kbit_per_s > 0 {
            topology.links[3].impairment.kbit_per_s = kbit_per_s;
            topology.links[3].impairment.delay = SLOW_DELAY;
        }
        let mut lab = Lab::up(topology)?;
        if let Some(driver) = driver {
            lab.use_driver(driver);
        }
        let own = [format!("{}/32", lab.v4("sender")), format!("{}/128", lab.v6("sender"))];
        let mut user = lab.user("www", &[&own[0], &own[1]])?;
        user.extra = "connect = [\"tcp\"]\nlisten = [\"tcp port 80\"]\ncontainer.memory-bytes = 268435456\n".to_owned();
        for (number, node) in [(1, "n1"), (2, "n2")] {
            let extra = format!(
                "osgi.enabled = false\n{FILES_ALLOWED}[network]\nprefixes = [\"10.99.{number}.0/29\", \"fd99:{number}::/125\"]\n"
            );
            lab.start_netservd(node, "node", std::slice::from_ref(&user), &extra)?;
        }
        lab.start_netservd("sender", "host", &[], "")?;
        Ok(Website { lab, user })
    }

    /// Starts nginx, whose log goes to the agent, and the agent with one rule: this module for whoever comes twice. `more` is what the
    /// rule has beyond.
    ///
    /// # Errors
    /// The module is not built, or a program does not start.
    pub fn start(&mut self, module: &str, more: &str) -> Result<()> {
        self.start_by_log((module, "intercept"), more)
    }

    /// The same for a module that sees packets, and takes no connections over.
    ///
    /// # Errors
    /// As of [`Website::start`].
    pub fn start_watching(&mut self, module: &str) -> Result<()> {
        self.start_by_log((module, "filters"), "")
    }

    fn start_by_log(&mut self, module: (&str, &str), more: &str) -> Result<()> {
        let socket = self.path("access.sock");
        let log = format!("[[log]]\nname = \"access\"\nsocket = {socket:?}\npattern = \"nginx: {{client}} - \"\n");
        self.start_agent(module, (&log, "log = \"access\""), 80, more)?;
        self.lab.serve_http_with_log("sender", &format!("syslog:server=unix:{},nohostname", socket.display()))
    }

    /// Starts nginx, and the agent with one rule: this module for whoever has two connections to a port of the provider's machine, which the
    /// module is told as `servers`.
    ///
    /// # Errors
    /// The module is not built, or a program does not start.
    pub fn start_by_flows(&mut self, module: &str, port: u16) -> Result<()> {
        let flows =
            format!("[[flows]]\nname = \"listeners\"\nprotocol = \"tcp\"\nlocal-port = {port}\nevery-s = 0.25\n");
        let (v4, v6) = (self.lab.v4("sender"), self.lab.v6("sender"));
        let more = format!("properties = {{ servers = \"{v4}:{port} [{v6}]:{port}\" }}\n");
        self.start_agent((module, "intercept"), (&flows, "flows = \"listeners\""), port, &more)?;
        self.lab.serve_http("sender")
    }

    fn start_agent(
        &mut self,
        (module, what): (&str, &str),
        (sensor, by): (&str, &str),
        port: u16,
        more: &str,
    ) -> Result<()> {
        let package = self.lab.package(module, &self.user)?;
        let url = self.lab.publish("sender", &package)?;
        let (v4, v6) = (self.lab.v4("sender"), self.lab.v6("sender"));
        let text = format!(
            "{sensor}[[rule]]\nname = \"site\"\n{by}\ncount = 2\nwindow-s = 30\nmodule = {:?}\nurl = {url:?}\n\
             digest = \"{}\"\n{what} = [\"tcp dst {v4}/32 port {port}\", \"tcp dst {v6}/128 port {port}\"]\nlease-s = 10\n\
             idle-s = 30\n{more}",
            package.module, package.digest,
        );
        agent::start(&mut self.lab, &self.user, &text)
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
        agent::switch(&self.lab, "site", on)
    }

    /// Has curl fetch a file at the receiver, as a browser does that takes all encodings. Returns how long it took, and how many bytes came.
    ///
    /// # Errors
    /// It does not get it.
    pub fn fetch(&self, name: &str) -> Result<(Duration, u64)> {
        let url = format!("http://{}/{name}", self.lab.v4("sender"));
        let told = "%{http_code} %{time_total} %{size_download}";
        let curl_s = grown(CURL_WAIT).as_secs().to_string();
        let args = ["-s", "-m", &curl_s, "-H", "accept-encoding: gzip, br, zstd", "-o", "/dev/null", "-w", told, &url];
        let output = self.lab.command("receiver", "curl").args(args).output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let words: Vec<&str> = text.split(' ').collect();
        let [code, seconds, bytes] = words[..] else { anyhow::bail!("curl says {text:?}") };
        ensure!(code == "200", "{name}: {code}");
        Ok((Duration::from_secs_f64(seconds.parse()?), bytes.parse().context("no number of bytes")?))
    }

    /// Returns the provider's module on a node; nothing if it is not there.
    pub fn module(&self, node: &str) -> Option<ModuleStatus> {
        self.lab.modules(node).ok()?.modules.into_iter().next()
    }

    /// Returns a file of the lab's.
    pub fn path(&self, name: &str) -> PathBuf {
        self.lab.dir().join(name)
    }
}

/// Returns a page that is like one of the web: words and tags, which come again and again and not in order.
pub fn page(length: usize) -> Vec<u8> {
    const WORDS: [&str; 16] = [
        "<p>",
        "</p>\n",
        "<a href=\"/",
        "\">",
        "</a> ",
        "network ",
        "router ",
        "module ",
        "and ",
        "the ",
        "of ",
        "signal ",
        "class=\"item\" ",
        "<div ",
        ">",
        "packet ",
    ];
    let mut text = b"<!doctype html>\n".to_vec();
    for byte in noise(length) {
        text.extend_from_slice(WORDS[usize::from(byte & 15)].as_bytes());
        if byte > 240 {
            text.extend_from_slice(byte.to_string().as_bytes());
        }
        if text.len() >= length {
            break;
        }
    }
    text.truncate(length);
    text
}

/// Returns bytes without a pattern, the same each time.
pub fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[0]
    };
    std::iter::repeat_with(next).take(length).collect()
}
