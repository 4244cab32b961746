// SPDX-License-Identifier: Apache-2.0
//! How a component's own requests get to their servers: by TCP, and by TLS toward servers whose certificates the authorities of Mozilla's
//! list vouch for, or the operator's own. Only addresses that the module's `connect` filters name are tried, whatever a name server says.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::uri::Authority;
use netserv_wire::container::frames::LogLevel;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{self, ClientConfig};
use wasmtime_wasi_http::Error;

use super::http::heads::Taker;
use super::http::passing::Passing;
use super::http::upstream::Upstream;
use super::module::{Module, Transport};
use super::origin::Stream;
use super::{connect_to, relay, tls};

/// Where a container has the operator's own authorities, if there are any.
pub const AUTHORITIES: &str = "/etc/authorities.pem";

static AUTHORITIES_FILE: OnceLock<PathBuf> = OnceLock::new();

/// Names the file of the operator's own authorities, in PEM. It is read when the first request over TLS is sent, and need
/// not be there.
pub fn trust(authorities: PathBuf) {
    // A process has one such file.
    let _ = AUTHORITIES_FILE.set(authorities);
}

/// The way to a server.
pub struct Route {
    /// Whose request it is.
    pub module: Arc<Module>,
    /// The server's name.
    pub authority: Authority,
    /// Whether it is asked by TLS.
    pub tls: bool,
    /// The server of the client's connection, if that is it.
    pub upstream: Option<Arc<Upstream>>,
    /// The client's request, to which an answer goes that is not understood.
    pub passing: Option<Passing>,
}

impl Route {
    /// Returns what gives the client's connection an answer that is not understood, if that is for the client.
    pub fn taker(&self) -> Option<Taker> {
        let (passing, upstream) = (self.passing.clone()?, self.upstream.clone()?);
        Some(Box::new(move |foreign| {
            if passing.pass() {
                upstream.give(foreign);
            }
        }))
    }

    /// Returns whether the client has what its server says.
    pub fn is_passed(&self) -> bool {
        self.passing.as_ref().is_some_and(Passing::is_passed)
    }

    /// Connects in `time`, which the caller sees to.
    ///
    /// # Errors
    /// There is no connection, or it is not permitted.
    pub async fn connect(&self, time: Duration) -> Result<Box<dyn Stream>, Error> {
        let stream = match &self.upstream {
            Some(upstream) => upstream.connect().await.map_err(Error::Connect)?,
            None => self.connect_as_permitted(time).await?,
        };
        relay::prepare(&stream);
        if !self.tls {
            return Ok(Box::new(stream));
        }
        Ok(Box::new(secure(&self.module, connect_to::host(&self.authority), self.authority.as_str(), stream).await?))
    }

    async fn connect_as_permitted(&self, time: Duration) -> Result<TcpStream, Error> {
        let until = Instant::now() + time;
        let port = self.authority.port_u16().unwrap_or(if self.tls { 443 } else { 80 });
        let (host, port) = self.module.connect_to.of(connect_to::host(&self.authority), port);
        let found: Vec<SocketAddr> = match host.parse::<IpAddr>() {
            Ok(address) => vec![SocketAddr::new(address, port)],
            Err(_) => tokio::net::lookup_host((host, port)).await.map_err(no_name)?.collect(),
        };
        let permitted = found.into_iter().filter(|address| self.module.may_connect(Transport::Tcp, *address));
        self.module.slow_addresses.connect(permitted.collect(), until).await
    }
}

/// Begins TLS with a server that is to have a certificate for `host`. Why there is none is in the module's log.
///
/// # Errors
/// There is none, as `wasi:http` knows it.
pub async fn secure(
    module: &Module,
    host: &str,
    server: &str,
    stream: TcpStream,
) -> Result<TlsStream<TcpStream>, Error> {
    let name = ServerName::try_from(host.to_owned()).map_err(|_| Error::HttpRequestUriInvalid)?;
    let connected = TlsConnector::from(client_config()?).connect(name, stream).await;
    connected.map_err(|error| {
        module.log(LogLevel::Warn, format!("no TLS with {server}: {error}").as_bytes());
        no_tls(error)
    })
}

fn no_tls(error: io::Error) -> Error {
    match error.get_ref().and_then(|cause| cause.downcast_ref()) {
        Some(rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented) => {
            Error::TlsCertificateError
        }
        Some(rustls::Error::AlertReceived(alert)) => {
            Error::TlsAlertReceived { alert_id: Some((*alert).into()), alert_message: Some(format!("{alert:?}")) }
        }
        Some(_) | None => Error::Tls(error),
    }
}

fn no_name(_: io::Error) -> Error {
    Error::DnsError { rcode: None, info_code: None }
}

fn client_config() -> Result<Arc<ClientConfig>, Error> {
    static CONFIG: OnceLock<Result<Arc<ClientConfig>, String>> = OnceLock::new();
    let config = CONFIG.get_or_init(|| tls::client(AUTHORITIES_FILE.get().map(PathBuf::as_path)).map(Arc::new));
    config.clone().map_err(|why| Error::InternalError(Some(why)))
}
