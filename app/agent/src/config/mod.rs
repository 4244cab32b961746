// SPDX-License-Identifier: Apache-2.0
//! The agent's configuration file.

mod flows;
mod log;
mod metric;
mod moves;
mod rule;

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use netserv_model::UserId;
use netserv_placement::RuleId;
use netserv_placement::limits::RULES_MAX;
use schemars::JsonSchema;
use serde::Deserialize;

pub use self::flows::{FlowPort, FlowProtocol, Flows};
pub use self::log::Log;
use self::metric::WrittenMetric;
pub use self::metric::{Credentials, Metric, MetricId, MetricSource, Prometheus};
pub use self::rule::Deploy;
use crate::destination::Destination;
use crate::limits::{FLOWS_MAX, LOGS_MAX, METRICS_MAX};
use crate::names::NamesFile;
use crate::relays::RelayTables;

/// Everything that can be set.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// The socket of this machine's `netservd`, which may have the role `host`.
    #[serde(default = "netservd_socket")]
    pub netservd: PathBuf,
    /// The user that signs.
    pub user: UserId,
    /// The user's key, as `netserv key new` makes it.
    pub key: PathBuf,
    /// A file with grants for the key, for nodes that do not know the user, read for each request.
    #[serde(default)]
    pub grant: Option<PathBuf>,
    /// A file that `netserv prove address` made, in place of grants; likewise.
    #[serde(default)]
    pub proof: Option<PathBuf>,
    /// An RPKI Signed Checklist (RFC 9323), in DER, over the first of the grants, by the holder of its prefixes; likewise.
    #[serde(default)]
    pub checklist: Option<PathBuf>,
    /// Where it is kept what is deployed.
    #[serde(default = "state_dir")]
    pub state_dir: PathBuf,
    /// The socket of the agent's own API, for its owner and group.
    #[serde(default = "api_socket")]
    pub socket: PathBuf,
    /// A loopback address and port at which `/v1/nearest` answers as well, for servers that ask over TCP.
    #[serde(default)]
    pub nearest: Option<SocketAddr>,
    /// A loopback address and port at which a page shows where modules are, and what they count there.
    #[serde(default)]
    pub page: Option<SocketAddr>,
    /// A name for each node at which a module takes connections, for a DNS server.
    #[serde(default)]
    pub names: Option<NamesFile>,
    /// Tables in which Kamailio finds the relay of each caller's region.
    #[serde(default)]
    pub relays: Option<RelayTables>,
    /// Where log lines come from.
    #[serde(default, rename = "log")]
    pub logs: Vec<Log>,
    /// Flows of programs of this machine.
    #[serde(default)]
    pub flows: Vec<Flows>,
    /// Numbers that rules look at.
    #[serde(default, rename = "metric")]
    #[schemars(with = "Vec<WrittenMetric>")]
    pub metrics: Vec<Metric>,
    /// What is deployed when.
    #[serde(default, rename = "rule")]
    pub rules: Vec<Deploy>,
    /// The next numbers of a rule and of a metric.
    #[serde(skip)]
    next: (u32, u32),
}

impl Config {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// Names the key that is wrong.
    pub fn read(path: &Path) -> Result<Config> {
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut config = Config::parse(&text).with_context(|| path.display().to_string())?;
        for rule in &mut config.rules {
            rule.read_files().with_context(|| format!("{}: rule `{}`", path.display(), rule.name))?;
        }
        Ok(config)
    }

    /// Parses and checks the text of a file.
    ///
    /// # Errors
    /// As [`Config::read`].
    pub fn parse(text: &str) -> Result<Config> {
        let mut config: Config = toml::from_str(text)?;
        ensure!(config.logs.len() <= LOGS_MAX, "{} logs, at most {LOGS_MAX}", config.logs.len());
        ensure!(config.flows.len() <= FLOWS_MAX, "{} `[[flows]]`, at most {FLOWS_MAX}", config.flows.len());
        ensure!(config.rules.len() <= RULES_MAX, "{} rules, at most {RULES_MAX}", config.rules.len());
        for (key, address) in [("nearest", config.nearest), ("page", config.page)] {
            let loopback = address.is_none_or(|address| address.ip().is_loopback());
            ensure!(loopback, "`{key}` is no loopback address: whoever reaches it learns where clients are served");
        }
        if let Some(relays) = &config.relays {
            relays.check(config.rules.iter().map(|rule| &rule.name)).context("`relays`")?;
        }
        if let Some(names) = &config.names {
            names.check().context("`names`")?;
        }
        ensure!(config.metrics.len() <= METRICS_MAX, "{} metrics, at most {METRICS_MAX}", config.metrics.len());
        for log in &config.logs {
            log.check().with_context(|| format!("log `{}`", log.name))?;
        }
        for flows in &config.flows {
            flows.check().with_context(|| format!("flows `{}`", flows.name))?;
        }
        for rule in &config.rules {
            let flows = rule.flows.iter().find(|name| !config.flows.iter().any(|flows| flows.name == **name));
            ensure!(flows.is_none(), "rule `{}`: there are no flows `{}`", rule.name, flows.map_or("", |x| x));
            rule.check(&config.logs, &config.metrics).with_context(|| format!("rule `{}`", rule.name))?;
        }
        let floating = config.rules.iter().flat_map(|rule| &rule.floating).map(ToString::to_string).collect::<Vec<_>>();
        check_names("`floating` addresses", floating.iter())?;
        for rule in config.rules.iter().filter(|rule| rule.has_one_node()) {
            let is_it = |other: &&Deploy| other.name != rule.name && other.module.name == rule.module.name;
            let other = config.rules.iter().find(is_it).map(|other| &other.name);
            ensure!(
                other.is_none(),
                "rules `{}` and `{}` have one module, and `floating` or `move`: a node has one module of a name, so they would take it from each other; build it under another name",
                rule.name,
                other.map_or("", |name| name)
            );
        }
        check_names("rules", config.rules.iter().map(|rule| &rule.name))?;
        check_names("metrics", config.metrics.iter().map(|metric| &metric.name))?;
        check_names("flows", config.flows.iter().map(|flows| &flows.name))?;
        check_names("logs", config.logs.iter().map(|log| &log.name))?;
        for (index, log) in config.logs.iter().enumerate() {
            let other = config.logs[..index].iter().find(|other| other.has_socket_of(log));
            ensure!(other.is_none(), "log `{}` has the socket of another one", log.name);
            let is_own = log.socket.as_ref() == Some(&config.socket);
            ensure!(!is_own, "log `{}` has the socket of the agent's API", log.name);
        }
        config.number(&[], &[]);
        Ok(config)
    }

    /// Returns the rule of a name.
    pub fn rule(&self, name: &str) -> Option<RuleId> {
        self.rules.iter().find(|rule| rule.name == name).map(|rule| rule.id)
    }

    /// Returns a rule, unless it is gone.
    pub fn get(&self, rule: RuleId) -> Option<&Deploy> {
        self.rules.iter().find(|one| one.id == rule)
    }

    /// Returns a rule's client with its region.
    pub fn toward(&self, rule: RuleId, client: IpAddr) -> Destination {
        let region = self.get(rule).map(|rule| rule.rule().region(client).to_string());
        Destination { client, region: region.unwrap_or_else(|| "of a rule that is gone".to_owned()), node: None }
    }

    /// Returns the metric of a name.
    pub fn metric(&self, name: &str) -> Option<MetricId> {
        self.metrics.iter().find(|metric| metric.name == name).map(|metric| metric.id)
    }

    /// Takes the place of another configuration: rules of the same name and module have the numbers that they had there, and so have
    /// metrics that are the same in all.
    ///
    /// # Errors
    /// Something is another one that needs a restart.
    pub fn follow(&mut self, before: &Config) -> Result<()> {
        for (key, is_same) in [
            ("user", self.user == before.user),
            ("state-dir", self.state_dir == before.state_dir),
            ("socket", self.socket == before.socket),
            ("nearest", self.nearest == before.nearest),
            ("page", self.page == before.page),
        ] {
            ensure!(is_same, "`{key}` is another one, which needs a restart");
        }
        self.next = before.next;
        self.number(&before.rules, &before.metrics);
        for rule in &self.rules {
            let moved = before.get(rule.id).is_none_or(|old| old.moves.is_some() == rule.moves.is_some());
            ensure!(
                moved,
                "`move` of rule `{}` can neither come nor go: nodes count the owners of its module; give the rule another name",
                rule.name
            );
            let had = before.get(rule.id).is_some_and(|old| !old.floating.is_empty());
            ensure!(
                !had || !rule.floating.is_empty(),
                "`floating` of rule `{}` cannot go: nodes remember its owners, and refuse who is none; give the module another name",
                rule.name
            );
        }
        Ok(())
    }

    fn number(&mut self, rules: &[Deploy], metrics: &[Metric]) {
        for rule in &mut self.rules {
            let is_it = |other: &&Deploy| other.name == rule.name && other.module.name == rule.module.name;
            rule.id = rules.iter().find(is_it).map_or(RuleId(self.next.0), |other| other.id);
            self.next.0 += u32::from(rule.id.0 == self.next.0);
        }
        for metric in &mut self.metrics {
            let is_it = |other: &&Metric| **other == Metric { id: other.id, ..metric.clone() };
            metric.id = metrics.iter().find(is_it).map_or(MetricId(self.next.1), |other| other.id);
            self.next.1 += u32::from(metric.id.0 == self.next.1);
        }
    }
}

fn check_names<'n>(what: &str, names: impl Iterator<Item = &'n String>) -> Result<()> {
    let mut known = BTreeSet::new();
    for name in names {
        ensure!(known.insert(name), "two {what} are called `{name}`");
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use netserv_model::limits::PROPERTY_BYTES_MAX;

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

    /// Goal: what goes on keeps its number, and nothing gets that of another. Method: configurations that take each other's place.
    #[test]
    fn numbers_are_those_of_what_goes_on() {
        let metric = |name: &str, over: &str| {
            format!("[[metric]]\nname = \"{name}\"\nkamailio = \"/k\"\nstatistic = \"{over}\"\n")
        };
        let (head, rule) = TEXT.split_once("[[rule]]").unwrap();
        let text = |metrics: &str, rules: &[&str]| {
            let rules: String = rules.iter().map(|name| format!("[[rule]]{}", rule.replace("edge", name))).collect();
            format!("{head}{metrics}{rules}")
        };
        let numbers = |config: &Config| {
            let rules: Vec<u32> = config.rules.iter().map(|rule| rule.id.0).collect();
            (rules, config.metrics.iter().map(|metric| metric.id.0).collect::<Vec<u32>>())
        };
        let first = Config::parse(&text(&metric("a", "x"), &["one", "two"])).unwrap();
        assert_eq!(numbers(&first), (vec![0, 1], vec![0]));
        let mut second = Config::parse(&text(&[metric("a", "y"), metric("b", "x")].concat(), &["two", "new"])).unwrap();
        second.follow(&first).unwrap();
        assert_eq!(numbers(&second), (vec![1, 2], vec![1, 2]));
        assert!(second.get(RuleId(0)).is_none() && second.get(RuleId(1)).is_some_and(|rule| rule.name == "two"));
        let mut third =
            Config::parse(&text(&metric("b", "x"), &["one", "two"]).replace("org/m@", "org/other@")).unwrap();
        third.follow(&second).unwrap();
        assert_eq!(numbers(&third), (vec![3, 4], vec![2]), "another module is another rule");
        let mut other = Config::parse(&TEXT.replace("user", "socket = \"/x\"\nuser")).unwrap();
        assert!(other.follow(&first).unwrap_err().to_string().contains("`socket` is another one"));
    }

    #[test]
    fn what_nodes_are_asked_for_is_told_from_the_rest() {
        let rule = |from: &str, to: &str| Config::parse(&TEXT.replacen(from, to, 1)).unwrap().rules.remove(0);
        let first = rule("", "");
        for (from, to) in [
            ("{client}\"", "x\""),
            ("@1.0.0", "@1.0.1"),
            ("port 53", "port 54"),
            ("[[rule]]", "[[rule]]\nregion-v4 = 25"),
        ] {
            let other = rule(from, to);
            assert!(!other.asks_the_same(&first) && !other.is_same(&first), "{to}");
        }
        let other = rule("[[rule]]", "[[rule]]\ncount = 7\nidle-s = 8");
        assert!(other.asks_the_same(&first) && !other.is_same(&first));
    }

    /// Goal: a renewed chain is what nodes are asked for anew, and nothing but certificates of its file leaves the machine.
    #[test]
    fn a_chain_is_read_from_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let (path, chain) = (dir.path().join("agent.toml"), dir.path().join("chain.pem"));
        std::fs::write(&path, TEXT.replace("[[rule]]", &format!("[[rule]]\ntls-chain = {chain:?}"))).unwrap();
        let pem = |kind: &str, text: &str| format!("-----BEGIN {kind}-----\n{text}\n-----END {kind}-----\n");
        let read = |text: &str| {
            std::fs::write(&chain, text).unwrap();
            Config::read(&path).map(|mut config| config.rules.remove(0))
        };
        let own = pem("CERTIFICATE", "own");
        let first =
            read(&format!("{}{own}words\n{}", pem("PRIVATE KEY", "key"), pem("CERTIFICATE", "middle"))).unwrap();
        let expected = [("first", "{client}"), ("tls-chain", own.trim_end()), ("tls-chain-2", "middle")];
        let properties: Vec<(&str, &str)> =
            first.properties.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(properties[..2], expected[..2]);
        assert!(properties.len() == 3 && properties[2].1.contains("\nmiddle\n"), "{properties:?}");
        assert!(read(&own).unwrap().asks_the_same(&read(&own).unwrap()));
        assert!(!read(&own).unwrap().asks_the_same(&first), "it is another chain");
        for wrong in [String::new(), pem("PRIVATE KEY", "key"), pem("CERTIFICATE", &"x".repeat(PROPERTY_BYTES_MAX))] {
            let error = format!("{:#}", read(&wrong).unwrap_err());
            assert!(error.contains("`tls-chain`") && error.contains("rule `edge`"), "{error}");
        }
        std::fs::remove_file(&chain).unwrap();
        assert!(format!("{:#}", Config::read(&path).unwrap_err()).contains("cannot read"));
    }

    #[test]
    fn a_rule_that_moves_says_when_and_goes_on_so() {
        let moves = |keys: &str| Config::parse(&TEXT.replacen("name = \"edge\"", &moving(keys), 1)).unwrap();
        let first = moves("store = \"https://s/a\", load-over = 0.9, follow = true");
        let rule = first.rules[0].rule().moves.unwrap();
        assert_eq!((rule.load_over, rule.load_until, rule.follow, rule.looks), (Some(900), 450, true, 3));
        let mut other = moves("store = \"https://s/b\", load-over = 0.8");
        other.follow(&first).unwrap();
        assert!(other.rules[0].asks_the_same(&first.rules[0]) && !other.rules[0].is_same(&first.rules[0]));
        let without = TEXT.replacen("name = \"edge\"", "name = \"edge\"\ndeployments-max = 1", 1);
        let mut without = Config::parse(&without).unwrap();
        assert!(without.follow(&first).unwrap_err().to_string().contains("can neither come nor go"));
    }

    fn moving(keys: &str) -> String {
        format!("name = \"edge\"\ndeployments-max = 1\nmove = {{ {keys} }}")
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (from, to, expected) in [
            ("{client} ", "{user} ", "has no `{client}`"),
            ("socket = ", "group = \"www\"\nudp = \"127.0.0.1:1\"\n# ", "`group` is for `socket`"),
            ("socket = ", "udp = \"127.0.0.1:1\"\nsocket = ", "one of them"),
            ("socket = ", "udp = \"192.0.2.1:1\"\n# ", "no loopback address"),
            ("socket = ", "# ", "one of them"),
            ("/run/a.sock", "/run/netserv/agent.sock", "the agent's API"),
            ("log = \"access\"", "flows = \"web\"\nlog = \"access\"", "there are no flows `web`"),
            ("[[rule]]", "[[flows]]\nname = \"web\"\nprotocol = \"tcp\"\n[[rule]]", "one of them"),
            ("[[rule]]", "[[flows]]\nname = \"web\"\nprotocol = \"tcp\"\nlocal-port = 0\n[[rule]]", "from 1 on"),
            ("[[rule]]", "[[flows]]\nname = \"web\"\nprotocol = \"sctp\"\nlocal-port = 1\n[[rule]]", "unknown variant"),
            ("name = \"edge\"", "name = \"edge\"\nfloating = [\"192.0.2.9\"]", "`deployments-max = 1`"),
            ("name = \"edge\"", "name = \"edge\"\ndeployments-max = 1\nfloating = [\"224.0.0.9\"]", "no container"),
            (
                "name = \"edge\"",
                "name = \"edge\"\ndeployments-max = 1\nfloating = [\"192.0.2.9\", \"192.0.2.9\"]",
                "two `floating` addresses are called `192.0.2.9`",
            ),
            ("name = \"edge\"", "name = \"edge\"\nflows = \"x\"\nidle-s = 9", "flows"),
            ("log = \"access\"", "log = \"error\"", "there is no log `error`"),
            ("status = \"200\"", "code = \"200\"", "`only` has `code`"),
            ("udp src", "udp sorc", "filter `udp sorc"),
            ("name = \"edge\"", "name = \"edge\"\ncount = 0", "`count` is 0"),
            ("name = \"edge\"", "name = \"edge\"\nrestart-topic = \"server\"", "takes `server`"),
            ("name = \"edge\"", "name = \"edge\"\nlease-s = 9", "`lease` is below 10 s"),
            ("user", "user-name", "unknown field"),
            ("[[rule]]", "[[metric]]\nname = \"load\"\nkamailio = \"/k\"\n[[rule]]", "metric"),
            ("name = \"edge\"", "name = \"edge\"\nwhile = { metric = \"load\", over = 1 }", "no metric `load`"),
            ("key = ", "nearest = \"192.0.2.1:80\"\nkey = ", "`nearest` is no loopback address"),
            (
                "name = \"edge\"",
                "name = \"edge\"\nmove = { store = \"http://s\" }",
                "`move` takes `deployments-max = 1`",
            ),
            ("name = \"edge\"", &moving("store = \"http://s\", looks = 0"), "`looks` is not from 1"),
            ("name = \"edge\"", &moving("store = \"http://s\", every-s = 0"), "`every-s` is not from 1"),
            ("name = \"edge\"", &moving("store = \"http://s\", rest-s = 86401"), "`rest-s` is over"),
            ("name = \"edge\"", &moving("store = \"http://s\", freeze-s = 61"), "`freeze-s` is not from 1 to 60"),
            ("name = \"edge\"", &moving("store = \"http://s\", load-over = 1, load-until = 2"), "`load-until` is over"),
            ("name = \"edge\"", &moving("store = \"http://s\", load-over = -1"), "a number from 0 on"),
            ("name = \"edge\"", &moving("store = \"http://s\", load-over = nan"), "a number from 0 on"),
            ("name = \"edge\"", &moving("store = \"/states\""), "no URL of HTTP"),
            ("name = \"edge\"", &moving("store = \"http://s\", fetch = \"ftp://s\""), "no URL of HTTP"),
            ("name = \"edge\"", &moving("follow = true"), "missing field `store`"),
            ("name = \"edge\"", &format!("{}\nboth-ways = true", moving("store = \"http://s\"")), "`both-ways`"),
            ("[[log]]", "[names]\nfile = \"/x\"\ndomain = \"a b\"\n[[log]]", "`domain` is no name"),
            ("key = ", "page = \"[::]:80\"\nkey = ", "`page` is no loopback address"),
        ] {
            let error = format!("{:#}", Config::parse(&TEXT.replacen(from, to, 1)).unwrap_err());
            assert!(error.contains(expected), "{error} has no {expected}");
        }
        let (head, rule) = TEXT.split_once("[[rule]]").unwrap();
        let twice = format!("{head}[[rule]]{rule}[[rule]]{rule}");
        assert!(Config::parse(&twice).unwrap_err().to_string().contains("two rules"));
        let floats = "name = \"f\"\ndeployments-max = 1\nfloating = [\"192.0.2.9\"]";
        let beside = format!("{head}[[rule]]{rule}[[rule]]{}", rule.replace("name = \"edge\"", floats));
        assert!(Config::parse(&beside).unwrap_err().to_string().contains("rules `f` and `edge` have one module"));
        Config::parse(&beside.replacen("org/m@", "org/other@", 1)).unwrap();
        let log = &head[head.find("[[log]]").unwrap()..];
        let second = log.replacen("access", "second", 1);
        let error = |more: &str| Config::parse(&format!("{TEXT}{more}")).unwrap_err().to_string();
        assert!(error(log).contains("two logs are called `access`"));
        assert!(error(&second).contains("the socket of another one"));
        let many = format!(
            "{head}{}",
            (0..=RULES_MAX).map(|n| format!("[[rule]]{}", rule.replace("edge", &format!("e{n}")))).collect::<String>()
        );
        assert!(Config::parse(&many).unwrap_err().to_string().contains("at most 64"));
    }
}
