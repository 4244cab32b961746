// SPDX-License-Identifier: Apache-2.0
//! Trust anchors: the keys that the operator trusts (RFC 8630).

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use rpki::crypto::KeyIdentifier;
use rpki::repository::cert::{Cert, ResourceCert};
use rpki::repository::tal::{Tal, TalUri};

use crate::error::{CacheError, Invalid};
use crate::files::Files;
use crate::issued::{self, STRICT_NAMES};
use crate::limits::TAL_BYTES_MAX;
use crate::time::Clock;

/// A trust anchor locator.
#[derive(Clone, Debug)]
pub(crate) struct Anchor {
    tal: Tal,
    folder: String,
    /// Where the certificate may be below the cache's directory.
    paths: Vec<String>,
}

impl Anchor {
    /// Reads a locator from its file.
    pub(crate) fn read(path: &Path) -> Result<Anchor, CacheError> {
        let unreadable = |error: io::Error| CacheError::Unreadable { path: path.to_owned(), reason: error.to_string() };
        let file = File::open(path).map_err(unreadable)?;
        let mut bytes = Vec::new();
        file.take(TAL_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() > TAL_BYTES_MAX {
            return Err(unreadable(io::Error::other(format!("it has more than {TAL_BYTES_MAX} bytes"))));
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let not_tal = |reason: String| CacheError::NotTal { path: path.to_owned(), reason };
        let tal = Tal::read_named(name, &mut bytes.as_slice()).map_err(|error| not_tal(error.to_string()))?;
        let folder = format!("ta/{}", tal.info().name());
        let paths = paths(&tal, &folder);
        if paths.is_empty() {
            return Err(not_tal("it names no certificate".to_owned()));
        }
        Ok(Anchor { tal, folder, paths })
    }

    /// Returns the identifier of its key.
    pub(crate) fn key(&self) -> KeyIdentifier {
        self.tal.key_info().key_identifier()
    }

    /// Returns the folder in which rpki-client keeps its certificate.
    pub(crate) fn folder(&self) -> &str {
        &self.folder
    }

    /// Reads its certificate, and checks that.
    pub(crate) fn certificate(&self, files: &mut Files, clock: &mut Clock) -> Result<ResourceCert, Invalid> {
        let mut found = Err(Invalid::Missing { file: self.paths.concat() });
        for path in &self.paths {
            found = files.read_path(path).map(|bytes| (path, bytes));
            if !matches!(found, Err(Invalid::Missing { .. })) {
                break;
            }
        }
        let (path, bytes) = found?;
        let certificate = Cert::decode(bytes).map_err(|error| issued::malformed(path, &error))?;
        if certificate.subject_public_key_info() != self.tal.key_info() {
            return Err(Invalid::OtherAnchorKey { file: path.clone() });
        }
        issued::must_not_overclaim(path, &certificate)?;
        clock.certificate(path, certificate.validity())?;
        certificate.inspect_ta(STRICT_NAMES).map_err(|error| issued::malformed(path, &error))?;
        certificate
            .verify_ta_at(self.tal.info().clone(), STRICT_NAMES, clock.now())
            .map_err(|error| issued::bad_signature(path, &error))
    }
}

/// rpki-client keeps the certificate as `ta/NAME/FILE`, others at the place of its rsync URI.
fn paths(tal: &Tal, folder: &str) -> Vec<String> {
    let file = |uri: &TalUri| uri.as_str().rsplit('/').next().unwrap_or_default().to_owned();
    let of_rpki_client = tal.uris().map(|uri| format!("{folder}/{}", file(uri)));
    let by_uri = tal.uris().filter_map(|uri| uri.as_str().strip_prefix("rsync://").map(str::to_owned));
    let mut paths: Vec<String> = of_rpki_client.chain(by_uri).collect();
    paths.dedup();
    paths
}
