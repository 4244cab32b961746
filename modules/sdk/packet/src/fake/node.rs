// SPDX-License-Identifier: Apache-2.0
//! What a fake node knows, one per thread.

use std::cell::RefCell;
use std::collections::BTreeMap;

/// What the fake node was told, and what it tells.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// What the module can read.
    pub properties: BTreeMap<String, String>,
    /// What the module is told of its node: `id`, `place`, `addresses`, `fact.NAME`.
    pub info: BTreeMap<String, String>,
    /// Nanoseconds on both clocks.
    pub now_ns: u64,
    /// What the next random bytes are made of.
    pub seed: u64,
    /// Log lines with their level's number.
    pub log: Vec<(i32, String)>,
    /// Kv state.
    pub kv: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Timers: when they are due, and their period.
    pub timers: BTreeMap<u32, (u64, u64)>,
    /// Messages that the module sent to its server part.
    pub sent: Vec<Vec<u8>>,
    /// Topics and bodies that the module told its requester.
    pub notified: Vec<(String, Vec<u8>)>,
    /// Topics, messages and keys that the module published; an empty key is none.
    pub published: Vec<(String, Vec<u8>, Vec<u8>)>,
    /// Injected packets.
    pub injected: Vec<Vec<u8>>,
    /// Sets of patterns, and whether they ignore the case of ASCII letters; those that were closed have none.
    pub patterns: Vec<(Vec<Vec<u8>>, bool)>,
    pub(super) counters: Vec<(String, u64)>,
}

impl Node {
    /// Returns the value of a counter; 0 if there is none.
    pub fn counter(&self, name: &str) -> u64 {
        self.counters.iter().find(|(known, _)| known == name).map_or(0, |(_, value)| *value)
    }
}

/// Works on this thread's node.
pub fn with<T>(work: impl FnOnce(&mut Node) -> T) -> T {
    NODE.with_borrow_mut(work)
}

thread_local! {
    static NODE: RefCell<Node> = RefCell::default();
}
