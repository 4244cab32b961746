// SPDX-License-Identifier: Apache-2.0
//! TLS 1.3 with signaling peers: who shows what, who is believed, and what became of handshakes.
//!
//! Which names a peer has, nobody knows before it shows its certificate: the Response that led to it names an address, and
//! anybody may have written that. So whoever the authorities vouch for is a peer, if the operator's list has it (RFC 5971
//! §4.4.2).

use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::{Instant, SystemTime};

use anyhow::{Context as _, Result};
use ipnet::IpNet;
use netserv_node::gist::{Channel, FlowRule, FlowScope, Prefix};
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::client::{Resumption, verify_server_cert_signed_by_trust_anchor};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use tokio_rustls::rustls::server::{NoServerSessionStorage, ParsedCertificate, WebPkiClientVerifier};
use tokio_rustls::rustls::sign::SingleCertAndKey;
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, PeerMisbehaved, ServerConfig,
    SignatureScheme,
};
use tokio_rustls::{TlsAcceptor, TlsConnector};
use webpki::EndEntityCert;

use crate::config::tls::{ClientCertificate, Credentials, PeerName, PeerRule};
use crate::limits::TLS_WARNING_INTERVAL;

netserv_model::words! {
    /// What became of TLS handshakes.
    pub enum HandshakeEnd {
        /// TLS is spoken.
        Done = "done",
        /// The peer showed no certificate, or one that is not good.
        BadCertificate = "bad-certificate",
        /// The peer's certificate is good, but it is not on the list of those who may be peers.
        Unauthorized = "unauthorized",
        /// The peer did not like this node, and said so.
        RefusedByPeer = "refused-by-peer",
        /// The peer spoke something else.
        NotTls = "not-tls",
        /// The connection broke.
        Broken = "broken",
        /// It took too long.
        TimedOut = "timed-out",
        /// Others came, and this one was the oldest.
        Crowded = "crowded",
    }
}

/// TLS of this node, shared by all connections.
#[derive(Debug)]
pub struct Tls {
    credentials: RwLock<Arc<Trust>>,
    ends: [AtomicU64; HandshakeEnd::ALL.len()],
    warned: Mutex<Option<Instant>>,
}

impl Tls {
    /// Returns TLS with these credentials.
    ///
    /// # Errors
    /// The authorities are of no use.
    pub fn new(credentials: Credentials) -> Result<Tls> {
        let credentials = RwLock::new(Arc::new(Trust::new(credentials)?));
        Ok(Tls { credentials, ends: Default::default(), warned: Mutex::new(None) })
    }

    /// Takes other credentials, for all that connect from here on.
    ///
    /// # Errors
    /// The authorities are of no use; all stays as it was.
    pub fn set(&self, credentials: Credentials) -> Result<()> {
        let trust = Arc::new(Trust::new(credentials)?);
        *self.credentials.write().unwrap_or_else(PoisonError::into_inner) = trust;
        Ok(())
    }

    /// Tells people if peers with the same authorities will not believe this node.
    pub fn warn_of_own(&self) {
        if let Some(fault) = self.trust().own_fault() {
            tracing::warn!(
                fault,
                "signaling.tls.certificate is not good by signaling.tls.authorities; peers may refuse it"
            );
        }
    }

    /// Returns the credentials of this moment.
    pub fn trust(&self) -> Arc<Trust> {
        self.credentials.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts a handshake, and tells people of one that failed unless they were told of another just now.
    pub fn count(&self, end: HandshakeEnd, peer: IpAddr, why: &str) {
        self.ends[end as usize].fetch_add(1, Ordering::Relaxed);
        if end == HandshakeEnd::Done {
            return;
        }
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if warned.is_none_or(|at| now.duration_since(at) >= TLS_WARNING_INTERVAL) {
            *warned = Some(now);
            tracing::warn!(%peer, outcome = end.as_str(), why, "no TLS with a signaling peer");
        } else {
            tracing::debug!(%peer, outcome = end.as_str(), why, "no TLS with a signaling peer");
        }
    }

    /// Returns how many handshakes ended in each way.
    pub fn ends(&self) -> impl Iterator<Item = (HandshakeEnd, u64)> + '_ {
        HandshakeEnd::ALL.into_iter().zip(self.ends.iter().map(|count| count.load(Ordering::Relaxed)))
    }
}

/// Which end of a connection a peer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It connected.
    Client,
    /// It accepted.
    Server,
}

/// Credentials as they were read at one time.
#[derive(Debug)]
pub struct Trust {
    credentials: Credentials,
    /// Checks certificates of those that connect.
    clients: Arc<dyn ClientCertVerifier>,
    provider: Arc<CryptoProvider>,
}

impl Trust {
    fn new(credentials: Credentials) -> Result<Trust> {
        let provider = Arc::new(ring::default_provider());
        let clients =
            WebPkiClientVerifier::builder_with_provider(credentials.authorities.clone(), provider.clone()).build();
        let clients = clients.context("signaling.tls.authorities cannot be used")?;
        Ok(Trust { credentials, clients, provider })
    }

    /// Returns why peers with the same authorities would not believe this node.
    fn own_fault(&self) -> Option<String> {
        let [own, between @ ..] = &self.credentials.own.cert[..] else { return Some("there is none".to_owned()) };
        let now = UnixTime::since_unix_epoch(SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default());
        let sides = [Side::Client, Side::Server];
        let fault = sides.into_iter().find_map(|side| self.check_chain(side, own, between, now).err());
        let fault = fault.map(|error| error.to_string());
        fault.or_else(|| dns_names(own).is_empty().then(|| NO_NAME.to_owned()))
    }

    /// Returns by which name a certificate that was shown makes a peer of who has an address.
    ///
    /// # Errors
    /// It is not good for that, or is not on the list.
    pub fn vouch(
        &self,
        side: Side,
        chain: &[CertificateDer<'_>],
        address: IpAddr,
        now: UnixTime,
    ) -> Result<Found, String> {
        let [end_entity, between @ ..] = chain else { return Err("it showed no certificate".to_owned()) };
        self.check_chain(side, end_entity, between, now).map_err(|error| error.to_string())?;
        self.name(end_entity, address)
    }

    fn check_chain(
        &self,
        side: Side,
        end_entity: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        match side {
            Side::Client => self.clients.verify_client_cert(end_entity, between, now).map(drop),
            Side::Server => {
                let parsed = ParsedCertificate::try_from(end_entity)?;
                let algorithms = self.provider.signature_verification_algorithms.all;
                let authorities = &self.credentials.authorities;
                verify_server_cert_signed_by_trust_anchor(&parsed, authorities, between, now, algorithms)
            }
        }
    }

    /// Returns the name in a certificate by which the operator's list has who is at an address.
    fn name(&self, certificate: &CertificateDer<'_>, address: IpAddr) -> Result<Found, String> {
        let names = dns_names(certificate);
        let has_address = names_address(certificate, address);
        let own = || has_address.then(|| address.to_string());
        let listed = &self.credentials.peers;
        if listed.is_empty()
            && let Some(name) = names.first().cloned().or_else(own)
        {
            return Ok(Found { name, flows: FlowScope::default() });
        }
        let fitting = |name: &PeerName| {
            let by_name = names.iter().find(|presented| name.fits(presented)).cloned();
            by_name.or_else(|| own().filter(|_| name.contains(address)))
        };
        let mut rules: Vec<FlowRule> = Vec::new();
        let mut allowed = None;
        let mut denied = false;
        for PeerRule { name, deny, flows } in listed {
            let Some(fitting) = fitting(name) else { continue };
            let prefix = |net: &IpNet| Prefix { address: net.network(), bits: net.prefix_len() };
            rules.push(FlowRule { allow: !deny, prefixes: flows.iter().map(prefix).collect() });
            denied |= deny;
            if !deny {
                allowed.get_or_insert(fitting);
            }
            // The first entry that fits counts.
            if flows.is_empty() {
                break;
            }
        }
        if let Some(name) = allowed {
            return Ok(Found { name, flows: FlowScope(rules) });
        }
        let shown = names.into_iter().chain(has_address.then(|| address.to_string())).collect::<Vec<_>>().join(", ");
        match shown.is_empty() {
            true => Err(NO_NAME.to_owned()),
            false if denied => Err(format!("signaling.tls.peers keeps it out, by one of its names: {shown}")),
            false => Err(format!("signaling.tls.peers has none of its names: {shown}")),
        }
    }
}

/// Who a peer was found to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The name in its certificate by which the list has it.
    pub name: String,
    /// What flows it may speak about.
    pub flows: FlowScope,
}

/// What is wrong with a certificate without names.
const NO_NAME: &str = "its certificate has no name (subjectAltName) that is a DNS name or its address";

fn dns_names(certificate: &CertificateDer<'_>) -> Vec<String> {
    let parsed = EndEntityCert::try_from(certificate);
    parsed.map(|parsed| parsed.valid_dns_names().map(str::to_owned).collect()).unwrap_or_default()
}

fn names_address(certificate: &CertificateDer<'_>, address: IpAddr) -> bool {
    let parsed = EndEntityCert::try_from(certificate);
    parsed.is_ok_and(|parsed| parsed.verify_is_valid_for_subject_name(&ServerName::from(address)).is_ok())
}

/// One handshake: checks the peer, and remembers what it found.
#[derive(Debug)]
pub struct Verifier {
    trust: Arc<Trust>,
    address: IpAddr,
    /// The name, or why there is none.
    found: OnceLock<Result<Found, String>>,
}

impl Verifier {
    /// Returns what checks the peer at an address.
    pub fn new(trust: Arc<Trust>, address: IpAddr) -> Arc<Verifier> {
        Arc::new(Verifier { trust, address, found: OnceLock::new() })
    }

    /// Returns what speaks TLS with a peer that connected. Nothing is resumed: each peer is checked each time.
    ///
    /// # Errors
    /// The ciphers do not do TLS 1.3.
    pub fn acceptor(self: &Arc<Verifier>) -> Result<TlsAcceptor, Error> {
        let builder = ServerConfig::builder_with_provider(self.trust.provider.clone());
        let builder = builder.with_protocol_versions(&[&TLS13])?.with_client_cert_verifier(self.clone());
        let mut config = builder.with_cert_resolver(Arc::new(self.own()));
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    /// Returns what speaks TLS with a peer that accepted.
    ///
    /// # Errors
    /// The ciphers do not do TLS 1.3.
    pub fn connector(self: &Arc<Verifier>) -> Result<TlsConnector, Error> {
        let builder = ClientConfig::builder_with_provider(self.trust.provider.clone());
        let builder = builder.with_protocol_versions(&[&TLS13])?;
        let builder = builder.dangerous().with_custom_certificate_verifier(self.clone());
        let mut config = builder.with_client_cert_resolver(Arc::new(self.own()));
        config.resumption = Resumption::disabled();
        config.enable_sni = false;
        Ok(TlsConnector::from(Arc::new(config)))
    }

    /// Returns who the peer was found to be, as GIST takes it: nobody, if it showed no certificate.
    pub fn channel(&self) -> Channel {
        match self.found.get() {
            Some(Ok(Found { name, flows })) => Channel::Tls { peer: Some(name.clone()), flows: flows.clone() },
            Some(Err(_)) | None => Channel::Tls { peer: None, flows: FlowScope::default() },
        }
    }

    /// Returns what flows the peer may speak about.
    pub fn flows(&self) -> FlowScope {
        let found = self.found.get().and_then(|found| found.as_ref().ok());
        found.map(|found| found.flows.clone()).unwrap_or_default()
    }

    /// Returns how a handshake that failed ended, and why.
    pub fn explain(&self, error: &io::Error) -> (HandshakeEnd, String) {
        let (end, why) = explain(error);
        match self.found.get() {
            Some(Err(why)) => (end, why.clone()),
            Some(Ok(_)) | None => (end, why),
        }
    }

    fn own(&self) -> SingleCertAndKey {
        SingleCertAndKey::from(self.trust.credentials.own.clone())
    }

    fn check(
        &self,
        side: Side,
        end_entity: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        self.trust.check_chain(side, end_entity, between, now)?;
        let name = self.trust.name(end_entity, self.address);
        let authorized = name.is_ok();
        // A handshake checks its peer once.
        let _ = self.found.set(name);
        // The peer is told that access is denied.
        let denied = Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure);
        authorized.then_some(()).ok_or(denied)
    }

    fn check_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.trust.provider.signature_verification_algorithms)
    }
}

/// Returns how a connection ended that TLS was spoken on, and why, as far as its error says.
pub fn explain(error: &io::Error) -> (HandshakeEnd, String) {
    let found = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    let end = match found {
        None => HandshakeEnd::Broken,
        Some(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure)) => HandshakeEnd::Unauthorized,
        Some(Error::InvalidCertificate(_) | Error::NoCertificatesPresented) => HandshakeEnd::BadCertificate,
        Some(Error::AlertReceived(_)) => HandshakeEnd::RefusedByPeer,
        Some(_) => HandshakeEnd::NotTls,
    };
    let why = match found {
        Some(Error::AlertReceived(alert)) => format!("the peer refuses this node: {alert:?}"),
        Some(_) | None => error.to_string(),
    };
    (end, why)
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(Side::Server, end_entity, intermediates, now).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::PeerMisbehaved(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.trust.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl ClientCertVerifier for Verifier {
    fn client_auth_mandatory(&self) -> bool {
        match self.trust.credentials.client_certificate {
            ClientCertificate::Required => true,
            ClientCertificate::Optional => false,
        }
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(Side::Client, end_entity, intermediates, now).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::PeerMisbehaved(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.trust.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use tokio_rustls::rustls::pki_types::pem::PemObject as _;

    use super::*;

    #[test]
    fn who_is_a_peer_and_why_not() {
        let check = |certificate: &str, side: Side, peers: &[&str], expected: Result<&str, &str>| {
            let trust = Trust::new(Credentials::of_vectors("n2", peers)).unwrap();
            let found = trust.vouch(side, &chain(certificate), [10, 0, 0, 1].into(), at(NOW));
            match (&found, expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found.name, expected),
                (Err(why), Err(expected)) => assert!(why.contains(expected), "{why}, not {expected}"),
                (Ok(_), Err(_)) | (Err(_), Ok(_)) => panic!("{certificate} {peers:?}: {found:?}, not {expected:?}"),
            }
        };
        for side in [Side::Client, Side::Server] {
            check("n1", side, &[], Ok("n1.example.net"));
            check("n1", side, &["n2.example.net", "n1.example.net"], Ok("n1.example.net"));
            check("n1", side, &["*.example.net"], Ok("n1.example.net"));
            check("n1", side, &["n2.example.net"], Err("none of its names: n1.example.net"));
            check("n1", side, &["10.0.0.0/8"], Err("none of its names: n1.example.net"));
            check("wildcard", side, &["n7.example.net"], Ok("*.Example.net"));
            check("address", side, &[], Ok("10.0.0.1"));
            check("address", side, &["10.0.0.0/24"], Ok("10.0.0.1"));
            check("address", side, &["10.0.1.0/24"], Err("none of its names: 10.0.0.1"));
            check("nameless", side, &[], Err("no name"));
            check("expired", side, &[], Err("expired"));
            check("foreign", side, &[], Err("UnknownIssuer"));
        }
        check("server-only", Side::Server, &[], Ok("n1.example.net"));
        check("server-only", Side::Client, &[], Err("key usage for client"));
        // It names other addresses than where it is.
        let trust = Trust::new(Credentials::of_vectors("n2", &[])).unwrap();
        assert!(
            trust
                .vouch(Side::Server, &chain("address"), [10, 0, 0, 2].into(), at(NOW))
                .unwrap_err()
                .contains("no name")
        );
        assert!(
            trust.vouch(Side::Server, &chain("n1"), [10, 0, 0, 1].into(), at(LATE)).unwrap_err().contains("expired")
        );
        assert!(
            trust.vouch(Side::Server, &chain("n1"), [10, 0, 0, 1].into(), at(0)).unwrap_err().contains("not valid yet")
        );
        assert!(trust.vouch(Side::Server, &[], [10, 0, 0, 1].into(), at(NOW)).is_err());
    }

    /// Goal: the list is ordered, keeps out, and is about flows (RFC 5971 §4.4.2).
    #[test]
    fn the_first_entry_that_fits_says_who_is_a_peer_and_about_what() {
        let found = |certificate: &str, list: &str| {
            let mut credentials = Credentials::of_vectors("n2", &[]);
            credentials.peers = toml::from_str::<crate::config::tls::Tls>(&format!("peers = {list}")).unwrap().peers;
            let trust = Trust::new(credentials).unwrap();
            trust.vouch(Side::Client, &chain(certificate), [10, 0, 0, 1].into(), at(NOW))
        };
        let deny = "{ name = 'n1.example.net', deny = true }";
        let kept = found("n1", &format!("[{deny}, '*.example.net']")).unwrap_err();
        assert!(kept.contains("keeps it out") && kept.contains("n1.example.net"), "{kept}");
        assert_eq!(found("n1", &format!("['*.example.net', {deny}]")).unwrap().name, "n1.example.net");
        let kept = found("address", "[{ name = '10.0.0.1', deny = true }, '10.0.0.0/8']").unwrap_err();
        assert!(kept.contains("keeps it out"), "{kept}");

        let list = "[{ name = 'n1.example.net', deny = true, flows = ['10.9.0.0/16'] },
            { name = 'n1.example.net', flows = ['10.0.0.0/8'] }, 'n2.example.net']";
        let scope = found("n1", list).unwrap().flows;
        let about = |source: [u8; 4]| {
            let flow = netserv_wire::gist::PathCoupled::new(source.into(), [192, 0, 2, 1].into()).unwrap();
            scope.allows(&netserv_wire::gist::Mri::PathCoupled(flow))
        };
        assert_eq!([about([10, 9, 0, 1]), about([10, 8, 0, 1]), about([11, 0, 0, 1])], [false, true, false]);
        let only_denied = "[{ name = 'n1.example.net', deny = true, flows = ['10.9.0.0/16'] }]";
        assert!(found("n1", only_denied).is_err());
    }

    #[test]
    fn an_own_certificate_that_nobody_will_believe_is_told_of() {
        for (certificate, fault) in [
            ("n1", None),
            ("expired", Some("expired")),
            ("server-only", Some("key usage for client")),
            ("nameless", Some("no name")),
        ] {
            let found = Trust::new(Credentials::of_vectors(certificate, &[])).unwrap().own_fault();
            assert_eq!(found.is_some(), fault.is_some(), "{found:?}");
            assert!(found.zip(fault).is_none_or(|(found, fault)| found.contains(fault)), "{certificate}");
        }
    }

    #[test]
    fn warnings_are_few_and_counts_whole() {
        let tls = Tls::new(Credentials::of_vectors("n1", &[])).unwrap();
        tls.count(HandshakeEnd::Done, [10, 0, 0, 1].into(), "");
        assert!(tls.warned.lock().unwrap().is_none());
        tls.count(HandshakeEnd::NotTls, [10, 0, 0, 1].into(), "bytes");
        let first = *tls.warned.lock().unwrap();
        assert!(first.is_some());
        tls.count(HandshakeEnd::NotTls, [10, 0, 0, 1].into(), "bytes");
        assert_eq!(*tls.warned.lock().unwrap(), first, "told of at most every {TLS_WARNING_INTERVAL:?}");
        let ends: Vec<u64> = tls.ends().map(|(_, count)| count).collect();
        assert_eq!(ends, [1, 0, 0, 0, 2, 0, 0, 0]);
    }

    /// A time in 2026, and one in 2130, in seconds.
    const NOW: u64 = 1_780_000_000;
    const LATE: u64 = 5_050_000_000;

    fn at(second: u64) -> UnixTime {
        UnixTime::since_unix_epoch(Duration::from_secs(second))
    }

    fn chain(name: &str) -> Vec<CertificateDer<'static>> {
        let pem = std::fs::read(vectors().join(format!("{name}.pem"))).unwrap();
        CertificateDer::pem_slice_iter(&pem).map(Result::unwrap).collect()
    }

    fn vectors() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/certificates")
    }
}
