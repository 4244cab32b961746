// SPDX-License-Identifier: Apache-2.0
//! What modules use up, by the names that manifests and reports have for it.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something that a node grants only so much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Resource {
    /// Bits that the user's containers send, and receive, in a second.
    BitsPerSecond,
    /// Bytes of one HTTP request's body.
    BodyBytes,
    /// Bytes on disk of the cache that the user's modules of one flavour share.
    CacheBytes,
    /// Milliseconds that one batch, timer or start may take.
    CallMs,
    /// The module's connections at a time.
    Connections,
    /// The module's counters.
    Counters,
    /// Processor time of the user's container, in thousandths of one core.
    CpuPermille,
    /// Bytes in the writable directory of the user's container.
    DiskBytes,
    /// Bytes of the module's kv state.
    KvBytes,
    /// Entries of the module's kv state.
    KvEntries,
    /// The module's memory in bytes.
    MemoryBytes,
    /// Packets that the user's containers send, and receive, in a second.
    PacketsPerSecond,
    /// Milliseconds that one HTTP request may take.
    RequestMs,
    /// The module's HTTP requests at a time.
    Requests,
    /// The module's timers.
    Timers,
}

/// So much of each resource.
pub type Amounts = BTreeMap<Resource, u64>;

impl Resource {
    /// Returns the resource's name in manifests and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Resource::BitsPerSecond => "bits-per-second",
            Resource::BodyBytes => "body-bytes",
            Resource::CacheBytes => "cache-bytes",
            Resource::CallMs => "call-ms",
            Resource::Connections => "connections",
            Resource::Counters => "counters",
            Resource::CpuPermille => "cpu-permille",
            Resource::DiskBytes => "disk-bytes",
            Resource::KvBytes => "kv-bytes",
            Resource::KvEntries => "kv-entries",
            Resource::MemoryBytes => "memory-bytes",
            Resource::PacketsPerSecond => "packets-per-second",
            Resource::RequestMs => "request-ms",
            Resource::Requests => "requests",
            Resource::Timers => "timers",
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
