// SPDX-License-Identifier: Apache-2.0
//! Rules in the configuration.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use netserv_model::floating::is_container_address;
use netserv_model::limits::{FLOATING_PER_MODULE_MAX, PROPERTY_BYTES_MAX};
use netserv_model::{Digest, Filter, ModuleRef, Topic, WantedFilter};
use netserv_placement::candidates::Needs;
use netserv_placement::{Rule, RuleId};
use schemars::JsonSchema;
use serde::Deserialize;

use super::log::Log;
use super::metric::Metric;
use super::moves::{self, Move};
use crate::limits::{CHAIN_BYTES_MAX, FLOW_SEEN_EVERY};

/// A condition on a metric.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Deploy {
    /// By what it is told from all others that there were.
    #[serde(skip, default = "no_number")]
    pub id: RuleId,
    /// Its name, for people and for the API.
    pub name: String,
    /// The log whose lines count; without it, only observations of the API do.
    #[serde(default)]
    pub log: Option<String>,
    /// The flows of this machine that count, by the other end of each.
    #[serde(default)]
    pub flows: Option<String>,
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
    /// A metric that can be read while the server behind its modules answers. If it cannot be three times in a row, they are removed, and none is
    /// deployed until it can be.
    #[serde(default)]
    pub server: Option<String>,
    /// When that server has begun anew, its modules are told `restarted`, by a control message with this topic: what it knew before may be lost.
    #[serde(default)]
    pub restart_topic: Option<Topic>,
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
    /// Whether the nodes on the way back from the client get it, too, where that is another one.
    #[serde(default)]
    pub both_ways: bool,
    /// What it can read; with the same words.
    #[serde(default)]
    pub properties: BTreeMap<String, String>,
    /// A file with the certificate chain for the key in the package, in PEM, which is given to it as `tls-chain`; read at each start and reload.
    #[serde(default)]
    pub tls_chain: Option<PathBuf>,
    /// Addresses of the user's own that lead to the module, on the last node of the way; for rules with one deployment at a time.
    #[serde(default)]
    pub floating: Vec<IpAddr>,
    /// When its module moves from node to node; for rules with one deployment at a time.
    #[serde(default, rename = "move")]
    pub moves: Option<Move>,
    /// What its module needs, as far as that is known.
    #[serde(skip)]
    pub needs: Needs,
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

impl While {
    /// Returns the bound below which it is over.
    pub fn until(&self) -> f64 {
        self.until.unwrap_or(self.over / 2.0)
    }

    fn check(&self, metrics: &[Metric]) -> Result<()> {
        let known = metrics.iter().any(|metric| metric.name == self.metric);
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

    fn check(&self, metrics: &[Metric]) -> Result<()> {
        for name in [&self.backlog, &self.done] {
            let known = metrics.iter().any(|metric| metric.name == *name);
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
            module: self.module.name.clone(),
            count: self.count,
            window: Duration::from_secs(self.window_s),
            region_v4_bits: self.region_v4,
            region_v6_bits: self.region_v6,
            lease: Duration::from_secs(self.lease_s),
            idle: Duration::from_secs(self.idle_s),
            deployments_max: self.deployments_max,
            moves: self.moves.as_ref().map(Move::rule),
        }
    }

    /// Reads what the rule takes from files.
    ///
    /// # Errors
    /// One cannot be read, has no chain that fits, or is not the rule's package.
    pub fn read_files(&mut self) -> Result<()> {
        if let Some(path) = self.moves.as_ref().and_then(|moves| moves.package.as_ref()) {
            self.needs = moves::needs(path, self.digest)?;
        }
        let Some(path) = &self.tls_chain else { return Ok(()) };
        let mut text = String::new();
        let file = File::open(path).and_then(|file| file.take(CHAIN_BYTES_MAX).read_to_string(&mut text));
        file.with_context(|| format!("`tls-chain`: cannot read {}", path.display()))?;
        let certificates = certificates(&text);
        ensure!(!certificates.is_empty(), "`tls-chain`: {} has no certificate", path.display());
        for (number, certificate) in (1..).zip(certificates) {
            let name = if number == 1 { "tls-chain".to_owned() } else { format!("tls-chain-{number}") };
            let fits = name.len() + certificate.len() <= PROPERTY_BYTES_MAX;
            ensure!(fits, "`tls-chain`: a certificate is longer than {PROPERTY_BYTES_MAX} bytes");
            self.properties.insert(name, certificate);
        }
        Ok(())
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

    /// Returns whether nodes are asked for the same by both.
    pub fn asks_the_same(&self, other: &Deploy) -> bool {
        // What is not named is the agent's own matter.
        let asked = Deploy {
            module: other.module.clone(),
            url: other.url.clone(),
            digest: other.digest,
            filters: other.filters.clone(),
            intercept: other.intercept.clone(),
            properties: other.properties.clone(),
            floating: other.floating.clone(),
            both_ways: other.both_ways,
            lease_s: other.lease_s,
            region_v4: other.region_v4,
            region_v6: other.region_v6,
            ..self.clone()
        };
        *self == asked
    }

    fn check_floating(&self) -> Result<()> {
        let count = self.floating.len();
        ensure!(
            count == 0 || self.deployments_max == 1,
            "`floating` takes `deployments-max = 1`: an address has one owner"
        );
        ensure!(
            count <= FLOATING_PER_MODULE_MAX,
            "`floating` has {count} addresses, at most {FLOATING_PER_MODULE_MAX}"
        );
        let wrong = self.floating.iter().find(|address| !is_container_address(**address));
        ensure!(wrong.is_none(), "`floating` has {wrong:?}, which no container can have");
        Ok(())
    }

    /// Returns whether its module is on one node alone, which has it in an epoch.
    pub fn has_one_node(&self) -> bool {
        !self.floating.is_empty() || self.moves.is_some()
    }

    /// Returns whether both say the same.
    pub fn is_same(&self, other: &Deploy) -> bool {
        *self == Deploy { id: self.id, ..other.clone() }
    }

    /// Checks what the shape of a file does not hold.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn check(&self, logs: &[Log], metrics: &[Metric]) -> Result<()> {
        self.rule().check()?;
        // Clients of flows that go on are seen now and then.
        let is_long = self.flows.is_none() || Duration::from_secs(self.idle_s) >= 2 * FLOW_SEEN_EVERY;
        ensure!(is_long, "`idle-s` is below {} s, which is too short for `flows`", 2 * FLOW_SEEN_EVERY.as_secs());
        self.check_floating()?;
        if let Some(moves) = &self.moves {
            moves.check()?;
            ensure!(!self.both_ways, "`move` goes not with `both-ways`: one node has the module");
        }
        if let Some(name) = &self.log {
            let log = logs.iter().find(|log| log.name == *name);
            let log = log.with_context(|| format!("there is no log `{name}`"))?;
            let unknown = self.only.keys().find(|field| !log.pattern.has(field));
            ensure!(unknown.is_none(), "`only` has `{}`, which is no field of log `{name}`", unknown.map_or("", |x| x));
        }
        if let Some(condition) = &self.condition {
            condition.check(metrics)?;
        }
        if let Some(name) = &self.server {
            let known = metrics.iter().any(|metric| metric.name == *name);
            ensure!(known, "`server`: there is no metric `{name}`");
        }
        ensure!(self.restart_topic.is_none() || self.server.is_some(), "`restart-topic` takes `server`");
        if let Some(feedback) = &self.feedback {
            feedback.check(metrics)?;
        }
        for client in ["192.0.2.1", "2001:db8::1"] {
            let client = client.parse()?;
            self.filters_for(client)?;
            self.intercept_for(client)?;
        }
        Ok(())
    }
}

/// Returns the certificates of a file in PEM, and nothing else that may be in it, such as a key.
fn certificates(pem: &str) -> Vec<String> {
    let (begin, end) = ("-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----");
    let piece = |text: &str| Some(format!("{begin}{}{end}", text.split_once(end)?.0));
    pem.split(begin).skip(1).filter_map(piece).collect()
}

fn no_number() -> RuleId {
    RuleId(u32::MAX)
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
