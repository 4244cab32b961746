// SPDX-License-Identifier: Apache-2.0
//! What evidence lets a key do, as the operator's policy weighs it.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use ipnet::IpNet;
use netserv_model::evidence::{CheckedGrants, Evidence, ProvenAddress};
use netserv_model::floating::is_container_address;
use netserv_model::policy::{Class, Issuer, NodePolicy, UserPolicy};
use netserv_model::{PublicKey, Refusal, RefusalKind, UnixTime};

use crate::chain::{Chain, has_ports};
use crate::grant::Grant;
use crate::limits::ADDRESS_TIME;
use crate::revocations::Revocable;

/// The rights of a user for whom somebody vouches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Vouched {
    pub(crate) may: UserPolicy,
    pub(crate) from: UnixTime,
    pub(crate) until: UnixTime,
    /// The longest lease.
    pub(crate) lease_max: Option<Duration>,
    pub(crate) voucher: Voucher,
    /// What of it the voucher can take back, if the operator wants lists of that.
    pub(crate) revocable: Option<Revocable>,
    /// Users of the voucher at one time.
    pub(crate) users_max: usize,
}

/// Who vouches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Voucher {
    /// An issuer, by the operator's name for it.
    Issuer(String),
    /// The address itself.
    Address,
    /// The holder of the prefixes, by a checklist.
    Checklist,
}

impl Vouched {
    /// Returns what evidence gives by a node's policy.
    pub(crate) fn by(policy: &NodePolicy, evidence: &Evidence) -> Result<Vouched, Refusal> {
        match evidence {
            Evidence::Grants(texts) => Vouched::asked(policy, texts, |_| Ok(())),
            Evidence::Address(proven) => Vouched::by_address(policy, *proven),
            Evidence::Checklist(checked) => Vouched::by_checklist(policy, checked),
        }
    }

    /// Returns what grants give whose first one a checklist names.
    pub(crate) fn by_checklist(policy: &NodePolicy, checked: &CheckedGrants) -> Result<Vouched, Refusal> {
        let chain = Chain::verify(&checked.grants).map_err(|error| bad_proof(error.to_string()))?;
        let root = Root::holder(policy, &checked.holder.prefixes, &chain)?;
        let vouched = Vouched::of_chain(policy, &root, &chain, &checked.grants)?;
        Ok(Vouched { until: vouched.until.min(checked.holder.until), ..vouched })
    }

    /// Returns what grants would give whose first one a checklist names, if it is found that who is behind that may give them. As with an
    /// issuer's, it comes first who asks.
    pub(crate) fn asked_by_checklist(
        policy: &NodePolicy,
        texts: &[String],
        is_asker: impl FnOnce(&Chain) -> Result<(), Refusal>,
    ) -> Result<Vouched, Refusal> {
        let chain = Chain::parse(texts).map_err(|error| bad_proof(error.to_string()))?;
        let root = Root::holder(policy, &chain.root().prefixes, &chain)?;
        is_asker(&chain)?;
        check_signatures(&chain, texts)?;
        Vouched::of_chain(policy, &root, &chain, texts)
    }

    /// Returns what grants give, if `is_asker` finds that the last one is for who asks. That comes first, as a chain may have been seen
    /// by anybody: whoever does not hold its last key is told nothing of it, and costs no more signatures than somebody with no
    /// chain. No signature is looked at unless the operator trusts the issuer.
    pub(crate) fn asked(
        policy: &NodePolicy,
        texts: &[String],
        is_asker: impl FnOnce(&Chain) -> Result<(), Refusal>,
    ) -> Result<Vouched, Refusal> {
        let first = texts.first().ok_or_else(|| bad_proof("the request brings no grant"))?;
        let root = Grant::parse(first).map_err(|error| bad_proof(error.to_string()))?;
        let trusts = |issuer: &&Issuer| issuer.keys.contains(&root.iss);
        let Some(issuer) = policy.issuers.iter().find(trusts) else {
            return Err(bad_proof(format!("the node takes no grants of {}", root.iss)));
        };
        let chain = Chain::parse(texts).map_err(|error| bad_proof(error.to_string()))?;
        is_asker(&chain)?;
        check_signatures(&chain, texts)?;
        Vouched::of_chain(policy, &Root::issuer(issuer), &chain, texts)
    }

    fn of_chain(policy: &NodePolicy, of: &Root<'_>, chain: &Chain, texts: &[String]) -> Result<Vouched, Refusal> {
        let Root { voucher, prefixes, class, issuer } = of;
        let refusal = |kind, detail: String| Err(Refusal::new(kind, format!("{voucher}: {detail}")));
        let class = class_of(policy, class)?;
        let (root, last) = (chain.root(), chain.last());
        if let Some(wide) = root.prefixes.iter().find(|wide| !prefixes.iter().any(|outer| outer.contains(*wide))) {
            return refusal(RefusalKind::PrefixNotAllowed, format!("it may not give {wide}; {}", voucher.remedy()));
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
        let ((from, until), voucher) = (chain.time(), voucher.clone());
        let (lease_max, users_max) = (class.lease_max, class.users_max);
        let revocable = issuer.and_then(|issuer| Revocable::of(issuer, chain, texts));
        Ok(Vouched { may, from, until, lease_max, voucher, revocable, users_max })
    }

    fn by_address(policy: &NodePolicy, proven: ProvenAddress) -> Result<Vouched, Refusal> {
        let ProvenAddress { address, key, asked } = proven;
        let Some(class) = &policy.address_class else {
            return Err(bad_proof("the node lets no address vouch for users"));
        };
        let class = class_of(policy, class)?;
        let net = IpNet::from(address);
        if !is_container_address(address) || policy.address_excluded.iter().any(|outer| outer.contains(&net)) {
            return Err(Refusal::new(
                RefusalKind::PrefixNotAllowed,
                format!("{address} vouches for nobody here; use another address, or another proof"),
            ));
        }
        let own = |prefix: &IpNet| prefix.contains(&net);
        let is_given = policy.users.values().any(|user| user.addresses.contains(&address));
        if is_given || policy.container_prefixes.iter().any(own) {
            return Err(Refusal::new(RefusalKind::PrefixNotAllowed, format!("{address} is that of a container")));
        }
        let may = UserPolicy { keys: vec![key], prefixes: vec![net], ..class.rights.clone() };
        let time = class.lease_max.unwrap_or(ADDRESS_TIME);
        let before = asked.0.saturating_sub(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        let (from, until) = (UnixTime(before), asked + time);
        let (voucher, users_max) = (Voucher::Address, class.users_max);
        Ok(Vouched { may, from, until, lease_max: class.lease_max, voucher, revocable: None, users_max })
    }

    /// Says why it does not hold at a time, if it does not.
    pub(crate) fn check_time(&self, now: UnixTime) -> Result<(), Refusal> {
        if now < self.from {
            return self.refuse(&format!("it begins at {}, it is {now} here", self.from));
        }
        self.check_end(now)
    }

    /// Says why it does not hold any more at a time, if it does not. It held before, so if it begins later than that, the clock was set.
    /// An address was asked at a time by this clock, which says nothing of a much earlier one.
    pub(crate) fn check_end(&self, now: UnixTime) -> Result<(), Refusal> {
        if self.voucher == Voucher::Address && now < self.from {
            return self.refuse(&format!("the clock was set back to {now} since the address was asked"));
        }
        if now < self.until {
            return Ok(());
        }
        self.refuse(&format!("it ended at {}, it is {now} here", self.until))
    }

    pub(crate) fn refuse(&self, why: &str) -> Result<(), Refusal> {
        Err(bad_proof(format!("{}: {why}", self.voucher)))
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

impl Voucher {
    /// Says what to do about prefixes that it does not give.
    fn remedy(&self) -> String {
        match self {
            Voucher::Issuer(name) => {
                format!("ask `{name}` for a grant of its own prefixes, or the node's operator to let it give more")
            }
            Voucher::Address => "an address vouches for itself alone".to_owned(),
            Voucher::Checklist => "have the holder grant only prefixes that its checklist names".to_owned(),
        }
    }
}

impl fmt::Display for Voucher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Voucher::Issuer(name) => write!(f, "grant of `{name}`"),
            Voucher::Address => f.write_str("proof by the address"),
            Voucher::Checklist => f.write_str("grant of the holder by a checklist"),
        }
    }
}

/// Who gives the first grant of a chain, and what.
struct Root<'a> {
    voucher: Voucher,
    prefixes: &'a [IpNet],
    class: &'a str,
    /// Who takes grants back by lists.
    issuer: Option<&'a Issuer>,
}

impl<'a> Root<'a> {
    fn issuer(issuer: &'a Issuer) -> Root<'a> {
        let Issuer { name, prefixes, class, .. } = issuer;
        Root { voucher: Voucher::Issuer(name.clone()), prefixes, class, issuer: Some(issuer) }
    }

    /// The holder of prefixes; none, unless the operator has a class for such. An issuer of the operator's who holds them takes grants back all
    /// the same.
    fn holder(policy: &'a NodePolicy, prefixes: &'a [IpNet], chain: &Chain) -> Result<Root<'a>, Refusal> {
        let none = || bad_proof("the node takes no checklists: its operator names no `rpki-class`");
        let class = policy.rpki_class.as_deref().ok_or_else(none)?;
        let issuer = policy.issuers.iter().find(|issuer| issuer.keys.contains(&chain.root().iss));
        Ok(Root { voucher: Voucher::Checklist, prefixes, class, issuer })
    }
}

/// Checks who signed the grants of a chain. The last one is the first that somebody else cannot have signed for a key of his own.
fn check_signatures(chain: &Chain, texts: &[String]) -> Result<(), Refusal> {
    let grants: Vec<&Grant> = chain.grants().collect();
    let mut last_first = grants.iter().zip(texts).rev();
    last_first.try_for_each(|(grant, text)| grant.check_signature(text).map_err(|error| bad_proof(error.to_string())))
}

/// Returns whether an address may be asked what it says of users.
///
/// # Errors
/// The operator lets no address vouch, or not this one.
pub(crate) fn check_address(
    policy: &NodePolicy,
    address: IpAddr,
    key: PublicKey,
    now: UnixTime,
) -> Result<(), Refusal> {
    Vouched::by_address(policy, ProvenAddress { address, key, asked: now }).map(drop)
}

fn class_of<'a>(policy: &'a NodePolicy, class: &str) -> Result<&'a Class, Refusal> {
    let missing = || bad_proof(format!("the operator gives class `{class}` no rights"));
    policy.classes.get(class).ok_or_else(missing)
}

fn bad_proof(detail: impl Into<String>) -> Refusal {
    Refusal::new(RefusalKind::BadProof, detail.into())
}
