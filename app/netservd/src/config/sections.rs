// SPDX-License-Identifier: Apache-2.0
//! The tables of the configuration file, but for those of users and blocks.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use ipnet::IpNet;
use netserv_model::limits;
use netserv_model::policy::AddressTls;
use netserv_node::{gist, nslp};
use netserv_rpki::Cache;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::applications::Applications;
use super::domain::Domain;
use super::tls::Tls;
use crate::limits::COMPILE_CPU_TIME;

/// Signaling: GIST (RFC 5971) and the NetServ NSLP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Signaling {
    /// The NSLPID, from the private range 32704–32767.
    pub nslp_id: u16,
    /// The Router Alert value, from the experimental range 65503–65534.
    pub router_alert: u16,
    /// Whether Queries carry the Router Alert Option.
    pub send_router_alert: bool,
    /// Toward which destinations they do not: `0.0.0.0/0` is all of IPv4, `::/0` all of IPv6.
    #[schemars(with = "Vec<String>")]
    pub no_router_alert: Vec<IpNet>,
    /// The TCP port of messaging associations.
    pub tcp_port: u16,
    /// Whether passing Queries are intercepted (only in the role `node`).
    pub intercept: bool,
    /// The netfilter queue for intercepted Queries.
    pub queue: u16,
    /// How long to look for a further node before this one counts as the last, in milliseconds.
    pub last_node_timeout_ms: u64,
    /// Whether a Query without a Confirm may make state. Off: delayed state, RFC 5971 §4.4.
    pub state_without_confirm: bool,
    /// Rows of the routing table of GIST, 100 to 10,000,000: a path of which this node is neither end takes two.
    pub routes_max: usize,
    /// SETUPs whose path is followed, 100 to 10,000,000. What is over it stays where it was installed if its route changes.
    pub leases_max: usize,
    /// Connections with peers, 16 to 65,536.
    pub associations_max: usize,
    /// Connections that one IPv4 address or IPv6 network (64 bits) may open, 1 to `associations-max`.
    pub associations_per_peer_max: usize,
    /// Queries a second by which peers refresh the rows toward this node, 10 to 50,000: where more would come, it grants rows
    /// longer lives than 30 s, and later finds out what nobody tells it of.
    pub refreshes_per_second: u32,
    /// Where flows come from that come in by an interface: `eth1 = ["192.0.2.0/24"]`. Queries about others that come in there
    /// are refused; by interfaces that are not named, all flows may come.
    #[schemars(with = "BTreeMap<String, Vec<String>>")]
    pub ingress: BTreeMap<String, Vec<IpNet>>,
    /// TLS between peers.
    pub tls: Tls,
    /// Addresses of nodes next to this one that requests for nodes beside their path go to, beside those that signaling has
    /// met in the last hour.
    pub neighbours: Vec<IpAddr>,
    /// Whom this node believes, and what leaves the operator's domain.
    pub domain: Domain,
    /// NSLPs of others.
    pub applications: Applications,
}

impl Signaling {
    /// Checks the bounds of what is kept.
    pub(super) fn check_bounds(&self) -> Result<()> {
        let per_peer = self.associations_per_peer_max;
        for (key, value, range) in [
            ("routes-max", self.routes_max, 100..=10_000_000),
            ("leases-max", self.leases_max, 100..=10_000_000),
            ("associations-max", self.associations_max, 16..=65_536),
        ] {
            ensure!(
                range.contains(&value),
                "signaling.{key} is {value}, but must be {} to {}",
                range.start(),
                range.end()
            );
        }
        ensure!(
            (1..=self.associations_max).contains(&per_peer),
            "signaling.associations-per-peer-max is {per_peer}, but must be 1 to signaling.associations-max"
        );
        ensure!(
            (10..=50_000).contains(&self.refreshes_per_second),
            "signaling.refreshes-per-second is {}, but must be 10 to 50000",
            self.refreshes_per_second
        );
        Ok(())
    }
}

impl Default for Signaling {
    fn default() -> Signaling {
        Signaling {
            nslp_id: 32704,
            router_alert: 65503,
            send_router_alert: true,
            no_router_alert: Vec::new(),
            tcp_port: 27001,
            intercept: true,
            queue: 270,
            last_node_timeout_ms: 2000,
            state_without_confirm: false,
            routes_max: gist::limits::ROUTES_MAX,
            leases_max: nslp::limits::LEASES_MAX,
            associations_max: gist::limits::ASSOCIATIONS_MAX,
            associations_per_peer_max: gist::limits::ASSOCIATIONS_PER_PEER_MAX,
            refreshes_per_second: gist::limits::REFRESHES_PER_SECOND,
            ingress: BTreeMap::new(),
            tls: Tls::default(),
            neighbours: Vec::new(),
            domain: Domain::default(),
            applications: Applications::default(),
        }
    }
}

/// The forwarding plane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Dataplane {
    /// `auto` takes the best that works here.
    pub driver: DriverChoice,
    /// The first of two netfilter queues for modules' packets, of those that fail open and of those that fail closed; both
    /// are the next free ones from here on.
    pub queue: u16,
    /// Packets of 1,500 bytes that the kernel holds for the node at most, in each queue, before it lets further ones pass
    /// unseen, or drops them; shorter ones take less, and are more.
    pub queue_packets_max: u32,
    /// The interfaces that `afxdp` takes; empty means every Ethernet that is not a port of another.
    pub interfaces: Vec<String>,
    /// Whether `afxdp` forwards what no module wants by its XDP program, past the kernel's packet filter and queues.
    pub xdp_forward: XdpForwardChoice,
    /// Processors that packet threads keep to; empty means all. Of several packet threads, each has one of them.
    pub cores: Vec<usize>,
    /// Packet threads, each for some of the receive queues of every device: 1 to 16, or `auto` for as many as `cores` names.
    /// There are fewer where the forwarding plane cannot have so many.
    pub lanes: LanesChoice,
    /// Microseconds for which packet threads look for packets again and again before they sleep; 0 sleeps at once.
    pub busy_poll_us: u64,
    /// Microseconds for which packets gather after a small batch, while more than 2,000 a second come, so that one wake-up serves
    /// several of them; 0 takes each as it comes. Without effect beside `busy-poll-us`.
    pub gather_us: u64,
    /// Whether packet threads and the workers of Wasm modules are in the kernel's real-time class, before all usual
    /// programs of `cores`, which have to be named for that. Only containers that may use a whole processor are.
    pub real_time: bool,
    /// A file to which packets shown to modules are captured; empty means none.
    pub pcap: PathBuf,
}

impl Default for Dataplane {
    fn default() -> Dataplane {
        Dataplane {
            driver: DriverChoice::Auto,
            queue: 271,
            queue_packets_max: 8192,
            interfaces: Vec::new(),
            xdp_forward: XdpForwardChoice::Auto,
            cores: Vec::new(),
            lanes: LanesChoice::default(),
            busy_poll_us: 0,
            gather_us: 0,
            real_time: false,
            pcap: PathBuf::new(),
        }
    }
}

impl Dataplane {
    /// Returns how many lanes are wanted.
    pub fn lanes_wanted(&self) -> usize {
        match self.lanes {
            LanesChoice::Count(count) => count,
            LanesChoice::Auto(Auto::Auto) => self.cores.len().clamp(1, limits::LANES_MAX),
        }
    }
}

/// How many packet threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "neither `auto` nor a number")]
pub enum LanesChoice {
    /// So many.
    Count(usize),
    /// As many as there are cores for them.
    Auto(Auto),
}

impl Default for LanesChoice {
    fn default() -> LanesChoice {
        LanesChoice::Auto(Auto::Auto)
    }
}

/// The word for what is found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Auto {
    /// `auto`.
    Auto,
}

/// Java, for OSGi modules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Osgi {
    /// Whether they run here, if there is what they need.
    pub enabled: bool,
    /// The Java installation, 17 or later; empty means that of `JAVA_HOME`, else the newest in `/usr/lib/jvm`.
    pub java_home: PathBuf,
    /// The directory of NetServ's own jars; empty means `netserv-java` beside `netservd`.
    pub host: PathBuf,
    /// The worker's executable; empty means `netserv-jvm` beside `netservd`.
    pub worker: PathBuf,
    /// Where archives of Java's classes are, by which it starts faster; nodes of one machine may share it. Empty means
    /// `jvm` in `state-dir`.
    pub archive: PathBuf,
    /// An older name of `network.name-servers`, for modules of both flavours.
    pub name_servers: Vec<IpAddr>,
}

impl Default for Osgi {
    fn default() -> Osgi {
        let [java_home, host, worker, archive] = [const { PathBuf::new() }; 4];
        Osgi { enabled: true, java_home, host, worker, archive, name_servers: Vec::new() }
    }
}

/// Which forwarding plane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DriverChoice {
    /// The best that works here.
    #[default]
    Auto,
    /// AF_XDP sockets: packets are taken off the devices before the kernel's own forwarding.
    Afxdp,
    /// Netfilter queues.
    Nfqueue,
    /// None: filters are kept, and no packet comes.
    Dummy,
}

/// Whether packets that no module wants are forwarded in XDP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum XdpForwardChoice {
    /// As long as nothing is in the way that the kernel would do with them.
    #[default]
    Auto,
    /// Whatever is in the way.
    On,
    /// Never.
    Off,
}

/// What is asked of requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Admission {
    /// Whether unsigned requests of known users are taken. For closed labs only.
    pub accept_unsigned: bool,
    /// How far a request's `created` may lie from this node's clock, in seconds.
    pub clock_skew_s: u64,
    /// The longest lease, in seconds.
    pub ttl_max_s: u64,
    /// Whether requests have to name where they are carried out (`--to`, `--for-domain`, `--node`), so that copies are taken nowhere
    /// else. Older clients do not name it.
    pub require_target: bool,
    /// What users get for whom an address vouches: the name of a `[class.NAME]`. Empty means that none does.
    pub address_class: String,
    /// How addresses are asked whom they vouch for.
    pub address_tls: AddressTls,
    /// Addresses that vouch for nobody, such as those of proxies that answer for others.
    #[schemars(with = "Vec<String>")]
    pub address_excluded: Vec<IpNet>,
    /// What users get for whom the holder of their prefixes vouches by the RPKI: the name of a `[class.NAME]`. Empty means that none does.
    pub rpki_class: String,
}

impl Default for Admission {
    fn default() -> Admission {
        Admission {
            accept_unsigned: false,
            clock_skew_s: limits::CLOCK_SKEW_MAX.as_secs(),
            ttl_max_s: limits::TTL_MAX.as_secs(),
            require_target: false,
            address_class: String::new(),
            address_tls: AddressTls::default(),
            address_excluded: Vec::new(),
            rpki_class: String::new(),
        }
    }
}

/// The validated cache of the operator's relying party, by which checklists are checked (RFC 9323). Read once, when netservd starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Rpki {
    /// The folder of the cache, such as `/var/cache/rpki-client`. Empty means that there is none.
    pub cache: PathBuf,
    /// Files with the trust anchors' locators (RFC 8630).
    pub tals: Vec<PathBuf>,
    /// Seconds, 60 to 2,678,400, since the relying party's last run; no checklist holds by an older cache.
    pub age_max_s: u64,
    /// A file that the relying party writes in each run, such as its results: its last change counts as the run. If empty, the last
    /// change of the folders counts that rpki-client changes in each run; FORT 1.5 changes none if nothing is new, and needs a file.
    pub stamp: PathBuf,
}

impl Default for Rpki {
    fn default() -> Rpki {
        Rpki { cache: PathBuf::new(), tals: Vec::new(), age_max_s: 24 * 3600, stamp: PathBuf::new() }
    }
}

impl Rpki {
    /// Opens the cache, if there is one.
    ///
    /// # Errors
    /// A trust anchor's locator cannot be read.
    pub fn open(&self) -> Result<Option<Cache>> {
        if self.cache.as_os_str().is_empty() {
            return Ok(None);
        }
        let age_max = Duration::from_secs(self.age_max_s);
        let cache = Cache::open(self.cache.clone(), &self.tals, age_max).context("[rpki]")?;
        Ok(Some(if self.stamp.as_os_str().is_empty() { cache } else { cache.stamped_by(self.stamp.clone()) }))
    }
}

/// Where packages may come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Fetch {
    /// URL schemes: `https`, `http`, `file`.
    pub schemes: Vec<String>,
    /// Hosts that are asked; empty means every host.
    pub hosts: Vec<String>,
    /// Whether hosts that `hosts` lists are also asked at addresses of this node, its containers and its link. For labs:
    /// users then reach what listens there, and learn from refusals whether something does.
    pub own_addresses: bool,
    /// Hosts that states of modules may be written to, by PUT, as their users ask; none by default.
    pub put_hosts: Vec<String>,
    /// Directories below which `file` URLs may lie.
    pub file_roots: Vec<PathBuf>,
    /// Bytes of one package at most.
    pub bytes_max: u64,
    /// Seconds that one download may take.
    pub timeout_s: u64,
    /// Bytes that the store of packages may hold before the oldest unused ones go.
    pub cache_bytes_max: u64,
    /// Seconds of processor time that the code of one package may take to compile, all threads together: 1 to 3600. A
    /// SETUP whose code takes longer than its answer may wait is answered before; sent again, it finds the code compiled.
    pub compile_cpu_s: u64,
}

impl Default for Fetch {
    fn default() -> Fetch {
        Fetch {
            schemes: vec!["https".into(), "http".into()],
            hosts: Vec::new(),
            own_addresses: false,
            put_hosts: Vec::new(),
            file_roots: Vec::new(),
            bytes_max: limits::PACKAGE_BYTES_MAX,
            timeout_s: limits::FETCH_TIME_MAX.as_secs(),
            cache_bytes_max: 1024 * 1024 * 1024,
            compile_cpu_s: COMPILE_CPU_TIME.as_secs(),
        }
    }
}

/// Containers' own networks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Network {
    /// From which containers get addresses, one of each version of IP. They are to be routed to this node.
    #[schemars(with = "Vec<String>")]
    pub prefixes: Vec<IpNet>,
    /// Whom modules ask for names, three at most; each user has to be permitted to (`connect`).
    pub name_servers: Vec<IpAddr>,
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    #[test]
    fn the_compilers_time_is_from_a_second_to_an_hour() {
        for (seconds, fits) in [(0, false), (1, true), (3600, true), (3601, false), (u64::MAX / 2, false)] {
            let config = Config::parse(&format!("[fetch]\ncompile-cpu-s = {seconds}\n"));
            assert_eq!(config.is_ok(), fits, "{seconds}");
        }
    }
}
