// SPDX-License-Identifier: Apache-2.0
//! What an authority publishes: its manifest (RFC 9286), and the revocation list in that.

use bytes::Bytes;
use rpki::crypto::DigestAlgorithm;
use rpki::repository::cert::{Cert, ResourceCert};
use rpki::repository::crl::Crl;
use rpki::repository::sigobj::SignedObject;
use rpki::uri::Rsync;

use crate::error::Invalid;
use crate::files::Files;
use crate::issued;
use crate::manifest::{CONTENT_TYPE, Manifest};
use crate::time::{Clock, unix_time};

/// The current manifest and revocation list of an authority.
pub(crate) struct Publication {
    folder: Rsync,
    manifest: Manifest,
    manifest_uri: Rsync,
    list: Crl,
    list_uri: Rsync,
}

impl Publication {
    /// Reads and checks both.
    pub(crate) fn read(issuer: &ResourceCert, files: &mut Files, clock: &mut Clock) -> Result<Publication, Invalid> {
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
        must_list(&manifest, manifest_uri, folder, list_uri, &bytes)?;
        let list = revocation_list(list_uri, bytes, issuer, clock)?;
        let publication = Publication {
            folder: folder.clone(),
            manifest,
            manifest_uri: manifest_uri.clone(),
            list_uri: list_uri.clone(),
            list,
        };
        publication.must_hold(of, &certificate)?;
        Ok(publication)
    }

    /// Checks that the manifest lists a file with these bytes.
    pub(crate) fn must_list(&self, file: &Rsync, bytes: &Bytes) -> Result<(), Invalid> {
        must_list(&self.manifest, &self.manifest_uri, &self.folder, file, bytes)
    }

    /// Checks that a certificate that the authority issued is not revoked.
    pub(crate) fn must_hold(&self, of: &str, certificate: &Cert) -> Result<(), Invalid> {
        if certificate.crl_uri() != Some(&self.list_uri) {
            return Err(Invalid::OtherRevocationList { of: of.to_owned() });
        }
        if self.list.contains(certificate.serial_number()) {
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

fn must_list(
    manifest: &Manifest,
    manifest_uri: &Rsync,
    folder: &Rsync,
    file: &Rsync,
    bytes: &Bytes,
) -> Result<(), Invalid> {
    let (file_name, manifest_name) = (file.to_string(), manifest_uri.to_string());
    let listed = file.relative_to(folder).and_then(|name| manifest.digest_of(name));
    let Some(hash) = listed else {
        return Err(Invalid::NotListed { file: file_name, manifest: manifest_name });
    };
    if hash != DigestAlgorithm::sha256().digest(bytes).as_ref() {
        return Err(Invalid::OtherHash { file: file_name, manifest: manifest_name });
    }
    Ok(())
}
