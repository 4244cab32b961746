// SPDX-License-Identifier: Apache-2.0
//! The operator's own services, and the conditions on which they run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use anyhow::{Error, Result, anyhow, bail, ensure};
use ipnet::IpNet;
use netserv_model::{Digest, Filter, ModuleRef, PublicKey};
use netserv_plane::limits::COUNTED_PREFIXES_MAX;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::users::User;
use crate::limits::{SERVICE_CONDITIONS_MAX, SERVICE_HOLD_S_MAX, SERVICES_MAX};

/// The user as whom they run.
pub const OPERATOR: &str = "operator";

/// A module that the node installs by itself while one of the conditions holds. It is charged to nobody.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Service {
    /// What people call it.
    pub name: String,
    /// The module and its version.
    pub module: ModuleRef,
    /// Where its package is.
    pub url: String,
    /// The package's digest.
    pub digest: Digest,
    /// Who signed the package. Whoever has that key can ask as the user `operator`.
    pub signer: PublicKey,
    /// Which packets it sees; if empty, the manifest's filters.
    #[serde(default)]
    pub filters: Vec<Filter>,
    /// What the module can read at run time.
    #[serde(default)]
    pub properties: BTreeMap<String, String>,
    /// The conditions, such as `syns/s to 192.0.2.7 > 1000` or `packets/s to 2001:db8::/32 > 100000`, looked at every 100 ms.
    pub when: Vec<Condition>,
    /// Seconds for which all conditions have to be at half of their bounds or below before it is stopped, 1 to 86,400.
    #[serde(default = "thirty")]
    pub hold_s: u64,
}

fn thirty() -> u64 {
    30
}

/// Something that the forwarding plane counts, and how much of it in a second is too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Condition {
    /// What is counted.
    pub quantity: Quantity,
    /// The destinations, all together.
    pub to: IpNet,
    /// It holds when more of it come in a second.
    pub over: u64,
}

/// What a condition counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Packets.
    Packets,
    /// Opening segments of TCP connections.
    Syns,
}

impl FromStr for Condition {
    type Err = Error;

    fn from_str(text: &str) -> Result<Condition> {
        let form =
            || anyhow!("`{text}` is no condition: write `syns/s to PREFIX > NUMBER`, or `packets/s` for all packets");
        let [quantity, "to", to, ">", over] = text.split_whitespace().collect::<Vec<_>>()[..] else { bail!(form()) };
        let quantity = match quantity {
            "packets/s" => Quantity::Packets,
            "syns/s" => Quantity::Syns,
            _ => bail!(form()),
        };
        let address =
            |text: &str| text.parse().ok().map(|address: std::net::IpAddr| IpNet::from(address.to_canonical()));
        let to: IpNet = to.parse().ok().or_else(|| address(to)).ok_or_else(form)?;
        Ok(Condition { quantity, to: to.trunc(), over: over.parse().map_err(|_| form())? })
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quantity = match self.quantity {
            Quantity::Packets => "packets/s",
            Quantity::Syns => "syns/s",
        };
        write!(f, "{quantity} to {} > {}", self.to, self.over)
    }
}

impl TryFrom<String> for Condition {
    type Error = Error;

    fn try_from(text: String) -> Result<Condition> {
        text.parse()
    }
}

impl From<Condition> for String {
    fn from(condition: Condition) -> String {
        condition.to_string()
    }
}

/// Checks services beside the users that are named.
pub(super) fn check(services: &[Service], users: &[User], runs_modules: bool) -> Result<()> {
    if services.is_empty() {
        return Ok(());
    }
    ensure!(runs_modules, "there are services, and the role `host` runs no modules");
    ensure!(services.len() <= SERVICES_MAX, "there are {} services, at most {SERVICES_MAX} may be", services.len());
    let is_taken = users.iter().any(|user| user.name.as_str() == OPERATOR);
    ensure!(!is_taken, "the name of user {OPERATOR} is that of the node's own services; choose another");
    let (mut names, mut modules) = (BTreeSet::new(), BTreeSet::new());
    for Service { name, module, when, hold_s, .. } in services {
        ensure!(names.insert(name), "service {name} is there twice");
        ensure!(modules.insert(&module.name), "module {} is in two services", module.name);
        ensure!(
            (1..=SERVICE_CONDITIONS_MAX).contains(&when.len()),
            "service {name} has {} conditions, but must have 1 to {SERVICE_CONDITIONS_MAX}",
            when.len()
        );
        ensure!(
            (1..=SERVICE_HOLD_S_MAX).contains(hold_s),
            "hold-s of service {name} is {hold_s}, but must be from 1 to {SERVICE_HOLD_S_MAX}"
        );
    }
    let prefixes: BTreeSet<IpNet> = services.iter().flat_map(|service| &service.when).map(|when| when.to).collect();
    let count = prefixes.len();
    ensure!(count <= COUNTED_PREFIXES_MAX, "conditions name {count} prefixes, at most {COUNTED_PREFIXES_MAX} may be");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn service(name: &str, more: &str) -> String {
        let (digest, key) = ("0".repeat(64), "0".repeat(64));
        format!(
            "[[service]]\nname = '{name}'\nmodule = 'example.org/{name}@1.0.0'\nurl = 'file:///m.nsm'\n\
             digest = 'sha256:{digest}'\nsigner = 'ed25519:{key}'\n{more}\n"
        )
    }

    const WHEN: &str = "when = ['syns/s to 192.0.2.7 > 1000']";

    #[test]
    fn conditions_are_read_and_written() {
        for (text, expected) in [
            ("syns/s to 192.0.2.7 > 1000", "syns/s to 192.0.2.7/32 > 1000"),
            ("  packets/s   to 2001:db8::1/32 > 0", "packets/s to 2001:db8::/32 > 0"),
            ("packets/s to ::/0 > 18446744073709551615", "packets/s to ::/0 > 18446744073709551615"),
        ] {
            let condition: Condition = text.parse().unwrap();
            assert_eq!(condition.to_string(), expected);
            assert_eq!(expected.parse::<Condition>().unwrap(), condition);
        }
        for text in [
            "",
            "syns/s",
            "bytes/s to 192.0.2.7 > 1",
            "syns/s to nowhere > 1",
            "syns/s to 192.0.2.7 > -1",
            "syns/s to 192.0.2.7 > 18446744073709551616",
            "syns/s to 192.0.2.7 < 1",
            "syns/s to 192.0.2.7 > 1 or more",
        ] {
            let error = text.parse::<Condition>().unwrap_err().to_string();
            assert!(error.contains("is no condition"), "{error}");
        }
    }

    #[test]
    fn what_no_service_can_be_is_named() {
        let many = |count: usize, prefix: &dyn Fn(usize) -> String| {
            let conditions = (0..count).map(|n| format!("'syns/s to {} > 1'", prefix(n)));
            format!("when = [{}]", conditions.collect::<Vec<_>>().join(","))
        };
        let services = |count: usize, each: usize| {
            let one = |n: usize| service(&format!("s{n}"), &many(each, &|m| format!("10.{n}.{m}.0/24")));
            (0..count).map(one).collect::<String>()
        };
        let good = |text: &str| Config::parse(text).unwrap().services.len();
        assert_eq!(good(&service("a", WHEN)), 1);
        assert_eq!(good(&services(SERVICES_MAX, 1)), SERVICES_MAX);
        assert_eq!(good(&services(COUNTED_PREFIXES_MAX / SERVICE_CONDITIONS_MAX, SERVICE_CONDITIONS_MAX)), 8);
        let user = "[[user]]\nname = 'operator'\nkeys = []\nprefixes = []\n";
        for (text, named) in [
            (service("a", "when = []"), "0 conditions"),
            (service("a", &many(SERVICE_CONDITIONS_MAX + 1, &|_| "192.0.2.1".to_owned())), "9 conditions"),
            (services(SERVICES_MAX + 1, 1), "at most 16"),
            (services(9, SERVICE_CONDITIONS_MAX), "72 prefixes"),
            (service("a", &format!("{WHEN}\nhold-s = 0")), "hold-s"),
            (service("a", &format!("{WHEN}\nhold-s = 86401")), "hold-s"),
            (service("a", "when = ['sins/s to 192.0.2.7 > 1']"), "no condition"),
            (service("a", &format!("{WHEN}\nholds = 1")), "holds"),
            (service("a", WHEN) + &service("a", WHEN), "twice"),
            (service("a", WHEN) + &service("b", WHEN).replace("org/b", "org/a"), "two services"),
            (service("a", WHEN) + user, "operator"),
            (format!("role = 'host'\n{}", service("a", WHEN)), "host"),
        ] {
            let error = format!("{:#}", Config::parse(&text).unwrap_err());
            assert!(error.contains(named), "{named}: {error}");
        }
    }
}
