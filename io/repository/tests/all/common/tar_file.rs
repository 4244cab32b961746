// SPDX-License-Identifier: Apache-2.0
//! Packages that are bent on purpose.
#![allow(dead_code, reason = "each test binary uses its part")]

use ed25519_dalek::{Signer as _, SigningKey};
use netserv_model::{Digest, Signature};
use netserv_repository::{Package, package};
use sha2::{Digest as _, Sha256};
use tar::EntryType;

/// A tar file that can be bent.
#[derive(Clone)]
pub struct Tar {
    /// Its entries.
    pub entries: Vec<Entry>,
}

/// One entry.
#[derive(Clone)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: EntryType,
    /// Its content.
    pub content: Vec<u8>,
    /// What the header says, if not the truth.
    pub size: Option<u64>,
}

impl Tar {
    /// Takes a package apart.
    pub fn of(package: &Package) -> Tar {
        let bytes = package.to_bytes();
        let mut archive = tar::Archive::new(bytes.as_slice());
        let entries = archive.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let name = entry.path().unwrap().to_str().unwrap().to_owned();
            let mut content = Vec::new();
            std::io::Read::read_to_end(&mut entry, &mut content).unwrap();
            Entry { name, kind: EntryType::Regular, content, size: None }
        });
        Tar { entries: entries.collect() }
    }

    /// Returns an entry.
    pub fn entry(&mut self, name: &str) -> &mut Entry {
        self.entries.iter_mut().find(|entry| entry.name == name).unwrap()
    }

    /// Adds a blob.
    pub fn push_blob(&mut self, content: &[u8]) {
        let name = format!("blobs/sha256/{}", hex(content));
        self.entries.push(Entry { name, kind: EntryType::Regular, content: content.to_vec(), size: None });
    }

    /// Replaces text, and puts digests and sizes right again until nothing changes.
    pub fn rewrite_everywhere(&mut self, from: &str, to: &str) {
        let mut changes = vec![(from.to_owned(), to.to_owned())];
        while let Some((from, to)) = changes.pop() {
            for entry in &mut self.entries {
                let Ok(text) = String::from_utf8(entry.content.clone()) else { continue };
                if !text.contains(&from) {
                    continue;
                }
                let (old, old_size) = (hex(&entry.content), entry.content.len());
                entry.content = text.replace(&from, &to).into_bytes();
                if entry.name.starts_with("blobs/") {
                    let (new, new_size) = (hex(&entry.content), entry.content.len());
                    entry.name = format!("blobs/sha256/{new}");
                    let (old_end, new_end) = (format!("\",\"size\":{old_size}"), format!("\",\"size\":{new_size}"));
                    changes.push((old.clone(), new.clone()));
                    changes.push((old + &old_end, new + &new_end));
                }
            }
        }
    }

    /// Puts a good signature of what the package has become in the place of one that it had.
    pub fn sign_again(&mut self, old: Signature, key: &SigningKey) {
        let signed = package::signed_text(self.digest());
        self.rewrite_everywhere(&old.to_string(), &Signature(key.sign(signed.as_bytes()).to_bytes()).to_string());
    }

    /// Returns the digest of the package.
    pub fn digest(&mut self) -> Digest {
        let index: serde_json::Value = serde_json::from_slice(&self.entry("index.json").content).unwrap();
        index["manifests"][0]["digest"].as_str().unwrap().parse().unwrap()
    }

    /// Puts the file together.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for entry in &self.entries {
            let mut header = tar::Header::new_ustar();
            header.as_old_mut().name[..entry.name.len()].copy_from_slice(entry.name.as_bytes());
            header.set_entry_type(entry.kind);
            header.set_size(entry.size.unwrap_or(u64::try_from(entry.content.len()).unwrap()));
            header.set_cksum();
            bytes.extend(header.as_bytes());
            bytes.extend(&entry.content);
            bytes.resize(bytes.len().next_multiple_of(512), 0);
        }
        bytes.resize(bytes.len() + 1024, 0);
        bytes
    }
}

fn hex(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}
