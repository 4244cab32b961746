// SPDX-License-Identifier: Apache-2.0
//! The parts that a package may have, and which of them its manifest asks for.

use std::collections::BTreeMap;

use netserv_model::manifest::Manifest;
use netserv_model::{Flavour, Refusal, RefusalKind};
use serde::Serialize;

use crate::bundle;
use crate::limits::PEM_BYTES_MAX;
use crate::oci::{self, bad};

/// What every WebAssembly file starts with.
const WASM_MAGIC: &[u8] = b"\0asm";
/// Bytes of the header of a WebAssembly file: the magic, a version, a layer.
const WASM_HEADER_BYTES: usize = 8;

/// One file of a package beside its manifest; each is there at most once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// The WebAssembly core module, which sees packets.
    Core,
    /// The WebAssembly component, which takes connections.
    Component,
    /// The OSGi bundle, which does either.
    Bundle,
    /// A certificate chain, then its key, in PEM.
    Tls,
}

impl Part {
    /// Every part, in the order of a package's layers.
    pub const ALL: [Part; 4] = [Part::Core, Part::Component, Part::Bundle, Part::Tls];

    /// Returns the part's name in the store.
    pub fn file_name(self) -> &'static str {
        match self {
            Part::Core => "module.wasm",
            Part::Component => "component.wasm",
            Part::Bundle => "module.jar",
            Part::Tls => "tls.pem",
        }
    }

    /// Returns what the part is, for people.
    pub fn title(self) -> &'static str {
        match self {
            Part::Core => "WebAssembly core module",
            Part::Component => "WebAssembly component",
            Part::Bundle => "OSGi bundle",
            Part::Tls => "certificate",
        }
    }

    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Part::Core | Part::Component => oci::WASM,
            Part::Bundle => oci::JAR,
            Part::Tls => oci::PEM,
        }
    }

    /// Returns whether the part is code that runs.
    pub fn is_code(self) -> bool {
        match self {
            Part::Core | Part::Component | Part::Bundle => true,
            Part::Tls => false,
        }
    }

    /// Returns which part a layer is; nothing if it is none that is known here.
    pub(crate) fn of_layer(media_type: &str, content: &[u8]) -> Option<Part> {
        match media_type {
            oci::WASM => Some(Part::of_wasm(content)),
            oci::JAR => Some(Part::Bundle),
            oci::PEM => Some(Part::Tls),
            _ => None,
        }
    }

    /// Returns whether a WebAssembly file is a component or a core module, by its header.
    pub fn of_wasm(wasm: &[u8]) -> Part {
        if wasm.get(6..8) == Some(&[1, 0]) { Part::Component } else { Part::Core }
    }
}

/// A flavour stands for the code that sees packets in it.
impl From<Flavour> for Part {
    fn from(flavour: Flavour) -> Part {
        match flavour {
            Flavour::Wasm => Part::Core,
            Flavour::Osgi => Part::Bundle,
        }
    }
}

/// Returns the flavours whose code is all there, in order.
pub(crate) fn flavours(manifest: &Manifest, has: impl Fn(Part) -> bool) -> Vec<Flavour> {
    let whole = |flavour: &Flavour| match flavour {
        Flavour::Wasm => (has(Part::Core) || has(Part::Component)) && missing_wasm(manifest, &has).is_none(),
        Flavour::Osgi => has(Part::Bundle),
    };
    Flavour::ALL.into_iter().filter(whole).collect()
}

/// Checks what can be seen of parts without running them, and that they are those that the manifest asks for.
pub(crate) fn check(manifest: &Manifest, parts: &BTreeMap<Part, &[u8]>) -> Result<(), Refusal> {
    for (part, content) in parts {
        check_one(manifest, *part, content)?;
    }
    check_tls(manifest, parts.contains_key(&Part::Tls))?;
    let mut code = parts.keys().filter(|part| part.is_code());
    if manifest.service.is_some() {
        let Some(part) = code.next() else { return Ok(()) };
        let detail = format!("the manifest has [service], whose code is its parts'; remove the {}", part.title());
        return Err(Refusal::new(RefusalKind::BadPackage, detail));
    }
    let has = |part: Part| parts.contains_key(&part);
    // A layout of kinds that are not known here is whole, and nothing that this version can run.
    if code.next().is_none() || !flavours(manifest, has).is_empty() {
        return Ok(());
    }
    match missing_wasm(manifest, has) {
        Some((section, part, key)) => {
            let detail = format!("the manifest has [{section}], but the package no {} (`[build] {key}`)", part.title());
            Err(bad(detail))
        }
        None => Ok(()),
    }
}

/// Returns the section whose code is missing for WebAssembly, what it takes, and the key that names it.
fn missing_wasm(manifest: &Manifest, has: impl Fn(Part) -> bool) -> Option<(&'static str, Part, &'static str)> {
    let packet = (manifest.packet.is_some() && !has(Part::Core)).then_some(("packet", Part::Core, "wasm"));
    let server =
        (manifest.server.is_some() && !has(Part::Component)).then_some(("server", Part::Component, "component"));
    packet.or(server)
}

fn check_one(manifest: &Manifest, part: Part, content: &[u8]) -> Result<(), Refusal> {
    let manifest_lacks = |section: &str| {
        let detail = format!("the manifest has no [{section}], which the {} would be for", part.title());
        Err(Refusal::new(RefusalKind::BadManifest, detail))
    };
    match part {
        Part::Core => {
            check_wasm(part, content)?;
            match &manifest.packet {
                None if manifest.service.is_none() => manifest_lacks("packet"),
                Some(packet) if packet.abi == 0 => {
                    let detail = "manifest: [packet] has no `abi`, which WebAssembly code needs";
                    Err(Refusal::new(RefusalKind::BadManifest, detail))
                }
                None | Some(_) => Ok(()),
            }
        }
        Part::Component => {
            check_wasm(part, content)?;
            let superfluous = manifest.server.is_none() && manifest.service.is_none();
            if superfluous { manifest_lacks("server") } else { Ok(()) }
        }
        Part::Bundle => check_for_bundle(manifest).and_then(|()| bundle::check(content)),
        Part::Tls => check_pem(content),
    }
}

/// Checks that a manifest asks for nothing that only WebAssembly code gets: a bundle would go without it, unnoticed.
fn check_for_bundle(manifest: &Manifest) -> Result<(), Refusal> {
    let has_tls = manifest.server.as_ref().is_some_and(|server| server.tls);
    let has_messages = manifest.dependencies.iter().any(|wanted| wanted.block == "messages");
    let detail = if !manifest.intercept().is_empty() {
        "server.intercept is set, and bundles take over no connections"
    } else if has_tls {
        "server.tls is set, and bundles get no certificate"
    } else if has_messages {
        "`dependencies` has messages, and a bundle is one part, which has nobody to send them to"
    } else {
        return Ok(());
    };
    Err(Refusal::new(RefusalKind::BadManifest, format!("manifest: {detail}; remove it, or the bundle")))
}

fn check_wasm(part: Part, content: &[u8]) -> Result<(), Refusal> {
    let not = |what: &str| Err(Refusal::new(RefusalKind::BadCode, format!("the code is not {what}")));
    if !content.starts_with(WASM_MAGIC) || content.len() < WASM_HEADER_BYTES {
        return not("a WebAssembly module in binary form");
    }
    match (part, Part::of_wasm(content)) {
        (Part::Core, Part::Component) => not("a core module but a component; name it as `[build] component`"),
        (Part::Component, Part::Core) => not("a component but a core module; name it as `[build] wasm`"),
        _ => Ok(()),
    }
}

fn check_tls(manifest: &Manifest, has_pem: bool) -> Result<(), Refusal> {
    let wanted = manifest.server.as_ref().is_some_and(|server| server.tls);
    match (wanted, has_pem) {
        (true, false) => Err(bad("the manifest has `server.tls`, but the package no certificate")),
        (false, true) => Err(bad("the package has a certificate, but the manifest no `server.tls`")),
        (true, true) | (false, false) => Ok(()),
    }
}

/// Checks that PEM holds certificates and one key; whether they fit each other is seen where they are used.
fn check_pem(pem: &[u8]) -> Result<(), Refusal> {
    if pem.len() > PEM_BYTES_MAX {
        let detail = format!("certificate and key have {} bytes, at most {PEM_BYTES_MAX}", pem.len());
        return Err(Refusal::new(RefusalKind::PackageTooLarge, detail));
    }
    let text = str::from_utf8(pem).map_err(|_| bad("certificate and key are not text in PEM"))?;
    let (mut certificates, mut keys, mut open) = (0_usize, 0_usize, None);
    for line in text.lines().map(str::trim_end) {
        let label = |prefix: &str| line.strip_prefix(prefix).and_then(|rest| rest.strip_suffix("-----"));
        match (open, label("-----BEGIN "), label("-----END ")) {
            (None, Some(begun), _) => open = Some(begun),
            (Some(begun), None, Some(ended)) if begun == ended => {
                certificates += usize::from(begun == "CERTIFICATE");
                keys += usize::from(begun.ends_with("PRIVATE KEY"));
                open = None;
            }
            (Some(_), None, None) | (None, None, None) => {}
            (Some(_), _, _) | (None, None, Some(_)) => {
                return Err(bad("a block of the certificate's PEM does not end"));
            }
        }
    }
    match (open, certificates, keys) {
        (Some(_), _, _) => Err(bad("the last block of the certificate's PEM does not end")),
        (None, 0, _) => Err(bad("the PEM of `server.tls` holds no certificate")),
        (None, _, 1) => Ok(()),
        (None, _, count) => Err(bad(format!("the PEM of `server.tls` holds {count} keys, there must be one"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
    const KEY: &str = "-----BEGIN PRIVATE KEY-----\nMC4C\n-----END PRIVATE KEY-----\n";

    #[test]
    fn a_certificate_comes_with_its_key() {
        for (pem, expected) in [
            (format!("{CERTIFICATE}{KEY}"), None),
            (format!("{CERTIFICATE}{CERTIFICATE}\n# a comment\n{}", KEY.replace(" PRIVATE", " RSA PRIVATE")), None),
            (format!("{CERTIFICATE}{KEY}").replace('\n', "\r\n"), None),
            (CERTIFICATE.to_owned(), Some("holds 0 keys")),
            (format!("{CERTIFICATE}{KEY}{KEY}"), Some("holds 2 keys")),
            (KEY.to_owned(), Some("no certificate")),
            (String::new(), Some("no certificate")),
            (format!("{CERTIFICATE}{}", &KEY[..30]), Some("last block")),
            (format!("{}{KEY}", &CERTIFICATE[..33]), Some("does not end")),
            (format!("{CERTIFICATE}-----END PRIVATE KEY-----\n"), Some("does not end")),
        ] {
            let checked = check_pem(pem.as_bytes());
            match expected {
                None => assert_eq!(checked, Ok(()), "{pem}"),
                Some(words) => assert!(checked.unwrap_err().detail.contains(words), "{pem}"),
            }
        }
        assert!(check_pem(b"\xff").is_err());
        let long = |bytes: usize| format!("{CERTIFICATE}{KEY}{}", "#".repeat(bytes - CERTIFICATE.len() - KEY.len()));
        assert_eq!(check_pem(long(PEM_BYTES_MAX).as_bytes()), Ok(()));
        let refusal = check_pem(long(PEM_BYTES_MAX + 1).as_bytes()).unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::PackageTooLarge);
    }

    #[test]
    fn headers_tell_components_from_core_modules() {
        assert_eq!(Part::of_wasm(b"\0asm\x01\0\0\0"), Part::Core);
        assert_eq!(Part::of_wasm(b"\0asm\x0d\0\x01\0"), Part::Component);
        assert_eq!(Part::of_wasm(b"\0asm\x0d\0\x01"), Part::Core);
        assert!(check_wasm(Part::Component, b"\0asm\x0d\0\x01").is_err(), "cut");
    }
}
