// SPDX-License-Identifier: Apache-2.0
//! What modules use up, by the names that manifests and reports have for it.

use std::collections::BTreeMap;

words! {
    serde
    /// Something that a node grants only so much of.
    pub enum Resource {
        /// Bits that the user's containers send, and receive, in a second.
        BitsPerSecond = "bits-per-second",
        /// Bytes of one HTTP request's body.
        BodyBytes = "body-bytes",
        /// Bytes on disk of the cache that the user's modules of one flavour share.
        CacheBytes = "cache-bytes",
        /// Milliseconds that one batch, timer or start may take.
        CallMs = "call-ms",
        /// The module's connections at a time.
        Connections = "connections",
        /// The module's counters.
        Counters = "counters",
        /// Processor time of the user's container, in thousandths of one core.
        CpuPermille = "cpu-permille",
        /// Bytes in the writable directory of the user's container.
        DiskBytes = "disk-bytes",
        /// Bytes of the module's kv state.
        KvBytes = "kv-bytes",
        /// Entries of the module's kv state.
        KvEntries = "kv-entries",
        /// The module's memory in bytes.
        MemoryBytes = "memory-bytes",
        /// Packets that the user's containers send, and receive, in a second.
        PacketsPerSecond = "packets-per-second",
        /// Milliseconds that one HTTP request may take.
        RequestMs = "request-ms",
        /// The module's HTTP requests at a time.
        Requests = "requests",
        /// The module's timers.
        Timers = "timers",
    }
}

/// So much of each resource.
pub type Amounts = BTreeMap<Resource, u64>;
