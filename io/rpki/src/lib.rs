// SPDX-License-Identifier: Apache-2.0
//! Which prefixes the holder of an RPKI signed checklist (RFC 9323) speaks for, and until when.
//!
//! A checklist is a file that a holder of addresses signs with a key of its certificate in the RPKI. It lists digests, here that of
//! a grant's text. [`Cache::check`] looks at it offline, against the validated cache of the operator's relying party. A ROA never
//! vouches: who announces a prefix need not hold it.
//!
//! # What is checked
//!
//! 1. The checklist has at most 6 KiB, the content type of RFC 9323 §3 and the encoding of §4. Its certificate has no Subject
//!    Information Access and inherits nothing. It lists the grant's digest, and names addresses.
//! 2. The relying party ran within the longest age.
//! 3. Up from the checklist, each certificate is signed by the next, which lies where the former says. The last one is signed by
//!    the key of a trust anchor locator. A stranger's checklist has a node read one file, and verify one signature.
//! 4. Down from the trust anchor, each authority has a manifest and a revocation list in time. The manifest lists with their hash
//!    the revocation list and the certificate of the next authority, which is in time, not revoked, and claims nothing that its
//!    issuer does not have. The policy of RFC 8360, by which it might, is refused.
//! 5. The same holds for the checklist's certificate, but for the manifest: checklists are not published. The checklist is for
//!    nothing that its certificate does not have, and signed by its key.
//!
//! The crate `rpki` decodes certificates, lists and signed objects, and verifies signatures. In version 0.20.1 it takes
//! checklists of any content type, with Subject Information Access, for resources that a certificate of RFC 8360 claims and does
//! not have, and with bytes behind their end. All of that is checked here.
//!
//! # Checks that are done again
//!
//! [`Cache::check_again`] remembers the files of a check by their inode numbers and times of change, and so reads none that is as it was. The
//! time and the cache's age are looked at in each. If some have changed, it reads the manifest and the revocation list of an authority once for
//! all checklists below that.
//!
//! # What is left to the relying party
//!
//! It sees to it that the cache has the newest manifest of each authority, and all files of it (RFC 9286 §6). A check looks at
//! the files that it needs. While a relying party replaces files, a check may find a new manifest beside an old file; see
//! [`Invalid::may_pass`].
//!
//! # The cache
//!
//! A directory with the file of `rsync://host/path` at `host/path`. The certificate of a trust anchor is at `ta/NAME/FILE`, where
//! `NAME` is that of the locator's file without `.tal`, or at the path of its rsync URI. This is rpki-client's
//! `/var/cache/rpki-client`. Paths never lead out of it, and symbolic links below it are not followed.
//!
//! The modification time of its files is that of the repository's. So the age of a cache is the time since the last change of the
//! directory, of `.rsync` or of `ta/NAME`. rpki-client 8.2 changes `.rsync` in each run that asks a server by rsync, also if none answers,
//! and `ta/NAME` in each that fetches a trust anchor by HTTPS. It changes neither with `-n` or `-f`. FORT 1.5.4 has the same paths
//! and changes nothing if it finds nothing new. With such a relying party, name a file that it writes in each run:
//! [`Cache::stamped_by`]. FORT writes its results whatever came of a run. A relying party without a network runs, too, and then the end
//! of manifests and revocation lists counts.
#![forbid(unsafe_code)]

mod anchor;
mod cache;
mod checklist;
mod der;
mod error;
mod files;
mod issued;
mod known;
pub mod limits;
mod manifest;
mod publication;
mod published;
mod time;

pub use cache::Cache;
pub use error::{CacheError, Invalid};
