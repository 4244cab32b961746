// SPDX-License-Identifier: Apache-2.0
//! Files with what proves rights: a chain of grants, one a line and the issuer's first, or an address's proof.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use netserv_authority::limits::EVIDENCE_BYTES_MAX;
use netserv_model::evidence::{AddressProof, Checklist, grants_in};
use netserv_model::limits::CHECKLIST_BYTES_MAX;

use crate::exit::{Failure, OrFail};

/// Reads a chain of grants, without understanding it.
///
/// # Errors
/// The file cannot be read, or is longer than a chain may be.
pub fn read(path: &Path) -> Result<Vec<String>, Failure> {
    let shown = path.display();
    let fix = "name a file that `netserv grant` made, or that you were given";
    let most = 2 * EVIDENCE_BYTES_MAX;
    let mut text = String::new();
    let opened = std::fs::File::open(path).and_then(|file| file.take(most as u64 + 1).read_to_string(&mut text));
    opened.or_fail(format!("cannot read the grants in {shown}"), fix)?;
    if text.len() > most {
        return Err(Failure::new(format!("{shown} is longer than {most} bytes, so it is no chain of grants"), fix));
    }
    let grants = grants_in(&text);
    match grants.is_empty() || grants.iter().any(|grant| grant.contains(char::is_whitespace)) {
        true => Err(Failure::new(format!("{shown} has no grants, one a line"), fix)),
        false => Ok(grants),
    }
}

/// Reads what `netserv prove address` made.
///
/// # Errors
/// The file cannot be read, or is something else.
pub fn read_proof(path: &Path) -> Result<AddressProof, Failure> {
    let shown = path.display();
    let fix = "name a file that `netserv prove address` made";
    let mut text = String::new();
    let opened = std::fs::File::open(path).and_then(|file| file.take(1024).read_to_string(&mut text));
    opened.or_fail(format!("cannot read the proof in {shown}"), fix)?;
    text.trim().parse().or_fail(format!("{shown} holds no proof"), fix)
}

/// Reads a checklist in DER, without understanding it.
///
/// # Errors
/// The file cannot be read, or is longer than a checklist may be.
pub fn read_checklist(path: &Path) -> Result<Checklist, Failure> {
    let shown = path.display();
    let mut der = Vec::new();
    let opened =
        std::fs::File::open(path).and_then(|file| file.take(CHECKLIST_BYTES_MAX as u64 + 1).read_to_end(&mut der));
    let fix = "name the signed object, in DER, that the holder of the prefixes made";
    opened.or_fail(format!("cannot read the checklist in {shown}"), fix)?;
    Checklist::new(der).or_fail(format!("{shown} holds no checklist"), fix)
}

/// Writes lines into a new file: a chain, or a proof.
///
/// # Errors
/// The file exists or cannot be made.
pub fn write_new(path: &PathBuf, grants: &[String], mode: u32) -> Result<(), Failure> {
    let opened = std::fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    let written = opened.and_then(|mut file| file.write_all((grants.join("\n") + "\n").as_bytes()));
    written.map_err(|error| {
        let exists = error.kind() == ErrorKind::AlreadyExists;
        let why = if exists { "it exists and is not overwritten".to_owned() } else { error.to_string() };
        Failure::new(format!("cannot write {}: {why}", path.display()), "choose another file with --out")
    })
}
