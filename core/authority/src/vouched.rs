// SPDX-License-Identifier: Apache-2.0
//! What a chain of grants lets its last key do, as the operator trusts its issuer.

use std::time::Duration;

use netserv_model::policy::{Issuer, NodePolicy, UserPolicy};
use netserv_model::{Refusal, RefusalKind, UnixTime};

use crate::chain::{Chain, has_ports};
use crate::grant::Grant;

/// The rights of a user whom an issuer of the operator's vouches for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Vouched {
    pub(crate) may: UserPolicy,
    pub(crate) from: UnixTime,
    pub(crate) until: UnixTime,
    /// The longest lease.
    pub(crate) lease_max: Option<Duration>,
    /// The operator's name for the issuer.
    pub(crate) issuer: String,
}

impl Vouched {
    /// Returns what grants give by a node's policy. No signature is looked at unless the operator trusts the issuer.
    pub(crate) fn by(policy: &NodePolicy, texts: &[String]) -> Result<Vouched, Refusal> {
        Vouched::asked(policy, texts, |_| Ok(()))
    }

    /// Likewise, if `is_asker` finds that the last grant is for who asks. That comes first, as a chain may have been seen by anybody:
    /// whoever does not hold its last key is told nothing of it, and costs no more signatures than somebody with no chain.
    pub(crate) fn asked(
        policy: &NodePolicy,
        texts: &[String],
        is_asker: impl FnOnce(&Chain) -> Result<(), Refusal>,
    ) -> Result<Vouched, Refusal> {
        let unknown = |detail: String| Refusal::new(RefusalKind::UnknownUser, detail);
        let first = texts.first().ok_or_else(|| unknown("the request brings no grant".to_owned()))?;
        let root = Grant::parse(first).map_err(|error| unknown(error.to_string()))?;
        let trusts = |issuer: &&Issuer| issuer.keys.contains(&root.iss);
        let Some(issuer) = policy.issuers.iter().find(trusts) else {
            return Err(unknown(format!("the node takes no grants of {}", root.iss)));
        };
        let chain = Chain::parse(texts).map_err(|error| unknown(error.to_string()))?;
        is_asker(&chain)?;
        // The last one is the first that somebody else cannot have signed for a key of his own.
        for text in texts.iter().rev() {
            Grant::verify(text).map_err(|error| unknown(error.to_string()))?;
        }
        Vouched::of(policy, issuer, &chain)
    }

    fn of(policy: &NodePolicy, issuer: &Issuer, chain: &Chain) -> Result<Vouched, Refusal> {
        let Issuer { name, prefixes, class, .. } = issuer;
        let refusal = |kind, detail: String| Err(Refusal::new(kind, format!("grant of `{name}`: {detail}")));
        let Some(class) = policy.classes.get(class) else {
            return refusal(RefusalKind::UnknownUser, format!("the operator gives class `{class}` no rights"));
        };
        let (root, last) = (chain.root(), chain.last());
        if let Some(wide) = root.prefixes.iter().find(|wide| !prefixes.iter().any(|outer| outer.contains(*wide))) {
            return refusal(RefusalKind::PrefixNotAllowed, format!("it may not give {wide}"));
        }
        if last.prefixes.len() > class.prefixes_max {
            let detail = format!("{} prefixes, at most {} are taken", last.prefixes.len(), class.prefixes_max);
            return refusal(RefusalKind::QuotaExceeded, detail);
        }
        let ports = if last.ports.is_empty() { class.rights.ports.clone() } else { last.ports.clone() };
        if !has_ports(&class.rights.ports, &ports) {
            return refusal(RefusalKind::PortNotAllowed, "it reaches beyond the ports of its class".to_owned());
        }
        let modules_max = chain.modules_max().unwrap_or(u32::MAX).min(class.rights.modules_max);
        let rights = class.rights.clone();
        let may = UserPolicy { keys: vec![last.sub], prefixes: last.prefixes.clone(), ports, modules_max, ..rights };
        let (from, until) = chain.time();
        Ok(Vouched { may, from, until, lease_max: class.lease_max, issuer: name.clone() })
    }

    /// Says why it does not hold at a time, if it does not.
    pub(crate) fn check_time(&self, now: UnixTime) -> Result<(), Refusal> {
        if now < self.from {
            return self.refuse(&format!("it begins at {}, it is {now} here", self.from));
        }
        self.check_end(now)
    }

    /// Says why it does not hold any more at a time, if it does not. It held before, so if it begins later than that, the clock was set.
    pub(crate) fn check_end(&self, now: UnixTime) -> Result<(), Refusal> {
        if now >= self.until { self.refuse(&format!("it ended at {}", self.until)) } else { Ok(()) }
    }

    fn refuse(&self, why: &str) -> Result<(), Refusal> {
        Err(Refusal::new(RefusalKind::UnknownUser, format!("grant of `{}`: {why}", self.issuer)))
    }

    /// Returns whether its user may do at least what another lets the same user do, for however long. Of two classes that give
    /// different things, none has all of the other.
    pub(crate) fn has_all_of(&self, other: &Vouched) -> bool {
        let within = |prefix| self.may.prefixes.iter().any(|outer| outer.contains(prefix));
        other.may.prefixes.iter().all(within)
            && has_ports(&self.may.ports, &other.may.ports)
            && other.may.modules_max <= self.may.modules_max
            && self.by_class() == other.by_class()
    }

    /// Returns what the class alone gives.
    fn by_class(&self) -> (UserPolicy, Option<Duration>) {
        let (keys, prefixes, ports) = (Vec::new(), Vec::new(), Vec::new());
        (UserPolicy { keys, prefixes, ports, modules_max: 0, ..self.may.clone() }, self.lease_max)
    }
}
