// SPDX-License-Identifier: Apache-2.0
//! The file of kv state: batches of changes, one after the other, in one of two areas.
//!
//! A batch counts as a whole or not at all. When an area is full, the whole state is written to the other one, which
//! then counts: so at any time, whatever is cut off in the middle, one area has everything that was written before. What
//! is behind the last batch of a file that was opened may be pieces of another one that a power cut left, which must not
//! count once there is something before them: so the first thing written to it is everything.
//!
//! ```text
//! 0       header: magic, generation, start and length of an area, checksum
//! 4,096   another header; the one with the higher generation counts
//! 8,192   two areas, of records: length, flags, generation, sequence, checksum, changes
//! ```
//!
//! Records of an earlier generation, which lie behind the last one, have another checksum.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use netserv_model::ModuleName;
use netserv_model::limits::MODULE_NAME_CHARS_MAX;
use xxhash_rust::xxh3::xxh3_64;

use super::Disk;
use super::limits::{KV_ENTRY_COST, KV_FILE_BYTES_MIN, KV_RECORD_BYTES_MAX, KV_RESTORED_TIMES_MAX, KV_USABLE_QUARTERS};
use crate::limits::{KV_KEY_BYTES_MAX, KV_VALUE_BYTES_MAX};

/// Whose state: the module's name and the version of its schema.
pub type StateId = (ModuleName, u32);
/// Entries by key.
pub type Entries = BTreeMap<Box<[u8]>, Box<[u8]>>;

/// An open file.
pub struct Journal<D> {
    disk: D,
    /// The highest generation that may be in the file.
    generation: u64,
    /// The area that counts; nothing until one is written.
    active: Option<Area>,
    /// Whether it is certain what is behind the last batch of that area.
    is_sound: bool,
}

/// What was in a file.
#[derive(Debug, Default)]
pub struct Found {
    /// Every state, in the order in which it was first written since the last time that all were.
    pub states: Vec<(StateId, Entries)>,
    /// What is wrong with the file, if something is. What could be read is among the states.
    pub damage: Option<String>,
}

/// Changes that are written together.
#[derive(Debug, Default)]
pub struct WriteBatch {
    records: Vec<Vec<u8>>,
    state: Option<StateId>,
}

/// A batch that was not written.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The area has no room for it.
    #[error("the file has no room left")]
    Full,
    /// The disk failed. What is in the area that counts is uncertain from here on: write it anew.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A part of the file with records.
#[derive(Clone, Debug)]
struct Area {
    range: Range<u64>,
    generation: u64,
    end: u64,
    sequence: u64,
}

impl<D: Disk> Journal<D> {
    /// Opens a file, and returns what is in it. One that holds nothing of use counts as empty.
    ///
    /// # Errors
    /// It is too short to be of use.
    pub fn open(disk: D) -> Result<(Journal<D>, Found), JournalError> {
        if disk.len() < KV_FILE_BYTES_MIN {
            return Err(JournalError::Full);
        }
        let (headers, mut damage) = read_headers(&disk);
        let generation = headers.iter().map(|area| area.generation).max().unwrap_or(0);
        let mut states = vec![];
        let mut active = None;
        for area in headers {
            let replayed = replay(&disk, &area);
            damage = replayed.damage.or(damage);
            states = replayed.states;
            active = Some(replayed.area);
            // One that was not written to its end never counted.
            if replayed.is_whole {
                break;
            }
        }
        let journal = Journal { disk, generation, active, is_sound: false };
        Ok((journal, Found { states, damage }))
    }

    /// Returns the bytes that a state of all modules together may take, counted as [`cost`] does.
    pub fn usable(&self) -> u64 {
        usable(self.disk.len(), self.active.as_ref().map(|area| &area.range))
    }

    /// Returns whether changes can be added: the file has an area that counts.
    pub fn is_begun(&self) -> bool {
        self.is_sound && self.active.is_some()
    }

    /// Adds a batch of changes, and returns when it is safe.
    ///
    /// # Errors
    /// [`JournalError`]; the batch does not count then.
    pub fn append(&mut self, batch: &WriteBatch) -> Result<(), JournalError> {
        let Some(area) = self.active.as_mut().filter(|_| self.is_sound) else { return Err(JournalError::Full) };
        let mut next = area.clone();
        match next.write(&self.disk, batch, LAST).and_then(|()| Ok(self.disk.sync()?)) {
            Ok(()) => {
                *area = next;
                Ok(())
            }
            Err(JournalError::Full) => Err(JournalError::Full),
            Err(JournalError::Io(error)) => {
                self.is_sound = false;
                Err(error.into())
            }
        }
    }

    /// Writes the whole state, of which `parts` is made, to the other area, from which on that one counts.
    ///
    /// # Errors
    /// [`JournalError`]; what counted before still does.
    pub fn rewrite(&mut self, parts: impl Iterator<Item = WriteBatch>) -> Result<(), JournalError> {
        let range = next_area(self.disk.len(), self.active.as_ref().map(|area| &area.range));
        // Never in the place of the header that counts: it has the other parity.
        let taken = self.active.as_ref().map(|area| area.generation % 2);
        let generation = self.generation + if taken == Some((self.generation + 1) % 2) { 2 } else { 1 };
        let mut area = Area { end: range.start, range, generation, sequence: 0 };
        self.generation = generation;
        for part in parts {
            area.write(&self.disk, &part, 0)?;
        }
        area.write(&self.disk, &WriteBatch::default(), LAST)?;
        self.disk.sync()?;
        // From here on, either of the two may be what the next start finds.
        self.is_sound = false;
        self.disk.write_at(HEADER_PLACES[usize::from(generation % 2 == 1)], &area.header())?;
        self.disk.sync()?;
        (self.active, self.is_sound) = (Some(area), true);
        Ok(())
    }
}

impl WriteBatch {
    /// Turns to a state; changes are to it from here on.
    pub fn state(&mut self, id: &StateId) {
        if self.state.as_ref() != Some(id) {
            self.state = Some(id.clone());
            if let Some(record) = self.records.last_mut() {
                put_state(record, id);
            }
        }
    }

    /// Stores an entry of the state.
    pub fn set(&mut self, key: &[u8], value: &[u8]) {
        let record = self.room_for(9 + key.len() + value.len());
        record.push(SET);
        record.extend_from_slice(&length_of(key));
        record.extend_from_slice(&length_of(value));
        record.extend_from_slice(key);
        record.extend_from_slice(value);
    }

    /// Forgets an entry of the state.
    pub fn delete(&mut self, key: &[u8]) {
        let record = self.room_for(5 + key.len());
        record.push(DELETE);
        record.extend_from_slice(&length_of(key));
        record.extend_from_slice(key);
    }

    /// Forgets the whole state.
    pub fn forget(&mut self) {
        self.room_for(1).push(FORGET);
    }

    /// Returns whether there is no change.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Returns a record with that many bytes of room, which begins with the state.
    fn room_for(&mut self, bytes: usize) -> &mut Vec<u8> {
        const STATE_BYTES_MAX: usize = 6 + MODULE_NAME_CHARS_MAX;
        let is_full = |record: &Vec<u8>| record.len() + bytes + STATE_BYTES_MAX > KV_RECORD_BYTES_MAX;
        if self.records.last().is_none_or(is_full) {
            let mut record = vec![];
            if let Some(id) = &self.state {
                put_state(&mut record, id);
            }
            self.records.push(record);
        }
        self.records.last_mut().expect("there is one")
    }
}

impl Area {
    fn header(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for number in [self.generation, self.range.start, self.range.end - self.range.start] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        let sum = xxh3_64(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Writes changes behind the last ones, with these flags in the last record; they are not safe yet.
    fn write(&mut self, disk: &impl Disk, batch: &WriteBatch, last_flags: u32) -> Result<(), JournalError> {
        let empty = vec![];
        let records: Vec<&Vec<u8>> = if batch.is_empty() { vec![&empty] } else { batch.records.iter().collect() };
        let bytes: u64 = records.iter().map(|record| (RECORD_HEADER_BYTES + record.len()) as u64).sum();
        if bytes > self.range.end - self.end {
            return Err(JournalError::Full);
        }
        for (number, payload) in records.iter().enumerate() {
            let flags = if number + 1 == records.len() { last_flags } else { 0 };
            let record = self.record(flags, payload);
            disk.write_at(self.end, &record)?;
            self.end += record.len() as u64;
            self.sequence += 1;
        }
        Ok(())
    }

    fn record(&self, flags: u32, payload: &[u8]) -> Vec<u8> {
        let mut bytes = length_of(payload).to_vec();
        bytes.extend_from_slice(&flags.to_le_bytes());
        bytes.extend_from_slice(&self.generation.to_le_bytes());
        bytes.extend_from_slice(&self.sequence.to_le_bytes());
        let sum = record_sum(&bytes, payload);
        bytes.extend_from_slice(&sum.to_le_bytes());
        bytes.extend_from_slice(payload);
        bytes
    }

    /// Returns the flags and the payload of the next record; nothing if there is none.
    fn read(&mut self, disk: &impl Disk) -> Next {
        let mut header = [0; RECORD_HEADER_BYTES];
        let room = self.range.end - self.end;
        if room < RECORD_HEADER_BYTES as u64 || disk.read_at(self.end, &mut header).is_err() {
            return Next::None;
        }
        let (length, flags) = (u32_at(&header, 0), u32_at(&header, 4));
        if u64_at(&header, 8) != self.generation || u64_at(&header, 16) != self.sequence {
            return Next::None;
        }
        let length = length as usize;
        if length > KV_RECORD_BYTES_MAX || (RECORD_HEADER_BYTES + length) as u64 > room {
            return Next::Damaged;
        }
        let mut payload = vec![0; length];
        let start = self.end + RECORD_HEADER_BYTES as u64;
        if disk.read_at(start, &mut payload).is_err() || record_sum(&header[..24], &payload) != u64_at(&header, 24) {
            return Next::Damaged;
        }
        self.end = start + length as u64;
        self.sequence += 1;
        Next::Record { is_last: flags & LAST != 0, payload }
    }
}

enum Next {
    Record { is_last: bool, payload: Vec<u8> },
    None,
    Damaged,
}

const MAGIC: &[u8; 8] = b"NSKV0001";
const HEADER_PLACES: [u64; 2] = [0, 4096];
const HEADER_BYTES: usize = 40;
/// So many that none is ever reached; a header that names more is none.
const GENERATION_MAX: u64 = 1 << 62;
const AREAS_START: u64 = 8192;
const RECORD_HEADER_BYTES: usize = 32;

/// The flag of the last record of a batch.
const LAST: u32 = 1;

const STATE: u8 = 1;
const SET: u8 = 2;
const DELETE: u8 = 3;
const FORGET: u8 = 4;

/// Returns the areas that headers name, the highest generation first, and what is wrong with headers.
fn read_headers(disk: &impl Disk) -> (Vec<Area>, Option<String>) {
    let (mut areas, mut damage) = (vec![], None);
    for place in HEADER_PLACES {
        let mut bytes = [0; HEADER_BYTES];
        if let Err(error) = disk.read_at(place, &mut bytes) {
            damage = Some(format!("it cannot be read: {error}"));
            continue;
        }
        if bytes == [0; HEADER_BYTES] {
            continue;
        }
        let (generation, start, length) = (u64_at(&bytes, 8), u64_at(&bytes, 16), u64_at(&bytes, 24));
        let is_inside = start >= AREAS_START && start.checked_add(length).is_some_and(|end| end <= disk.len());
        // Without room for the next one beside it, nothing could ever be written again.
        let fits = is_inside && room_beside(disk.len(), Some(&(start..start + length))) >= half(disk.len()) / 2;
        if &bytes[..8] == MAGIC && xxh3_64(&bytes[..32]) == u64_at(&bytes, 32) && fits && generation < GENERATION_MAX {
            areas.push(Area { range: start..start + length, generation, end: start, sequence: 0 });
        } else {
            damage = Some("a header is damaged, or does not fit the file".to_owned());
        }
    }
    areas.sort_by_key(|area| std::cmp::Reverse(area.generation));
    (areas, damage)
}

struct Replayed {
    area: Area,
    states: Vec<(StateId, Entries)>,
    /// Whether what made the area count is there.
    is_whole: bool,
    damage: Option<String>,
}

/// Reads the batches of an area up to the last whole one. Each record is read twice, first to see how far they go, so
/// that no more than one is in memory.
fn replay(disk: &impl Disk, first: &Area) -> Replayed {
    let (mut area, mut last) = (first.clone(), first.clone());
    let mut damage = loop {
        match area.read(disk) {
            Next::Record { is_last: true, .. } => last = area.clone(),
            Next::Record { is_last: false, .. } => {}
            Next::None if last.end == area.end && last.end > first.end => break None,
            Next::None | Next::Damaged => break Some("the last changes in it are cut off or damaged".to_owned()),
        }
    };
    let cost_max = usable(disk.len(), Some(&first.range)) * KV_RESTORED_TIMES_MAX;
    let (mut area, mut states) = (first.clone(), States { cost_max, ..States::default() });
    while area.end < last.end {
        let applied = match area.read(disk) {
            Next::Record { payload, .. } => states.apply(&payload).is_some(),
            Next::None | Next::Damaged => false,
        };
        if !applied {
            let over = "it holds more than there is memory for";
            let why = if states.cost > cost_max { over } else { "it has changes that mean nothing" };
            damage = Some(why.to_owned());
            break;
        }
    }
    let is_whole = last.end > first.end;
    let states = states.order.into_iter().filter_map(|id| states.entries.remove_entry(&id)).collect();
    Replayed { area: last, states, is_whole, damage }
}

#[derive(Default)]
struct States {
    entries: BTreeMap<StateId, Entries>,
    order: Vec<StateId>,
    /// What all of it takes in memory, about.
    cost: u64,
    cost_max: u64,
}

impl States {
    /// Makes the changes of one record. Nothing if they are none, or take too much.
    fn apply(&mut self, payload: &[u8]) -> Option<()> {
        let mut bytes = payload;
        let mut state = None;
        while let Some((kind, rest)) = bytes.split_first() {
            bytes = rest;
            match *kind {
                STATE => {
                    let (length, rest) = bytes.split_first()?;
                    let (name, rest) = rest.split_at_checked(usize::from(*length))?;
                    let (schema, rest) = rest.split_first_chunk::<4>()?;
                    let name: ModuleName = std::str::from_utf8(name).ok()?.parse().ok()?;
                    state = Some((name, u32::from_le_bytes(*schema)));
                    bytes = rest;
                }
                SET => {
                    let (key, rest) = take_length(bytes, KV_KEY_BYTES_MAX)?;
                    let (value, rest) = take_length(rest, KV_VALUE_BYTES_MAX)?;
                    let (key, rest) = rest.split_at_checked(key).filter(|(key, _)| !key.is_empty())?;
                    let (value, rest) = rest.split_at_checked(value)?;
                    let old = self.of(state.as_ref()?).insert(key.into(), value.into());
                    self.cost += cost(key, value);
                    self.cost -= old.map_or(0, |old| cost(key, &old));
                    bytes = rest;
                }
                DELETE => {
                    let (key, rest) = take_length(bytes, KV_KEY_BYTES_MAX)?;
                    let (key, rest) = rest.split_at_checked(key)?;
                    let old = self.entries.get_mut(state.as_ref()?).and_then(|entries| entries.remove(key));
                    self.cost -= old.map_or(0, |old| cost(key, &old));
                    bytes = rest;
                }
                FORGET => {
                    let id = state.as_ref()?;
                    if let Some(entries) = self.entries.remove(id) {
                        self.order.retain(|other| other != id);
                        self.cost -= state_cost(id) + cost_of(&entries);
                    }
                }
                _ => return None,
            }
            if self.cost > self.cost_max {
                return None;
            }
        }
        Some(())
    }

    fn of(&mut self, id: &StateId) -> &mut Entries {
        if !self.entries.contains_key(id) {
            self.order.push(id.clone());
            self.cost += state_cost(id);
        }
        self.entries.entry(id.clone()).or_default()
    }
}

/// Returns what an entry takes of what the user's modules may keep together.
pub fn cost(key: &[u8], value: &[u8]) -> u64 {
    (key.len() + value.len()) as u64 + KV_ENTRY_COST
}

/// Returns what entries take of what the user's modules may keep together.
pub fn cost_of(entries: &Entries) -> u64 {
    entries.iter().map(|(key, value)| cost(key, value)).sum()
}

/// Returns what a state without entries takes in memory, about: its name is there twice.
fn state_cost((name, _): &StateId) -> u64 {
    2 * cost(name.as_str().as_bytes(), &[])
}

/// Returns what state may take so that it can be written beside the area that counts.
fn usable(length: u64, active: Option<&Range<u64>>) -> u64 {
    half(length).min(room_beside(length, active)) / 4 * KV_USABLE_QUARTERS
}

fn room_beside(length: u64, active: Option<&Range<u64>>) -> u64 {
    let next = next_area(length, active);
    next.end - next.start
}

/// Returns the bytes of an area of a file whose length was always the same.
fn half(length: u64) -> u64 {
    (length - AREAS_START) / 2
}

/// Returns where the next area goes: into the half that does not touch the one that counts.
fn next_area(length: u64, active: Option<&Range<u64>>) -> Range<u64> {
    let middle = AREAS_START + half(length);
    let Some(active) = active else { return AREAS_START..middle };
    let low = AREAS_START..middle.min(active.start).max(AREAS_START);
    let high = middle.max(active.end).min(length)..length;
    if high.end - high.start > low.end - low.start { high } else { low }
}

fn put_state(record: &mut Vec<u8>, (name, schema): &StateId) {
    let name = name.as_str().as_bytes();
    record.push(STATE);
    record.push(u8::try_from(name.len()).expect("a name is short"));
    record.extend_from_slice(name);
    record.extend_from_slice(&schema.to_le_bytes());
}

fn length_of(bytes: &[u8]) -> [u8; 4] {
    u32::try_from(bytes.len()).expect("what is kept is short").to_le_bytes()
}

fn take_length(bytes: &[u8], max: usize) -> Option<(usize, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let length = u32::from_le_bytes(*length) as usize;
    (length <= max).then_some((length, rest))
}

fn record_sum(header: &[u8], payload: &[u8]) -> u64 {
    xxh3_64(payload) ^ xxh3_64(header).rotate_left(1)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([0, 1, 2, 3].map(|byte| bytes[at + byte]))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|byte| bytes[at + byte]))
}

#[cfg(test)]
mod tests;
