// SPDX-License-Identifier: Apache-2.0
//! TLS between signaling peers: `[signaling.tls]`, and the files that it names.

use std::fmt;
use std::fs::{File, Metadata};
use std::io::Read as _;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use ipnet::IpNet;
use netserv_model::domain::stands_for;
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::sign::CertifiedKey;

use crate::limits::{PEER_FLOWS_MAX, PEERS_MAX, TLS_FILE_BYTES_MAX};

/// TLS between signaling peers (RFC 5971 §5.7.3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Tls {
    /// The node's certificate in PEM, followed by those between it and its authority; empty means no TLS. Its names
    /// (subjectAltName) are how peers know the node; its purposes, if it has some, are server and client.
    pub certificate: PathBuf,
    /// Its private key in PEM, which only its owner can read.
    pub key: PathBuf,
    /// Certificates in PEM of the authorities that vouch for peers.
    pub authorities: PathBuf,
    /// Whether peers that connect have to show a certificate: `required`, or `optional`.
    pub client_certificate: ClientCertificate,
    /// Whether messages go over TLS only, and peers without it are none; otherwise it is used where both have it.
    pub require: bool,
    /// The TCP port of messaging associations with TLS.
    pub port: u16,
    /// Who of those whom the authorities vouch for may be a peer, by a name in its certificate: `n1.example.net`,
    /// `*.example.net` for one label more, or an address or prefix, in which the peer's address lies and which its
    /// certificate names. The first entry that fits counts: `{ name = "n3.example.net", deny = true }` before others keeps
    /// one out, and with `flows = ["192.0.2.0/24"]` an entry is about flows with their source or destination there. Empty
    /// means all.
    #[schemars(with = "Vec<WrittenPeer>")]
    pub peers: Vec<PeerRule>,
}

impl Default for Tls {
    fn default() -> Tls {
        let [certificate, key, authorities] = [const { PathBuf::new() }; 3];
        let (client_certificate, peers) = (ClientCertificate::Required, Vec::new());
        Tls { certificate, key, authorities, client_certificate, require: false, port: 27002, peers }
    }
}

/// Whether a peer that connects shows a certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClientCertificate {
    /// It has to.
    #[default]
    Required,
    /// It may leave it out, and is nobody then; one that it shows is checked.
    Optional,
}

/// One entry of the list of peers (RFC 5971 §4.4.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "WrittenPeer")]
pub struct PeerRule {
    /// Whose names it is about.
    pub name: PeerName,
    /// They are no peers; otherwise they are.
    pub deny: bool,
    /// For flows with their source or destination in one of these; for all, if there are none.
    pub flows: Vec<IpNet>,
}

/// A [`PeerRule`] as it is written: with nothing but a name, as that.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum WrittenPeer {
    /// A name.
    Name(PeerName),
    /// All of it.
    Table(PeerTable),
}

/// A [`PeerRule`] in full.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PeerTable {
    name: PeerName,
    #[serde(default)]
    deny: bool,
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    flows: Vec<IpNet>,
}

impl From<PeerRule> for WrittenPeer {
    fn from(PeerRule { name, deny, flows }: PeerRule) -> WrittenPeer {
        if !deny && flows.is_empty() {
            return WrittenPeer::Name(name);
        }
        WrittenPeer::Table(PeerTable { name, deny, flows })
    }
}

impl FromStr for PeerRule {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<PeerRule> {
        Ok(PeerRule { name: text.parse()?, deny: false, flows: Vec::new() })
    }
}

impl<'de> Deserialize<'de> for PeerRule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PeerRule, D::Error> {
        deserializer.deserialize_any(PeerRuleVisitor)
    }
}

/// Reads a name or a table; says of either what is wrong with it.
struct PeerRuleVisitor;

impl<'de> Visitor<'de> for PeerRuleVisitor {
    type Value = PeerRule;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name, or a table with `name`, `deny` and `flows`")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<PeerRule, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<PeerRule, A::Error> {
        let PeerTable { name, deny, flows } = PeerTable::deserialize(MapAccessDeserializer::new(map))?;
        Ok(PeerRule { name, deny, flows })
    }
}

/// Names of a peer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum PeerName {
    /// A DNS name in lower case, whose first label may be `*`.
    Dns(String),
    /// Addresses.
    Prefix(IpNet),
}

impl PeerName {
    /// Returns whether a DNS name in a certificate is meant; both may have `*` as their first label, which stands for one.
    pub fn fits(&self, presented: &str) -> bool {
        match self {
            PeerName::Dns(listed) => {
                let presented = presented.to_ascii_lowercase();
                stands_for(listed, &presented) || stands_for(&presented, listed)
            }
            PeerName::Prefix(_) => false,
        }
    }

    /// Returns whether an address is meant.
    pub fn contains(&self, address: IpAddr) -> bool {
        match self {
            PeerName::Dns(_) => false,
            PeerName::Prefix(prefix) => prefix.contains(&address),
        }
    }
}

impl FromStr for PeerName {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<PeerName> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(PeerName::Prefix(address.into()));
        }
        if let Ok(prefix) = text.parse::<IpNet>() {
            return Ok(PeerName::Prefix(prefix));
        }
        let name = text.strip_prefix("*.").unwrap_or(text);
        let is_label = |label: &str| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
        };
        let is_name = text.len() <= 253 && name.split('.').all(is_label);
        ensure!(is_name, "`{text}` is no DNS name, address or prefix");
        Ok(PeerName::Dns(text.to_ascii_lowercase()))
    }
}

impl TryFrom<String> for PeerName {
    type Error = anyhow::Error;

    fn try_from(text: String) -> Result<PeerName> {
        text.parse()
    }
}

impl From<PeerName> for String {
    fn from(name: PeerName) -> String {
        name.to_string()
    }
}

impl fmt::Display for PeerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PeerName::Dns(name) => f.write_str(name),
            PeerName::Prefix(prefix) => prefix.fmt(f),
        }
    }
}

/// What the files hold, and who may be a peer.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// The node's certificate with its chain, and its key.
    pub own: Arc<CertifiedKey>,
    /// Who vouches for peers.
    pub authorities: Arc<RootCertStore>,
    /// Whether peers that connect have to show a certificate.
    pub client_certificate: ClientCertificate,
    /// Who of those that are vouched for may be a peer; empty means all.
    pub peers: Vec<PeerRule>,
}

impl Tls {
    /// Returns whether there is TLS.
    pub fn is_on(&self) -> bool {
        !self.certificate.as_os_str().is_empty()
    }

    /// Checks what the operator wrote, and the files that it names.
    ///
    /// # Errors
    /// The error names the key or the file, with the cause and a fix.
    pub fn check(&self) -> Result<()> {
        if self.is_on() {
            ensure!(self.port != 0, "signaling.tls.port must not be 0");
            let most = PEERS_MAX;
            ensure!(self.peers.len() <= most, "signaling.tls.peers has over {most} names; use prefixes or `*`");
            let most = PEER_FLOWS_MAX;
            let wide = self.peers.iter().find(|rule| rule.flows.len() > most);
            ensure!(wide.is_none(), "signaling.tls.peers has over {most} prefixes in one `flows`; use wider ones");
            return self.read().map(drop);
        }
        let no_file = |path: &Path| path.as_os_str().is_empty();
        for (key, is_unset) in [
            ("key", no_file(&self.key)),
            ("authorities", no_file(&self.authorities)),
            ("require", !self.require),
            ("peers", self.peers.is_empty()),
        ] {
            ensure!(is_unset, "signaling.tls.{key} is set, but without signaling.tls.certificate there is no TLS");
        }
        Ok(())
    }

    /// Reads the files.
    ///
    /// # Errors
    /// The error names the file, with the cause and a fix.
    pub fn read(&self) -> Result<Credentials> {
        let chain = certificates("certificate", &self.certificate)?;
        let (pem, metadata) = read("key", &self.key)?;
        ensure!(
            metadata.mode() & 0o077 == 0,
            "signaling.tls.key: others than its owner may use {} (mode {:o}); chmod 600 it",
            self.key.display(),
            metadata.mode() & 0o777
        );
        let key = PrivateKeyDer::from_pem_slice(&pem).map_err(|error| {
            unusable("key", &self.key, &error, "it needs a private key in PEM, without a passphrase")
        })?;
        let own = CertifiedKey::from_der(chain, key, &ring::default_provider()).map_err(|error| {
            unusable(
                "key",
                &self.key,
                &error,
                "it must be the key of the first certificate in signaling.tls.certificate",
            )
        })?;
        let mut authorities = RootCertStore::empty();
        for certificate in certificates("authorities", &self.authorities)? {
            let fix = "it needs certificates of authorities (X.509 v3)";
            authorities.add(certificate).map_err(|error| unusable("authorities", &self.authorities, &error, fix))?;
        }
        Ok(Credentials {
            own: Arc::new(own),
            authorities: Arc::new(authorities),
            client_certificate: self.client_certificate,
            peers: self.peers.clone(),
        })
    }
}

fn certificates(key: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let (pem, _) = read(key, path)?;
    let fix = "it needs certificates in PEM";
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let certificates = certificates.map_err(|error| unusable(key, path, &error, fix))?;
    ensure!(!certificates.is_empty(), "signaling.tls.{key}: {} has no certificate; {fix}", path.display());
    Ok(certificates)
}

fn read(key: &str, path: &Path) -> Result<(Vec<u8>, Metadata)> {
    if path.as_os_str().is_empty() {
        bail!("signaling.tls.{key} is not set, but signaling.tls.certificate is; set both, or none for no TLS");
    }
    let context = || format!("signaling.tls.{key}: cannot read {}", path.display());
    let file = File::open(path).with_context(context)?;
    let metadata = file.metadata().with_context(context)?;
    let mut bytes = Vec::new();
    file.take(TLS_FILE_BYTES_MAX + 1).read_to_end(&mut bytes).with_context(context)?;
    let most = TLS_FILE_BYTES_MAX;
    ensure!(bytes.len() as u64 <= most, "signaling.tls.{key}: {} has over {most} bytes", path.display());
    Ok((bytes, metadata))
}

fn unusable(key: &str, path: &Path, error: &dyn fmt::Display, fix: &str) -> anyhow::Error {
    anyhow!("signaling.tls.{key}: {} cannot be used: {error}; {fix}", path.display())
}

#[cfg(test)]
impl Credentials {
    /// Returns those of who has a certificate of `vectors/certificates` and trusts the first authority.
    pub fn of_vectors(certificate: &str, peers: &[&str]) -> Credentials {
        let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/certificates");
        let key = tempfile::NamedTempFile::new().unwrap();
        // A file that `tempfile` makes is its owner's alone.
        std::fs::write(key.path(), std::fs::read(vectors.join(format!("{certificate}.key"))).unwrap()).unwrap();
        let tls = Tls {
            certificate: vectors.join(format!("{certificate}.pem")),
            key: key.path().to_owned(),
            authorities: vectors.join("authority.pem"),
            peers: peers.iter().map(|peer| peer.parse().unwrap()).collect(),
            ..Tls::default()
        };
        tls.read().unwrap()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn peers_are_names_addresses_and_prefixes() {
        let check = |listed: &str, presented: &str, fits: bool| {
            assert_eq!(listed.parse::<PeerName>().unwrap().fits(presented), fits, "{listed} {presented}");
        };
        check("n1.example.net", "N1.Example.NET", true);
        check("N1.example.net", "n2.example.net", false);
        check("*.example.net", "n1.example.net", true);
        check("*.example.net", "a.n1.example.net", false);
        check("*.example.net", "example.net", false);
        check("*.example.net", ".example.net", false);
        check("n1.example.net", "*.example.net", true);
        check("example.net", "*.example.net", false);
        check("*.example.net", "*.example.net", true);
        check("10.0.0.0/24", "n1.example.net", false);
        let contains =
            |listed: &str, address: &str| listed.parse::<PeerName>().unwrap().contains(address.parse().unwrap());
        assert!(contains("10.0.0.1", "10.0.0.1") && contains("fd00::/64", "fd00::7"));
        assert!(!contains("10.0.0.1", "10.0.0.2") && !contains("n1.example.net", "10.0.0.1"));
        for text in ["", "*", "*.", "a..b", "n1.example.net/24", "10.0.0.0/33", "n 1", "a.*.net", &"a".repeat(254)] {
            assert!(text.parse::<PeerName>().is_err(), "{text}");
        }
        for text in ["n1.example.net", "*.example.net", "10.0.0.0/24", "fd00::1/128"] {
            assert_eq!(text.parse::<PeerName>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn entries_of_the_list_are_names_or_tables() {
        let parse = |text: &str| toml::from_str::<Tls>(&format!("peers = {text}"));
        let tls = parse(
            "['a.net', { name = '*.b.net', deny = true }, { name = 'c.net', flows = ['10.0.0.0/8', 'fd00::/8'] }]",
        );
        let peers = tls.unwrap().peers;
        assert_eq!(peers[0], "a.net".parse().unwrap());
        assert!(peers[1].deny && peers[1].flows.is_empty() && !peers[2].deny);
        assert_eq!(peers[2].flows.len(), 2);
        let written = toml::to_string_pretty(&Tls { peers: peers.clone(), ..Tls::default() }).unwrap();
        assert_eq!(toml::from_str::<Tls>(&written).unwrap().peers, peers, "{written}");
        for (text, named) in [
            ("[{ name = 'a b' }]", "no DNS name"),
            ("[{ deny = true }]", "name"),
            ("[{ name = 'a.net', allow = true }]", "allow"),
            ("[{ name = 'a.net', flows = ['10.0.0.0/33'] }]", "flows"),
            ("[7]", "a name, or a table"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
    }

    #[test]
    fn wrong_files_are_named_with_cause_and_fix() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &[u8], mode: u32| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        let of = |name: &str| {
            let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/certificates");
            std::fs::read(vectors.join(name)).unwrap()
        };
        let good = Tls {
            certificate: put("n1.pem", &of("n1.pem"), 0o644),
            key: put("n1.key", &of("n1.key"), 0o600),
            authorities: put("authorities.pem", &[of("authority.pem"), of("other-authority.pem")].concat(), 0o644),
            ..Tls::default()
        };
        good.check().unwrap();
        assert_eq!(good.read().unwrap().authorities.len(), 2);
        Tls::default().check().unwrap();
        let broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let with = |change: &dyn Fn(&mut Tls)| {
            let mut tls = good.clone();
            change(&mut tls);
            tls
        };
        for (tls, named) in [
            (
                with(&|tls| tls.certificate = "/nowhere/n1.pem".into()),
                vec!["tls.certificate", "/nowhere/n1.pem", "No such"],
            ),
            (
                with(&|tls| tls.certificate = put("empty.pem", b"", 0o644)),
                vec!["empty.pem", "no certificate", "in PEM"],
            ),
            (with(&|tls| tls.key = PathBuf::new()), vec!["tls.key is not set"]),
            (with(&|tls| tls.key = put("open.key", &of("n1.key"), 0o640)), vec!["open.key", "mode 640", "chmod 600"]),
            (with(&|tls| tls.key = put("text.key", b"text", 0o600)), vec!["text.key", "private key in PEM"]),
            (
                with(&|tls| tls.key = put("n2.key", &of("n2.key"), 0o600)),
                vec!["n2.key", "key of the first certificate"],
            ),
            (with(&|tls| tls.authorities = PathBuf::new()), vec!["tls.authorities is not set"]),
            (
                with(&|tls| tls.authorities = put("broken.pem", broken, 0o644)),
                vec!["broken.pem", "certificates of authorities"],
            ),
            (with(&|tls| tls.authorities = "/dev/zero".into()), vec!["/dev/zero has over"]),
            (with(&|tls| tls.port = 0), vec!["tls.port"]),
            (with(&|tls| tls.peers = vec!["a.net".parse().unwrap(); PEERS_MAX + 1]), vec!["tls.peers has over 4096"]),
            (
                with(&|tls| {
                    let mut rule: PeerRule = "a.net".parse().unwrap();
                    rule.flows = vec!["10.0.0.0/8".parse().unwrap(); PEER_FLOWS_MAX + 1];
                    tls.peers = vec![rule];
                }),
                vec!["tls.peers has over 64 prefixes"],
            ),
            (Tls { require: true, ..Tls::default() }, vec!["tls.require", "without signaling.tls.certificate"]),
            (Tls { key: "/k".into(), ..Tls::default() }, vec!["tls.key", "without signaling.tls.certificate"]),
        ] {
            let error = format!("{:#}", tls.check().unwrap_err());
            assert!(named.iter().all(|named| error.contains(named)), "{error}, not {named:?}");
        }
    }
}
