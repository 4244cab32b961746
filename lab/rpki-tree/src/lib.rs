// SPDX-License-Identifier: Apache-2.0
//! A tree of the RPKI for tests: a trust anchor, authorities below it, what they publish, and signed checklists.
//!
//! [`Tree::publish`] returns the files of a relying party's cache, in which tests then break what they like.
//! [`write()`] writes them as rpki-client keeps them.

mod der;
mod keys;
mod object;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::str::FromStr as _;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ipnet::IpNet;
use netserv_model::{Digest, UnixTime};
use rpki::crypto::softsigner::KeyId;
use rpki::crypto::{DigestAlgorithm, PublicKey};
use rpki::repository::cert::{KeyUsage, Overclaim, TbsCert};
use rpki::repository::crl::{CrlEntry, TbsCertList};
use rpki::repository::resources::{Addr, Asn, Prefix};
use rpki::repository::x509::{Time, Validity};
use rpki::uri::Rsync;

use keys::Keys;
pub use object::{CHECKLIST, ROUTE_ORIGIN};

/// The host of all URIs.
pub const HOST: &str = "rpki.example";
/// The trust anchor's certificate below the cache's directory, as rpki-client keeps it.
pub const ANCHOR_PATH: &str = "ta/lab/lab.cer";

/// Files by their path below the cache's directory.
pub type Files = BTreeMap<String, Vec<u8>>;

/// A tree. Copies share the keys.
#[derive(Clone)]
pub struct Tree {
    keys: Keys,
    authorities: Vec<Authority>,
    /// When everything is issued; what has an end ends a day later unless it is told otherwise.
    pub now: UnixTime,
    serial: u64,
}

/// What a certificate says.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// Its addresses. None are missing in the certificate.
    pub prefixes: Vec<IpNet>,
    /// Its AS numbers. None are missing in the certificate.
    pub asns: Vec<u32>,
    /// Whether it has what its issuer has, instead of naming it.
    pub inherits: bool,
    /// Whether it has the policy of RFC 8360.
    pub is_reconsidered: bool,
    /// Whether that of an authority is one of an end entity.
    pub is_end_entity: bool,
    /// The file name of the revocation list that it names, if it is not its issuer's.
    pub list: Option<String>,
    /// From when it holds.
    pub from: UnixTime,
    /// Until when it holds.
    pub until: UnixTime,
}

/// An authority, and what it says of what it publishes.
#[derive(Clone)]
pub struct Authority {
    name: String,
    key: KeyId,
    issuer: Option<usize>,
    certificate: Vec<u8>,
    serial: u64,
    /// What it published besides manifest and revocation list, by file name.
    pub files: Files,
    /// Names of files that its manifest leaves out.
    pub unlisted: BTreeSet<String>,
    /// Names of files that its manifest lists and that are missing.
    pub absent: BTreeSet<String>,
    /// A revocation list to publish instead of its own.
    pub other_list: Option<Vec<u8>>,
    /// Serial numbers of certificates that it took back.
    pub revoked: Vec<u64>,
    /// From when and until when its manifest holds.
    pub manifest: (UnixTime, UnixTime),
    /// From when and until when its revocation list holds.
    pub list: (UnixTime, UnixTime),
    /// From when and until when its manifest's certificate holds.
    pub manifest_certificate: (UnixTime, UnixTime),
}

/// A checklist, or another object that is said to be one.
#[derive(Clone, Debug)]
pub struct Checklist {
    /// Its certificate.
    pub certificate: Certificate,
    /// The addresses that it is for.
    pub prefixes: Vec<IpNet>,
    /// The AS numbers that it is for.
    pub asns: Vec<u32>,
    /// Names of files, if they have one, and their digests.
    pub entries: Vec<(Option<String>, Digest)>,
    /// The version, if it is named; RFC 9323 has 0 by default.
    pub version: Option<u64>,
    /// The content of the OID that says what it is.
    pub content_type: Vec<u8>,
    /// Whether its certificate has a Subject Information Access extension.
    pub is_published: bool,
}

impl Tree {
    /// Makes a tree of a trust anchor, authority 0, which has all addresses and AS numbers.
    pub fn new(now: UnixTime) -> Tree {
        let mut tree = Tree { keys: Keys::new(), authorities: Vec::new(), now, serial: 0 };
        let all = ["0.0.0.0/0", "::/0"].map(|net| net.parse().expect("a prefix"));
        let certificate = Certificate { asns: (64_496..64_512).collect(), ..tree.certificate(&all) };
        tree.add(None, "lab", &certificate);
        tree
    }

    /// Returns a certificate for these prefixes that holds for a day.
    pub fn certificate(&self, prefixes: &[IpNet]) -> Certificate {
        let (from, until) = self.day();
        Certificate {
            prefixes: prefixes.to_vec(),
            asns: Vec::new(),
            inherits: false,
            is_reconsidered: false,
            is_end_entity: false,
            list: None,
            from,
            until,
        }
    }

    /// Returns a checklist for these prefixes and a digest, with a certificate for the same prefixes.
    pub fn checklist(&self, prefixes: &[IpNet], digest: Digest) -> Checklist {
        Checklist {
            certificate: self.certificate(prefixes),
            prefixes: prefixes.to_vec(),
            asns: Vec::new(),
            entries: vec![(Some("grant".to_owned()), digest)],
            version: None,
            content_type: CHECKLIST.to_vec(),
            is_published: false,
        }
    }

    /// Makes an authority of this name under another, which publishes its certificate. Returns its number.
    pub fn authority(&mut self, issuer: usize, name: &str, certificate: &Certificate) -> usize {
        let number = self.add(Some(issuer), name, certificate);
        let bytes = self.authorities[number].certificate.clone();
        self.authorities[issuer].files.insert(format!("{name}.cer"), bytes);
        number
    }

    /// Returns an authority.
    pub fn at(&mut self, authority: usize) -> &mut Authority {
        &mut self.authorities[authority]
    }

    /// Returns the number of the last authority.
    pub fn last(&self) -> usize {
        self.authorities.len() - 1
    }

    /// Has its issuer revoke an authority's certificate. The next [`publish`](Self::publish) says so.
    pub fn revoke(&mut self, authority: usize) {
        let Authority { issuer, serial, .. } = self.authorities[authority];
        self.authorities[issuer.expect("trust anchors are not revoked")].revoked.push(serial);
    }

    /// Returns the serial number of the last certificate.
    pub fn last_serial(&self) -> u64 {
        self.serial
    }

    /// Has an authority sign a checklist. Returns it in DER.
    pub fn sign(&mut self, issuer: usize, checklist: &Checklist) -> Vec<u8> {
        let content = checklist.content();
        let published = checklist.is_published.then_some("checklist.sig");
        self.signed(issuer, &checklist.content_type, &content, &checklist.certificate, published)
    }

    /// Has an authority certify another's key, which is given as a SubjectPublicKeyInfo, for one object that is not published.
    ///
    /// # Panics
    ///
    /// Panics if the key is no RSA key in DER.
    pub fn certify(&mut self, issuer: usize, certificate: &Certificate, key: &[u8]) -> Vec<u8> {
        let key = PublicKey::decode(key).expect("the key is in DER");
        let to_sign = self.unsigned(certificate, Some(issuer), key, KeyUsage::Ee);
        let signed = to_sign.into_cert(&*self.keys.signer, &self.authorities[issuer].key).expect("the signer signs");
        signed.to_captured().to_vec()
    }

    /// Has an authority publish a ROA for a prefix, with AS 64496.
    pub fn route_origin(&mut self, issuer: usize, name: &str, prefix: IpNet) {
        let content = object::route_origin(64_496, &[prefix]);
        let file = format!("{name}.roa");
        let roa = self.signed(issuer, &ROUTE_ORIGIN, &content, &self.certificate(&[prefix]), Some(&file));
        self.authorities[issuer].files.insert(file, roa);
    }

    /// Returns the files of a cache, with new manifests and revocation lists.
    pub fn publish(&mut self) -> Files {
        let mut files = Files::from([(ANCHOR_PATH.to_owned(), self.authorities[0].certificate.clone())]);
        for number in 0..self.authorities.len() {
            let published = self.published(number);
            let name = &self.authorities[number].name;
            files.extend(published.into_iter().map(|(file, bytes)| (format!("{HOST}/repo/{name}/{file}"), bytes)));
        }
        files
    }

    /// Returns the trust anchor locator.
    pub fn locator(&self) -> String {
        let key = self.keys.public(self.authorities[0].key).to_info_bytes();
        format!("{}\n\n{}\n", anchor_uri(), BASE64.encode(&key))
    }

    fn published(&mut self, number: usize) -> Files {
        let authority = self.authorities[number].clone();
        let mut files = authority.files.clone();
        let list = authority.other_list.clone().unwrap_or_else(|| self.revocation_list(&authority));
        files.insert(format!("{}.crl", authority.name), list);
        let listed = files.iter().filter(|(name, _)| !authority.unlisted.contains(*name));
        let listed: Vec<_> = listed.map(|(name, bytes)| (name.clone(), digest(bytes))).collect();
        let absent = authority.absent.iter().map(|name| (name.clone(), digest(b"")));
        let listed: Vec<_> = listed.into_iter().chain(absent).collect();
        let (from, until) = authority.manifest;
        let content = object::manifest(self.serial + 1, from, until, &listed);
        let (from, until) = authority.manifest_certificate;
        let certificate = Certificate { inherits: true, from, until, ..self.certificate(&[]) };
        let file = format!("{}.mft", authority.name);
        let manifest = self.signed(number, &object::MANIFEST, &content, &certificate, Some(&file));
        files.insert(file, manifest);
        files
    }

    fn revocation_list(&mut self, authority: &Authority) -> Vec<u8> {
        self.serial += 1;
        let key = self.keys.public(authority.key);
        let revoked = authority.revoked.iter().map(|serial| CrlEntry::new((*serial).into(), time(self.now)));
        let list = TbsCertList::new(
            Default::default(),
            key.to_subject_name(),
            time(authority.list.0),
            time(authority.list.1),
            revoked.collect::<Vec<_>>(),
            key.key_identifier(),
            self.serial.into(),
        );
        let list = list.into_crl(&*self.keys.signer, &authority.key).expect("the signer signs");
        list.to_captured().to_vec()
    }

    fn signed(
        &mut self,
        issuer: usize,
        content_type: &[u8],
        content: &[u8],
        certificate: &Certificate,
        published: Option<&str>,
    ) -> Vec<u8> {
        let key = self.keys.public(self.keys.objects);
        let mut to_sign = self.unsigned(certificate, Some(issuer), key.clone(), KeyUsage::Ee);
        to_sign.set_signed_object(published.map(|file| self.uri(issuer, file)));
        let signer = &*self.keys.signer;
        let certificate = to_sign.into_cert(signer, &self.authorities[issuer].key).expect("the signer signs");
        let attributes = object::attributes(content_type, &digest(content), self.now);
        let signature = self.keys.sign(self.keys.objects, &attributes);
        let (certificate, key) = (certificate.to_captured(), key.key_identifier());
        object::signed(content_type, content, certificate.as_slice(), key.as_slice(), &attributes, &signature)
    }

    fn add(&mut self, issuer: Option<usize>, name: &str, certificate: &Certificate) -> usize {
        let key = self.keys.make();
        let number = self.authorities.len();
        let day = self.day();
        self.authorities.push(Authority {
            name: name.to_owned(),
            key,
            issuer,
            certificate: Vec::new(),
            serial: 0,
            files: Files::new(),
            unlisted: BTreeSet::new(),
            absent: BTreeSet::new(),
            other_list: None,
            revoked: Vec::new(),
            manifest: day,
            list: day,
            manifest_certificate: day,
        });
        let usage = if certificate.is_end_entity { KeyUsage::Ee } else { KeyUsage::Ca };
        let mut to_sign = self.unsigned(certificate, issuer, self.keys.public(key), usage);
        to_sign.set_basic_ca((!certificate.is_end_entity).then_some(true));
        to_sign.set_ca_repository(Some(self.uri(number, "")));
        to_sign.set_rpki_manifest(Some(self.uri(number, &format!("{name}.mft"))));
        let issuer_key = self.authorities[issuer.unwrap_or(number)].key;
        let signed = to_sign.into_cert(&*self.keys.signer, &issuer_key).expect("the signer signs");
        self.authorities[number].certificate = signed.to_captured().to_vec();
        self.authorities[number].serial = self.serial;
        number
    }

    /// Returns the text of a certificate that `issuer` is to sign, or the holder of `key` itself.
    fn unsigned(
        &mut self,
        certificate: &Certificate,
        issuer: Option<usize>,
        key: PublicKey,
        usage: KeyUsage,
    ) -> TbsCert {
        self.serial += 1;
        let issuer_key = issuer.map_or_else(|| key.clone(), |issuer| self.keys.public(self.authorities[issuer].key));
        let validity = Validity::new(time(certificate.from), time(certificate.until));
        let policy = if certificate.is_reconsidered { Overclaim::Trim } else { Overclaim::Refuse };
        let name = issuer_key.to_subject_name();
        let mut to_sign = TbsCert::new(self.serial.into(), name, validity, None, key, usage, policy);
        to_sign.set_authority_key_identifier(Some(issuer_key.key_identifier()));
        if let Some(number) = issuer {
            let Authority { name, issuer, .. } = &self.authorities[number];
            let list = certificate.list.clone().unwrap_or_else(|| format!("{name}.crl"));
            to_sign.set_crl_uri(Some(self.uri(number, &list)));
            let authority = issuer.map_or_else(anchor_uri, |issuer| self.uri(issuer, &format!("{name}.cer")));
            to_sign.set_ca_issuer(Some(authority));
        }
        set_resources(&mut to_sign, certificate);
        to_sign
    }

    fn uri(&self, authority: usize, file: &str) -> Rsync {
        uri(&format!("repo/{}/{file}", self.authorities[authority].name))
    }

    fn day(&self) -> (UnixTime, UnixTime) {
        (UnixTime(self.now.0 - 3_600_000), self.now + Duration::from_secs(86_400))
    }
}

impl Checklist {
    /// Returns what is signed, in DER.
    pub fn content(&self) -> Vec<u8> {
        match self.content_type.as_slice() {
            content_type if content_type == ROUTE_ORIGIN => object::route_origin(64_496, &self.prefixes),
            _ => object::checklist(self.version, &self.prefixes, &self.asns, &self.entries),
        }
    }
}

/// Writes the files below a directory.
///
/// # Errors
///
/// A file cannot be written.
pub fn write(files: &Files, directory: &Path) -> io::Result<()> {
    files.iter().try_for_each(|(path, bytes)| {
        let path = directory.join(path);
        std::fs::create_dir_all(path.parent().unwrap_or(directory))?;
        std::fs::write(path, bytes)
    })
}

/// Returns the SHA-256 digest of bytes.
pub fn digest(bytes: &[u8]) -> Digest {
    let digest = DigestAlgorithm::sha256().digest(bytes);
    Digest(digest.as_ref().try_into().expect("SHA-256 has 32 bytes"))
}

fn set_resources(to_sign: &mut TbsCert, certificate: &Certificate) {
    if certificate.inherits {
        to_sign.set_v4_resources_inherit();
        to_sign.set_v6_resources_inherit();
        to_sign.set_as_resources_inherit();
        return;
    }
    let (v4, v6): (Vec<&IpNet>, Vec<&IpNet>) = certificate.prefixes.iter().partition(|net| net.addr().is_ipv4());
    let prefix = |net: &IpNet| Prefix::new(Addr::from(net.network()), net.prefix_len());
    if !v4.is_empty() {
        to_sign.build_v4_resource_blocks(|blocks| v4.iter().for_each(|net| blocks.push(prefix(net))));
    }
    if !v6.is_empty() {
        to_sign.build_v6_resource_blocks(|blocks| v6.iter().for_each(|net| blocks.push(prefix(net))));
    }
    if !certificate.asns.is_empty() {
        to_sign.build_as_resource_blocks(|blocks| certificate.asns.iter().for_each(|asn| blocks.push(Asn::from(*asn))));
    }
}

fn anchor_uri() -> Rsync {
    uri("ta/lab.cer")
}

fn uri(path: &str) -> Rsync {
    Rsync::from_str(&format!("rsync://{HOST}/{path}")).expect("the path has no odd characters")
}

fn time(time: UnixTime) -> Time {
    (SystemTime::UNIX_EPOCH + Duration::from_millis(time.0)).into()
}
