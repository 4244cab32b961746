// SPDX-License-Identifier: Apache-2.0
//! States of modules on their way between nodes: from where the user's requests say, and to there.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use netserv_model::limits::STATE_BYTES_MAX;
use netserv_model::request::StateSource;
use netserv_model::{Digest, ModuleName, Refusal, RefusalKind, UserId};
use sha2::{Digest as _, Sha256};
use ureq::http::header::CONTENT_TYPE;

use crate::fetch;
use crate::oci;
use crate::room::{Digesting, Downloaded, not_kept};
use crate::source::{FetchLimits, Fetcher, bad_url, explain, failed, host_matches, parse, too_slow};
use crate::store::Repository;

/// The header of a PUT that names the user.
pub const USER_HEADER: &str = "netserv-user";
/// The header of a PUT that names the module.
pub const MODULE_HEADER: &str = "netserv-module";

/// Names files while they have a name.
static NEXT: AtomicU64 = AtomicU64::new(0);

impl Repository {
    /// Returns the state at a URL, in a file that nobody can write to or else open and that goes with its last
    /// descriptor. It takes a part of the user's share of [`DOWNLOADS_BYTES_MAX`](crate::limits::DOWNLOADS_BYTES_MAX).
    ///
    /// # Errors
    /// A refusal of kind `bad-url`, `fetch-failed`, `state-refused` (it is larger than [`STATE_BYTES_MAX`]),
    /// `digest-mismatch`, `quota-exceeded` (the user's share is used up), or `node-failed` (the store cannot be written).
    pub fn fetch_state(
        &self,
        user: &UserId,
        source: &StateSource,
        limits: &FetchLimits,
    ) -> Result<Downloaded, Refusal> {
        let limits = FetchLimits { bytes: STATE_BYTES_MAX, ..*limits };
        let (kept, digest) = self.download(user, &source.url, &limits).map_err(|refusal| {
            let is_large = refusal.kind == RefusalKind::PackageTooLarge;
            if is_large { Refusal::new(RefusalKind::StateRefused, refusal.detail) } else { refusal }
        })?;
        if digest != source.digest {
            let detail = format!("the state at the URL is {digest}, the request says {}", source.digest);
            return Err(Refusal::new(RefusalKind::DigestMismatch, detail));
        }
        Ok(kept)
    }

    /// Returns what is at a URL, in a file that can only be read, and its digest.
    pub(crate) fn download(
        &self,
        user: &UserId,
        url: &str,
        limits: &FetchLimits,
    ) -> Result<(Downloaded, Digest), Refusal> {
        let (written, for_reading) = self.nameless().map_err(|error| not_kept(&error))?;
        let (mut download, mut digest) = (Downloaded::new(written, user, &self.downloads), Sha256::new());
        fetch::fetch(&self.fetcher, url, limits, &mut Digesting { out: &mut download, digest: &mut digest })?;
        Ok((download.reopened(for_reading), Digest(digest.finalize().into())))
    }

    /// Puts a state of a user's module to a URL, by an HTTP PUT that names both. Returns its digest.
    ///
    /// # Errors
    /// A refusal of kind `bad-url` (the operator's list does not have its host), or `fetch-failed`.
    pub fn put_state(
        &self,
        url: &str,
        bytes: &[u8],
        (user, module): (&UserId, &ModuleName),
        limits: &FetchLimits,
    ) -> Result<Digest, Refusal> {
        self.fetcher.put(url, bytes, (user, module), limits)?;
        Ok(oci::digest_of(bytes))
    }

    /// Returns a file that has no name, to be written and to be read.
    fn nameless(&self) -> io::Result<(File, File)> {
        let path = self.tmp.join(format!("download-{}", NEXT.fetch_add(1, Ordering::Relaxed)));
        let file = File::options().write(true).create_new(true).mode(0o600).open(&path)?;
        // Workers get this descriptor, and others may be given the same state.
        let for_reading = File::open(&path);
        fs::remove_file(&path)?;
        Ok((file, for_reading?))
    }
}

impl Fetcher {
    fn put(
        &self,
        url: &str,
        bytes: &[u8],
        (user, module): (&UserId, &ModuleName),
        limits: &FetchLimits,
    ) -> Result<(), Refusal> {
        let deadline = Instant::now() + limits.time;
        let uri = parse(url)?;
        let (host, port) = self.check(&uri)?;
        if !self.sources.put_hosts.iter().any(|pattern| host_matches(pattern, &host, port)) {
            return Err(bad_url(format!(
                "the node writes nothing to host `{host}` on port {port} (`fetch.put-hosts`)"
            )));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(too_slow(limits));
        }
        let request = self.agent.put(uri).header(CONTENT_TYPE, "application/octet-stream");
        // By these the server tells whose it is: it knows nothing but the node otherwise.
        let request = request.header(USER_HEADER, user.as_str()).header(MODULE_HEADER, module.to_string());
        let request = request.config().timeout_global(Some(left)).build();
        let response = request.send(bytes).map_err(|error| explain(&error, limits))?;
        if response.status().is_success() {
            return Ok(());
        }
        // A redirect is not followed: what the operator's list has is asked, and nobody else.
        Err(failed(format!("the server answered {} to the PUT", response.status())))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;
    use crate::Config;

    #[test]
    fn a_state_that_is_kept_can_only_be_read() {
        let dir = tempfile::tempdir().unwrap();
        let repository = Repository::open(dir.path(), Config::default()).unwrap();
        let (mut written, mut kept) = repository.nameless().unwrap();
        written.write_all(b"a state").unwrap();
        let mut read = Vec::new();
        kept.read_to_end(&mut read).unwrap();
        assert_eq!(read, b"a state");
        assert!(kept.write_all(b"more").is_err() && kept.set_len(1).is_err());
        assert_eq!(fs::read_dir(&repository.tmp).unwrap().count(), 0, "it has no name");
    }
}
