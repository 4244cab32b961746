// SPDX-License-Identifier: Apache-2.0
//! Who may vouch for users that the configuration does not name, and what these get.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use ipnet::IpNet;
use netserv_authority::limits::{GRANT_PREFIXES_MAX, GRANTED_USERS_MAX};
use netserv_container::network::limits::PERMITS_MAX;
use netserv_model::manifest::ModuleLimits;
use netserv_model::policy::{self, ContainerLimits, NetworkRate, NodePolicy, RevocationSource, UserPolicy};
use netserv_model::{Filter, PublicKey, UserId};
use netserv_repository::check_list_url;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::users::ports_of;
use crate::limits::{ISSUERS_MAX, REVOCATIONS_AGE_MAX_S, REVOCATIONS_EVERY_S};

/// One who may vouch for users by grants, as a clearinghouse or a customer that is a provider itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Issuer {
    /// What the operator calls it.
    pub name: UserId,
    /// Keys that it signs grants with.
    pub keys: Vec<PublicKey>,
    /// Prefixes of which it may give parts.
    #[schemars(with = "Vec<String>")]
    pub prefixes: Vec<IpNet>,
    /// What its users get: the name of a `[class.NAME]`.
    pub class: String,
    /// Where it says what it takes back, as `https://lists.example/house`. If this is there, its grants count only while the list is good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revocations: Option<String>,
    /// Seconds after which the list is asked for again.
    #[serde(default = "revocations_every_s")]
    pub revocations_every_s: u64,
    /// Seconds for which a list is good after it was made, unless it ends before.
    #[serde(default = "revocations_age_max_s")]
    pub revocations_age_max_s: u64,
}

const fn revocations_every_s() -> u64 {
    30
}

const fn revocations_age_max_s() -> u64 {
    24 * 3600
}

/// Returns a time in seconds that has to be in a range.
pub(super) fn within(key: &str, seconds: u64, range: &RangeInclusive<u64>) -> Result<Duration> {
    let (least, most) = (range.start(), range.end());
    ensure!(range.contains(&seconds), "{key} is {seconds}, but must be from {least} to {most}");
    Ok(Duration::from_secs(seconds))
}

impl Issuer {
    fn revocations(&self) -> Result<Option<RevocationSource>> {
        let (name, every, age_max) = (&self.name, self.revocations_every_s, self.revocations_age_max_s);
        let every = within(&format!("revocations-every-s of issuer {name}"), every, &REVOCATIONS_EVERY_S)?;
        let age_max = within(&format!("revocations-age-max-s of issuer {name}"), age_max, &REVOCATIONS_AGE_MAX_S)?;
        let Some(url) = self.revocations.clone() else { return Ok(None) };
        check_list_url(&url).map_err(|refusal| anyhow!("revocations of issuer {name}: {}", refusal.detail))?;
        Ok(Some(RevocationSource { url, every, age_max }))
    }
}

/// What each user gets at most whose rights come from a proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Class {
    /// Users at one time, for each issuer; those without modules give way.
    pub users_max: usize,
    /// Prefixes of one user.
    pub prefixes_max: usize,
    /// Seconds of a lease at most; 0 for the node's `admission.ttl-max-s`.
    pub lease_max_s: u64,
    /// Ports that filters may name, as `5060` or `16384-32767`; empty means every port.
    pub ports: Vec<String>,
    /// Modules at most.
    pub modules_max: u32,
    /// The highest limits of one module.
    #[serde(deserialize_with = "ModuleLimits::deserialize_ceiling")]
    pub module_limits: ModuleLimits,
    /// Limits of a user's container.
    pub container: ContainerLimits,
    /// What a user's containers may accept; with neither this nor `connect`, they have no network.
    pub listen: Vec<Filter>,
    /// What a user's containers may open. Without `dst`, it is about other machines only.
    pub connect: Vec<Filter>,
    /// How fast a user's containers send and receive by their network, each way.
    pub network: NetworkRate,
}

impl Default for Class {
    fn default() -> Class {
        Class {
            users_max: 64,
            prefixes_max: 4,
            lease_max_s: 0,
            ports: Vec::new(),
            modules_max: 2,
            module_limits: ModuleLimits::ceiling(),
            container: ContainerLimits::default(),
            listen: Vec::new(),
            connect: Vec::new(),
            network: NetworkRate::default(),
        }
    }
}

impl Class {
    fn policy(&self, name: &str) -> Result<policy::Class> {
        let rights = UserPolicy {
            ports: ports_of(&self.ports).map_err(|error| anyhow!("class {name}: {error}"))?,
            modules_max: self.modules_max,
            module_limits: self.module_limits,
            container: self.container,
            listen: self.listen.clone(),
            connect: self.connect.clone(),
            network: self.network,
            ..UserPolicy::default()
        };
        let lease_max = (self.lease_max_s > 0).then(|| Duration::from_secs(self.lease_max_s));
        Ok(policy::Class { users_max: self.users_max, prefixes_max: self.prefixes_max, lease_max, rights })
    }

    fn check(&self, name: &str, has_network: bool) -> Result<()> {
        let within = |key: &str, value: usize, most: usize| {
            ensure!((1..=most).contains(&value), "{key} of class {name} is {value}, but must be from 1 to {most}");
            Ok(())
        };
        within("users-max", self.users_max, GRANTED_USERS_MAX)?;
        within("prefixes-max", self.prefixes_max, GRANT_PREFIXES_MAX)?;
        self.network.check().map_err(|error| anyhow!("network of class {name}: {error}"))?;
        for (key, filters) in [("listen", &self.listen), ("connect", &self.connect)] {
            ensure!(filters.len() <= PERMITS_MAX, "`{key}` of class {name} has over {PERMITS_MAX} filters");
            let fix = "set network.prefixes";
            ensure!(has_network || filters.is_empty(), "class {name} has `{key}`, but containers no addresses; {fix}");
        }
        Ok(())
    }
}

/// Adds to a policy who may vouch for users, and what these get.
///
/// # Errors
/// A class that is not there, or with a figure that none may have; two issuers of one name or key.
pub fn add_to(policy: &mut NodePolicy, issuers: &[Issuer], classes: &BTreeMap<String, Class>) -> Result<()> {
    for (name, class) in classes {
        class.check(name, !policy.container_prefixes.is_empty() || policy.host_only)?;
        policy.classes.insert(name.clone(), class.policy(name)?);
    }
    ensure!(issuers.len() <= ISSUERS_MAX, "there are {} issuers, at most {ISSUERS_MAX} are taken", issuers.len());
    for issuer @ Issuer { name, keys, prefixes, class, .. } in issuers {
        ensure!(classes.contains_key(class), "issuer {name} is of class `{class}`, and there is no [class.{class}]");
        let has = |key: &PublicKey| policy.issuers.iter().any(|known| known.keys.contains(key));
        if let Some(key) = keys.iter().find(|key| has(key)) {
            return Err(anyhow!("issuer {name} has {key}, which another issuer has"));
        }
        ensure!(policy.issuers.iter().all(|known| known.name != name.as_str()), "issuer {name} is there twice");
        let (revocations, name, class) = (issuer.revocations()?, name.to_string(), class.clone());
        let (keys, prefixes) = (keys.clone(), prefixes.clone());
        policy.issuers.push(policy::Issuer { name, keys, prefixes, class, revocations });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::limits::RPKI_AGE_MAX_S;

    const KEY: &str = "ed25519:0000000000000000000000000000000000000000000000000000000000000000";

    fn config(issuer: &str, class: &str) -> String {
        format!(
            "[[issuer]]\nname = 'house'\nkeys = ['{KEY}']\nprefixes = ['10.0.0.0/8']\nclass = 'guest'\n{issuer}\n\
             [class.guest]\n{class}\n"
        )
    }

    #[test]
    fn issuers_and_classes_are_the_policys() {
        let text = config("", "users-max = 7\nports = ['5060']\nlease-max-s = 60\nmodule-limits = { timers = 3 }");
        let policy = Config::parse(&text).unwrap().policy(&|_| Vec::new()).unwrap();
        assert_eq!(policy.issuers[0].class, "guest");
        let class = &policy.classes["guest"];
        assert_eq!((class.users_max, class.rights.module_limits.timers), (7, 3));
        assert_eq!(class.lease_max.unwrap().as_secs(), 60);
        assert_eq!(class.rights.ports, ["5060".parse().unwrap()]);
        assert!(Config::default().policy(&|_| Vec::new()).unwrap().issuers.is_empty(), "nothing changes by default");
        assert_eq!(policy.issuers[0].revocations, None);
        let url = "https://lists.example/house".to_owned();
        let text = config(&format!("revocations = '{url}'"), "");
        let policy = Config::parse(&text).unwrap().policy(&|_| Vec::new()).unwrap();
        let (every, age_max) = (Duration::from_secs(30), Duration::from_secs(86400));
        assert_eq!(policy.issuers[0].revocations, Some(RevocationSource { url, every, age_max }));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        for (issuer, class, error) in [
            ("", "users-max = 0", "users-max of class guest is 0, but must be from 1 to 512"),
            ("", "prefixes-max = 17", "prefixes-max of class guest is 17"),
            ("", "ports = ['x']", "class guest: "),
            ("", "listen = ['tcp port 80']", "class guest has `listen`, but containers no addresses"),
            ("", "network = { packets-per-second = 0 }", "network of class guest"),
            ("", "modules = 3", "unknown field `modules`"),
            (
                "revocations = 'ftp://lists.example/x'",
                "",
                "revocations of issuer house: the node does not fetch `ftp:`",
            ),
            ("revocations-every-s = 0", "", "revocations-every-s of issuer house is 0, but must be from 1 to 300"),
            ("revocations-age-max-s = 59", "", "revocations-age-max-s of issuer house is 59, but must be from 60 to"),
            ("[[issuer]]\nname = 'other'\nkeys = []\nprefixes = []\nclass = 'none'", "", "there is no [class.none]"),
            (
                "[[issuer]]\nname = 'house'\nkeys = []\nprefixes = []\nclass = 'guest'",
                "",
                "issuer house is there twice",
            ),
        ] {
            let found = format!("{:#}", Config::parse(&config(issuer, class)).unwrap_err());
            assert!(found.contains(error), "{found}");
        }
        let admission = "[admission]\naddress-class = 'none'";
        let found = format!("{:#}", Config::parse(admission).unwrap_err());
        assert!(found.contains("there is no [class.none]"), "{found}");
        for age in [0, 59, RPKI_AGE_MAX_S.end() + 1] {
            let found = Config::parse(&format!("[rpki]\nage-max-s = {age}")).unwrap_err().to_string();
            assert!(found.contains(&format!("rpki.age-max-s is {age}, but must be from 60 to 2678400")), "{found}");
        }
        assert!(
            [60, *RPKI_AGE_MAX_S.end()].iter().all(|age| Config::parse(&format!("[rpki]\nage-max-s = {age}")).is_ok())
        );
        let again = format!("[[issuer]]\nname = 'other'\nkeys = ['{KEY}']\nprefixes = []\nclass = 'guest'");
        let found = Config::parse(&config(&again, "")).unwrap_err().to_string();
        assert!(found.contains("which another issuer has"), "{found}");
        let many = |number| format!("[[issuer]]\nname = 'i{number}'\nkeys = []\nprefixes = []\nclass = 'guest'\n");
        let all: String = (1..ISSUERS_MAX).map(many).collect();
        assert!(Config::parse(&config(&all, "")).is_ok());
        let found = Config::parse(&config(&(all + &many(0)), "")).unwrap_err().to_string();
        assert!(found.contains("at most 64 are taken"), "{found}");
    }
}
