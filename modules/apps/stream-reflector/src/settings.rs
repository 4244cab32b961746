// SPDX-License-Identifier: Apache-2.0
//! What the module's user chose.

use std::net::SocketAddr;

use crate::limits::STREAMS_MAX;

/// What the module's user chose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Servers whose connections are taken over at once.
    pub servers: Vec<SocketAddr>,
    /// Whether servers are learned.
    pub learn: bool,
    /// The server of connections to the module's own port.
    pub origin: Option<SocketAddr>,
    /// Streams at a time.
    pub streams: usize,
    /// What a listener gets at once, in microseconds of sound.
    pub burst_us: u64,
    /// How far behind the source a listener begins, in microseconds of sound.
    pub bridge_us: u64,
    /// How long a listener may take nothing.
    pub slow_ms: u64,
    /// How long a source may be away.
    pub outage_ms: u64,
}

impl Settings {
    /// Reads them; what is not there, or is nothing that can be, is as in the manifest.
    pub fn read(property: impl Fn(&str) -> Option<String>) -> Settings {
        let number = |name: &str, usual: u64| -> u64 {
            let given = property(name).and_then(|text| text.trim().parse().ok());
            given.unwrap_or(usual).min(MS_MAX)
        };
        let servers = property("servers").unwrap_or_default();
        Settings {
            servers: servers.split_whitespace().filter_map(|text| text.parse().ok()).collect(),
            learn: property("learn").is_none_or(|text| text.trim() != "off"),
            origin: property("origin").and_then(|text| text.trim().parse().ok()),
            streams: usize::try_from(number("streams", 4)).unwrap_or(STREAMS_MAX).min(STREAMS_MAX),
            burst_us: number("burst-ms", 4000) * 1000,
            bridge_us: number("bridge-ms", 10_000) * 1000,
            slow_ms: number("slow-ms", 10_000),
            outage_ms: number("outage-ms", 60_000),
        }
    }
}

const MS_MAX: u64 = 3_600_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_nothing_that_can_be_is_as_usual() {
        let usual = Settings::read(|_| None);
        assert_eq!((usual.burst_us, usual.learn, usual.origin), (4_000_000, true, None));
        let odd = Settings::read(|name| {
            Some(if name == "servers" { "a 192.0.2.7:80 [2001:db8::7]:8000" } else { "-1" }.to_owned())
        });
        assert_eq!((odd.servers.len(), odd.slow_ms), (2, 10_000));
        let all = Settings::read(|_| Some("18446744073709551615".to_owned()));
        assert_eq!((all.outage_ms, all.streams), (MS_MAX, STREAMS_MAX));
        assert!(!Settings::read(|_| Some("off".to_owned())).learn);
    }
}
