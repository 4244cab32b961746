// SPDX-License-Identifier: Apache-2.0
//! OSGi bundles, as far as they can be judged without running anything: a jar whose manifest says what it is.
//!
//! Only the jar's directory and its manifest are read. What the directory says is what a JVM goes by, so entries that
//! are there twice are seen here, and not one of them taken for the other.

use std::collections::BTreeMap;

use netserv_model::{Refusal, RefusalKind};

use crate::limits::{JAR_ENTRIES_MAX, JAR_MANIFEST_BYTES_MAX};

/// The manifest's name in a jar, which a JVM finds in any case of letters.
const MANIFEST: &str = "META-INF/MANIFEST.MF";

/// Checks that bytes are a jar with an OSGi bundle's manifest.
///
/// # Errors
/// A refusal of kind `bad-code` for what is no jar, of kind `bad-manifest` for a jar whose manifest is missing, there
/// twice, malformed or not a bundle's; both say what is wrong.
pub fn check(jar: &[u8]) -> Result<(), Refusal> {
    headers(jar).map(drop)
}

/// Returns the headers of a bundle's manifest, the names in lower case.
///
/// # Errors
/// Those of [`check`].
pub fn headers(jar: &[u8]) -> Result<BTreeMap<String, String>, Refusal> {
    let headers = parse_manifest(&manifest_of(jar)?)?;
    match headers.get("bundle-symbolicname").map(|name| name.split(';').next().unwrap_or_default().trim()) {
        Some(name) if is_symbolic_name(name) => Ok(headers),
        Some(name) => Err(bad_manifest(format!("Bundle-SymbolicName `{}` is no symbolic name", shown(name)))),
        None => Err(bad_manifest("there is no Bundle-SymbolicName, so the jar is no OSGi bundle")),
    }
}

/// One entry of a jar's directory.
struct Entry {
    flags: u16,
    method: u16,
    packed: usize,
    unpacked: usize,
    header: usize,
}

fn manifest_of(jar: &[u8]) -> Result<Vec<u8>, Refusal> {
    match directory(jar)?.as_slice() {
        [] => Err(bad_manifest("it is missing")),
        [entry] => unpack(jar, entry),
        [_, _, ..] => Err(bad_manifest("it is there twice")),
    }
}

/// Returns the entries of the manifest's name.
fn directory(jar: &[u8]) -> Result<Vec<Entry>, Refusal> {
    let (count, start, end) = find_directory(jar).ok_or_else(|| bad_code("it has no directory of a zip archive"))?;
    if count > JAR_ENTRIES_MAX {
        return Err(bad_code(format!("it has {count} entries, at most {JAR_ENTRIES_MAX}")));
    }
    let broken = |n: usize| bad_code(format!("entry {n} of its directory is broken"));
    let mut rest = jar.get(start..end).ok_or_else(|| bad_code("its directory lies outside of it"))?;
    let mut manifests = Vec::new();
    for n in 0..count {
        let (name, entry, next) = take_entry(rest).ok_or_else(|| broken(n))?;
        if name.eq_ignore_ascii_case(MANIFEST.as_bytes()) {
            manifests.push(entry);
        }
        rest = next;
    }
    if rest.is_empty() { Ok(manifests) } else { Err(bad_code("its directory is longer than it says")) }
}

/// Returns how many entries the directory has, and where it starts and ends. It is named by a record at the very end,
/// after which only a comment may come.
fn find_directory(jar: &[u8]) -> Option<(usize, usize, usize)> {
    let last = jar.len().checked_sub(END_BYTES)?;
    let first = last.saturating_sub(usize::from(u16::MAX));
    let at = (first..=last).rev().find(|at| {
        let comment = u16_at(jar, at + 20).map(usize::from);
        jar[*at..].starts_with(END_MAGIC) && comment == Some(jar.len() - at - END_BYTES)
    })?;
    let count = usize::from(u16_at(jar, at + 10)?);
    let (length, start) = (u32_at(jar, at + 12)?, u32_at(jar, at + 16)?);
    let end = start.checked_add(length)?;
    // Several disks, or numbers that stand in another record, are not for a jar of this size.
    let plain = u32_at(jar, at + 4)? == 0 && u16_at(jar, at + 8)? == u16_at(jar, at + 10)? && end == at;
    plain.then_some((count, start, end))
}

/// Takes one entry off a directory: its name, what it says, and what comes after it.
fn take_entry(directory: &[u8]) -> Option<(&[u8], Entry, &[u8])> {
    if !directory.starts_with(ENTRY_MAGIC) {
        return None;
    }
    let length = |at: usize| u16_at(directory, at).map(usize::from);
    let name_end = ENTRY_BYTES + length(28)?;
    let end = name_end + length(30)? + length(32)?;
    let name = directory.get(ENTRY_BYTES..name_end)?;
    let entry = Entry {
        flags: u16_at(directory, 8)?,
        method: u16_at(directory, 10)?,
        packed: u32_at(directory, 20)?,
        unpacked: u32_at(directory, 24)?,
        header: u32_at(directory, 42)?,
    };
    Some((name, entry, directory.get(end..)?))
}

fn unpack(jar: &[u8], entry: &Entry) -> Result<Vec<u8>, Refusal> {
    if entry.flags & ENCRYPTED != 0 {
        return Err(bad_manifest("it is encrypted"));
    }
    if entry.unpacked > JAR_MANIFEST_BYTES_MAX {
        let detail = format!("it has {} bytes, at most {JAR_MANIFEST_BYTES_MAX}", entry.unpacked);
        return Err(bad_manifest(detail));
    }
    let packed = packed_bytes(jar, entry).ok_or_else(|| bad_code("the manifest's bytes lie outside of the jar"))?;
    let unpacked = match entry.method {
        STORED => packed.to_vec(),
        DEFLATED => miniz_oxide::inflate::decompress_to_vec_with_limit(packed, entry.unpacked)
            .map_err(|_| bad_code("the manifest cannot be unpacked"))?,
        other => return Err(bad_manifest(format!("it is packed by method {other}, understood are 0 and 8"))),
    };
    match unpacked.len() == entry.unpacked {
        true => Ok(unpacked),
        false => Err(bad_code("the manifest has another length than the jar's directory says")),
    }
}

fn packed_bytes<'a>(jar: &'a [u8], entry: &Entry) -> Option<&'a [u8]> {
    let header = jar.get(entry.header..)?;
    if !header.starts_with(LOCAL_MAGIC) {
        return None;
    }
    let start = LOCAL_BYTES + usize::from(u16_at(header, 26)?) + usize::from(u16_at(header, 28)?);
    header.get(start..start.checked_add(entry.packed)?)
}

/// Reads the main section of a jar's manifest: `Name: value` lines, those that start with a space going on with the
/// line before. The sections after an empty line are about single files, and are not looked at.
fn parse_manifest(bytes: &[u8]) -> Result<BTreeMap<String, String>, Refusal> {
    let text = str::from_utf8(bytes).map_err(|_| bad_manifest("it is not text in UTF-8"))?;
    let mut lines: Vec<String> = Vec::new();
    for line in text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)) {
        match (line.strip_prefix(' '), lines.last_mut()) {
            (Some(more), Some(last)) => last.push_str(more),
            (Some(_), None) => return Err(bad_manifest("its first line starts with a space")),
            (None, _) if line.is_empty() => break,
            (None, _) => lines.push(line.to_owned()),
        }
    }
    let mut headers = BTreeMap::new();
    for line in &lines {
        let Some((name, value)) = line.split_once(": ").filter(|(name, _)| is_header_name(name)) else {
            return Err(bad_manifest(format!("`{}` is no line `Name: value`", shown(line))));
        };
        if headers.insert(name.to_ascii_lowercase(), value.to_owned()).is_some() {
            return Err(bad_manifest(format!("{} is there twice", shown(name))));
        }
    }
    match headers.contains_key("manifest-version") {
        true => Ok(headers),
        false => Err(bad_manifest("there is no Manifest-Version")),
    }
}

fn is_header_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=70).contains(&name.len()) && name.bytes().all(allowed) && !name.starts_with(['-', '_'])
}

/// OSGi Core §1.3.2: tokens of letters, digits, `_` and `-`, with dots between them.
fn is_symbolic_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    name.split('.').all(|token| !token.is_empty() && token.bytes().all(allowed))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?)).ok()
}

fn shown(text: &str) -> String {
    text.chars().take(60).collect()
}

fn bad_code(detail: impl std::fmt::Display) -> Refusal {
    Refusal::new(RefusalKind::BadCode, format!("the bundle is no jar: {detail}"))
}

fn bad_manifest(detail: impl std::fmt::Display) -> Refusal {
    Refusal::new(RefusalKind::BadManifest, format!("the bundle's {MANIFEST}: {detail}"))
}

/// The records of a zip archive (APPNOTE 4.3): what they start with, and their bytes without names and comments.
const LOCAL_MAGIC: &[u8] = b"PK\x03\x04";
const LOCAL_BYTES: usize = 30;
const ENTRY_MAGIC: &[u8] = b"PK\x01\x02";
const ENTRY_BYTES: usize = 46;
const END_MAGIC: &[u8] = b"PK\x05\x06";
const END_BYTES: usize = 22;
const ENCRYPTED: u16 = 0x0001;
const STORED: u16 = 0;
const DEFLATED: u16 = 8;

#[cfg(test)]
pub(crate) mod tests;
