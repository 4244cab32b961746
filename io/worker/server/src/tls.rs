// SPDX-License-Identifier: Apache-2.0
//! HTTPS: with a module's own certificate, and whose certificates its requests trust.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

use netserv_model::limits::AUTHORITIES_BYTES_MAX;
use netserv_model::{Refusal, RefusalKind};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::client::verify_server_name;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};

use crate::limits;

/// Returns the implementation of TLS's ciphers.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Reads a certificate chain, then its key, in PEM. Clients may choose between HTTP/2 and HTTP/1.1.
///
/// # Errors
/// [`RefusalKind::BadPackage`] if it is something else.
pub fn acceptor(pem: File) -> Result<TlsAcceptor, Refusal> {
    certificate(pem, &BTreeMap::new()).map(|certificate| certificate.acceptor)
}

/// A certificate chain with its key.
pub struct Certificate {
    /// What accepts connections with it.
    pub acceptor: TlsAcceptor,
    own: CertificateDer<'static>,
}

impl Certificate {
    /// Returns whether clients that want a name take the certificate for it.
    pub fn covers(&self, name: &str) -> bool {
        let (Ok(parsed), Ok(name)) = (ParsedCertificate::try_from(&self.own), ServerName::try_from(name)) else {
            return false;
        };
        verify_server_name(&parsed, &name).is_ok()
    }
}

/// Reads a certificate as [`acceptor`] does. A chain in the module's properties `tls-chain`, `tls-chain-2` and so on takes the place of the
/// file's, whose key stays.
///
/// # Errors
/// As there; [`RefusalKind::BadRequest`] if the chain of the properties is none, or of another key.
pub fn certificate(pem: File, properties: &BTreeMap<String, String>) -> Result<Certificate, Refusal> {
    let mut bytes = Vec::new();
    let read = pem.take(limits::PEM_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| Refusal::new(RefusalKind::NodeFailed, format!("cannot read the certificate: {error}")))?;
    if bytes.len() as u64 > limits::PEM_BYTES_MAX {
        return Err(bad(&format!("it is longer than {} bytes", limits::PEM_BYTES_MAX)));
    }
    match renewed(properties) {
        Some(chain) => certificate_from(chain.as_bytes(), &bytes, of_properties),
        None => certificate_from(&bytes, &bytes, bad),
    }
}

/// Returns the chain that a module's properties have, one or more certificates in each.
fn renewed(properties: &BTreeMap<String, String>) -> Option<String> {
    let first = properties.get(CHAIN_PROPERTY).filter(|chain| !chain.trim().is_empty())?;
    let further = (2..).map_while(|number| properties.get(&format!("{CHAIN_PROPERTY}-{number}")));
    Some(std::iter::once(first).chain(further).map(|part| format!("{part}\n")).collect())
}

/// Makes one of a chain and of the key in a file. Refusals say by `bad` what is wrong.
fn certificate_from(chain: &[u8], pem: &[u8], bad: fn(&str) -> Refusal) -> Result<Certificate, Refusal> {
    let chain: Result<Vec<CertificateDer<'static>>, _> = CertificateDer::pem_slice_iter(chain).collect();
    let chain = chain.map_err(|error| bad(&error.to_string()))?;
    let own = chain.first().cloned().ok_or_else(|| bad("it has no certificate"))?;
    let key = PrivateKeyDer::from_pem_slice(pem).map_err(|error| bad(&format!("its key: {error}")))?;
    let builder = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| bad(&error.to_string()))?;
    let config = builder.with_no_client_auth().with_single_cert(chain, key);
    let mut config = config.map_err(|error| bad(&error.to_string()))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Certificate { acceptor: TlsAcceptor::from(Arc::new(config)), own })
}

/// Returns what trusts the authorities of Mozilla's list, and those in a file if it is there.
///
/// # Errors
/// The file cannot be read, or has no certificate of an authority in PEM.
pub fn client(authorities: Option<&Path>) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.into() };
    if let Some(path) = authorities {
        let unusable = |why: &str| format!("the node's own authorities cannot be used: {why}");
        match File::open(path) {
            Ok(file) => add_authorities(&mut roots, file).map_err(|why| unusable(&why))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(unusable(&error.to_string())),
        }
    }
    let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| error.to_string())?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn add_authorities(roots: &mut RootCertStore, file: File) -> Result<(), String> {
    let mut pem = Vec::new();
    file.take(AUTHORITIES_BYTES_MAX).read_to_end(&mut pem).map_err(|error| error.to_string())?;
    let certificates: Result<Vec<CertificateDer<'static>>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let (added, _) = roots.add_parsable_certificates(certificates.map_err(|error| error.to_string())?);
    if added == 0 { Err("there is no certificate among them".to_owned()) } else { Ok(()) }
}

fn bad(why: &str) -> Refusal {
    Refusal::new(RefusalKind::BadPackage, format!("the package's certificate cannot be used: {why}"))
}

fn of_properties(why: &str) -> Refusal {
    let detail = format!("the chain in `{CHAIN_PROPERTY}` cannot be used with the package's key: {why}");
    Refusal::new(RefusalKind::BadRequest, detail)
}

/// The property that has the chain of a renewed certificate.
const CHAIN_PROPERTY: &str = "tls-chain";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_certificate_with_a_key_is_refused() {
        for pem in ["", "text", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            let refusal = certificate_from(pem.as_bytes(), pem.as_bytes(), bad).map(drop).unwrap_err();
            assert_eq!(refusal.kind, RefusalKind::BadPackage, "{pem}");
        }
    }

    /// Goal: a renewed certificate of the same key is served, whole or in pieces, and none of another key. Method: files with and without.
    #[test]
    fn a_chain_in_the_properties_takes_the_place_of_the_files() {
        let file = || File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/all/server/tls.pem")).unwrap();
        let renewed = include_str!("../../tests/all/server/certificates/renewed.pem");
        let authority = include_str!("../../tests/all/server/certificates/authority.pem");
        let of = |properties: &[(&str, &str)]| {
            let text = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            certificate(file(), &properties.iter().map(text).collect())
        };
        let before = of(&[("tls-chain", " "), ("tls-chain-2", renewed)]).unwrap();
        let after = of(&[("tls-chain", renewed.trim_end()), ("tls-chain-2", authority)]).unwrap();
        let expected = CertificateDer::from_pem_slice(renewed.as_bytes()).unwrap();
        assert!(after.own == expected && before.own != expected && after.covers("module.test"));
        for wrong in [authority, "text", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            let refusal = of(&[("tls-chain", wrong)]).map(drop).unwrap_err();
            assert_eq!(refusal.kind, RefusalKind::BadRequest, "{wrong}");
        }
    }

    #[test]
    fn own_authorities_need_not_be_there_but_have_to_be_some() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(client(None).is_ok() && client(Some(Path::new("/nowhere/at/all"))).is_ok());
        for pem in ["", "text", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            std::fs::write(file.path(), pem).unwrap();
            let why = client(Some(file.path())).map(drop).unwrap_err();
            assert!(why.contains("no certificate"), "{pem}: {why}");
        }
        let certificate = include_bytes!("../../tests/all/server/certificates/authority.pem");
        std::fs::write(file.path(), certificate).unwrap();
        assert!(client(Some(file.path())).is_ok());
    }
}
