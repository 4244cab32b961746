// SPDX-License-Identifier: Apache-2.0
//! The node's configuration: one TOML file, every key with a default, unknown keys refused.

pub mod about;
mod applications;
mod audit;
pub mod blocks;
pub mod domain;
pub mod engines;
mod issuers;
pub mod media;
pub mod reload;
mod role;
mod sections;
pub mod services;
pub mod tls;
mod users;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use ipnet::IpNet;
use netserv_container::network::limits::{ADDRESSES_MAX, PERMITS_MAX};
use netserv_model::floating::is_container_address;
use netserv_model::limits;
use netserv_model::policy::NodePolicy;
use netserv_model::{Flavour, NodeId};
use netserv_packet_loop::limits::GATHER_TIME_MAX;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::{COMPILE_CPU_S_MAX, NEIGHBOURS_MAX, RPKI_AGE_MAX_S};
use about::About;
pub use audit::Audit;
use blocks::Blocks;
use issuers::{Class, Issuer};
pub use role::Role;
pub use sections::{Admission, Dataplane, DriverChoice, Fetch, Network, Osgi, Rpki, Signaling, XdpForwardChoice};
use services::Service;
pub use users::User;

/// What the tables look like that may be there more than once, as comments after the defaults; uncommented they are valid.
const EXAMPLES: &str = "
# One table for each user that the node knows:
# [[user]]
# name = \"janedoe\"
# keys = [\"ed25519:0000000000000000000000000000000000000000000000000000000000000000\"]   # `netserv key show`
# prefixes = [\"192.0.2.0/24\", \"2001:db8:1::/48\"]   # the user's own: a filter's source or destination lies in one
# ports = [\"5060\", \"16384-32767\"]   # what its filters may name; without it every port
# modules-max = 8
# container = { memory-bytes = 100663296, cpu-permille = 1000, pids = 64, disk-bytes = 16777216 }   # of all modules
# listen = [\"tcp port 80\"]   # what its containers may accept: as peers' packets look
# connect = [\"tcp port 443\", \"udp dst 192.0.2.53 port 53\"]   # what they may open
# network = { packets-per-second = 200000, bits-per-second = 1000000000 }   # of its containers, each way
# addresses = [\"192.0.2.10\"]   # its containers', in place of free ones of network.prefixes
# price-per-hour = 12   # of a module, in a unit that you agreed on: `netserv candidates` weighs it

# One table for each who may vouch for users that are not named here, by grants (`netserv grant`):
# [[issuer]]
# name = \"clearinghouse\"
# keys = [\"ed25519:1111111111111111111111111111111111111111111111111111111111111111\"]
# prefixes = [\"198.51.100.0/22\"]   # of which it may give parts
# class = \"guest\"

# What each of them gets at most:
# [class.guest]
# users-max = 64   # for each issuer
# modules-max = 2
# lease-max-s = 3600
# ports = [\"80\", \"443\"]

# One table for each module that the node runs by itself while one of its conditions holds:
# [[service]]
# name = \"syn flood\"
# module = \"example.org/syn-guard@1.0.0\"
# url = \"https://example.org/syn-guard.nsm\"
# digest = \"sha256:0000000000000000000000000000000000000000000000000000000000000000\"
# signer = \"ed25519:0000000000000000000000000000000000000000000000000000000000000000\"   # who signed the package
# filters = [\"tcp syn dst 192.0.2.7\"]
# properties = { limit = \"100\" }
# when = [\"syns/s to 192.0.2.7 > 1000\", \"packets/s to 2001:db8:1::/48 > 200000\"]   # one of them is enough
# hold-s = 30   # it stops after so long at half of its bounds or below

# Who is next to this node and inside of the operator's domain; the first that fits counts, all others are outside:
# [[signaling.domain.neighbour]]
# side = \"inside\"
# prefix = \"10.0.0.0/8\"   # where the peer's address lies; or interface = \"eth1\", or tls-name = \"*.example.net\"
";

/// Prefixes in one list of signaling.
const PREFIXES_MAX: usize = 1024;
/// Name servers that the C library asks at most.
const NAME_SERVERS_MAX: usize = 3;

/// Everything that an operator can set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Config {
    /// The node's name in response stacks; the machine's own if it is not set.
    pub node: NodeId,
    /// Whether it runs modules or only sends requests.
    pub role: Role,
    /// Where packages, compiled code and the database of installed modules are; its owner's alone.
    pub state_dir: PathBuf,
    /// A further place for compiled code, 1 GiB of it: nodes of one machine that share it compile the same module once. It runs as
    /// it is, so that the node's user alone may write there. Empty means none.
    pub code_dir: PathBuf,
    /// The Unix socket of the HTTP API, for its owner and group; others than the owner do not get into `state-dir`.
    pub socket: PathBuf,
    /// The flavours of modules that the node runs, the preferred one first: `wasm`, `osgi`. One that this machine has not
    /// what it takes for is left out.
    pub flavours: Vec<Flavour>,
    /// The worker's executable; empty means `netserv-worker` beside `netservd`.
    pub worker: PathBuf,
    /// What modules are told of the node.
    pub about: About,
    /// GIST and the NSLP.
    pub signaling: Signaling,
    /// The forwarding plane.
    pub dataplane: Dataplane,
    /// Java, for OSGi modules.
    pub osgi: Osgi,
    /// What is asked of requests.
    pub admission: Admission,
    /// By what checklists are checked.
    pub rpki: Rpki,
    /// What is kept of who asked what, and who decided.
    pub audit: Audit,
    /// Where packages may come from.
    pub fetch: Fetch,
    /// Containers' own networks.
    pub network: Network,
    /// What modules may use beside their own code.
    pub blocks: Blocks,
    /// What the node runs by itself, and when.
    #[serde(rename = "service", skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<Service>,
    /// What users get at most whose rights come from a proof, by name.
    #[serde(rename = "class", skip_serializing_if = "BTreeMap::is_empty")]
    pub classes: BTreeMap<String, Class>,
    /// Who may vouch for users that are not named here.
    #[serde(rename = "issuer", skip_serializing_if = "Vec::is_empty")]
    pub issuers: Vec<Issuer>,
    /// Who may do what.
    #[serde(rename = "user", skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<User>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            node: host_name(),
            role: Role::Node,
            state_dir: "/var/lib/netserv".into(),
            code_dir: PathBuf::new(),
            socket: "/run/netserv/netservd.sock".into(),
            flavours: Flavour::ALL.to_vec(),
            worker: PathBuf::new(),
            about: About::default(),
            signaling: Signaling::default(),
            dataplane: Dataplane::default(),
            osgi: Osgi::default(),
            admission: Admission::default(),
            rpki: Rpki::default(),
            audit: Audit::default(),
            fetch: Fetch::default(),
            network: Network::default(),
            blocks: Blocks::default(),
            services: Vec::new(),
            classes: BTreeMap::new(),
            issuers: Vec::new(),
            users: Vec::new(),
        }
    }
}

impl Config {
    /// Reads and checks a configuration file.
    ///
    /// # Errors
    /// The error names the file, the line and the key.
    pub fn load(path: &Path) -> Result<Config> {
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Config::parse(&text).with_context(|| format!("{} is not a valid configuration", path.display()))
    }

    /// Reads a configuration file, or returns the defaults if there is none.
    ///
    /// # Errors
    /// Those of [`load`](Config::load).
    pub fn load_or_default(path: Option<&Path>) -> Result<Config> {
        path.map_or_else(|| Ok(Config::default()), Config::load)
    }

    /// Parses and checks a configuration.
    ///
    /// # Errors
    /// The error names the line and the key.
    pub fn parse(text: &str) -> Result<Config> {
        let config: Config = toml::from_str(text)?;
        config.check()?;
        Ok(config)
    }

    /// Returns the configuration as TOML, with every default written out.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self).unwrap_or_else(|error| format!("# cannot be written: {error}\n"))
    }

    /// Returns the defaults as TOML, with tables of users and neighbours as comments.
    pub fn default_toml() -> String {
        Config::default().to_toml() + EXAMPLES
    }

    /// Returns what admission and signaling depend on; `networks` are those of an interface.
    ///
    /// # Errors
    /// Two users or issuers of one name, ports that are none, or a class that is not there.
    pub fn policy(&self, networks: &dyn Fn(&str) -> Vec<IpNet>) -> Result<NodePolicy> {
        let mut policy = NodePolicy::new(self.node.clone());
        policy.host_only = self.role == Role::Host;
        policy.accept_unsigned = self.admission.accept_unsigned;
        policy.require_target = self.admission.require_target;
        policy.clock_skew_max = Duration::from_secs(self.admission.clock_skew_s);
        policy.ttl_max = Duration::from_secs(self.admission.ttl_max_s);
        policy.domain = self.signaling.domain.policy(networks)?;
        if self.role == Role::Node {
            policy.container_prefixes.clone_from(&self.network.prefixes);
            policy.blocks = self.blocks.versions(self.has_network());
            policy.cache_bytes = if policy.blocks.contains_key("cache") { self.blocks.cache.bytes } else { 0 };
        }
        for user in &self.users {
            let known = policy.users.insert(user.name.clone(), user.policy()?);
            ensure!(known.is_none(), "user {} is there twice", user.name);
        }
        issuers::add_to(&mut policy, &self.issuers, &self.classes)?;
        let Admission { address_class, address_tls, address_excluded, rpki_class, .. } = &self.admission;
        if !address_class.is_empty() {
            let is_there = policy.classes.contains_key(address_class);
            ensure!(is_there, "admission.address-class is `{address_class}`, and there is no [class.{address_class}]");
            policy.address_class = Some(address_class.clone());
            policy.address_tls = *address_tls;
            policy.address_excluded.clone_from(address_excluded);
        }
        if !rpki_class.is_empty() {
            let is_there = policy.classes.contains_key(rpki_class);
            ensure!(is_there, "admission.rpki-class is `{rpki_class}`, and there is no [class.{rpki_class}]");
            let has_cache = !self.rpki.cache.as_os_str().is_empty() && !self.rpki.tals.is_empty();
            ensure!(has_cache, "admission.rpki-class is set, and no rpki.cache or rpki.tals");
            policy.rpki_class = Some(rpki_class.clone());
        }
        issuers::within("rpki.age-max-s", self.rpki.age_max_s, &RPKI_AGE_MAX_S)?;
        Ok(policy)
    }

    /// Returns whom modules ask for names.
    pub fn name_servers(&self) -> &[IpAddr] {
        if self.network.name_servers.is_empty() { &self.osgi.name_servers } else { &self.network.name_servers }
    }

    /// Returns whether Queries on their way to others are intercepted.
    pub fn intercepts(&self) -> bool {
        self.role == Role::Node && self.signaling.intercept
    }

    /// Returns the name under which this node's traces on the machine are found again: eight hex digits that depend
    /// only on the state directory.
    pub fn instance(&self) -> String {
        let path = std::path::absolute(&self.state_dir).unwrap_or_else(|_| self.state_dir.clone());
        // FNV-1a: a stable name, not a secret.
        let hash = path
            .as_os_str()
            .as_encoded_bytes()
            .iter()
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
        format!("{hash:08x}")
    }

    /// Returns whether there are addresses for containers.
    pub fn has_network(&self) -> bool {
        !self.network.prefixes.is_empty() || self.users.iter().any(|user| !user.addresses.is_empty())
    }

    fn check_network(&self) -> Result<()> {
        for prefix in &self.network.prefixes {
            let address = prefix.network();
            ensure!(
                is_container_address(address),
                "network.prefixes has {prefix}, which has no addresses for containers"
            );
        }
        let mut given = BTreeSet::new();
        for User { name, listen, connect, addresses, network, .. } in &self.users {
            network.check().map_err(|error| anyhow!("network of user {name}: {error}"))?;
            for address in addresses {
                ensure!(
                    is_container_address(*address),
                    "addresses of user {name} has {address}, which no container can have"
                );
                ensure!(given.insert(*address), "address {address} is given twice, once to user {name}");
            }
            ensure!(addresses.len() <= ADDRESSES_MAX, "user {name} has over {ADDRESSES_MAX} addresses");
            for (key, filters) in [("listen", listen), ("connect", connect)] {
                ensure!(filters.len() <= PERMITS_MAX, "`{key}` of user {name} has over {PERMITS_MAX} filters");
                let has_address = !addresses.is_empty() || !self.network.prefixes.is_empty();
                let fix = "set network.prefixes, or the user's addresses";
                ensure!(
                    has_address || filters.is_empty(),
                    "user {name} has `{key}`, but its container no address; {fix}"
                );
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<()> {
        self.check_network()?;
        services::check(&self.services, &self.users, self.role == Role::Node)?;
        self.about.info(&self.node).check().map_err(|error| anyhow!("about: {error}"))?;
        self.blocks.check()?;
        self.audit.check()?;
        self.policy(&|_| Vec::new())?;
        let signaling = &self.signaling;
        ensure!(
            (32704..=32767).contains(&signaling.nslp_id),
            "signaling.nslp-id is {}, but must be in the private range 32704-32767 (RFC 5971 §9)",
            signaling.nslp_id
        );
        ensure!(
            (65503..=65534).contains(&signaling.router_alert),
            "signaling.router-alert is {}, but must be in the experimental range 65503-65534 (RFC 5350)",
            signaling.router_alert
        );
        signaling.check_bounds()?;
        let compile_cpu_s = self.fetch.compile_cpu_s;
        ensure!(
            (1..=COMPILE_CPU_S_MAX).contains(&compile_cpu_s),
            "fetch.compile-cpu-s is {compile_cpu_s}, but must be from 1 to {COMPILE_CPU_S_MAX}"
        );
        let flavours: BTreeSet<&Flavour> = self.flavours.iter().collect();
        ensure!(flavours.len() == self.flavours.len(), "flavours has one of them twice");
        let runs = |flavour: &Flavour| *flavour != Flavour::Osgi || self.osgi.enabled;
        ensure!(
            self.role == Role::Host || self.flavours.iter().any(runs),
            "flavours leaves nothing that the node may run (`osgi` counts only with osgi.enabled)"
        );
        let listed = |key: &str, prefixes: usize| {
            ensure!(prefixes <= PREFIXES_MAX, "signaling.{key} has over {PREFIXES_MAX} prefixes; name wider ones");
            Ok(())
        };
        listed("no-router-alert", signaling.no_router_alert.len())?;
        listed("ingress", signaling.ingress.values().map(Vec::len).sum())?;
        ensure!(signaling.tcp_port != 0, "signaling.tcp-port must not be 0");
        let tls = &signaling.tls;
        tls.check()?;
        signaling.domain.check(tls.is_on())?;
        signaling.applications.check(signaling.nslp_id)?;
        ensure!(signaling.applications.socket != self.socket, "socket and signaling.applications.socket must differ");
        let count = signaling.neighbours.len();
        ensure!(
            count <= NEIGHBOURS_MAX,
            "signaling.neighbours has {count} addresses, but at most {NEIGHBOURS_MAX} may be"
        );
        ensure!(
            !tls.is_on() || tls.port != signaling.tcp_port,
            "signaling.tcp-port and signaling.tls.port must differ: by the port peers know whether to speak TLS"
        );
        ensure!(
            !(tls.require && signaling.state_without_confirm),
            "signaling.tls.require and signaling.state-without-confirm exclude each other: a Query has no protection"
        );
        let dataplane = &self.dataplane;
        ensure!(
            !dataplane.real_time || !dataplane.cores.is_empty(),
            "dataplane.real-time needs dataplane.cores: what is in the real-time class takes them from all other programs"
        );
        ensure!(
            (1..=limits::LANES_MAX).contains(&dataplane.lanes_wanted()),
            "dataplane.lanes is {}, but must be 1 to {}, or \"auto\"",
            dataplane.lanes_wanted(),
            limits::LANES_MAX
        );
        ensure!(
            Duration::from_micros(dataplane.gather_us) <= GATHER_TIME_MAX,
            "dataplane.gather-us is {}, but must be at most {}",
            dataplane.gather_us,
            GATHER_TIME_MAX.as_micros()
        );
        ensure!(signaling.queue != self.dataplane.queue, "signaling.queue and dataplane.queue must differ");
        ensure!(
            self.osgi.name_servers.is_empty() || self.network.name_servers.is_empty(),
            "osgi.name-servers is the older name of network.name-servers; keep one of them"
        );
        ensure!(self.name_servers().len() <= NAME_SERVERS_MAX, "name-servers has more than {NAME_SERVERS_MAX}");
        for scheme in &self.fetch.schemes {
            let known = ["https", "http", "file"].contains(&scheme.as_str());
            ensure!(known, "fetch.schemes has `{scheme}`, but only https, http and file are fetched");
        }
        let named = !self.fetch.own_addresses || !self.fetch.hosts.is_empty();
        ensure!(
            named,
            "fetch.own-addresses opens the node's own services to users; it needs fetch.hosts, with their ports"
        );
        Ok(())
    }
}

fn host_name() -> NodeId {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let fallback = || "node".parse().expect("`node` is a node name");
    name.trim().parse().unwrap_or_else(|_| fallback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_printed_default_parses_to_the_default() {
        let default = Config::default();
        assert_eq!(Config::parse(&default.to_toml()).unwrap(), default);
        assert_eq!(Config::parse("").unwrap(), default);
        assert_eq!(Config::parse(&Config::default_toml()).unwrap(), default);
        let lines = EXAMPLES.lines().filter_map(|line| line.strip_prefix("# "));
        let example: String =
            lines.filter(|line| !line.ends_with(':')).fold(String::new(), |all, line| all + line + "\n");
        let example = Config::parse(&example).unwrap();
        assert_eq!((example.users[0].prefixes.len(), example.signaling.domain.neighbours.len()), (2, 1));
    }

    #[test]
    fn packets_gather_for_gather_time_max_at_most() {
        let check = |us: u128| Config::parse(&format!("[dataplane]\ngather-us = {us}")).is_ok();
        assert!(check(0) && check(GATHER_TIME_MAX.as_micros()) && !check(GATHER_TIME_MAX.as_micros() + 1));
    }

    #[test]
    fn there_is_a_lane_for_each_core_unless_so_many_are_named() {
        let check = |text: &str, expected: Option<usize>| {
            let parsed = Config::parse(&format!("[dataplane]\n{text}"));
            assert_eq!(parsed.ok().map(|config| config.dataplane.lanes_wanted()), expected, "{text}");
        };
        check("", Some(1));
        check("cores = [3]", Some(1));
        check("cores = [1, 2, 3, 4]", Some(4));
        check("cores = [1, 2, 3, 4]\nlanes = 2", Some(2));
        check("lanes = 'auto'", Some(1));
        check(&format!("cores = {:?}", (0..99).collect::<Vec<_>>()), Some(limits::LANES_MAX));
        check(&format!("lanes = {}", limits::LANES_MAX), Some(limits::LANES_MAX));
        check(&format!("lanes = {}", limits::LANES_MAX + 1), None);
        check("lanes = 0", None);
        check("lanes = 'many'", None);
    }

    #[test]
    fn a_user_becomes_a_policy() {
        let text = format!(
            "node = 'n1'\n[[user]]\nname = 'janedoe'\nkeys = ['ed25519:{}']\nprefixes = ['10.2.0.0/24', '2001:db8::/48']\n\
             ports = ['5060', '16384-32767']\n",
            "ab".repeat(32)
        );
        let policy = Config::parse(&text).unwrap().policy(&|_| Vec::new()).unwrap();
        let user = &policy.users[&"janedoe".parse().unwrap()];
        assert_eq!(user.prefixes.len(), 2);
        assert_eq!(user.ports[1].to_string(), "16384-32767");
        assert!(!policy.accept_unsigned && !policy.has_network() && user.listen.is_empty());
        let policy =
            Config::parse(&format!("{text}listen = ['tcp port 80']\nconnect = ['udp']\naddresses = ['192.0.2.1']"));
        let policy = policy.unwrap().policy(&|_| Vec::new()).unwrap();
        assert!(policy.has_network());
        let user = &policy.users[&"janedoe".parse().unwrap()];
        assert_eq!((user.listen[0].to_string(), user.connect[0].to_string()), ("tcp port 80".into(), "udp".into()));
    }

    #[test]
    fn wrong_keys_and_values_are_named() {
        let user = |more: &str| format!("[[user]]\nname = 'janedoe'\nkeys = []\nprefixes = []\n{more}");
        let nslps = |list: &str| format!("[signaling.applications]\nsocket = '/run/gist.sock'\nnslps = [{list}]");
        for (text, named) in [
            ("nodes = 'x'", "nodes"),
            ("[signaling]\nnslp-id = 33", "nslp-id"),
            ("[signaling]\nrouter-alert = 33", "router-alert"),
            ("[signaling]\nroutes-max = 99", "signaling.routes-max is 99"),
            ("[signaling]\nroutes-max = 10000001", "signaling.routes-max"),
            ("[signaling]\nleases-max = 0", "signaling.leases-max"),
            ("[signaling]\nassociations-max = 65537", "signaling.associations-max"),
            ("[signaling]\nassociations-per-peer-max = 1025", "signaling.associations-per-peer-max"),
            ("[signaling]\nrefreshes-per-second = 0", "signaling.refreshes-per-second"),
            ("[fetch]\nschemes = ['ftp']", "ftp"),
            ("[fetch]\nown-addresses = true", "fetch.hosts"),
            ("[dataplane]\nqueue = 270", "queue"),
            ("flavours = ['osgi']\n[osgi]\nenabled = false", "osgi.enabled"),
            ("flavours = []", "flavours"),
            ("[osgi]\njvm = '/usr'", "jvm"),
            ("[osgi]\nname-servers = ['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.4']", "name-servers"),
            ("[network]\nname-servers = ['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.4']", "name-servers"),
            ("osgi.name-servers = ['192.0.2.1']\nnetwork.name-servers = ['192.0.2.1']", "the older name"),
            ("[dataplane]\ndriver = 'quantum'", "quantum"),
            ("[blocks]\nenabled = ['kvv']", "kvv"),
            ("[blocks.kv]\nbytes = 1", "blocks.kv.bytes"),
            (
                &format!("[signaling]\nno-router-alert = {:?}", ["10.0.0.0/8"; PREFIXES_MAX + 1]),
                "signaling.no-router-alert has over 1024",
            ),
            (
                &format!("[signaling.ingress]\neth1 = {:?}", ["10.0.0.0/8"; PREFIXES_MAX + 1]),
                "signaling.ingress has over 1024",
            ),
            ("[signaling.ingress]\neth1 = '10.0.0.0/8'", "eth1"),
            ("[signaling.tls]\nrequire = true", "signaling.tls.certificate"),
            ("[signaling.tls]\npeers = ['a b']", "`a b` is no DNS name"),
            ("[signaling.tls]\nclient-certificate = 'never'", "never"),
            ("[signaling.applications]\ngroup = 'netserv'", "no socket"),
            ("[signaling.applications]\nsocket = '/run/netserv/netservd.sock'", "must differ"),
            (&nslps("{ id = 32704, router-alert = 65503 }"), "NetServ's own"),
            (&nslps("{ id = 32768, router-alert = 65503 }"), "32768"),
            (&nslps("{ id = 33, router-alert = 65535 }"), "65535"),
            (&nslps("{ id = 33, router-alert = 65 }, { id = 33, router-alert = 66 }"), "twice"),
            (&nslps("{ id = 33 }"), "router-alert"),
            ("[network]\nprefixes = ['fe80::/64']", "fe80::/64"),
            (&user("listen = ['tcp port 80']"), "network.prefixes"),
            (&user("addresses = ['127.0.0.1']"), "127.0.0.1"),
            (&user("addresses = ['192.0.2.1', '192.0.2.1']"), "twice"),
            (
                &user(&format!("addresses = {:?}", (1..10).map(|n| format!("192.0.2.{n}")).collect::<Vec<_>>())),
                "over 8",
            ),
            (&user(&format!("addresses = ['192.0.2.1']\nconnect = {:?}", ["tcp port 1"; 65])), "over 64"),
            (&user("network = { bits-per-second = 1 }"), "network of user"),
            (&user("listen = ['tcp door 80']"), "door"),
        ] {
            let error = format!("{:#}", Config::parse(text).unwrap_err());
            assert!(error.contains(named), "{error}");
        }
    }

    #[test]
    fn the_instance_depends_on_the_state_directory_only() {
        let mut config = Config::default();
        let before = config.instance();
        config.node = "other".parse().unwrap();
        assert_eq!(config.instance(), before);
        config.state_dir = "/tmp/elsewhere".into();
        assert_ne!(config.instance(), before);
    }
}
