// SPDX-License-Identifier: Apache-2.0
//! What sessions want a module to be, of which the newest wish wins: version, package, properties and floating addresses are the
//! same for all who hold it. A request that repeats its session's wish wishes nothing new.

use netserv_model::request::Setup;
use netserv_model::{Digest, Refusal, RefusalKind};
use sha2::{Digest as _, Sha256};

use crate::cx::request::Origin;
use crate::tenants::active::Active;
use crate::tenants::session::Session;

/// How the wish of a SETUP stands to the one in force.
pub(crate) enum Standing {
    /// It is the one in force.
    InForce,
    /// It is to be in force.
    Newest,
    /// Its session has had it since before others came with the one in force: it holds what they want.
    Overruled,
    /// It was made before the one in force, and its session does not hold the module by it.
    Older(Refusal),
}

impl Active {
    /// Returns how the wish of a SETUP stands to the one in force.
    pub(crate) fn standing(&self, origin: Origin, setup: &Setup) -> Standing {
        let Some(wish) = origin.wish else { return Standing::Newest };
        let in_force = self.record.wish;
        if self.is_same_module(setup) || in_force.is_some_and(|in_force| in_force.what == wish.what) {
            return Standing::InForce;
        }
        let Some(in_force) = in_force.filter(|_| setup.epoch <= self.record.epoch) else { return Standing::Newest };
        let wants = |held: &Session, what: Digest| held.record.wish.is_some_and(|wish| wish.what == what);
        if self.session_of(origin.session).is_some_and(|own| wants(own, wish.what)) {
            let is_wanted = self.sessions.iter().any(|held| wants(held, in_force.what));
            return if is_wanted { Standing::Overruled } else { Standing::Newest };
        }
        if wish.made >= in_force.made {
            return Standing::Newest;
        }
        let detail =
            format!("made at {}, {} is in force by a request of {}", wish.made, self.record.module, in_force.made);
        Standing::Older(Refusal::new(RefusalKind::Replayed, detail))
    }

    /// Takes note that a session wants what is in force.
    pub(crate) fn share_wish(&mut self, origin: Origin) {
        match (&mut self.record.wish, origin.wish) {
            (Some(in_force), Some(wish)) if in_force.what == wish.what => in_force.made = in_force.made.max(wish.made),
            (None, wish) => self.record.wish = wish,
            (Some(_), _) => {}
        }
    }
}

/// Returns a digest of what a SETUP wants its module to be.
pub(crate) fn digest(setup: &Setup) -> Digest {
    let mut hash = Sha256::new();
    let mut add = |bytes: &[u8]| {
        hash.update(u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(bytes);
    };
    add(setup.module.version.to_string().as_bytes());
    add(&setup.digest.0);
    for (key, value) in &setup.properties {
        add(key.as_bytes());
        add(value.as_bytes());
    }
    let mut floating: Vec<String> = setup.floating.iter().map(ToString::to_string).collect();
    floating.sort();
    floating.dedup();
    add(&[]);
    floating.iter().for_each(|address| add(address.as_bytes()));
    Digest(hash.finalize().into())
}
