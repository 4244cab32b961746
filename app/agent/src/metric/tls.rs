// SPDX-License-Identifier: Apache-2.0
//! TLS to who is asked for metrics.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::limits::AUTHORITIES_BYTES_MAX;

/// Where systems keep the authorities that they believe: Debian and Arch, Fedora, OpenSUSE, Alpine.
const SYSTEM_AUTHORITIES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Returns what believes the authorities in a file, or those of this machine.
///
/// # Errors
/// There are none.
pub fn client(ca: Option<&Path>) -> Result<ClientConfig> {
    let system = || SYSTEM_AUTHORITIES.iter().map(Path::new).find(|path| path.exists());
    let path = ca.or_else(system).context("this machine has no list of authorities; set `ca`")?;
    let mut pem = Vec::new();
    let file = File::open(path).and_then(|file| file.take(AUTHORITIES_BYTES_MAX).read_to_end(&mut pem));
    file.with_context(|| format!("cannot read {}", path.display()))?;
    let certificates: Result<Vec<CertificateDer<'static>>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(certificates.with_context(|| path.display().to_string())?);
    ensure!(added > 0, "{} has no certificate of an authority", path.display());
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    Ok(builder.with_safe_default_protocol_versions()?.with_root_certificates(roots).with_no_client_auth())
}

/// Speaks TLS with a host.
///
/// # Errors
/// It is not that host, or speaks something else.
pub async fn secure(stream: TcpStream, host: &str, config: Arc<ClientConfig>) -> Result<TlsStream<TcpStream>> {
    let name = ServerName::try_from(host.to_owned()).with_context(|| format!("`{host}` is no name of a host"))?;
    TlsConnector::from(config).connect(name, stream).await.context("TLS fails")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;
    use tokio_rustls::rustls::ServerConfig;
    use tokio_rustls::rustls::pki_types::PrivateKeyDer;

    use super::*;

    fn vector(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/certificates").join(name)
    }

    /// Says hello to one client by TLS, as who has a certificate.
    async fn serve(listener: TcpListener, certificate: &str) -> Result<()> {
        let chain = vec![CertificateDer::from_pem_file(vector(&format!("{certificate}.pem")))?];
        let key = PrivateKeyDer::from_pem_file(vector(&format!("{certificate}.key")))?;
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config =
            builder.with_safe_default_protocol_versions()?.with_no_client_auth().with_single_cert(chain, key)?;
        let (stream, _) = listener.accept().await?;
        let mut stream = TlsAcceptor::from(Arc::new(config)).accept(stream).await?;
        stream.write_all(b"hello").await?;
        Ok(stream.shutdown().await?)
    }

    /// Goal: only who has the name that was asked for, by an authority that is believed, is spoken with.
    #[tokio::test]
    async fn only_the_host_that_was_asked_for_is_believed() {
        for (certificate, host, ca, expected) in [
            ("n1", "n1.example.net", Some("authority.pem"), Ok("hello")),
            ("address", "10.0.0.1", Some("authority.pem"), Ok("hello")),
            ("address", "fd00::1", Some("authority.pem"), Ok("hello")),
            ("n1", "n2.example.net", Some("authority.pem"), Err("not valid for name")),
            ("n1", "n1.example.net", Some("other-authority.pem"), Err("UnknownIssuer")),
            ("n1", "n1.example.net", None, Err("UnknownIssuer")),
            ("expired", "n1.example.net", Some("authority.pem"), Err("expired")),
        ] {
            let config = match ca {
                Some(ca) => client(Some(&vector(ca))).unwrap(),
                // A machine without a list believes nobody.
                None => match client(None) {
                    Ok(config) => config,
                    Err(error) => return assert!(error.to_string().contains("set `ca`")),
                },
            };
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let at = listener.local_addr().unwrap();
            let server = tokio::spawn(serve(listener, certificate));
            let stream = TcpStream::connect(at).await.unwrap();
            let heard = async {
                let mut text = String::new();
                secure(stream, host, Arc::new(config)).await?.read_to_string(&mut text).await?;
                anyhow::Ok(text)
            };
            match (heard.await, expected) {
                (Ok(text), Ok(expected)) => assert_eq!(text, expected),
                (Err(error), Err(expected)) => assert!(format!("{error:#}").contains(expected), "{error:#}"),
                (heard, expected) => panic!("{certificate} {host}: {heard:?}, not {expected:?}"),
            }
            server.abort();
        }
    }

    #[test]
    fn a_file_without_authorities_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ca.pem");
        assert!(client(Some(&path)).unwrap_err().to_string().contains("cannot read"));
        std::fs::write(&path, "no certificate").unwrap();
        assert!(client(Some(&path)).unwrap_err().to_string().contains("has no certificate"));
    }
}
