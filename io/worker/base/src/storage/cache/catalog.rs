// SPDX-License-Identifier: Apache-2.0
//! What is where, as it is kept in the file itself: a start reads this in place of a look at all blocks.
//!
//! The first blocks of a file that is large enough are the catalog's: one with two headers, and two areas. An area has records
//! one behind the other, of entries that came, of entries that went, and of starts. Once it is full, those that are there go to the
//! other area, which counts from then on. Nothing in it is believed without its checksum, and an entry that it tells of is there only if
//! its head is: what was written down last may be lost in a power cut, and what it says then is of before. A record that was cut
//! off is the end; one that is damaged amid others makes the whole catalog damaged.
//!
//! Each block begins with zeros, so that it never is one of an entry.

use std::mem;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use super::block::{HEADER_BYTES, Head, NUMBER_MAX, PAYLOAD_BYTES, place};
use super::entry::{Entry, Rest, block_counts};
use super::index::Index;
use super::pool::{Blocks, Pool};
use crate::storage::Disk;
use crate::storage::limits::{CACHE_BLOCK_BYTES, CACHE_CATALOG_BLOCKS_MIN, CACHE_CATALOG_SHARE};

/// What is written down of the entries of a file.
pub(super) struct Catalog {
    disk: Arc<dyn Disk>,
    /// Blocks of the whole file.
    count: u32,
    /// Blocks of one area.
    blocks: u32,
    /// The area that counts; nothing once it cannot be relied on.
    area: Option<Area>,
    /// The highest one that was ever written.
    generation: u64,
    /// Whether the file had something in the place of headers.
    was_there: bool,
}

/// One of the two areas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Area {
    is_second: bool,
    generation: u64,
    /// Where the next record goes.
    end: u64,
}

/// Why there is nothing to be had of a catalog.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CatalogError {
    /// It has no room for so much.
    Full,
    /// The disk failed, or something else is there.
    Damaged,
}

/// Returns how many blocks of a file of `count` the catalog has; none if a look at all of them takes no time.
pub(super) fn blocks_of(count: u32) -> u32 {
    if count < CACHE_CATALOG_BLOCKS_MIN { 0 } else { 1 + 2 * (count / CACHE_CATALOG_SHARE / 2) }
}

impl Catalog {
    /// Returns the catalog of a file of `count` blocks that has one.
    pub(super) fn new(disk: &Arc<dyn Disk>, count: u32) -> Option<Catalog> {
        let blocks = blocks_of(count).checked_sub(1)? / 2;
        Some(Catalog { disk: Arc::clone(disk), count, blocks, area: None, generation: 0, was_there: false })
    }

    /// Puts what is written down into an index. Returns a number that no part has yet.
    ///
    /// # Errors
    /// [`CatalogError::Damaged`]; the index may have something then.
    pub(super) fn load(&mut self, pool: &Arc<Pool>, index: &mut Index) -> Result<u64, CatalogError> {
        let headers: Vec<Area> = (0..2).filter_map(|slot| self.read_header(slot)).collect();
        let written = headers.iter().map(|area| area.generation);
        // Records of a rewrite that was cut off are not to be taken for those of the next one.
        let cut_off = [false, true].into_iter().filter_map(|is_second| self.first_generation(is_second));
        self.generation = written.chain(cut_off).max().unwrap_or(0);
        let area = headers.into_iter().max_by_key(|area| area.generation).ok_or(CatalogError::Damaged)?;
        let mut replay = Replay { catalog: self, area, pos: 0, buffer: vec![], used: 0, is_torn: false };
        let Some((BEGIN, payload)) = replay.next()? else { return Err(CatalogError::Damaged) };
        let mut next = long_at(payload, 0).ok_or(CatalogError::Damaged)?;
        while let Some((kind, payload)) = replay.next()? {
            let number = long_at(payload, 0).ok_or(CatalogError::Damaged)?;
            next = next.max(number.saturating_add(1));
            match kind {
                BEGIN => {}
                CAME => came(payload, pool, index).ok_or(CatalogError::Damaged)?,
                WENT => went(payload, index).ok_or(CatalogError::Damaged)?,
                _ => return Err(CatalogError::Damaged),
            }
        }
        let (end, is_torn) = (replay.pos, replay.is_torn);
        // What a record that was cut off left behind would be amid later ones.
        self.area = Some(Area { end: if is_torn { self.area_bytes() } else { end }, ..area });
        // Parts that never became entries have numbers, too.
        let next = next.saturating_add(NUMBERS_BETWEEN_REWRITES);
        if next < NUMBER_MAX / 2 { Ok(next) } else { Err(CatalogError::Damaged) }
    }

    /// Writes a number down that no part has yet, with all entries anew if there is no room for it. The next start has higher ones.
    ///
    /// # Errors
    /// As those of [`Catalog::rewrite`].
    pub(super) fn note(&mut self, next: u64, page: impl FnMut() -> Vec<Arc<Entry>>) -> Result<(), CatalogError> {
        let mut records = Records::default();
        records.push(BEGIN, &next.to_le_bytes());
        match self.append(&records) {
            Err(CatalogError::Full) => self.rewrite(page, next),
            written => written,
        }
    }

    /// Returns the generation of the first record of an area.
    fn first_generation(&self, is_second: bool) -> Option<u64> {
        let (block, _) = self.spot(Area { is_second, generation: 0, end: 0 }, 0);
        let mut header = [0; RECORD_HEADER_BYTES];
        self.disk.read_at(place(block) + HEADER_BYTES as u64, &mut header).ok()?;
        long_at(&header, 8).filter(|generation| header[4..8] == BEGIN.to_le_bytes() && *generation < GENERATION_MAX)
    }

    /// Writes records down, unless it is known that the catalog cannot be relied on.
    ///
    /// # Errors
    /// [`CatalogError::Full`]: it is to be written anew. [`CatalogError::Damaged`]: the disk failed; the next start looks at all
    /// blocks.
    pub(super) fn append(&mut self, records: &Records) -> Result<(), CatalogError> {
        let Some(mut area) = self.area else { return Ok(()) };
        match self.write(&mut area, records) {
            Ok(()) => self.area = Some(area),
            Err(CatalogError::Full) => return Err(CatalogError::Full),
            Err(CatalogError::Damaged) => {
                self.give_up();
                return Err(CatalogError::Damaged);
            }
        }
        Ok(())
    }

    /// Returns whether the file had a catalog, whole or not, or something else in its place.
    pub(super) fn was_there(&self) -> bool {
        self.was_there
    }

    /// Writes down all entries, of which `page` gives some at a time until it gives none, those that were used first before the
    /// others. Parts have numbers below `next`.
    ///
    /// # Errors
    /// There is no room, or the disk failed; the next start looks at all blocks then.
    pub(super) fn rewrite(&mut self, page: impl FnMut() -> Vec<Arc<Entry>>, next: u64) -> Result<(), CatalogError> {
        self.generation += 1;
        let is_second = self.area.is_some_and(|area| !area.is_second);
        let mut area = Area { is_second, generation: self.generation, end: 0 };
        let written = self.write_all(&mut area, page, next);
        match written {
            Ok(()) => self.area = Some(area),
            Err(_) => self.give_up(),
        }
        written
    }

    fn write_all(
        &self,
        area: &mut Area,
        mut page: impl FnMut() -> Vec<Arc<Entry>>,
        next: u64,
    ) -> Result<(), CatalogError> {
        let mut records = Records::default();
        records.push(BEGIN, &next.to_le_bytes());
        loop {
            let entries = page();
            for entry in &entries {
                records.came(entry);
                if records.0.len() >= REWRITE_BYTES {
                    self.write(area, &mem::take(&mut records))?;
                }
            }
            if entries.is_empty() {
                break;
            }
        }
        self.write(area, &records)?;
        // Some room has to be left for what comes.
        if area.end > self.area_bytes() / 4 * 3 {
            return Err(CatalogError::Full);
        }
        self.write_header(u64::from(area.is_second), Some(area))
    }

    /// Has the next start look at all blocks.
    fn give_up(&mut self) {
        self.area = None;
        // If this fails, too, what is there is of before, and is looked at entry by entry.
        let _ = (0..2).try_for_each(|slot| self.write_header(slot, None));
    }

    fn write(&self, area: &mut Area, records: &Records) -> Result<(), CatalogError> {
        let bytes = records.finish(area.generation);
        if area.end + bytes.len() as u64 > self.area_bytes() {
            return Err(CatalogError::Full);
        }
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let (block, at) = self.spot(*area, area.end);
            let (now, later) = rest.split_at(rest.len().min(PAYLOAD_BYTES - at));
            let written = match at {
                0 => self.disk.write_at(place(block), &[&[0; HEADER_BYTES], now].concat()),
                _ => self.disk.write_at(place(block) + (HEADER_BYTES + at) as u64, now),
            };
            written.map_err(|_| CatalogError::Damaged)?;
            area.end += now.len() as u64;
            rest = later;
        }
        Ok(())
    }

    /// Returns the block in which a byte of an area is, and where in its payload.
    fn spot(&self, area: Area, at: u64) -> (u32, usize) {
        let index = u32::try_from(at / PAYLOAD_BYTES as u64).unwrap_or(u32::MAX);
        let from = usize::try_from(at % PAYLOAD_BYTES as u64).unwrap_or(0);
        ((1 + u32::from(area.is_second) * self.blocks).saturating_add(index), from)
    }

    fn area_bytes(&self) -> u64 {
        u64::from(self.blocks) * PAYLOAD_BYTES as u64
    }

    fn read_header(&mut self, slot: u64) -> Option<Area> {
        let mut bytes = [0; HEADER_LENGTH];
        self.disk.read_at(header_place(slot), &mut bytes).ok()?;
        self.was_there |= bytes.iter().any(|byte| *byte != 0);
        let (own, sum) = bytes.split_at(HEADER_LENGTH - 8);
        let is_one = own.starts_with(MAGIC) && long_at(sum, 0)? == xxh3_64(own);
        let [generation, is_second, count] = [8, 16, 24].map(|at| long_at(own, at));
        // A file of another length has other areas.
        let is_own = is_one && count? == u64::from(self.count);
        let generation = generation.filter(|generation| *generation < GENERATION_MAX)?;
        is_own.then_some(Area { is_second: is_second? != 0, generation, end: 0 })
    }

    /// Writes a header of an area, or that there is none.
    fn write_header(&self, slot: u64, area: Option<&Area>) -> Result<(), CatalogError> {
        let mut bytes = vec![0; HEADER_LENGTH];
        if let Some(area) = area {
            bytes = MAGIC.to_vec();
            for number in [area.generation, u64::from(area.is_second), u64::from(self.count)] {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
            bytes.extend_from_slice(&xxh3_64(&bytes).to_le_bytes());
        }
        let written =
            self.disk.write_at(0, &[0; HEADER_BYTES]).and_then(|()| self.disk.write_at(header_place(slot), &bytes));
        written.map_err(|_| CatalogError::Damaged)
    }
}

/// Changes that are written down together.
#[derive(Default)]
pub(super) struct Records(Vec<u8>);

impl Records {
    /// Adds that an entry came, in the place of any other one with its key.
    pub(super) fn came(&mut self, entry: &Entry) {
        let mut payload = entry.number.to_le_bytes().to_vec();
        payload.extend(entry.head.encode());
        entry.first_blocks().iter().for_each(|block| payload.extend_from_slice(&block.to_le_bytes()));
        for run in entry.rest.numbers().chunk_by(|one, other| one.checked_add(1) == Some(*other)) {
            payload.extend_from_slice(&run[0].to_le_bytes());
            payload.extend_from_slice(&u32::try_from(run.len()).expect("a file has few blocks").to_le_bytes());
        }
        self.push(CAME, &payload);
    }

    /// Adds that an entry went.
    pub(super) fn went(&mut self, entry: &Entry) {
        let module = entry.head.module.as_str();
        let length = u16::try_from(module.len()).expect("a name is short");
        let number = entry.number.to_le_bytes();
        self.push(WENT, &[&number[..], &length.to_le_bytes(), module.as_bytes(), entry.key().as_bytes()].concat());
    }

    fn push(&mut self, kind: u32, payload: &[u8]) {
        self.0.extend_from_slice(&u32::try_from(payload.len()).expect("a record is short").to_le_bytes());
        self.0.extend_from_slice(&kind.to_le_bytes());
        // The generation and the checksum come in the end.
        self.0.extend_from_slice(&[0; 16]);
        self.0.extend_from_slice(payload);
    }

    /// Returns the records of a generation.
    fn finish(&self, generation: u64) -> Vec<u8> {
        let mut bytes = self.0.clone();
        let mut rest = &mut bytes[..];
        while let Some((header, after)) = rest.split_first_chunk_mut::<RECORD_HEADER_BYTES>() {
            header[8..16].copy_from_slice(&generation.to_le_bytes());
            let length = u32::from_le_bytes([header[0], header[1], header[2], header[3]]) as usize;
            let (payload, next) = after.split_at_mut(length);
            let sum = record_sum(&header[..16], payload);
            header[16..].copy_from_slice(&sum.to_le_bytes());
            rest = next;
        }
        bytes
    }
}

/// The records of an area, from its begin.
struct Replay<'a> {
    catalog: &'a Catalog,
    area: Area,
    /// Where the next record begins.
    pos: u64,
    buffer: Vec<u8>,
    used: usize,
    /// Whether the last one was cut off.
    is_torn: bool,
}

impl Replay<'_> {
    /// Returns the next record's kind and payload; nothing at the end of those that belong together.
    fn next(&mut self) -> Result<Option<(u32, &[u8])>, CatalogError> {
        let Some((kind, whole)) = self.sound()? else { return self.end() };
        let payload = self.used + RECORD_HEADER_BYTES..self.used + whole;
        self.used += whole;
        self.pos += whole as u64;
        Ok(Some((kind, &self.buffer[payload])))
    }

    /// Returns the kind and the length of the next record; nothing if there is none, or one that is damaged.
    fn sound(&mut self) -> Result<Option<(u32, usize)>, CatalogError> {
        if !self.fill(RECORD_HEADER_BYTES)? {
            return Ok(None);
        }
        let header = &self.buffer[self.used..];
        let [length, kind] = [0, 4].map(|at| u32::from_le_bytes([0, 1, 2, 3].map(|byte| header[at + byte])));
        let whole = RECORD_HEADER_BYTES + length as usize;
        let most = RECORD_TEXT_BYTES_MAX + BLOCK_BYTES_MAX * self.catalog.count as usize;
        self.is_torn = long_at(header, 8) == Some(self.area.generation);
        if !self.is_torn || whole > most || !self.fill(whole)? {
            return Ok(None);
        }
        let (header, payload) = self.buffer[self.used..self.used + whole].split_at(RECORD_HEADER_BYTES);
        let is_sound = long_at(header, 16) == Some(record_sum(&header[..16], payload));
        self.is_torn = !is_sound;
        Ok(is_sound.then_some((kind, whole)))
    }

    /// Returns nothing if no other record follows one that is none.
    fn end<T>(&mut self) -> Result<Option<T>, CatalogError> {
        let left = self.catalog.area_bytes() - self.pos;
        let length = usize::try_from(left).unwrap_or(usize::MAX).min(READ_BYTES);
        self.fill(length)?;
        let generation = self.area.generation.to_le_bytes();
        let behind = self.buffer[self.used..self.used + length].get(RECORD_HEADER_BYTES..).unwrap_or_default();
        let is_record = |mark: &[u8]| [BEGIN, CAME, WENT].iter().any(|kind| mark[..4] == kind.to_le_bytes());
        let is_amid = behind.windows(12).any(|mark| mark[4..] == generation && is_record(mark));
        if is_amid { Err(CatalogError::Damaged) } else { Ok(None) }
    }

    /// Sees to it that so many bytes of the next record are in memory. Returns whether there are so many.
    fn fill(&mut self, length: usize) -> Result<bool, CatalogError> {
        if self.buffer.len() - self.used >= length {
            return Ok(true);
        }
        let left = self.catalog.area_bytes() - self.pos;
        if length as u64 > left {
            return Ok(false);
        }
        self.buffer.drain(..self.used);
        self.used = 0;
        let more = usize::try_from(left).unwrap_or(usize::MAX).min(length.max(READ_BYTES));
        while self.buffer.len() < more {
            let (block, from) = self.catalog.spot(self.area, self.pos + self.buffer.len() as u64);
            let now = (more - self.buffer.len()).min(PAYLOAD_BYTES - from);
            let start = self.buffer.len();
            self.buffer.resize(start + now, 0);
            let at = place(block) + (HEADER_BYTES + from) as u64;
            self.catalog.disk.read_at(at, &mut self.buffer[start..]).map_err(|_| CatalogError::Damaged)?;
        }
        Ok(true)
    }
}

/// Puts an entry into an index. Nothing if the record is none.
fn came(payload: &[u8], pool: &Arc<Pool>, index: &mut Index) -> Option<()> {
    let (number, bytes) = payload.split_first_chunk::<8>()?;
    let number = u64::from_le_bytes(*number);
    let (head, text_bytes) = Head::parse(bytes)?;
    let (first_count, rest_count) = block_counts(&head, text_bytes)?;
    let mut words =
        bytes.get(text_bytes..)?.chunks_exact(4).map(|word| u32::from_le_bytes([0, 1, 2, 3].map(|at| word[at])));
    let first: Vec<u32> = words.by_ref().take(first_count).collect();
    let mut rest = Vec::new();
    while let Some(start) = words.next() {
        let run = start..start.checked_add(words.next()?)?;
        let left = rest_count.min(pool.len() as usize).checked_sub(rest.len())?;
        if run.len() > left || run.end > pool.len() {
            return None;
        }
        rest.extend(run);
    }
    // A revision of a body has its blocks.
    let old = index.find(&head.module, &head.key, false);
    let same = old.filter(|old| old.head.rest_number == head.rest_number && old.rest.numbers() == rest);
    let rest = match same {
        Some(old) => Some(old.rest.clone()),
        None => Blocks::claim(rest, pool).map(Rest::new),
    };
    // Whoever wrote over the blocks of another one was not written down, and nor is what that had.
    if let (Some(first), Some(rest)) = (Blocks::claim(first, pool), rest)
        && let Some(entry) = Entry::new(head, text_bytes, number, first, rest, false)
    {
        index.insert(Arc::new(entry));
    }
    Some(())
}

/// Takes an entry out of an index. Nothing if the record is none.
fn went(payload: &[u8], index: &mut Index) -> Option<()> {
    let number = long_at(payload, 0)?;
    let (length, texts) = payload.get(8..)?.split_first_chunk::<2>()?;
    let (module, key) = texts.split_at_checked(u16::from_le_bytes(*length).into())?;
    let (module, key) = (std::str::from_utf8(module).ok()?.parse().ok()?, std::str::from_utf8(key).ok()?);
    if index.find(&module, key, false).is_some_and(|entry| entry.number == number) {
        index.remove(&module, key);
    }
    Some(())
}

/// Returns where a header is, in the first block.
fn header_place(slot: u64) -> u64 {
    HEADER_BYTES as u64 + slot * (CACHE_BLOCK_BYTES as u64 / 2)
}

fn record_sum(header: &[u8], payload: &[u8]) -> u64 {
    xxh3_64(payload) ^ xxh3_64(header).rotate_left(1)
}

fn long_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk::<8>().map(|word| u64::from_le_bytes(*word))
}

const MAGIC: &[u8; 8] = b"NSCT0001";
const HEADER_LENGTH: usize = 40;
const RECORD_HEADER_BYTES: usize = 24;
/// So many that none is ever reached; a header that names more is none.
const GENERATION_MAX: u64 = 1 << 62;
/// More than parts get numbers between two starts.
const NUMBERS_BETWEEN_REWRITES: u64 = 1 << 32;
/// Bytes of a record beside the numbers of blocks, and at most so many for each of these.
const RECORD_TEXT_BYTES_MAX: usize = 16 * 1024;
const BLOCK_BYTES_MAX: usize = 8;
/// Bytes that are read at once.
const READ_BYTES: usize = 256 * 1024;
/// Bytes that are written at once, about.
const REWRITE_BYTES: usize = 256 * 1024;

/// The first record of an area and of each start, with a number that no part had.
const BEGIN: u32 = 1;
const CAME: u32 = 2;
const WENT: u32 = 3;
