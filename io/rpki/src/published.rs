// SPDX-License-Identifier: Apache-2.0
//! Results of reading the published files that rights depend on, kept until these files change.
//!
//! Many checklists have authorities in common, whose files change often and may be large. When some have changed, they are read once for all
//! that was asked of them before.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use netserv_model::{Digest, UnixTime};
use rpki::crypto::DigestAlgorithm;
use rpki::repository::cert::ResourceCert;

use crate::error::Invalid;
use crate::files::{Files, Seen};
use crate::limits::ANSWERS_MAX;
use crate::publication::{Publication, Wanted};
use crate::time::Clock;

/// What was found out last of each authority.
#[derive(Clone, Debug, Default)]
pub(crate) struct Published(Arc<Mutex<BTreeMap<Path, Arc<Known>>>>);

/// The digest of all certificates from a trust anchor's down to an authority's: what a check makes of its files depends on these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Path(Digest);

/// What a check found out.
#[derive(Debug)]
struct Known {
    publication: Arc<Publication>,
    /// When everything holds that it looked at, both inclusive.
    from: UnixTime,
    until: UnixTime,
    seen: Vec<Seen>,
}

impl Path {
    pub(crate) fn of(anchor: &ResourceCert) -> Path {
        Path(Digest([0; 32])).to(anchor)
    }

    /// Returns the path one authority further down.
    pub(crate) fn to(self, authority: &ResourceCert) -> Path {
        let certificates = [&self.0.0[..], &authority.to_captured()].concat();
        let digest = DigestAlgorithm::sha256().digest(&certificates);
        Path(Digest(digest.as_ref().try_into().expect("SHA-256 has 32 bytes")))
    }
}

impl Published {
    /// Returns what an authority publishes of what is wanted, and reads it only if that is not known.
    pub(crate) fn read(
        &self,
        path: Path,
        issuer: &ResourceCert,
        mut wanted: Wanted,
        files: &mut Files,
        clock: &mut Clock,
    ) -> Result<Arc<Publication>, Invalid> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&path).cloned();
        if let Some(known) = known {
            if known.publication.knows(&wanted)
                && clock.is_within(known.from, known.until)
                && known.seen.iter().all(|seen| files.is_as(seen))
            {
                files.saw(&known.seen);
                clock.narrow(known.from, known.until);
                return Ok(Arc::clone(&known.publication));
            }
            wanted.add(known.publication.wanted());
        }
        let (mut own, before) = (clock.afresh(), files.seen().len());
        let publication = Arc::new(Publication::read(issuer, files, &mut own, wanted)?);
        let (from, until) = (own.from(), own.until());
        clock.narrow(from, until);
        let seen = files.seen()[before..].to_vec();
        if files.are_settled(&seen) {
            let known = Known { publication: Arc::clone(&publication), from, until, seen };
            self.note(path, known);
        }
        Ok(publication)
    }

    /// Takes note of what was read; everything is forgotten if that is too much.
    fn note(&self, path: Path, known: Known) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(path, Arc::new(known));
        let answers: usize = all.values().map(|known| known.publication.wanted().len()).sum();
        if answers > ANSWERS_MAX {
            all.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: what is remembered of authorities is bounded, and what is forgotten is only read again. Method: as many answers as may be, and one more.
    #[test]
    fn answers_max_answers_are_remembered() {
        let published = Published::default();
        let path = |number: usize| {
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&number.to_be_bytes());
            Path(Digest(digest))
        };
        let note = |number: usize, names: usize| {
            let publication = Arc::new(Publication::of_names(names));
            let (from, until) = (UnixTime(0), UnixTime::LAST);
            published.note(path(number), Known { publication, from, until, seen: Vec::new() });
            published.0.lock().unwrap().len()
        };
        assert_eq!(ANSWERS_MAX % 128, 0);
        for number in 0..ANSWERS_MAX / 128 {
            assert_eq!(note(number, 128), number + 1);
        }
        assert_eq!(note(0, 128), ANSWERS_MAX / 128, "it takes the place of what was known of the same");
        assert_eq!(note(ANSWERS_MAX, 1), 0);
    }
}
