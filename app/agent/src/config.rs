// SPDX-License-Identifier: Apache-2.0
//! The agent's configuration file.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use hyper::Uri;
use netserv_model::{Digest, Filter, ModuleRef, Topic, UserId, WantedFilter};
use netserv_placement::limits::RULES_MAX;
use netserv_placement::{Rule, RuleId};
use serde::{Deserialize, Deserializer};

use crate::limits::{LOGS_MAX, METRICS_MAX, QUEUES_MAX};
use crate::pattern::Pattern;

/// Everything that can be set.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// The socket of this machine's `netservd`, which may have the role `host`.
    #[serde(default = "netservd_socket")]
    pub netservd: PathBuf,
    /// The user that signs.
    pub user: UserId,
    /// The user's key, as `netserv key new` makes it.
    pub key: PathBuf,
    /// Where it is kept what is deployed.
    #[serde(default = "state_dir")]
    pub state_dir: PathBuf,
    /// The socket of the agent's own API, for its owner and group.
    #[serde(default = "api_socket")]
    pub socket: PathBuf,
    /// A loopback address and port at which `/v1/nearest` answers as well, for servers that ask over TCP.
    #[serde(default)]
    pub nearest: Option<SocketAddr>,
    /// Where log lines come from.
    #[serde(default, rename = "log")]
    pub logs: Vec<Log>,
    /// Numbers that rules look at.
    #[serde(default, rename = "metric")]
    pub metrics: Vec<Metric>,
    /// What is deployed when.
    #[serde(default, rename = "rule")]
    pub rules: Vec<Deploy>,
}

/// Where log lines come to, as syslog sends them: one line in each datagram.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Log {
    /// Its name in rules.
    pub name: String,
    /// The path of a Unix socket,
    #[serde(default)]
    pub socket: Option<PathBuf>,
    /// or a loopback address and port, to which every user of this machine may write.
    #[serde(default)]
    pub udp: Option<SocketAddr>,
    /// The group, by name or number, whose processes may write to the Unix socket beside the agent's user; nobody else may.
    #[serde(default)]
    pub group: Option<String>,
    /// What lines look like: text with `{client}` and other fields.
    pub pattern: Pattern,
}

/// A number that is read again and again.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Metric {
    /// Its name in rules.
    pub name: String,
    /// Seconds between two readings, 0.1 at least.
    #[serde(default = "every_s")]
    pub every_s: f64,
    /// Whether it counts up, and how much in a second is what matters.
    #[serde(default)]
    pub rate: bool,
    /// Where it comes from.
    #[serde(flatten)]
    pub source: MetricSource,
}

/// Where a metric comes from.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum MetricSource {
    /// A query of Prometheus.
    Prometheus {
        /// Its address, as `http://127.0.0.1:9090`.
        #[serde(rename = "prometheus", deserialize_with = "uri")]
        url: Uri,
        /// The query, which has one value.
        query: String,
    },
    /// A statistic of Kamailio.
    Kamailio {
        /// The datagram socket of its module `jsonrpcs`.
        #[serde(rename = "kamailio")]
        socket: PathBuf,
        /// The statistic's group and name, as `core:rcv_requests`.
        statistic: String,
    },
    /// Bytes that wait in UDP sockets of this machine.
    UdpQueue {
        /// Their addresses and ports.
        #[serde(rename = "udp-queue")]
        sockets: Vec<SocketAddr>,
    },
}

/// A condition on a metric.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct While {
    /// The metric's name.
    pub metric: String,
    /// The rule is in force when it is over this,
    pub over: f64,
    /// and until it is at this or below; half of `over` if it is not said.
    #[serde(default)]
    pub until: Option<f64>,
}

/// What the modules of a rule are told of the load of the server behind them, by control messages: `rate=NUMBER validity-ms=NUMBER`, the
/// requests that each may let through in a second, and `off`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Feedback {
    /// The messages' topic.
    #[serde(default = "topic")]
    pub topic: Topic,
    /// The metric of what waits at the server. As often as it is read, modules are told.
    pub backlog: String,
    /// More than this is too much,
    pub over: f64,
    /// and this and less is little; a fifth of `over` if it is not said.
    #[serde(default)]
    pub until: Option<f64>,
    /// The metric of what the server gets done in a second.
    pub done: String,
}

/// A module, and when it is wanted near clients.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Deploy {
    /// Its name, for people and for the API.
    pub name: String,
    /// The log whose lines count; without it, only observations of the API do.
    #[serde(default)]
    pub log: Option<String>,
    /// Fields that a line must have with these values.
    #[serde(default)]
    pub only: BTreeMap<String, String>,
    /// How many observations of a region within `window-s` make the module wanted there.
    #[serde(default = "one")]
    pub count: u32,
    /// In how many seconds.
    #[serde(default = "window_s")]
    pub window_s: u64,
    /// Bits of the prefix that makes clients of IPv4 one region.
    #[serde(default = "region_v4")]
    pub region_v4: u8,
    /// The same of IPv6.
    #[serde(default = "region_v6")]
    pub region_v6: u8,
    /// The metric by which the rule is in force; without it, it always is.
    #[serde(default, rename = "while")]
    pub condition: Option<While>,
    /// What its modules are told of the server's load.
    #[serde(default)]
    pub feedback: Option<Feedback>,
    /// The module, with its version.
    pub module: ModuleRef,
    /// Where nodes fetch its package.
    pub url: String,
    /// The package's digest.
    pub digest: Digest,
    /// Which packets it sees; `{client}` and `{region}` stand for the first client's address and its prefix.
    #[serde(default)]
    pub filters: Vec<String>,
    /// Which connections between others it takes over; with the same words.
    #[serde(default)]
    pub intercept: Vec<String>,
    /// What it can read; with the same words.
    #[serde(default)]
    pub properties: BTreeMap<String, String>,
    /// Seconds of each lease, which is renewed while clients are seen.
    #[serde(default = "lease_s")]
    pub lease_s: u64,
    /// Seconds without a client after which it is removed.
    #[serde(default = "idle_s")]
    pub idle_s: u64,
    /// Deployments at a time.
    #[serde(default = "deployments_max")]
    pub deployments_max: usize,
}

impl Config {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// Names the key that is wrong.
    pub fn read(path: &Path) -> Result<Config> {
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Config::parse(&text).with_context(|| path.display().to_string())
    }

    /// Parses and checks the text of a file.
    ///
    /// # Errors
    /// As [`Config::read`].
    pub fn parse(text: &str) -> Result<Config> {
        let config: Config = toml::from_str(text)?;
        ensure!(config.logs.len() <= LOGS_MAX, "{} logs, at most {LOGS_MAX}", config.logs.len());
        ensure!(config.rules.len() <= RULES_MAX, "{} rules, at most {RULES_MAX}", config.rules.len());
        let loopback = config.nearest.is_none_or(|address| address.ip().is_loopback());
        ensure!(loopback, "`nearest` is no loopback address: whoever reaches it learns where clients are served");
        ensure!(config.metrics.len() <= METRICS_MAX, "{} metrics, at most {METRICS_MAX}", config.metrics.len());
        for metric in &config.metrics {
            metric.check().with_context(|| format!("metric `{}`", metric.name))?;
        }
        for log in &config.logs {
            log.check().with_context(|| format!("log `{}`", log.name))?;
        }
        for (index, rule) in config.rules.iter().enumerate() {
            rule.check(&config).with_context(|| format!("rule `{}`", rule.name))?;
            let before = config.rules[..index].iter().any(|other| other.name == rule.name);
            ensure!(!before, "two rules are called `{}`", rule.name);
        }
        Ok(config)
    }

    /// Returns the rule of a name.
    pub fn rule(&self, name: &str) -> Option<RuleId> {
        self.rules.iter().position(|rule| rule.name == name).map(RuleId)
    }
}

impl Log {
    fn check(&self) -> Result<()> {
        ensure!(self.pattern.has("client"), "the pattern has no `{{client}}`");
        ensure!(self.socket.is_some() != self.udp.is_some(), "it needs `socket` or `udp`, one of them");
        let is_local = self.udp.is_none_or(|address| address.ip().is_loopback());
        ensure!(is_local, "`udp` is no loopback address: whoever reaches it says who clients are");
        ensure!(self.udp.is_none() || self.group.is_none(), "`group` is for `socket`");
        Ok(())
    }
}

impl Metric {
    /// Returns the time between two readings.
    pub fn every(&self) -> Duration {
        Duration::from_secs_f64(self.every_s)
    }

    fn check(&self) -> Result<()> {
        ensure!((0.1..=3600.0).contains(&self.every_s), "`every-s` is {}, not 0.1 to 3600", self.every_s);
        if let MetricSource::UdpQueue { sockets } = &self.source {
            let is_right = (1..=QUEUES_MAX).contains(&sockets.len());
            ensure!(is_right, "`udp-queue` has {} sockets, not 1 to {QUEUES_MAX}", sockets.len());
        }
        if let MetricSource::Prometheus { url, .. } = &self.source {
            let plain = url.scheme_str() == Some("http") && url.host().is_some();
            ensure!(plain, "`prometheus` is `{url}`, which does not begin with http:// and a host");
        }
        Ok(())
    }
}

impl While {
    /// Returns the bound below which it is over.
    pub fn until(&self) -> f64 {
        self.until.unwrap_or(self.over / 2.0)
    }

    fn check(&self, config: &Config) -> Result<()> {
        let known = config.metrics.iter().any(|metric| metric.name == self.metric);
        ensure!(known, "there is no metric `{}`", self.metric);
        ensure!(self.until() <= self.over, "`until` is over `over`");
        Ok(())
    }
}

impl Feedback {
    /// Returns what is little.
    pub fn until(&self) -> f64 {
        self.until.unwrap_or(self.over / 5.0)
    }

    fn check(&self, config: &Config) -> Result<()> {
        for name in [&self.backlog, &self.done] {
            let known = config.metrics.iter().any(|metric| metric.name == *name);
            ensure!(known, "there is no metric `{name}`");
        }
        ensure!((0.0..=self.over).contains(&self.until()), "`until` is not between 0 and `over`");
        Ok(())
    }
}

impl Deploy {
    /// Returns when it is wanted.
    pub fn rule(&self) -> Rule {
        Rule {
            count: self.count,
            window: Duration::from_secs(self.window_s),
            region_v4_bits: self.region_v4,
            region_v6_bits: self.region_v6,
            lease: Duration::from_secs(self.lease_s),
            idle: Duration::from_secs(self.idle_s),
            deployments_max: self.deployments_max,
        }
    }

    /// Returns the filters for a first client.
    ///
    /// # Errors
    /// One makes no sense with the client in it.
    pub fn filters_for(&self, client: IpAddr) -> Result<Vec<WantedFilter>> {
        let filter = |text: &String| {
            let text = self.fill(text, client);
            text.parse().with_context(|| format!("filter `{text}`"))
        };
        self.filters.iter().map(filter).collect()
    }

    /// Returns what it takes over, for a first client.
    ///
    /// # Errors
    /// As [`Deploy::filters_for`].
    pub fn intercept_for(&self, client: IpAddr) -> Result<Vec<Filter>> {
        let filter = |text: &String| {
            let text = self.fill(text, client);
            text.parse().with_context(|| format!("intercept `{text}`"))
        };
        self.intercept.iter().map(filter).collect()
    }

    /// Puts a client into a text.
    pub fn fill(&self, text: &str, client: IpAddr) -> String {
        let client = client.to_canonical();
        text.replace("{client}", &client.to_string()).replace("{region}", &self.rule().region(client).to_string())
    }

    fn check(&self, config: &Config) -> Result<()> {
        self.rule().check()?;
        if let Some(name) = &self.log {
            let log = config.logs.iter().find(|log| log.name == *name);
            let log = log.with_context(|| format!("there is no log `{name}`"))?;
            let unknown = self.only.keys().find(|field| !log.pattern.has(field));
            ensure!(unknown.is_none(), "`only` has `{}`, which is no field of log `{name}`", unknown.map_or("", |x| x));
        }
        if let Some(condition) = &self.condition {
            condition.check(config)?;
        }
        if let Some(feedback) = &self.feedback {
            feedback.check(config)?;
        }
        for client in ["192.0.2.1", "2001:db8::1"] {
            let client = client.parse()?;
            self.filters_for(client)?;
            self.intercept_for(client)?;
        }
        Ok(())
    }
}

fn netservd_socket() -> PathBuf {
    "/run/netserv/netservd.sock".into()
}

fn state_dir() -> PathBuf {
    "/var/lib/netserv-agent".into()
}

fn api_socket() -> PathBuf {
    "/run/netserv/agent.sock".into()
}

fn uri<'de, D: Deserializer<'de>>(from: D) -> Result<Uri, D::Error> {
    String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
}

fn every_s() -> f64 {
    5.0
}

fn topic() -> Topic {
    "overload".parse().expect("a topic")
}

fn one() -> u32 {
    1
}

fn window_s() -> u64 {
    10
}

fn region_v4() -> u8 {
    24
}

fn region_v6() -> u8 {
    56
}

fn lease_s() -> u64 {
    60
}

fn idle_s() -> u64 {
    300
}

fn deployments_max() -> usize {
    100
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "user = \"janedoe\"\nkey = \"/etc/key.pem\"\n\
        [[log]]\nname = \"access\"\nsocket = \"/run/a.sock\"\npattern = \"nginx: {client} {status} \"\n\
        [[rule]]\nname = \"edge\"\nlog = \"access\"\nmodule = \"example.org/m@1.0.0\"\nurl = \"http://192.0.2.9/m.nsm\"\n\
        digest = \"sha256:0000000000000000000000000000000000000000000000000000000000000000\"\n\
        filters = [\"udp src {region} port 53\"]\nonly = { status = \"200\" }\nproperties = { first = \"{client}\" }\n";

    #[test]
    fn a_rule_is_filled_with_its_first_client() {
        let config = Config::parse(TEXT).unwrap();
        assert_eq!(config.rule("edge"), Some(RuleId(0)));
        let rule = &config.rules[0];
        let filter = |client: &str| rule.filters_for(client.parse().unwrap()).unwrap()[0].to_string();
        assert_eq!(filter("198.51.100.7"), "udp src 198.51.100.0/24 port 53");
        assert_eq!(filter("2001:db8:1:2::7"), "udp src 2001:db8:1::/56 port 53");
        assert_eq!(rule.fill("{client}!", "::ffff:198.51.100.7".parse().unwrap()), "198.51.100.7!");
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (from, to, expected) in [
            ("{client} ", "{user} ", "has no `{client}`"),
            ("socket = ", "group = \"www\"\nudp = \"127.0.0.1:1\"\n# ", "`group` is for `socket`"),
            ("socket = ", "udp = \"127.0.0.1:1\"\nsocket = ", "one of them"),
            ("socket = ", "udp = \"192.0.2.1:1\"\n# ", "no loopback address"),
            ("socket = ", "# ", "one of them"),
            ("log = \"access\"", "log = \"error\"", "there is no log `error`"),
            ("status = \"200\"", "code = \"200\"", "`only` has `code`"),
            ("udp src", "udp sorc", "filter `udp sorc"),
            ("name = \"edge\"", "name = \"edge\"\ncount = 0", "`count` is 0"),
            ("name = \"edge\"", "name = \"edge\"\nlease-s = 9", "`lease` is below 10 s"),
            ("user", "user-name", "unknown field"),
            ("[[rule]]", "[[metric]]\nname = \"load\"\nkamailio = \"/k\"\n[[rule]]", "metric"),
            ("[[rule]]", "[[metric]]\nname = \"load\"\nprometheus = \"https://p\"\nquery = \"1\"\n[[rule]]", "http://"),
            ("name = \"edge\"", "name = \"edge\"\nwhile = { metric = \"load\", over = 1 }", "no metric `load`"),
            ("key = ", "nearest = \"192.0.2.1:80\"\nkey = ", "no loopback address"),
        ] {
            let error = format!("{:#}", Config::parse(&TEXT.replacen(from, to, 1)).unwrap_err());
            assert!(error.contains(expected), "{error} has no {expected}");
        }
        let (head, rule) = TEXT.split_once("[[rule]]").unwrap();
        let twice = format!("{head}[[rule]]{rule}[[rule]]{rule}");
        assert!(Config::parse(&twice).unwrap_err().to_string().contains("two rules"));
        let many = format!(
            "{head}{}",
            (0..=RULES_MAX).map(|n| format!("[[rule]]{}", rule.replace("edge", &format!("e{n}")))).collect::<String>()
        );
        assert!(Config::parse(&many).unwrap_err().to_string().contains("at most 64"));
    }
}
