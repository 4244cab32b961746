// SPDX-License-Identifier: Apache-2.0
//! Recorded packets in, expected packets out, without a node and without root; whatever runs the module.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use netserv_model::limits::BATCH_PACKETS_MAX;
use netserv_model::manifest::ModuleLimits;
use netserv_model::request::PacketCounts;
use netserv_model::{Instant, Now, Refusal, UnixTime};
use netserv_worker_base::shared::log::Line;
use serde::Serialize;

use crate::tools::pcap::Captured;

/// One test of a module.
#[derive(Clone, Debug, Default)]
pub struct Case {
    /// The packets that go in. Their times drive the module's clocks and timers.
    pub input: Vec<Captured>,
    /// The packets that must come out, in order.
    pub output: Vec<Captured>,
    /// What the module can read.
    pub properties: BTreeMap<String, String>,
    /// Counters that must have these values after the module stopped.
    pub counters: BTreeMap<String, u64>,
    /// What the module may use.
    pub limits: ModuleLimits,
}

/// What a test found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Whether everything was as expected.
    pub passed: bool,
    /// Why the module failed, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Refusal>,
    /// The first packet that is not as expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<Difference>,
    /// Counters that are not as expected: what was expected and what the module counted.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub wrong_counters: BTreeMap<String, (u64, Option<u64>)>,
    /// What became of the packets.
    pub packets: PacketCounts,
    /// All of the module's counters.
    pub counters: BTreeMap<String, u64>,
    /// What the module wrote to its log, each line behind its level.
    pub log: Vec<String>,
    /// The packets that came out.
    #[serde(skip)]
    pub output: Vec<Captured>,
}

/// The first packet that came out other than expected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Which packet of the output, from 1.
    pub packet: usize,
    /// The first byte that differs, if both packets are there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub byte: Option<usize>,
    /// The expected packet in hexadecimal; nothing if there should be none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// The packet that came out in hexadecimal; nothing if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actual: Option<String>,
}

/// A module under test. Times are those of the capture, and only ever grow.
pub trait Tested {
    /// Shows it a batch of packets, which all came in at `time`. What goes on, and what the module makes, comes out.
    fn process(&mut self, time: Duration, packets: Vec<Vec<u8>>, output: &mut Vec<Captured>);
    /// Returns when it wants to be called next.
    fn poll_timeout(&self) -> Option<Instant>;
    /// Runs what is due at `time`, each once.
    fn handle_timeout(&mut self, time: Duration, output: &mut Vec<Captured>);
    /// Stops it.
    fn finish(self, output: &mut Vec<Captured>) -> Finished;
}

/// What is left of a module after a test.
#[derive(Clone, Debug, Default)]
pub struct Finished {
    /// Why it failed, if it did.
    pub failure: Option<Refusal>,
    /// What became of its packets.
    pub packets: PacketCounts,
    /// All of its counters.
    pub counters: BTreeMap<String, u64>,
    /// What it wrote to its log.
    pub log: Vec<Line>,
}

/// Runs a test on the module that `start` starts, at the time of the first packet.
pub fn run<T: Tested>(case: &Case, start: impl FnOnce(Duration, &mut Vec<Captured>) -> Result<T, Refusal>) -> Report {
    let mut output = Vec::new();
    let first = case.input.first().map_or(Duration::ZERO, |first| first.time);
    let finished = match start(first, &mut output) {
        Ok(mut tested) => {
            show(&mut tested, &case.input, &mut output);
            tested.finish(&mut output)
        }
        Err(refusal) => Finished { failure: Some(refusal), ..Finished::default() },
    };
    Report::new(case, finished, output)
}

impl Report {
    /// Compares what a module did to what it should have done.
    pub fn new(case: &Case, finished: Finished, output: Vec<Captured>) -> Report {
        let Finished { failure, packets, counters, log } = finished;
        let wrong = |(name, expected): (&String, &u64)| {
            let actual = counters.get(name).copied();
            (actual != Some(*expected)).then(|| (name.clone(), (*expected, actual)))
        };
        let wrong_counters: BTreeMap<_, _> = case.counters.iter().filter_map(wrong).collect();
        let difference = difference(&case.output, &output);
        Report {
            passed: failure.is_none() && difference.is_none() && wrong_counters.is_empty(),
            failure,
            difference,
            wrong_counters,
            packets,
            counters,
            log: lines(&log),
            output,
        }
    }
}

fn show(tested: &mut impl Tested, input: &[Captured], output: &mut Vec<Captured>) {
    for same_time in input.chunk_by(|one, next| one.time == next.time) {
        for batch in same_time.chunks(BATCH_PACKETS_MAX) {
            let time = batch[0].time;
            // Every timer comes due at its own time.
            while let Some(due) = tested.poll_timeout().filter(|due| *due <= at(time).instant) {
                tested.handle_timeout(time.saturating_sub(at(time).instant.since(due)), output);
            }
            tested.process(time, batch.iter().map(|one| one.packet.clone()).collect(), output);
        }
    }
}

/// Returns both clocks at a capture's time.
pub fn at(time: Duration) -> Now {
    let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    Now { instant: Instant::from_nanos(nanos), wall: UnixTime(millis) }
}

fn lines(lines: &[Line]) -> Vec<String> {
    lines.iter().map(|line| format!("{}: {}", line.level.as_str(), line.text)).collect()
}

fn difference(expected: &[Captured], actual: &[Captured]) -> Option<Difference> {
    for index in 0..expected.len().max(actual.len()) {
        let (expected, actual) = (expected.get(index), actual.get(index));
        let (expected, actual) = (expected.map(|one| &*one.packet), actual.map(|one| &*one.packet));
        if expected != actual {
            let byte = expected.zip(actual).map(|(expected, actual)| {
                let same = expected.iter().zip(actual).take_while(|(one, other)| one == other);
                same.count()
            });
            return Some(Difference {
                packet: index + 1,
                byte,
                expected: expected.map(hexdump),
                actual: actual.map(hexdump),
            });
        }
    }
    None
}

/// Returns sixteen bytes a line, with their offset in front and their characters behind.
fn hexdump(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (line, bytes) in bytes.chunks(16).enumerate() {
        let _ = write!(text, "{:04x} ", line * 16);
        for byte in bytes {
            let _ = write!(text, " {byte:02x}");
        }
        let printable =
            bytes.iter().map(|byte| if byte.is_ascii_graphic() || *byte == b' ' { char::from(*byte) } else { '.' });
        let _ = writeln!(text, "{}  {}", "   ".repeat(16 - bytes.len()), printable.collect::<String>());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_shown() {
        let one = |bytes: &[u8]| Captured { time: Duration::ZERO, packet: bytes.to_vec() };
        assert_eq!(difference(&[one(b"abc")], &[one(b"abc")]), None);
        let found = difference(&[one(b"abc"), one(b"abcd")], &[one(b"abc"), one(b"abX\0")]).unwrap();
        assert_eq!((found.packet, found.byte), (2, Some(2)));
        assert_eq!(found.actual.unwrap(), format!("0000  61 62 58 00{}  abX.\n", "   ".repeat(12)));
        let missing = difference(&[one(b"abc")], &[]).unwrap();
        assert_eq!((missing.packet, missing.byte, missing.actual), (1, None, None));
        assert!(difference(&[], &[one(b"abc")]).unwrap().expected.is_none());
    }
}
