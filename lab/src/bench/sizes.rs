// SPDX-License-Identifier: Apache-2.0
//! How large programs and the code of sample modules are.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use netserv_model::Flavour;

use super::goals::Goal;
use super::summary::{Figure, Row};
use crate::netns::program;
use crate::node::{Part, module_parts, projects};

/// Modules that are whole applications.
const APPLICATIONS: [&str; 7] =
    ["sip-edge", "net-monitor-live", "media-relay", "active-cdn", "edge-cache", "stream-reflector", "video-transcoder"];
/// Sample modules that have to be there.
const MODULES_MIN: usize = 12;
/// What an ELF file for this machine begins with.
const ELF_64: &[u8] = b"\x7fELF\x02\x01";
/// A segment that is loaded.
const PT_LOAD: u32 = 1;

/// Measures the programs beside this one, the Java host beside them, and the code of the sample modules.
///
/// # Errors
/// Something is not built.
pub fn measure() -> Result<Vec<Figure>> {
    let mut rows = Vec::new();
    for (name, goal) in
        [("netservd", Goal::NetservdSize), ("netserv", Goal::NetservSize), ("netserv-worker", Goal::WorkerSize)]
    {
        let file = std::fs::read(program(name)?)?;
        let bytes = loaded_bytes(&file).with_context(|| format!("{name} is no program of this machine"))?;
        rows.push(Row::new(name, "MB", &[mega(bytes)]).goal(goal));
    }
    let java = program("netserv-java")?;
    let jars = folder_bytes(&java.join("host"))? + folder_bytes(&java.join("blocks"))?;
    rows.push(Row::new("the Java host and its building blocks", "MB", &[mega(jars)]).goal(Goal::JavaSize));
    let modules = modules()?;
    ensure!(modules.len() >= MODULES_MIN, "only {} sample modules are built: ./dev build", modules.len());
    rows.extend(modules);
    let how = "What the kernel loads of a program's file, so without debug information; files of the Java host; code of \
               each sample module.";
    Ok(vec![Figure { name: "Sizes", how: how.to_owned(), rows }])
}

/// Returns a row for each part of each sample module that is built.
fn modules() -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for name in projects()?.into_keys() {
        for (part, file) in module_parts(&name, Flavour::Wasm).unwrap_or_default() {
            let (kind, goal) = match part {
                Part::Packet => ("packet part", Goal::PacketCodeSize),
                Part::Component => ("server part", Goal::ServerCodeSize),
                Part::Bundle => continue,
            };
            let goal = if APPLICATIONS.contains(&&*name) { Goal::ApplicationCodeSize } else { goal };
            rows.push(Row::new(format!("{name}, {kind}"), "kB", &[mega(file.metadata()?.len()) * 1000.0]).goal(goal));
        }
    }
    rows.sort_by(|one, other| one.what.cmp(&other.what));
    Ok(rows)
}

/// Returns the bytes of an ELF file that are loaded; `None` if it is none of 64 bits.
fn loaded_bytes(file: &[u8]) -> Option<u64> {
    let long = |at: usize| Some(u64::from_le_bytes(file.get(at..at + 8)?.try_into().ok()?));
    let short = |at: usize| Some(usize::from(u16::from_le_bytes(file.get(at..at + 2)?.try_into().ok()?)));
    file.starts_with(ELF_64).then_some(())?;
    let (first, size, count) = (usize::try_from(long(0x20)?).ok()?, short(0x36)?, short(0x38)?);
    let mut loaded = 0;
    for at in (0..count).map(|number| first + number * size) {
        let kind = u32::from_le_bytes(file.get(at..at + 4)?.try_into().ok()?);
        if kind == PT_LOAD {
            loaded += long(at + 0x20)?;
        }
    }
    Some(loaded)
}

fn folder_bytes(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder).with_context(|| format!("{} is not built", folder.display()))? {
        bytes += entry?.metadata()?.len();
    }
    Ok(bytes)
}

#[allow(clippy::cast_precision_loss, reason = "the size of a file")]
fn mega(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_loaded_of_a_program_is_less_than_its_file() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let loaded = usize::try_from(loaded_bytes(&own).unwrap()).unwrap();
        assert!((100_000..own.len()).contains(&loaded), "{loaded} of {}", own.len());
        assert_eq!(loaded_bytes(b"#!/bin/sh\n"), None);
        assert_eq!(loaded_bytes(&own[..40]), None, "a file that is cut off");
    }
}
