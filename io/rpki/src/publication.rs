// SPDX-License-Identifier: Apache-2.0
//! What an authority publishes: its manifest (RFC 9286), and the revocation list in that.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use rpki::crypto::DigestAlgorithm;
use rpki::repository::cert::{Cert, ResourceCert};
use rpki::repository::crl::Crl;
use rpki::repository::sigobj::SignedObject;
use rpki::repository::x509::Serial;
use rpki::uri::Rsync;

use crate::error::Invalid;
use crate::files::Files;
use crate::issued;
use crate::manifest::{CONTENT_TYPE, Manifest};
use crate::time::{Clock, unix_time};

/// What is wanted of what an authority publishes: the digests of files by their names, and whether certificates are revoked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    names: BTreeSet<String>,
    serials: BTreeSet<Serial>,
}

impl Wanted {
    /// Returns what is wanted to know that an issuer's certificate holds, which lies in a file if it is published.
    pub(crate) fn of(issuer: &Cert, certificate: &Cert, file: Option<&Rsync>) -> Wanted {
        let folder = issuer.ca_repository();
        let name = file.zip(folder).and_then(|(file, folder)| file.relative_to(folder)).map(str::to_owned);
        Wanted { names: name.into_iter().collect(), serials: BTreeSet::from([certificate.serial_number()]) }
    }

    pub(crate) fn add(&mut self, other: &Wanted) {
        self.names.extend(other.names.iter().cloned());
        self.serials.extend(&other.serials);
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len() + self.serials.len()
    }
}

/// What the current manifest and revocation list of an authority say of what is wanted.
#[derive(Debug)]
pub(crate) struct Publication {
    folder: Rsync,
    manifest_uri: Rsync,
    list_uri: Rsync,
    wanted: Wanted,
    /// The digests of the wanted files that the manifest lists.
    listed: BTreeMap<String, Vec<u8>>,
    /// The wanted certificates that are not revoked.
    held: BTreeSet<Serial>,
}

impl Publication {
    /// Reads and checks both.
    pub(crate) fn read(
        issuer: &ResourceCert,
        files: &mut Files,
        clock: &mut Clock,
        wanted: Wanted,
    ) -> Result<Publication, Invalid> {
        // `inspect_ca` saw that an authority has both.
        let (Some(folder), Some(manifest_uri)) = (issuer.ca_repository(), issuer.rpki_manifest()) else {
            return Err(issued::malformed("an authority's certificate", &"it names no manifest"));
        };
        let of = manifest_uri.as_str();
        let object =
            SignedObject::decode(files.read(manifest_uri)?, true).map_err(|error| issued::malformed(of, &error))?;
        if object.content_type().as_ref() != CONTENT_TYPE {
            return Err(issued::malformed(of, &"it is no manifest"));
        }
        let certificate = object.cert().clone();
        certificate.inspect_ee(issued::STRICT_NAMES).map_err(|error| issued::malformed(of, &error))?;
        issued::end_entity(of, certificate.clone(), issuer, clock)?;
        let content = object.content().to_bytes();
        let validated = object.validate_at(issuer, issued::STRICT_NAMES, clock.now());
        validated.map_err(|error| issued::bad_signature(of, &error))?;
        let manifest = Manifest::parse(content).ok_or_else(|| issued::malformed(of, &"it is no list of files"))?;
        clock.within(of, manifest.from, manifest.until)?;
        let Some(list_uri) = certificate.crl_uri() else {
            return Err(issued::malformed(of, &"it names no revocation list"));
        };
        let bytes = files.read(list_uri)?;
        let list_name = list_uri.relative_to(folder).unwrap_or_default();
        let listed = manifest.digests_of(wanted.names.iter().map(String::as_str).chain([list_name]));
        let publication = Publication {
            folder: folder.clone(),
            manifest_uri: manifest_uri.clone(),
            list_uri: list_uri.clone(),
            listed,
            held: BTreeSet::new(),
            wanted,
        };
        publication.must_list(list_uri, &bytes)?;
        let list = revocation_list(list_uri, bytes, issuer, clock)?;
        let mut held = publication.wanted.serials.clone();
        held.insert(certificate.serial_number());
        list.as_ref().revoked_certs().iter().for_each(|entry| {
            held.remove(&entry.user_certificate);
        });
        let publication = Publication { held, ..publication };
        publication.must_hold(of, &certificate)?;
        Ok(publication)
    }

    #[cfg(test)]
    pub(crate) fn of_names(count: usize) -> Publication {
        let uri = <Rsync as std::str::FromStr>::from_str("rsync://rpki.example/repo/").expect("a URI");
        let wanted = Wanted { names: (0..count).map(|name| name.to_string()).collect(), serials: BTreeSet::new() };
        let (listed, held) = (BTreeMap::new(), BTreeSet::new());
        Publication { folder: uri.clone(), manifest_uri: uri.clone(), list_uri: uri, wanted, listed, held }
    }

    /// Returns what was wanted when it was read.
    pub(crate) fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// Returns whether it says something of everything that is wanted.
    pub(crate) fn knows(&self, wanted: &Wanted) -> bool {
        wanted.names.is_subset(&self.wanted.names) && wanted.serials.is_subset(&self.wanted.serials)
    }

    /// Checks that the manifest lists a wanted file with these bytes.
    pub(crate) fn must_list(&self, file: &Rsync, bytes: &Bytes) -> Result<(), Invalid> {
        let (file_name, manifest_name) = (file.to_string(), self.manifest_uri.to_string());
        let Some(hash) = file.relative_to(&self.folder).and_then(|name| self.listed.get(name)) else {
            return Err(Invalid::NotListed { file: file_name, manifest: manifest_name });
        };
        if hash.as_slice() != DigestAlgorithm::sha256().digest(bytes).as_ref() {
            return Err(Invalid::OtherHash { file: file_name, manifest: manifest_name });
        }
        Ok(())
    }

    /// Checks that a wanted certificate that the authority issued is not revoked.
    pub(crate) fn must_hold(&self, of: &str, certificate: &Cert) -> Result<(), Invalid> {
        if certificate.crl_uri() != Some(&self.list_uri) {
            return Err(Invalid::OtherRevocationList { of: of.to_owned() });
        }
        if !self.held.contains(&certificate.serial_number()) {
            return Err(Invalid::Revoked { of: of.to_owned() });
        }
        Ok(())
    }
}

fn revocation_list(uri: &Rsync, bytes: Bytes, issuer: &ResourceCert, clock: &mut Clock) -> Result<Crl, Invalid> {
    let of = uri.as_str();
    let list = Crl::decode(bytes).map_err(|error| issued::malformed(of, &error))?;
    list.verify_issuer_claim(issuer, issued::STRICT_NAMES).map_err(|error| issued::bad_signature(of, &error))?;
    list.verify_signature(issuer.subject_public_key_info()).map_err(|error| issued::bad_signature(of, &error))?;
    clock.within(of, unix_time(list.this_update()), unix_time(list.next_update()))?;
    Ok(list)
}
