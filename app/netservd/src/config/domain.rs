// SPDX-License-Identifier: Apache-2.0
//! The operator's domain: `[signaling.domain]`, and a `[[signaling.domain.neighbour]]` for each rule of who is inside.

use anyhow::{Result, bail, ensure};
use ipnet::IpNet;
use netserv_model::domain::{DomainPolicy, Methods, Neighbour, Neighbours, Refused, Show, Side, Strangers, Users};
use netserv_model::{DomainName, UserId};
use netserv_netlink::routes::{LocalAddress, LocalAddresses};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::tls::PeerName;
use crate::limits::NEIGHBOURS_MAX;

/// Whom signaling believes, what leaves the domain, and what outsiders learn. Without a neighbour there is no border:
/// everybody is inside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Domain {
    /// What it is called, as `isp.example`: requests may be for nodes of named domains alone. Nodes take no other for theirs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<DomainName>,
    /// What becomes of a request from outside that `take` has not: `stop` refuses it, and it goes no further; `pass` refuses
    /// it here, and it goes on.
    pub refused: Refused,
    /// What whoever asks from outside sees of the response stack: `all`; `border`, this node's entry and how many more there
    /// are; `count`, how many there are.
    pub show: Show,
    /// Whose requests are taken from outside.
    pub take: MethodUsers,
    /// Whose requests are let out.
    pub let_out: MethodUsers,
    /// What a PROBE from outside leads to whose sender is no user of this node's, for each thing asked: `nothing`,
    /// `presence` or `all`.
    pub strangers: Strangers,
    /// Where the nodes next to this one are, by the first that fits; those that fit none are outside.
    #[serde(rename = "neighbour", skip_serializing_if = "Vec::is_empty")]
    pub neighbours: Vec<NeighbourRule>,
}

impl Default for Domain {
    fn default() -> Domain {
        let DomainPolicy { refused, show, strangers, .. } = DomainPolicy::default();
        let (take, let_out) = (MethodUsers::default(), MethodUsers::default());
        Domain { name: None, refused, show, take, let_out, strangers, neighbours: Vec::new() }
    }
}

/// Users by what they ask for; `*` is everybody, also who says no name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct MethodUsers {
    /// SETUPs.
    pub setup: Vec<String>,
    /// REMOVEs.
    pub remove: Vec<String>,
    /// PROBEs.
    pub probe: Vec<String>,
}

impl Default for MethodUsers {
    fn default() -> MethodUsers {
        let all = || vec![EVERYBODY.to_owned()];
        MethodUsers { setup: all(), remove: all(), probe: all() }
    }
}

impl MethodUsers {
    fn policy(&self, key: &str) -> Result<Methods> {
        let users = |field: &str, names: &[String]| users(&format!("signaling.domain.{key}.{field}"), names);
        Ok(Methods {
            setup: users("setup", &self.setup)?,
            remove: users("remove", &self.remove)?,
            probe: users("probe", &self.probe)?,
        })
    }
}

fn users(key: &str, names: &[String]) -> Result<Users> {
    if names.iter().any(|name| name == EVERYBODY) {
        ensure!(names.len() == 1, "{key} has `{EVERYBODY}`, which is everybody, and others beside it");
        return Ok(Users::All);
    }
    let parse = |name: &String| name.parse::<UserId>().map_err(|error| anyhow::anyhow!("{key}: {error}"));
    Ok(Users::Only(names.iter().map(parse).collect::<Result<_>>()?))
}

/// Some of the nodes next to this one; all conditions that are there have to hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct NeighbourRule {
    /// Where they are: `inside` or `outside`.
    pub side: Side,
    /// The peer's address lies in this network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub prefix: Option<IpNet>,
    /// The peer's address lies in a network of this interface, as its addresses are at the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// The name in the certificate that the peer showed: `n1.example.net`, or `*.example.net` for one label more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_name: Option<String>,
}

impl NeighbourRule {
    fn policy(&self, networks: &dyn Fn(&str) -> Vec<IpNet>) -> Neighbour {
        let of_interface = self.interface.as_deref().map(networks);
        let prefixes = match (self.prefix, of_interface) {
            (None, networks) => networks,
            (Some(prefix), None) => Some(vec![prefix]),
            (Some(prefix), Some(networks)) => {
                Some(networks.into_iter().filter_map(|network| common(prefix, network)).collect())
            }
        };
        Neighbour { side: self.side, prefixes, tls_name: self.tls_name.as_ref().map(|name| name.to_ascii_lowercase()) }
    }
}

/// Returns the network whose addresses lie in both.
fn common(a: IpNet, b: IpNet) -> Option<IpNet> {
    if a.contains(&b) {
        return Some(b);
    }
    b.contains(&a).then_some(a)
}

impl Domain {
    /// Returns what signaling goes by; `networks` are those of an interface.
    ///
    /// # Errors
    /// A user whose name is none.
    pub fn policy(&self, networks: &dyn Fn(&str) -> Vec<IpNet>) -> Result<DomainPolicy> {
        let neighbours = self.neighbours.iter().map(|rule| rule.policy(networks)).collect();
        Ok(DomainPolicy {
            name: self.name.clone(),
            neighbours: Neighbours(neighbours),
            take: self.take.policy("take")?,
            refused: self.refused,
            let_out: self.let_out.policy("let-out")?,
            show: self.show,
            strangers: self.strangers,
        })
    }

    /// Returns whether it depends on the addresses of interfaces.
    pub fn names_interfaces(&self) -> bool {
        self.neighbours.iter().any(|rule| rule.interface.is_some())
    }

    /// Checks what the operator wrote.
    ///
    /// # Errors
    /// Too many rules, a name that is none, or rules that do nothing.
    pub fn check(&self, has_tls: bool) -> Result<()> {
        let count = self.neighbours.len();
        ensure!(
            count <= NEIGHBOURS_MAX,
            "signaling.domain has {count} neighbours, but at most {NEIGHBOURS_MAX} may be"
        );
        for name in self.neighbours.iter().filter_map(|rule| rule.tls_name.as_deref()) {
            match name.parse() {
                Ok(PeerName::Dns(_)) => {}
                Ok(PeerName::Prefix(_)) => bail!("signaling.domain.neighbour: `{name}` is an address; use `prefix`"),
                Err(error) => bail!("signaling.domain.neighbour: {error}"),
            }
            ensure!(has_tls, "signaling.domain.neighbour has tls-name `{name}`, but there is no signaling.tls");
        }
        let empty = self.neighbours.iter().filter_map(|rule| rule.interface.as_deref()).any(str::is_empty);
        ensure!(!empty, "signaling.domain.neighbour has an interface without a name");
        let border = Domain { name: None, neighbours: Vec::new(), ..self.clone() } != Domain::default();
        ensure!(
            !border || count > 0,
            "signaling.domain has rules, but no [[signaling.domain.neighbour]], so that everybody is inside of it"
        );
        self.policy(&|_| Vec::new()).map(drop)
    }
}

/// Returns the networks of an interface's addresses.
pub fn networks_of(addresses: &LocalAddresses, interface: &str) -> Vec<IpNet> {
    let network = |local: &LocalAddress| IpNet::new(local.address, local.prefix_length).ok();
    addresses.of_interface(interface).filter_map(network).map(|network| network.trunc()).collect()
}

const EVERYBODY: &str = "*";

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    #[test]
    fn what_the_operator_writes_is_what_signaling_goes_by() {
        let text = "refused = 'pass'\nshow = 'border'\ntake = { setup = ['jane'], remove = [] }\n\
                    strangers = { load = 'nothing' }\n\
                    [[signaling.domain.neighbour]]\nside = 'outside'\nprefix = '10.1.9.0/24'\n\
                    [[signaling.domain.neighbour]]\nside = 'inside'\nprefix = '10.1.0.0/16'\ninterface = 'eth1'\n";
        let config = domain(text).unwrap();
        let networks = |_: &str| vec!["10.1.2.0/24".parse().unwrap(), "2001:db8::/64".parse().unwrap()];
        let policy = config.signaling.domain.policy(&networks).unwrap();
        assert_eq!((policy.refused, policy.show), (Refused::Pass, Show::Border));
        assert_eq!(policy.take.setup, Users::Only(["jane".parse().unwrap()].into()));
        assert_eq!((policy.take.remove, policy.take.probe), (Users::Only([].into()), Users::All));
        let side = |address: &str| policy.neighbours.side(address.parse().unwrap(), None);
        assert_eq!(
            (side("10.1.2.9"), side("10.1.3.9"), side("10.1.9.9")),
            (Side::Inside, Side::Outside, Side::Outside)
        );
        assert_eq!(side("2001:db8::9"), Side::Outside, "all conditions hold");
        assert_eq!(Config::default().signaling.domain.policy(&networks).unwrap(), DomainPolicy::default());
        let named = domain("name = 'isp.example'\n").unwrap().policy(&networks).unwrap();
        assert_eq!(named.domain.name, Some("isp.example".parse().unwrap()), "without a border");
    }

    #[test]
    fn an_interface_stands_for_its_networks() {
        let routes = netserv_netlink::routes::Routes::open().unwrap();
        let networks = networks_of(&routes.addresses().unwrap(), "lo");
        assert!(networks.contains(&"127.0.0.0/8".parse().unwrap()), "{networks:?}");
        assert_eq!(networks_of(&routes.addresses().unwrap(), "no-such-one"), []);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, named) in [
            ("show = 'border'\n", "everybody is inside"),
            ("show = 'none'\n", "unknown variant `none`"),
            ("name = 'ISP.example'\n", "a domain such as isp.example"),
            ("[[signaling.domain.neighbour]]\nprefix = '10.0.0.0/8'\n", "missing field `side`"),
            (&neighbour("tls-name = 'n1.example.net'"), "no signaling.tls"),
            (&neighbour("tls-name = '10.0.0.1'"), "use `prefix`"),
            (&neighbour("tls-name = 'n 1'"), "no DNS name"),
            (&neighbour("interface = ''"), "without a name"),
            (&format!("take = {{ setup = ['*', 'jane'] }}\n{}", neighbour("")), "and others beside it"),
            (&format!("let-out = {{ probe = ['J!'] }}\n{}", neighbour("")), "signaling.domain.let-out.probe"),
            (&neighbour("").repeat(NEIGHBOURS_MAX + 1), "neighbours, but at most"),
        ] {
            let error = format!("{:#}", domain(text).unwrap_err());
            assert!(error.contains(named), "{error}");
        }
    }

    fn neighbour(more: &str) -> String {
        format!("[[signaling.domain.neighbour]]\nside = 'inside'\n{more}\n")
    }

    fn domain(text: &str) -> Result<Config> {
        Config::parse(&format!("[signaling.domain]\n{text}"))
    }
}
