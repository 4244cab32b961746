// SPDX-License-Identifier: Apache-2.0
//! Chains of grants: an issuer's, and what its holders delegate of it. Each is narrower than the one before.

use std::collections::BTreeSet;

use netserv_model::filter::PortRange;
use netserv_model::{PublicKey, UnixTime};

use crate::grant::{Grant, GrantError};
use crate::limits::{CHAIN_GRANTS_MAX, EVIDENCE_BYTES_MAX};
use crate::scope::covers;

/// Grants of which each is signed by the key that the one before is for, and is narrower.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    root: Grant,
    rest: Vec<Grant>,
}

/// Why grants are no chain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// There are none, or too many.
    #[error("{0} grants, a chain has 1 to {CHAIN_GRANTS_MAX}")]
    Length(usize),
    /// They are too long together.
    #[error("the grants are {0} bytes long together, at most {EVIDENCE_BYTES_MAX}")]
    TooLong(usize),
    /// One is no grant.
    #[error("{0}")]
    Grant(#[from] GrantError),
    /// One is wider than the one before it.
    #[error("grant {place} is {wider}")]
    Wider {
        /// Its place in the chain, from 1 on.
        place: usize,
        /// In what.
        wider: Wider,
    },
    /// A key occurs twice.
    #[error("the chain comes back to {0}")]
    Loop(PublicKey),
}

/// In what a grant is wider than the one that it is delegated of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wider {
    /// It is signed by another key than the one that was granted something.
    #[error("not signed by the key that the grant before is for")]
    Issuer,
    /// It has a prefix that does not lie in one of the other's.
    #[error("for a prefix outside those of the grant before")]
    Prefixes,
    /// It has a port more.
    #[error("for ports beyond those of the grant before")]
    Ports,
    /// It has more modules.
    #[error("for more modules than the grant before")]
    Modules,
    /// It begins earlier or ends later.
    #[error("valid outside the time of the grant before")]
    Time,
    /// It may be delegated as often, or more often.
    #[error("not to be made: the grant before allows no further delegation")]
    Delegations,
}

impl Chain {
    /// Understands grants, from the issuer's on, and checks them and their order. Whether the issuer may give what it gives, and
    /// whether they hold now, is another question.
    ///
    /// # Errors
    /// They are no chain.
    pub fn verify<T: AsRef<str>>(texts: &[T]) -> Result<Chain, ChainError> {
        Chain::build(texts, Grant::verify)
    }

    /// Likewise, without looking at signatures: to show a chain, not to believe it.
    ///
    /// # Errors
    /// They are no chain.
    pub fn parse<T: AsRef<str>>(texts: &[T]) -> Result<Chain, ChainError> {
        Chain::build(texts, Grant::parse)
    }

    fn build<T: AsRef<str>>(texts: &[T], read: fn(&str) -> Result<Grant, GrantError>) -> Result<Chain, ChainError> {
        if texts.is_empty() || texts.len() > CHAIN_GRANTS_MAX {
            return Err(ChainError::Length(texts.len()));
        }
        let bytes = texts.iter().map(|text| text.as_ref().len()).sum();
        if bytes > EVIDENCE_BYTES_MAX {
            return Err(ChainError::TooLong(bytes));
        }
        let mut grants = texts.iter().map(|text| read(text.as_ref()));
        let root = grants.next().expect("there is one")?;
        let mut chain = Chain { root, rest: Vec::new() };
        for grant in grants {
            chain.push(grant?)?;
        }
        chain.check_loops()?;
        Ok(chain)
    }

    /// Adds a delegation of the last grant.
    ///
    /// # Errors
    /// It is wider than the last grant.
    pub fn push(&mut self, grant: Grant) -> Result<(), ChainError> {
        let place = self.rest.len() + 2;
        if place > CHAIN_GRANTS_MAX {
            return Err(ChainError::Length(place));
        }
        check_narrower(&grant, self.last()).map_err(|wider| ChainError::Wider { place, wider })?;
        self.rest.push(grant);
        Ok(())
    }

    /// Returns the issuer's grant.
    pub fn root(&self) -> &Grant {
        &self.root
    }

    /// Returns the grant for the key that signs requests.
    pub fn last(&self) -> &Grant {
        self.rest.last().unwrap_or(&self.root)
    }

    /// Returns all grants, from the issuer's on.
    pub fn grants(&self) -> impl Iterator<Item = &Grant> {
        std::iter::once(&self.root).chain(&self.rest)
    }

    /// Returns from when on and until when all of them hold.
    pub fn time(&self) -> (UnixTime, UnixTime) {
        // Each holds within the time of the one before.
        self.last().time()
    }

    /// Returns how many modules there may be, if a grant says so.
    pub fn modules_max(&self) -> Option<u32> {
        self.grants().filter_map(|grant| grant.modules_max).min()
    }

    fn check_loops(&self) -> Result<(), ChainError> {
        let mut keys = BTreeSet::from([self.root.iss.0]);
        match self.grants().find(|grant| !keys.insert(grant.sub.0)) {
            Some(grant) => Err(ChainError::Loop(grant.sub)),
            None => Ok(()),
        }
    }
}

/// The one place that says whether a grant is narrower than another, in each of its dimensions.
///
/// # Errors
/// In what it is wider.
pub fn check_narrower(grant: &Grant, before: &Grant) -> Result<(), Wider> {
    let Grant { iss, sub: _, nbf, exp, prefixes, ports, modules_max, delegations } = grant;
    let within = |prefix| before.prefixes.iter().any(|outer| outer.contains(prefix));
    let modules = |most: &u32| before.modules_max.is_none_or(|before| *most <= before);
    for (narrower, wider) in [
        (*iss == before.sub, Wider::Issuer),
        (prefixes.iter().all(within), Wider::Prefixes),
        (has_ports(&before.ports, ports), Wider::Ports),
        (modules_max.iter().all(modules), Wider::Modules),
        (before.nbf <= *nbf && *exp <= before.exp, Wider::Time),
        (*delegations < before.delegations, Wider::Delegations),
    ] {
        if !narrower {
            return Err(wider);
        }
    }
    Ok(())
}

/// Returns whether a list of ports, of which an empty one has all, has all of another.
pub(crate) fn has_ports(outer: &[PortRange], inner: &[PortRange]) -> bool {
    match (outer.is_empty(), inner.is_empty()) {
        (true, _) => true,
        (false, true) => covers(outer, PortRange::ALL),
        (false, false) => inner.iter().all(|range| covers(outer, *range)),
    }
}
