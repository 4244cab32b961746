// SPDX-License-Identifier: Apache-2.0
//! The relying party's cache, and the check of a checklist against it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use netserv_model::evidence::Holder;
use netserv_model::{Digest, UnixTime};
use rpki::repository::cert::{Cert, ResourceCert};
use rpki::uri::Rsync;

use crate::anchor::Anchor;
use crate::checklist::{CERTIFICATE, Checklist};
use crate::error::{CacheError, Invalid};
use crate::files::Files;
use crate::issued;
use crate::known::{self, KnownChecks};
use crate::limits::{DEPTH_MAX, TALS_MAX};
use crate::publication::{Publication, Wanted};
use crate::published::{Path, Published};
use crate::time::Clock;

/// The validated cache of the operator's relying party, and the trust anchors that the operator trusts.
#[derive(Clone, Debug)]
pub struct Cache {
    directory: PathBuf,
    anchors: Vec<Anchor>,
    stamp: Option<PathBuf>,
    age_max: Duration,
    known: KnownChecks,
    published: Published,
}

impl Cache {
    /// Reads the trust anchor locators. The directory is read by each check, which fails if the relying party last ran longer
    /// than `age_max` ago. That is when the directory, its folder `.rsync` or a locator's folder `ta/NAME` was last changed:
    /// each run of rpki-client changes one of the latter two, in whichever way it fetches.
    ///
    /// # Errors
    ///
    /// There is no locator, or one cannot be read.
    pub fn open(directory: PathBuf, tals: &[PathBuf], age_max: Duration) -> Result<Cache, CacheError> {
        match tals.len() {
            0 => Err(CacheError::NoTal),
            1..=TALS_MAX => {
                let anchors = tals.iter().map(|path| Anchor::read(path)).collect::<Result<_, _>>()?;
                let (known, published) = (KnownChecks::default(), Published::default());
                Ok(Cache { directory, anchors, stamp: None, age_max, known, published })
            }
            _ => Err(CacheError::TooManyTals),
        }
    }

    /// Has the last change of a file count as the relying party's last run: one that it writes in each, such as its results.
    #[must_use]
    pub fn stamped_by(self, stamp: PathBuf) -> Cache {
        Cache { stamp: Some(stamp), ..self }
    }

    /// Returns what the holder of a checklist, which is given in DER, speaks for with a grant whose text has this digest: 1 to
    /// [`PREFIXES_MAX`](crate::limits::PREFIXES_MAX) prefixes, until the earliest end of all certificates, manifests and revocation lists that
    /// were looked at. A check after this time fails unless the relying party has fetched newer ones.
    ///
    /// # Errors
    ///
    /// The checklist says nothing, and the error says why.
    pub fn check(&self, checklist: &[u8], grant: &Digest, now: UnixTime) -> Result<Holder, Invalid> {
        let read = Read { files: &mut Files::open(&self.directory)?, clock: &mut Clock::new(now), published: None };
        self.check_files(checklist, grant, read, now)
    }

    /// Likewise, for a checklist that is checked from time to time. What it finds out is that of the check before if all files that this read
    /// are as they were; then no file is read. If some have changed, manifests and revocation lists are read once for all checklists.
    ///
    /// # Errors
    ///
    /// Those of [`Cache::check`].
    pub fn check_again(&self, checklist: &[u8], grant: &Digest, now: UnixTime) -> Result<Holder, Invalid> {
        let mut files = Files::open(&self.directory)?;
        let key = known::key(checklist, grant);
        if let Some(holder) = key.and_then(|key| self.known.find(key, &files, now)) {
            self.must_be_new(&files, now)?;
            return Ok(holder);
        }
        let mut clock = Clock::new(now);
        let read = Read { files: &mut files, clock: &mut clock, published: Some(&self.published) };
        let holder = self.check_files(checklist, grant, read, now)?;
        if let Some(key) = key {
            self.known.note(key, files, &clock, &holder);
        }
        Ok(holder)
    }

    fn check_files(
        &self,
        checklist: &[u8],
        grant: &Digest,
        mut read: Read<'_>,
        now: UnixTime,
    ) -> Result<Holder, Invalid> {
        let checklist = Checklist::parse(checklist)?;
        checklist.must_list(grant)?;
        let prefixes = checklist.prefixes()?;
        self.must_be_new(read.files, now)?;
        let (anchor, chain) = self.chain(checklist.certificate(), read.files)?;
        let mut issuer = anchor.certificate(read.files, read.clock)?;
        let mut path = Path::of(&issuer);
        for Link { certificate, uri, bytes } in chain.into_iter().rev() {
            let publication = read.publication(path, &issuer, Wanted::of(&issuer, &certificate, Some(&uri)))?;
            publication.must_list(&uri, &bytes)?;
            publication.must_hold(uri.as_str(), &certificate)?;
            issuer = issued::authority(uri.as_str(), certificate, &issuer, read.clock)?;
            path = path.to(&issuer);
        }
        let publication = read.publication(path, &issuer, Wanted::of(&issuer, checklist.certificate(), None))?;
        publication.must_hold(CERTIFICATE, checklist.certificate())?;
        checklist.verify(&issuer, read.clock)?;
        Ok(Holder { prefixes, until: read.clock.until() })
    }

    fn must_be_new(&self, files: &Files, now: UnixTime) -> Result<(), Invalid> {
        let last_run = match &self.stamp {
            Some(stamp) => last_change(stamp)?,
            None => {
                let folders = self.anchors.iter().map(Anchor::folder);
                files.last_change([".", ".rsync"].into_iter().chain(folders)).unwrap_or_default()
            }
        };
        let age = now.distance(last_run);
        if age > self.age_max { Err(Invalid::OldCache { age, age_max: self.age_max }) } else { Ok(()) }
    }

    /// Finds the certificates from a checklist's issuer up to a trust anchor. Each is signed by the next, so that who has no
    /// certificate in the cache has it read one file.
    fn chain(&self, checklist: &Cert, files: &mut Files) -> Result<(&Anchor, Vec<Link>), Invalid> {
        let mut chain: Vec<Link> = Vec::new();
        loop {
            let (child, of) = match chain.last() {
                Some(link) => (&link.certificate, link.uri.as_str()),
                None => (checklist, CERTIFICATE),
            };
            let issuer_key = child.authority_key_identifier();
            if let Some(anchor) = self.anchors.iter().find(|anchor| Some(anchor.key()) == issuer_key) {
                return Ok((anchor, chain));
            }
            let Some(uri) = child.ca_issuer().filter(|_| !child.is_self_signed()) else {
                return Err(Invalid::UnknownAnchor { of: of.to_owned() });
            };
            if chain.len() == DEPTH_MAX {
                return Err(Invalid::TooDeep);
            }
            let bytes = files.read(uri).map_err(|error| no_issuer(error, of))?;
            let certificate = Cert::decode(bytes.clone()).map_err(|error| issued::malformed(uri.as_str(), &error))?;
            issued::must_be_signed(of, child, &certificate)?;
            let uri = uri.clone();
            chain.push(Link { certificate, uri, bytes });
        }
    }
}

fn last_change(file: &std::path::Path) -> Result<UnixTime, Invalid> {
    let changed = std::fs::metadata(file).and_then(|metadata| metadata.modified());
    let changed =
        changed.map_err(|error| Invalid::Unreadable { file: file.display().to_string(), reason: error.to_string() })?;
    let since = changed.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Ok(UnixTime(u64::try_from(since.as_millis()).unwrap_or(u64::MAX)))
}

/// Says whose issuer is missing.
fn no_issuer(error: Invalid, of: &str) -> Invalid {
    if let Invalid::Missing { file } = error { Invalid::NoIssuer { of: of.to_owned(), file } } else { error }
}

/// What a check reads, and when.
struct Read<'a> {
    files: &'a mut Files,
    clock: &'a mut Clock,
    /// What is known of publications, if the check may rely on that.
    published: Option<&'a Published>,
}

impl Read<'_> {
    fn publication(&mut self, path: Path, issuer: &ResourceCert, wanted: Wanted) -> Result<Arc<Publication>, Invalid> {
        match self.published {
            Some(published) => published.read(path, issuer, wanted, self.files, self.clock),
            None => Publication::read(issuer, self.files, self.clock, wanted).map(Arc::new),
        }
    }
}

/// A certificate between checklist and trust anchor.
struct Link {
    certificate: Cert,
    uri: Rsync,
    bytes: Bytes,
}
