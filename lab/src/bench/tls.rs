// SPDX-License-Identifier: Apache-2.0
//! TLS handshakes of a running node with a signaling peer.

use std::collections::VecDeque;
use std::fs::Permissions;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, ProtocolVersion, RootCertStore};

use super::goals::Goal;
use super::pin::{thread_to_node_core, to_node_core};
use super::summary::{Figure, Row};
use super::{Plan, progress};
use crate::netns::{Lab, wait_until};
use crate::node::workspace;
use crate::topology::{Kind, Topology};

/// Where the node listens with TLS.
const PORT: u16 = 27002;
/// The node's count of handshakes after which TLS is spoken.
const DONE: &str = "netserv_signaling_tls_handshakes_total{outcome=\"done\"}";
/// How long the node may take to count the last one.
const SETTLE_MAX: Duration = Duration::from_secs(2);
/// How long the node may take to answer.
const ANSWER_WAIT: Duration = Duration::from_secs(5);
/// Connections that the peer holds at a time: it closes none before the node has seen the end of its handshake.
const HELD: usize = 32;

/// Measures handshakes in which both ends show a certificate, over IPv4 and over IPv6.
///
/// # Errors
/// The node refuses the peer, or counts other handshakes than the peer.
pub fn measure(plan: &Plan) -> Result<Figure> {
    let lab = up()?;
    let peer = Peer::new()?;
    let mut rows = Vec::new();
    for (version, node) in [("IPv4", IpAddr::from(lab.v4("n1"))), ("IPv6", IpAddr::from(lab.v6("n1")))] {
        let at = SocketAddr::new(node, PORT);
        let rates =
            (0..plan.tls_rounds).map(|_| round(&lab, &peer, at, plan.tls_time)).collect::<Result<Vec<f64>>>()?;
        progress(&format!("TLS over {version}"));
        rows.push(Row::new(format!("handshakes over {version}"), "per second", &rates).goal(Goal::TlsHandshakes));
    }
    let how = "peer – n1, where a netservd requires TLS and a certificate of those who connect: a new TCP connection each, one after \
               the other, TLS 1.3 without resumption, certificates with P-256 of the lab's own authority, checked by both ends. The \
               peer does with rustls what netservd does to connect. What counts is what netservd has counted as done and given to \
               its engine. All threads of netservd and the peer share one core.";
    Ok(Figure { name: "TLS handshakes", how: how.to_owned(), rows })
}

fn up() -> Result<Lab> {
    let mut lab = Lab::up(Topology::chain(&[("peer", Kind::Host), ("n1", Kind::Node)]))?;
    let [own, key, authority] = ["n1.pem", "n1.key", "authority.pem"].map(|file| {
        let to = lab.dir().join(file);
        let copied = std::fs::copy(certificate(file), &to).map(drop);
        copied.and_then(|()| std::fs::set_permissions(&to, Permissions::from_mode(0o600))).map(|()| to)
    });
    let (own, key, authority) = (own?, key?, authority?);
    let tls =
        format!("[signaling.tls]\ncertificate = {own:?}\nkey = {key:?}\nauthorities = {authority:?}\nrequire = true\n");
    lab.start_netservd("n1", "node", &[], &tls)?;
    to_node_core(lab.pid("n1", "netservd").context("netservd runs")?)?;
    Ok(lab)
}

fn certificate(file: &str) -> PathBuf {
    workspace().join("vectors/certificates").join(file)
}

/// Returns how many handshakes the node ended well in a second.
fn round(lab: &Lab, peer: &Peer, node: SocketAddr, time: Duration) -> Result<f64> {
    let before = done(lab)?;
    // In a thread of its own: it stays in the namespace and on the core.
    let met = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            lab.enter("peer")?;
            thread_to_node_core()?;
            peer.greet_for(node, time)
        });
        thread.join().map_err(|_| anyhow!("the peer panicked"))?
    });
    let (count, took, _held) = met?;
    let mut counted = 0;
    let settled = wait_until(SETTLE_MAX, || {
        counted = done(lab).map_or(0, |done| done - before);
        counted >= count
    });
    ensure!(settled && counted == count, "the peer made {count} connections, and netservd {counted} handshakes");
    #[allow(clippy::cast_precision_loss, reason = "a small count")]
    Ok(count as f64 / took.as_secs_f64())
}

fn done(lab: &Lab) -> Result<u64> {
    let metrics = lab.get("n1", "/metrics")?;
    let count = metrics.lines().find_map(|line| line.strip_prefix(DONE));
    count.with_context(|| format!("no {DONE} in the metrics"))?.trim().parse().context("a count")
}

/// The other end of handshakes.
struct Peer {
    provider: Arc<CryptoProvider>,
    authorities: Arc<RootCertStore>,
    own: Arc<CertifiedKey>,
    node: ServerName<'static>,
}

type Connection = (TcpStream, ClientConnection);

impl Peer {
    fn new() -> Result<Peer> {
        let provider = ring::default_provider();
        let mut authorities = RootCertStore::empty();
        authorities.add(CertificateDer::from_pem_file(certificate("authority.pem"))?)?;
        let chain = vec![CertificateDer::from_pem_file(certificate("sender.pem"))?];
        let key = PrivateKeyDer::from_pem_file(certificate("sender.key"))?;
        let own = CertifiedKey::from_der(chain, key, &provider)?;
        let node = ServerName::try_from("n1.example.net")?;
        Ok(Peer { provider: Arc::new(provider), authorities: Arc::new(authorities), own: Arc::new(own), node })
    }

    /// Makes connections one after the other for a time; returns how many, how long it took, and those that are open.
    fn greet_for(&self, node: SocketAddr, time: Duration) -> Result<(u64, Duration, VecDeque<Connection>)> {
        let (mut count, mut held) = (0, VecDeque::new());
        let begun = Instant::now();
        while begun.elapsed() < time {
            held.push_back(self.greet(node)?);
            count += 1;
            if held.len() > HELD {
                held.pop_front();
            }
        }
        Ok((count, begun.elapsed(), held))
    }

    fn greet(&self, node: SocketAddr) -> Result<Connection> {
        let mut stream = TcpStream::connect(node)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_WAIT))?;
        let mut connection = ClientConnection::new(Arc::new(self.config()?), self.node.clone())?;
        while connection.is_handshaking() {
            connection.complete_io(&mut stream)?;
        }
        ensure!(connection.protocol_version() == Some(ProtocolVersion::TLSv1_3), "another version than TLS 1.3");
        Ok((stream, connection))
    }

    /// A configuration for each connection, as netservd has one.
    fn config(&self) -> Result<ClientConfig> {
        let builder = ClientConfig::builder_with_provider(self.provider.clone()).with_protocol_versions(&[&TLS13])?;
        let builder = builder.with_root_certificates(self.authorities.clone());
        let own = Arc::new(SingleCertAndKey::from(self.own.clone()));
        let mut config = builder.with_client_cert_resolver(own);
        config.resumption = Resumption::disabled();
        config.enable_sni = false;
        Ok(config)
    }
}
