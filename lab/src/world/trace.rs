// SPDX-License-Identifier: Apache-2.0
//! What happened, as a hash, and as text on demand.

use netserv_model::Instant;

/// Sums a run up: two runs with the same hash went the same way.
#[derive(Debug)]
pub(super) struct Trace {
    hash: u64,
    events: u64,
    prints: bool,
}

impl Trace {
    pub(super) fn new() -> Trace {
        Trace { hash: 0xcbf2_9ce4_8422_2325, events: 0, prints: std::env::var_os("NETSERV_TRACE").is_some() }
    }

    /// Notes one event; `bytes` go into the hash only.
    pub(super) fn note(&mut self, now: Instant, what: &str, bytes: &[u8]) {
        self.events += 1;
        self.mix(&now.as_nanos().to_be_bytes());
        self.mix(what.as_bytes());
        self.mix(bytes);
        if self.prints {
            println!("{:>12.6} {what} ({} bytes)", now.since(Instant::default()).as_secs_f64(), bytes.len());
        }
    }

    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    pub(super) fn events(&self) -> u64 {
        self.events
    }

    /// FNV-1a, which is the same on every machine and in every version.
    fn mix(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
