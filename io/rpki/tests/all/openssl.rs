// SPDX-License-Identifier: Apache-2.0
//! A checklist that its holder signs with `openssl cms`.

use std::path::Path;
use std::process::Command;

use netserv_rpki::Invalid;
use netserv_skips::skipped;

use crate::relying_party;
use crate::scene::{HOLDER, Scene, Staged, grant, nets};

/// Goal: a checklist that `openssl cms` signs vouches, here and for rpki-client. Method: the holder certifies a key of OpenSSL's.
#[test]
fn what_openssl_signs_vouches() {
    if Command::new("openssl").arg("version").output().is_err() {
        return skipped("what_openssl_signs_vouches", "openssl is not installed");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    openssl(folder.path(), "genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out key.pem");
    openssl(folder.path(), "pkey -in key.pem -pubout -outform DER -out key.der");
    let mut scene = Scene::new();
    let key = std::fs::read(path("key.der")).unwrap();
    let certificate = scene.tree.certify(HOLDER, &scene.checklist.certificate, &key);
    std::fs::write(path("certificate.der"), certificate).unwrap();
    // What `netserv prove rpki` writes.
    let content = netserv_authority::checklist::content(&scene.checklist.prefixes, &grant());
    std::fs::write(path("content.der"), content).unwrap();
    openssl(folder.path(), "x509 -inform DER -in certificate.der -out certificate.pem");
    let sign = "cms -sign -binary -nodetach -nosmimecap -keyid -md sha256 -econtent_type 1.2.840.113549.1.9.16.1.48 \
        -signer certificate.pem -inkey key.pem -in content.der -outform DER -out checklist.sig";
    openssl(folder.path(), sign);
    let staged = Staged { checklist: std::fs::read(path("checklist.sig")).unwrap(), ..scene.stage() };
    let written = staged.write();
    assert_eq!(written.check(&staged.checklist).unwrap().prefixes, nets(&["10.1.2.0/24", "2001:db8:1:2::/64"]));
    if relying_party::is_installed("what_openssl_signs_vouches") {
        let verdict = relying_party::ask(&staged, &written);
        assert!(verdict.is_good, "{verdict:?}");
    }
    // With its capabilities, which RFC 6488 §2.1.6.4 does not have among the signed attributes.
    openssl(folder.path(), &sign.replace("-nosmimecap ", ""));
    let said = written.check(&std::fs::read(path("checklist.sig")).unwrap());
    assert!(matches!(said, Err(Invalid::Malformed { .. })), "{said:?}");
}

fn openssl(folder: &Path, arguments: &str) {
    let output = Command::new("openssl").args(arguments.split_whitespace()).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "openssl {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}
