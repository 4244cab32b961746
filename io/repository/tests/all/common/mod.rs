// SPDX-License-Identifier: Apache-2.0
//! What the tests of packages and of the repository share.
#![allow(dead_code, reason = "each test binary uses its part")]

pub mod server;
pub mod tar_file;

use ed25519_dalek::SigningKey;
use netserv_model::manifest::Manifest;
use netserv_model::{Digest, Flavour, PublicKey};
use netserv_project::Project;
use netserv_repository::package::{self, Package};
use sha2::{Digest as _, Sha256};

/// The project's file of a small module.
pub const MANIFEST: &str = r#"manifest = 1
name = "example.org/net-monitor"
version = "1.2.0"
description = "Counts packets"
dependencies = ["kv>=1"]

[packet]
abi = 1
filters = ["udp dst 10.2.0.0/24 port 5060"]
on-failure = "closed"
"#;

/// The smallest WebAssembly module.
pub const WASM: &[u8] = b"\0asm\x01\0\0\0";

/// The smallest WebAssembly component.
pub const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

/// A certificate and its key, as far as packages look.
pub const PEM: &str = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n\
    -----BEGIN PRIVATE KEY-----\nMC4C\n-----END PRIVATE KEY-----\n";

/// A bundle with nothing but a manifest.
pub const JAR: &[u8] = include_bytes!("empty.jar");

/// Returns a key.
pub fn key(n: u8) -> SigningKey {
    SigningKey::from_bytes(&[n; 32])
}

/// Returns the public half of a key.
pub fn public(n: u8) -> PublicKey {
    PublicKey(key(n).verifying_key().to_bytes())
}

/// Returns the manifest that a project's file becomes.
pub fn manifest_of(project: &str) -> Manifest {
    Project::parse(project).unwrap().manifest
}

/// Builds and signs a package.
pub fn signed(manifest: &str, wasm: &[u8], keys: &[u8]) -> Package {
    let mut package = package::build(manifest_of(manifest), &[(Flavour::Wasm, wasm)]).unwrap();
    keys.iter().for_each(|n| package::sign(&mut package, &key(*n)).unwrap());
    package
}

/// Returns the digest of a blob.
pub fn digest(blob: &[u8]) -> Digest {
    Digest(Sha256::digest(blob).into())
}
