// SPDX-License-Identifier: Apache-2.0
//! What one user has proven, and what it gives.

use netserv_model::evidence::{Checklist, Evidence, Holder};
use netserv_model::policy::NodePolicy;
use netserv_model::{Digest, Instant, Now, PublicKey, Refusal, RefusalKind, UnixTime};
use sha2::{Digest as _, Sha256};

use crate::chain::Chain;
use crate::grant::{Grant, digest_of_grant};
use crate::limits::{DOUBTED_TIME, UNKNOWN_KEPT_TIME};
use crate::revocations::Lists;
use crate::vouched::{Vouched, Voucher};

/// What one user has proven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Granted {
    pub(crate) evidence: Evidence,
    /// What it gives by the policy in force, or why nothing.
    pub(crate) vouched: Result<Vouched, Refusal>,
    /// Why nobody is behind its checklist, as it was found last.
    denied: Option<Refusal>,
    /// Why it was not found out last time who is behind it, while that takes nothing away.
    pub(crate) doubt: Option<Doubt>,
    /// Until when its user is remembered though it gives nothing, for that alone.
    unknown: Option<Instant>,
}

/// Why it is not known who is behind a checklist, and since which round of checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Doubt {
    since: Instant,
    why: Refusal,
}

impl Granted {
    pub(crate) fn new(evidence: Evidence, vouched: Result<Vouched, Refusal>) -> Granted {
        Granted { evidence, vouched, denied: None, doubt: None, unknown: None }
    }

    pub(crate) fn basis(&self) -> String {
        match (&self.evidence, &self.vouched) {
            (Evidence::Grants(texts), vouched) => {
                let digest = digest_of_grant(texts.last().map_or("", String::as_str));
                match vouched {
                    Ok(Vouched { voucher: Voucher::Issuer(name), .. }) => format!("grant of {name} {digest}"),
                    Ok(_) | Err(_) => format!("grant {digest}"),
                }
            }
            (Evidence::Address(proven), _) => format!("address {}", proven.address),
            (Evidence::Checklist(checked), _) => {
                format!("checklist {}", Digest(Sha256::digest(checked.checklist.der()).into()))
            }
        }
    }

    /// Says what bounds the user's prefixes, or its ports, and who can give more.
    pub(crate) fn bound(&self, is_of_ports: bool) -> String {
        let (basis, last) = (self.basis(), self.last());
        let has_ports = last.as_ref().is_some_and(|last| !last.ports.is_empty());
        if is_of_ports && !has_ports {
            return format!("the node's operator gives these ports to users by proof ({basis})");
        }
        match last {
            None => format!("the user has the {basis} and no other, since that vouches for itself alone"),
            Some(last) => format!("the user has its {basis}: for more, have {} sign another grant", last.iss),
        }
    }

    /// Returns the grant for the key that signs the user's requests.
    fn last(&self) -> Option<Grant> {
        let grants = match &self.evidence {
            Evidence::Address(_) => return None,
            Evidence::Grants(grants) => grants,
            Evidence::Checklist(checked) => &checked.grants,
        };
        Chain::parse(grants).ok().map(|chain| chain.last().clone())
    }

    /// Returns the key that signs the user's requests.
    pub(crate) fn key(&self) -> Option<PublicKey> {
        match &self.evidence {
            Evidence::Address(proven) => Some(proven.key),
            Evidence::Grants(_) | Evidence::Checklist(_) => self.last().map(|last| last.sub),
        }
    }

    /// Returns who vouches, also while it is not known who is behind its checklist: its user may have rights again later.
    pub(crate) fn voucher(&self) -> Option<&Voucher> {
        match &self.vouched {
            Ok(vouched) => Some(&vouched.voucher),
            Err(_) => self.unknown.map(|_| &Voucher::Checklist),
        }
    }

    /// Returns what it gives at a time, if it gives something then.
    pub(crate) fn in_force(&self, lists: &Lists, now: UnixTime) -> Option<&Vouched> {
        self.vouched.as_ref().ok().filter(|vouched| holds(lists, vouched, now))
    }

    /// Returns why it gives nothing, and its user may be forgotten.
    pub(crate) fn ended(&self, lists: &Lists, now: Now) -> Option<Refusal> {
        let is_waited_for = |until: Instant| now.instant < until;
        match &self.vouched {
            Ok(vouched) => check(lists, vouched, now.wall).err(),
            Err(_) if self.unknown.is_some_and(is_waited_for) => None,
            Err(refusal) => Some(refusal.clone()),
        }
    }

    /// Returns whether it gives nothing only since it is not known who is behind its checklist.
    pub(crate) fn is_unknown(&self) -> bool {
        self.unknown.is_some() && self.vouched.is_err()
    }

    /// Takes over that it was not known at the end of an earlier run who is behind its checklist, since then.
    pub(crate) fn set_unknown(&mut self, since: UnixTime, now: Now) {
        if self.vouched.is_ok() && matches!(self.evidence, Evidence::Checklist(_)) {
            let passed = now.wall.distance(since.min(now.wall));
            self.unknown = Some(now.instant + UNKNOWN_KEPT_TIME.saturating_sub(passed));
            let refusal =
                Refusal::new(RefusalKind::FetchFailed, "the node does not know yet who is behind the checklist");
            self.denied = Some(refusal.clone());
            self.vouched = Err(refusal);
        }
    }

    /// Takes over another policy.
    pub(crate) fn set_policy(&mut self, policy: &NodePolicy) {
        let vouched = Vouched::by(policy, &self.evidence);
        self.unknown = self.unknown.filter(|_| vouched.is_ok());
        self.vouched = self.denied.clone().map_or(vouched, Err);
    }

    /// Takes away what it gives if it has not been known for too long who is behind its checklist; returns whether that is so.
    pub(crate) fn end_doubt(&mut self, now: Instant) -> bool {
        let Some(Doubt { why, .. }) = self.doubt.take_if(|doubt| now.since(doubt.since) >= DOUBTED_TIME) else {
            return false;
        };
        self.unknown = Some(now + UNKNOWN_KEPT_TIME);
        self.denied = Some(why.clone());
        self.vouched = Err(why);
        true
    }

    /// Takes over who is behind its checklist now, or why nobody is; returns whether something is lost by that. The check is one of a round
    /// that began at a time.
    pub(crate) fn checked_again(
        &mut self,
        policy: &NodePolicy,
        (round, now): (Instant, Instant),
        asked: &Checklist,
        said: Result<Holder, Refusal>,
    ) -> bool {
        let checked = match &mut self.evidence {
            Evidence::Checklist(checked) if checked.checklist == *asked => checked,
            // It has other evidence by now.
            Evidence::Checklist(_) | Evidence::Grants(_) | Evidence::Address(_) => return false,
        };
        let before = self.doubt.take();
        if let (Err(why), Ok(_)) = (&said, &self.vouched)
            && may_pass(why)
        {
            let since = before.map_or(round, |doubt| doubt.since);
            self.doubt = Some(Doubt { since, why: why.clone() });
            return self.end_doubt(now);
        }
        self.unknown = said.as_ref().is_err_and(may_pass).then(|| self.unknown.unwrap_or(now + UNKNOWN_KEPT_TIME));
        self.denied = said.as_ref().err().cloned();
        let vouched = said.and_then(|holder| {
            checked.holder = holder;
            Vouched::by_checklist(policy, checked)
        });
        let before = std::mem::replace(&mut self.vouched, vouched);
        match (before, &self.vouched) {
            (Ok(before), Ok(now)) => !now.has_all_of(&before) || now.until < before.until,
            (Ok(_), Err(_)) => true,
            (Err(_), Ok(_) | Err(_)) => false,
        }
    }
}

/// Returns whether a refusal says of the node that it does not know, and not of the checklist that nobody is behind it.
pub fn may_pass(refusal: &Refusal) -> bool {
    matches!(refusal.kind, RefusalKind::FetchFailed | RefusalKind::NodeFailed)
}

/// Returns whether what was proven before gives rights now.
pub(crate) fn holds(lists: &Lists, vouched: &Vouched, now: UnixTime) -> bool {
    check(lists, vouched, now).is_ok()
}

/// Says why what was proven before gives no rights any more, if it does not.
pub(crate) fn check(lists: &Lists, vouched: &Vouched, now: UnixTime) -> Result<(), Refusal> {
    vouched.check_end(now)?;
    check_list(lists, vouched, now, true)
}

/// Says why what is proven does not count, if its issuer took it back or cannot be heard. `is_known` says that it counted before.
pub(crate) fn check_list(lists: &Lists, vouched: &Vouched, now: UnixTime, is_known: bool) -> Result<(), Refusal> {
    let Some(revocable) = &vouched.revocable else { return Ok(()) };
    lists.check(revocable, now, is_known).or_else(|why| vouched.refuse(&why))
}
