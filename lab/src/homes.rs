// SPDX-License-Identifier: Apache-2.0
//! A SIP provider whose phones are in two homes, each behind a NAT. Kamailio and the agent have the configuration of docs/apps/sip.md.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use netserv_api::AgentStatus;
use netserv_model::Flavour;

use crate::agent;
use crate::baresip::password;
use crate::heard::Way;
use crate::netns::{Lab, START_WAIT};
use crate::node::FILES_ALLOWED;
use crate::node::{LabPackage, LabUser, Part, module_parts, project};
use crate::patience::{grown, wait_for};
use crate::topology::{Impairment, Interface, Kind, Link, Machine, Topology};
use crate::voip::documented;

/// `sender – r – n1 – homea – alice`, and `r – n2 – homeb – bob`: the provider, a plain router, a node before each NAT, and a phone behind it.
pub struct Homes {
    /// The network.
    pub lab: Lab,
    /// Who the provider is for the nodes.
    pub user: LabUser,
}

/// What one phone sent, and what the other one made of it.
#[derive(Clone, Copy, Debug)]
pub struct Heard {
    /// The packets.
    pub way: Way,
    /// The pitch that the other phone heard, in hertz; 0 if nothing.
    pub hz: f64,
    /// The pitch that was played.
    pub played_hz: u32,
}

/// The phones, each with the pitch that it plays.
pub const PHONES: [(&str, u32); 2] = [("alice", 440), ("bob", 1000)];
/// Users whose phones are scripts, each with its machine and its port.
pub const CALLER: (&str, &str, u16) = ("carol", "alice", 5061);
/// Who is called by it.
pub const CALLEE: (&str, &str, u16) = ("dave", "bob", 5062);
/// The nodes before them, each with its rule and the last part of its relay's addresses.
const NODES: [(&str, &str, &str); 2] = [("n1", "media-1", "9"), ("n2", "media-2", "10")];
/// The packages of the rules: the sample module, and the name that it has there.
const PACKAGES: [(&str, &str); 3] =
    [("media-relay", "media-relay"), ("media-relay", "media-relay-2"), ("net-monitor-live", "net-monitor")];
/// The realm of the phones' passwords in the documentation.
const REALM: &str = "voip.example.org";
/// What `token` is in the documentation.
pub const TOKEN: &str = "choose-one";
/// How long tcpdump may take to write what it has, on a machine that is not busy.
const NOTE_WAIT: Duration = Duration::from_millis(500);
/// How much the pitch may be off, of a hundred: the sound begins and ends with some silence.
const OFF_PERCENT: f64 = 5.0;

impl Homes {
    /// Builds the network with the daemons of nodes and of the provider, and routes for floating addresses. Nodes take their packets by
    /// that driver, or by the one that they choose.
    ///
    /// # Errors
    /// A daemon does not start.
    pub fn up(driver: Option<&str>) -> Result<Homes> {
        Homes::up_with(driver, "")
    }

    /// The same with further lines for the configuration of the node before the first phone.
    ///
    /// # Errors
    /// As of [`Homes::up`].
    pub fn up_with(driver: Option<&str>, settings: &str) -> Result<Homes> {
        let mut lab = Lab::up(topology())?;
        if let Some(driver) = driver {
            lab.use_driver(driver);
        }
        let own = [format!("{}/32", lab.v4("sender")), format!("{}/128", lab.v6("sender"))];
        let mut user = lab.user("voip", &[&own[0], &own[1], "10.99.9.0/24", "fd99:9::/64"])?;
        user.extra = "listen = [\"udp port 2223\", \"tcp port 80\"]\n".to_owned();
        for (machine, neighbours) in [("r", &["n1", "n2"][..]), ("n1", &["r"]), ("n2", &["r"])] {
            let neighbours: Vec<(&str, u16)> = neighbours.iter().map(|name| (*name, 10)).collect();
            lab.start_bird(machine, &neighbours)?;
        }
        for (number, node) in [(1, "n1"), (2, "n2")] {
            let prefixes = format!("\"10.98.{number}.0/29\", \"fd98:{number}::/125\"");
            let settings = if node == NODES[0].0 { settings } else { "" };
            let extra =
                format!("osgi.enabled = false\n{settings}\n{FILES_ALLOWED}[network]\nprefixes = [{prefixes}]\n");
            lab.start_netservd(node, "node", std::slice::from_ref(&user), &extra)?;
        }
        lab.start_netservd("sender", "host", &[], "")?;
        lab.serve_http("sender")?;
        let homes = Homes { lab, user };
        homes.add_default_routes()?;
        for (phone, _) in PHONES {
            let server = homes.server(false).to_string();
            let reaches = || homes.lab.run(phone, "ping", &["-c", "1", "-W", "1", &server]).is_ok();
            wait_for(&format!("{phone} to reach the provider"), START_WAIT, reaches)?;
        }
        Ok(homes)
    }

    /// Has all that do not run bird send what they know no way to toward those that do, as homes do.
    fn add_default_routes(&self) -> Result<()> {
        let towards = [("sender", "r"), ("homea", "n1"), ("alice", "homea"), ("homeb", "n2"), ("bob", "homeb")];
        for (machine, next) in towards {
            let ends = self.lab.topology().interfaces_of(next);
            let end = ends.into_iter().find(|end| end.name == format!("to-{machine}"));
            let end = end.with_context(|| format!("{next} has no link to {machine}"))?;
            for via in [IpAddr::from(end.v4), end.v6.into()] {
                self.lab.run(machine, "ip", &["route", "add", "default", "via", &via.to_string()])?;
            }
        }
        // The operator's part: prefixes of containers are routed to the node.
        let links = [("n1", 1), ("n2", 4)].map(|(node, link)| (node, self.lab.topology().interfaces(link)));
        for (number, (node, (_, node_end))) in (1..).zip(&links) {
            let prefixes = [format!("10.98.{number}.0/29"), format!("fd98:{number}::/125")];
            for (version, prefix) in prefixes.iter().enumerate() {
                let via = |end: &Interface| [IpAddr::from(end.v4), end.v6.into()][version].to_string();
                self.lab.run("r", "ip", &["route", "add", prefix, "via", &via(node_end)])?;
                for (other, (router_end, _)) in links.iter().filter(|(other, _)| other != node) {
                    self.lab.run(other, "ip", &["route", "add", prefix, "via", &via(router_end)])?;
                }
            }
        }
        Ok(())
    }

    /// Starts Kamailio.
    ///
    /// # Errors
    /// It does not start.
    pub fn start_server(&mut self) -> Result<()> {
        let text = self.documented("# kamailio.cfg\n")?;
        self.start_kamailio(&text)
    }

    /// Starts Kamailio, and on the node before the first phone an rtpengine in user space, by which calls of the second phone go. Returns
    /// its address.
    ///
    /// # Errors
    /// One does not start.
    pub fn start_server_beside_rtpengine(&mut self) -> Result<IpAddr> {
        let node = IpAddr::from(self.lab.v4("n1"));
        self.lab.start_rtpengine("n1", node, 2223, 40_000..=40_999)?;
        let second = format!("udp:{}:2223", self.relay(1, false));
        let text = self.documented("# kamailio.cfg\n")?;
        ensure!(text.contains(&second), "the documentation has no relay at {second}");
        self.start_kamailio(&text.replace(&second, &format!("udp:{node}:2223")))?;
        Ok(node)
    }

    /// Starts Kamailio with the relays that the agent's tables have, which are there already.
    ///
    /// # Errors
    /// It does not start.
    pub fn start_server_by_tables(&mut self) -> Result<()> {
        let (text, modules) = (self.documented("# kamailio.cfg\n")?, self.documented("# relays.cfg\n")?);
        let (modules, routes) = modules.split_once("\nroute[").context("the documentation has routes")?;
        let put = |line: &str| match line {
            "loadmodule \"rtpengine.so\"" => modules.to_owned(),
            _ if line.contains("\"rtpengine_sock\"") => String::new(),
            _ => format!("{line}\n"),
        };
        let text: String = text.lines().map(put).collect();
        let (before, after) = text.split_once("request_route {").context("the documentation has a route")?;
        // The routes of the same names stand between those that call them.
        let (first, rest) = after.split_once("\n# The region").context("the documentation has regions")?;
        let (_, rest) = rest.split_once("\nroute[OFFER]").context("the documentation has offers")?;
        let text = format!("{before}request_route {{{first}\nroute[{routes}\nroute[OFFER]{rest}");
        self.start_kamailio(&text)
    }

    fn start_kamailio(&mut self, text: &str) -> Result<()> {
        let users = self.path("users");
        std::fs::create_dir_all(&users)?;
        let names = PHONES.iter().map(|(phone, _)| *phone).chain([CALLER.0, CALLEE.0]);
        let rows = names.map(|name| Ok(format!("{name}:{REALM}:{}\n", self.ha1(name)?)));
        let rows = rows.collect::<Result<String>>()?;
        std::fs::write(users.join("subscriber"), format!("username(string) domain(string) ha1(string)\n{rows}"))?;
        let config = self.path("kamailio.cfg");
        std::fs::write(&config, format!("#!KAMAILIO\n{text}"))?;
        let mut command = self.lab.command("sender", "/usr/sbin/kamailio");
        command.arg("-f").arg(config).args(["-DD", "-m", "64", "-M", "8", "-n", "2"]);
        command.arg("-Y").arg(self.lab.dir()).arg("-P").arg(self.path("kamailio.pid"));
        self.lab.start("sender", "kamailio", &mut command)?;
        let listens = |lab: &Lab| lab.sockets_at("sender", "udp", 5060) >= 2;
        self.lab.wait_for_start(("sender", "kamailio"), "listen", listens)
    }

    /// Returns what the page's step says of a phone's password.
    fn ha1(&self, phone: &str) -> Result<String> {
        let text = format!("printf %s '{phone}:{REALM}:{}' | md5sum", password(phone));
        let output = self.lab.command("sender", "sh").args(["-c", &text]).output()?;
        let sum = String::from_utf8(output.stdout)?;
        Ok(sum.split(' ').next().context("md5sum says nothing")?.to_owned())
    }

    /// Starts the agent with the rules `media-1`, `media-2` and `watch`.
    ///
    /// # Errors
    /// A module is not built, or the agent does not start.
    pub fn start_agent(&mut self) -> Result<()> {
        let text = self.documented("# agent.toml\n")?;
        self.start_agent_with(&text)
    }

    /// Starts the agent with the rule `media`, and tables for Kamailio.
    ///
    /// # Errors
    /// As of [`Homes::start_agent`].
    pub fn start_agent_by_tables(&mut self) -> Result<()> {
        let text = self.documented("# relays.toml\n")?;
        self.start_agent_with(&text)?;
        let table = self.path("kamailio/address");
        self.lab.wait_for_start(("sender", "agent"), "write its tables", |_| table.exists())
    }

    fn start_agent_with(&mut self, text: &str) -> Result<()> {
        let mut published = BTreeMap::new();
        for (module, name) in PACKAGES {
            let package = self.package(module, name)?;
            let url = self.lab.publish("sender", &package)?;
            published.insert(package.module, (url, package.digest));
        }
        let (mut rules, mut package) = (String::new(), None);
        // What stands before tables is the lab's own.
        for line in text.lines().skip_while(|line| !line.starts_with("[[")) {
            if let Some(module) = line.strip_prefix("module = ") {
                let name = module.trim_matches('"');
                package = Some(published.get(name).with_context(|| format!("the documentation has {name}"))?);
            }
            let of_package = package.and_then(|(url, digest)| match line.split(' ').next()? {
                "url" => Some(format!("url = {url:?}")),
                "digest" => Some(format!("digest = {digest:?}")),
                _ => None,
            });
            rules += of_package.as_deref().unwrap_or(line);
            rules.push('\n');
        }
        agent::start(&mut self.lab, &self.user, &rules)
    }

    /// Packs a sample module under another name.
    fn package(&self, module: &str, name: &str) -> Result<LabPackage> {
        let project = std::fs::read_to_string(project(module)?)?;
        // Its tests are beside it.
        let project = project.split_once("[[test]]").map_or(project.as_str(), |(before, _)| before);
        let renamed = project.lines().map(|line| match line.starts_with("name = ") {
            true => format!("name = \"example.org/{name}\"\n"),
            false => format!("{line}\n"),
        });
        let (file, into) = (self.path(&format!("{name}.toml")), self.path(&format!("{name}.nsm")));
        std::fs::write(&file, renamed.collect::<String>())?;
        let parts: Vec<(Part, PathBuf)> = module_parts(module, Flavour::Wasm)?;
        self.lab.package_of(&file, &parts, &into, &self.user)
    }

    /// Returns the block of code of docs/apps/sip.md that begins with a line, with the lab's addresses.
    fn documented(&self, first: &str) -> Result<String> {
        let block = documented(first)?;
        let lab = [
            ("192.0.2.7", self.server(false).to_string()),
            ("2001:db8::7", self.server(true).to_string()),
            ("203.0.113.", "10.99.9.".to_owned()),
            ("2001:db8:113::", "fd99:9::".to_owned()),
            ("198.51.100.0/24", "10.6.0.0/24".to_owned()),
            ("2001:db8:2::/48", "fd00:6::/64".to_owned()),
            ("/etc/kamailio/users", self.path("users").display().to_string()),
            ("/run/netserv/kamailio", self.path("kamailio").display().to_string()),
            ("/run/kamailio/rpc.sock", self.path("rpc.sock").display().to_string()),
        ];
        Ok(lab.iter().fold(block, |block, (documented, own)| block.replace(documented, own)))
    }

    /// Has both phones register over a version of IP, in place of what they were before.
    ///
    /// # Errors
    /// They cannot.
    pub fn start_phones(&mut self, v6: bool) -> Result<()> {
        self.start_phones_over([v6, v6])
    }

    /// The same over a version of IP each.
    ///
    /// # Errors
    /// They cannot.
    pub fn start_phones_over(&mut self, v6: [bool; 2]) -> Result<()> {
        for ((phone, hz), v6) in PHONES.into_iter().zip(v6) {
            let server = self.server(v6);
            if self.lab.pid(phone, "baresip").is_some() {
                self.lab.stop(phone, "baresip")?;
            } else {
                self.lab.note_rtp(phone)?;
            }
            self.lab.start_baresip(phone, server, hz)?;
        }
        Ok(())
    }

    /// Waits until each rule has its module on the node before its phones, and Kamailio asks the relays again.
    ///
    /// # Errors
    /// One is not there in that time, which grows with the machine's load.
    pub fn wait_for_relays(&self, time: Duration) -> Result<()> {
        let runs = |rule: &str, node: &str| {
            let status = self.agent();
            let is_it = |status: AgentStatus| {
                let mut of_rule = status.deployments.iter().filter(|one| one.rule == rule && one.health == "running");
                of_rule.any(|one| one.nodes.iter().any(|has| has.node.as_str() == node))
            };
            status.is_ok_and(is_it)
        };
        let wanted = NODES.iter().map(|(node, rule, _)| (*rule, *node)).chain([("watch", "n1")]);
        for (rule, node) in wanted {
            let waited = wait_for(&format!("the module of rule {rule} to run on {node}"), time, || runs(rule, node));
            waited.map_err(|gave_up| gave_up.seeing(self.lab.log("sender", "agent")))?;
        }
        for caller in [0, 1] {
            let ping =
                format!("printf '1 d7:command4:pinge' | timeout 1 nc -u -w 1 {} 2223", self.relay(caller, false));
            let answers = || {
                let output = self.lab.command("sender", "sh").args(["-c", &ping]).output();
                output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("pong"))
            };
            wait_for(&format!("the relay at {} to answer", self.relay(caller, false)), START_WAIT, answers)?;
        }
        // As long as Kamailio leaves one alone that did not answer.
        std::thread::sleep(Duration::from_secs(3));
        Ok(())
    }

    /// Has one phone call the other one for so long over a version of IP; returns what each sent, beginning with who called.
    ///
    /// # Errors
    /// The call is not taken.
    pub fn call(&self, caller: usize, v6: bool, time: Duration) -> Result<[Heard; 2]> {
        self.call_by(caller, v6, time, &[self.relay(caller, v6)])
    }

    /// The same without a relay, before any other call.
    ///
    /// # Errors
    /// As of [`Homes::call`].
    pub fn call_without_relay(&self, caller: usize, time: Duration) -> Result<[Heard; 2]> {
        self.call_by(caller, false, time, &[])
    }

    /// The same by the relay at an address.
    ///
    /// # Errors
    /// As of [`Homes::call`].
    pub fn call_at(&self, caller: usize, v6: bool, time: Duration, relay: IpAddr) -> Result<[Heard; 2]> {
        self.call_by(caller, v6, time, &[relay])
    }

    /// The same of phones that [`Homes::start_phones_over`] started.
    ///
    /// # Errors
    /// As of [`Homes::call`].
    pub fn call_over(&self, caller: usize, v6: [bool; 2], time: Duration) -> Result<[Heard; 2]> {
        self.call_by(caller, v6[caller], time, &[self.relay(caller, false), self.relay(caller, true)])
    }

    fn call_by(&self, caller: usize, v6: bool, time: Duration, relays: &[IpAddr]) -> Result<[Heard; 2]> {
        let phones = [PHONES[caller], PHONES[1 - caller]];
        // What was noted of calls before is none of this one's.
        phones.iter().try_for_each(|(phone, _)| std::fs::write(self.lab.log_path(phone, "rtp"), ""))?;
        self.lab.call_for(phones[0].0, phones[1].0, self.server(v6), time)?;
        // What tcpdump has is written soon.
        std::thread::sleep(grown(NOTE_WAIT));
        let heard = |from: (&str, u32), to: &str| Heard {
            way: self.lab.way(from.0, to, relays),
            hz: self.lab.heard_hz(to).unwrap_or_default(),
            played_hz: from.1,
        };
        Ok([heard(phones[0], phones[1].0), heard(phones[1], phones[0].0)])
    }

    /// Returns the address of the relay for calls of one of the phones.
    pub fn relay(&self, caller: usize, v6: bool) -> IpAddr {
        let last = NODES[caller].2;
        let text = if v6 { format!("fd99:9::{last}") } else { format!("10.99.9.{last}") };
        text.parse().expect("an address")
    }

    /// Returns the counters of the relay for calls of one of the phones; nothing if it is not there.
    pub fn counters(&self, caller: usize) -> Option<BTreeMap<String, u64>> {
        let modules = self.lab.modules(NODES[caller].0).ok()?.modules;
        let module = modules.into_iter().find(|status| status.module.name.as_str().contains("/media-relay"))?;
        Some(module.counters)
    }

    /// Returns the address of the page before the first phone's home, as the agent knows it.
    ///
    /// # Errors
    /// There is none.
    pub fn page(&self) -> Result<IpAddr> {
        let status = self.agent()?;
        let nodes = status.deployments.iter().filter(|one| one.rule == "watch").flat_map(|one| &one.nodes);
        let mut addresses = nodes.flat_map(|node| node.addresses.iter().copied());
        addresses.find(IpAddr::is_ipv4).context("the agent knows of no page")
    }

    /// Returns how things are for the agent.
    ///
    /// # Errors
    /// It does not answer.
    pub fn agent(&self) -> Result<AgentStatus> {
        agent::status(&self.lab)
    }

    /// Returns the server's address of a version of IP.
    pub fn server(&self, v6: bool) -> IpAddr {
        if v6 { self.lab.v6("sender").into() } else { self.lab.v4("sender").into() }
    }

    /// Returns the address by which a phone's home is known outside.
    pub fn home(&self, phone: usize) -> IpAddr {
        self.lab.v4(["homea", "homeb"][phone]).into()
    }

    /// Returns a file of the lab's.
    fn path(&self, name: &str) -> PathBuf {
        self.lab.dir().join(name)
    }
}

impl Heard {
    /// Checks that the other phone heard what was played, without a gap.
    ///
    /// # Errors
    /// It did not.
    pub fn check(&self, least: usize) -> Result<()> {
        let Heard { way, hz, played_hz } = *self;
        ensure!(way.heard >= least && way.lost == 0 && way.strange == 0, "{self:?}");
        // Those that come before the other one has sent anything, and those behind the end of the call.
        ensure!(way.early + way.late <= EDGES_MAX, "{self:?}");
        let off = (hz - f64::from(played_hz)).abs() * 100.0 / f64::from(played_hz);
        ensure!(off <= OFF_PERCENT, "{self:?}");
        Ok(())
    }
}

/// Packets of the beginning and the end of a call that its parties may not hear, of 50 a second.
const EDGES_MAX: usize = 25;

fn topology() -> Topology {
    let machine = |(name, kind): (&str, Kind)| Machine { name: name.to_owned(), kind };
    let machines = [
        ("sender", Kind::Host),
        ("r", Kind::Router),
        ("n1", Kind::Node),
        ("homea", Kind::Nat),
        ("alice", Kind::Host),
        ("n2", Kind::Node),
        ("homeb", Kind::Nat),
        ("bob", Kind::Host),
    ];
    let ends = [
        ("sender", "r"),
        ("r", "n1"),
        ("n1", "homea"),
        ("homea", "alice"),
        ("r", "n2"),
        ("n2", "homeb"),
        ("homeb", "bob"),
    ];
    let link = |(a, b): (&str, &str)| Link { a: a.to_owned(), b: b.to_owned(), impairment: Impairment::default() };
    Topology { machines: machines.map(machine).into(), links: ends.map(link).into() }
}
