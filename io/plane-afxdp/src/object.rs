// SPDX-License-Identifier: Apache-2.0
//! Reads the object that clang makes of an XDP program: instructions, maps, and which instruction names which map.
//!
//! It needs no BTF, neither in the object nor in the kernel. The object is our own and made at build time; all the same
//! nothing in it is believed that could make this panic.

use std::collections::BTreeMap;

/// A program as it is before its maps exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Object {
    /// Instructions of 8 bytes each.
    pub instructions: Vec<u8>,
    /// The maps by name.
    pub maps: BTreeMap<String, MapDefinition>,
    /// Offsets of instructions that load the address of a map, and its name.
    pub references: Vec<(usize, String)>,
}

/// What a map is like: `struct map_definition` in `bpf/common.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MapDefinition {
    pub kind: u32,
    pub key_bytes: u32,
    pub value_bytes: u32,
    pub entries_max: u32,
    pub flags: u32,
}

impl Object {
    /// Reads the program in section `xdp`; `None` if this is no object with one.
    pub fn parse(bytes: &[u8]) -> Option<Object> {
        let sections = sections(bytes)?;
        let find = |name: &str| sections.iter().position(|section| section.name == name);
        let (code, maps) = (find("xdp")?, find("maps")?);
        let symbols = symbols(&sections)?;
        let definitions = symbols.iter().filter(|symbol| symbol.section == maps && !symbol.name.is_empty());
        let maps = definitions
            .map(|symbol| Some((symbol.name.clone(), definition(sections[maps].content.get(symbol.value..)?)?)))
            .collect::<Option<_>>()?;
        let relocations = find(".relxdp").map_or(&[][..], |at| sections[at].content);
        let references = relocations
            .chunks_exact(RELOCATION_BYTES)
            .map(|entry| {
                let symbol = symbols.get(usize::try_from(u32_at(entry, 12)?).ok()?)?;
                (u32_at(entry, 8)? == RELOCATION_OF_MAP).then_some(())?;
                Some((usize::try_from(u64_at(entry, 0)?).ok()?, symbol.name.clone()))
            })
            .collect::<Option<_>>()?;
        Some(Object { instructions: sections[code].content.to_vec(), maps, references })
    }

    /// Returns the instructions with the maps' descriptors in them; `None` if one is missing.
    pub fn link(&self, descriptor: impl Fn(&str) -> Option<i32>) -> Option<Vec<u8>> {
        let mut linked = self.instructions.clone();
        for (offset, name) in &self.references {
            let instruction = linked.get_mut(*offset..*offset + INSTRUCTION_BYTES)?;
            // The upper half of the second byte is the source register, which says what the number stands for.
            instruction[1] = instruction[1] & 0x0f | PSEUDO_MAP_FD << 4;
            instruction[4..8].copy_from_slice(&descriptor(name)?.to_ne_bytes());
        }
        Some(linked)
    }
}

/// Bytes of one instruction.
pub(super) const INSTRUCTION_BYTES: usize = 8;

const PSEUDO_MAP_FD: u8 = 1;
/// `R_BPF_64_64`.
const RELOCATION_OF_MAP: u32 = 1;
const RELOCATION_BYTES: usize = 16;
const SECTION_HEADER_BYTES: usize = 64;
const SYMBOL_BYTES: usize = 24;
/// `SHT_SYMTAB`.
const SECTION_OF_SYMBOLS: u32 = 2;
/// `ELFCLASS64`, and the machine's own order of bytes.
const CLASS_AND_ORDER: [u8; 2] = [2, if cfg!(target_endian = "little") { 1 } else { 2 }];

struct Section<'a> {
    name: String,
    kind: u32,
    /// Another section that belongs to it: for symbols, their names.
    link: usize,
    content: &'a [u8],
}

struct Symbol {
    name: String,
    section: usize,
    value: usize,
}

fn sections(bytes: &[u8]) -> Option<Vec<Section<'_>>> {
    (bytes.get(..4)? == b"\x7fELF" && bytes.get(4..6)? == CLASS_AND_ORDER).then_some(())?;
    let start = usize::try_from(u64_at(bytes, 40)?).ok()?;
    let (count, names) = (usize::from(u16_at(bytes, 60)?), usize::from(u16_at(bytes, 62)?));
    let headers = bytes.get(start..)?.chunks_exact(SECTION_HEADER_BYTES).take(count);
    let mut sections = headers
        .map(|header| {
            let offset = usize::try_from(u64_at(header, 24)?).ok()?;
            let length = usize::try_from(u64_at(header, 32)?).ok()?;
            let name = u32_at(header, 0)?.to_string();
            let link = usize::try_from(u32_at(header, 40)?).ok()?;
            let content = bytes.get(offset..offset.checked_add(length)?).unwrap_or_default();
            Some(Section { name, kind: u32_at(header, 4)?, link, content })
        })
        .collect::<Option<Vec<_>>>()?;
    let names = sections.get(names)?.content;
    for section in &mut sections {
        section.name = text_at(names, section.name.parse().ok()?)?;
    }
    Some(sections)
}

fn symbols(sections: &[Section<'_>]) -> Option<Vec<Symbol>> {
    let table = sections.iter().find(|section| section.kind == SECTION_OF_SYMBOLS)?;
    let names = sections.get(table.link)?.content;
    let symbol = |entry: &[u8]| {
        let name = text_at(names, usize::try_from(u32_at(entry, 0)?).ok()?)?;
        let value = usize::try_from(u64_at(entry, 8)?).ok()?;
        Some(Symbol { name, section: usize::from(u16_at(entry, 6)?), value })
    };
    table.content.chunks_exact(SYMBOL_BYTES).map(symbol).collect()
}

fn definition(bytes: &[u8]) -> Option<MapDefinition> {
    Some(MapDefinition {
        kind: u32_at(bytes, 0)?,
        key_bytes: u32_at(bytes, 4)?,
        value_bytes: u32_at(bytes, 8)?,
        entries_max: u32_at(bytes, 12)?,
        flags: u32_at(bytes, 16)?,
    })
}

fn text_at(bytes: &[u8], at: usize) -> Option<String> {
    let bytes = bytes.get(at..)?;
    let end = bytes.iter().position(|byte| *byte == 0)?;
    Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_ne_bytes(*bytes))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::limits;

    const CLASSIFY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/classify.o"));
    const EXPECTED: [&str; 11] = [
        "counters",
        "destination_counts",
        "filters",
        "grace",
        "heart",
        "inner",
        "interfaces",
        "own",
        "prefixes",
        "sockets",
        "tuples",
    ];
    const FORWARD: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/forward.o"));

    #[test]
    fn the_classifier_names_its_maps() {
        let object = Object::parse(CLASSIFY).unwrap();
        let names: Vec<&str> = object.maps.keys().map(String::as_str).collect();
        assert_eq!(names, EXPECTED);
        assert_eq!(usize::try_from(object.maps["sockets"].entries_max).unwrap(), limits::SOCKETS_MAX);
        for map in ["prefixes", "destination_counts"] {
            assert_eq!(usize::try_from(object.maps[map].entries_max).unwrap(), limits::COUNTED_PREFIXES_MAX);
        }
        let with_targets = Object::parse(FORWARD).unwrap().maps;
        assert!(with_targets.contains_key("targets") && object.maps.keys().all(|name| with_targets.contains_key(name)));
        assert!(object.instructions.len().is_multiple_of(INSTRUCTION_BYTES) && !object.references.is_empty());
        let linked = object.link(|_| Some(77)).unwrap();
        for (offset, _) in &object.references {
            assert_eq!(linked[offset + 4..offset + 8], 77_i32.to_ne_bytes());
        }
        assert_eq!(object.link(|_| None), None);
    }

    #[test]
    fn objects_cut_short_are_refused_without_harm() {
        for length in 0..CLASSIFY.len() {
            assert_eq!(Object::parse(&CLASSIFY[..length]), None, "{length}");
        }
    }
}
