// SPDX-License-Identifier: Apache-2.0
//! The packet part.

use std::collections::BTreeMap;
use std::time::Duration;

use netserv_sdk::{
    Counter, Packet, PacketModule, StartError, Verdict, control, ip, kv, messages, netserv_module, node, property,
    timer,
};

use crate::kept::{Key, Sum, TOTALS, Totals};

/// The module.
pub struct NetMonitor {
    sample: u64,
    /// Packets until the next one that is looked at; more than there will be if none is to be.
    until_sample: u64,
    packets: Counter,
    not_kept: Counter,
    /// What was counted since the last flush. Between flushes the kv state belongs to nobody, so that two versions of
    /// the module can count at the same time.
    counts: BTreeMap<Key, Sum>,
    /// The key of the last packets, how many they were, and their bytes.
    last: Option<(Key, u64, u64)>,
    /// Packets of all kinds since the last flush.
    seen: u64,
    not_ip: u64,
    totals: Totals,
}

impl PacketModule for NetMonitor {
    fn start() -> Result<NetMonitor, StartError> {
        let sample = property::parse_or("sample", 1)?;
        if sample == 0 {
            return Err("property `sample` is 0; write one packet in how many is looked at".into());
        }
        let (packets, not_kept) = (Counter::open("packets")?, Counter::open("not-kept")?);
        show_kept_counts();
        timer::every(FLUSH_TIMER, FLUSH_PERIOD)?;
        let (counts, totals) = (BTreeMap::new(), Totals::default());
        Ok(NetMonitor {
            sample,
            until_sample: sample,
            packets,
            not_kept,
            counts,
            last: None,
            seen: 0,
            not_ip: 0,
            totals,
        })
    }

    fn process(&mut self, packet: &mut Packet<'_>) -> Verdict {
        self.seen += 1;
        self.until_sample -= 1;
        if self.until_sample == 0 {
            self.until_sample = self.sample;
            match ip::parse(packet.bytes()) {
                // The payload ends where the packet does: what the link put behind it is none of it.
                Some(ip) => self.count((ip.source, ip.destination, ip.ttl), ip.payload.end),
                None => self.not_ip += 1,
            }
        }
        Verdict::Pass
    }

    fn control(&mut self, message: &control::Message<'_>) {
        let number = std::str::from_utf8(message.body).ok().and_then(|text| text.trim().parse().ok());
        let answer = match (message.topic, number) {
            ("sample", Some(sample)) => {
                self.look_at_one_in(sample);
                format!("sample is {sample}")
            }
            ("where", _) => {
                let uplink = node::fact("uplink").unwrap_or_default();
                format!("{} in {}, uplink {uplink}", node::id(), node::place())
            }
            ("sample", None) => "sample is a number".to_owned(),
            _ => format!("nothing is known of {}", message.topic),
        };
        // Its user may tell it more than it may answer.
        let _ = control::notify(message.topic, answer.as_bytes());
    }

    /// The counts are in kv; how much is looked at is said by whoever told it.
    fn export_state(&mut self) -> Result<Vec<u8>, StartError> {
        self.flush();
        Ok(self.sample.to_be_bytes().to_vec())
    }

    fn import_state(&mut self, state: &[u8]) -> Result<(), StartError> {
        let sample = <[u8; 8]>::try_from(state).map_err(|_| "the state is no number of eight bytes")?;
        self.look_at_one_in(u64::from_be_bytes(sample));
        show_kept_counts();
        Ok(())
    }

    fn timer(&mut self, _: u32) {
        self.flush();
        // A package may have no server part, or one that is busy.
        let _ = messages::send(FLUSHED);
    }

    fn stop(&mut self) {
        self.flush();
    }
}

netserv_module!(NetMonitor, control, state);

impl NetMonitor {
    fn look_at_one_in(&mut self, sample: u64) {
        self.put_last_away();
        self.sample = sample;
        self.until_sample = if sample > 0 { sample } else { u64::MAX };
    }

    /// Packets come in runs, so the last key is at hand.
    fn count(&mut self, key: Key, bytes: usize) {
        let bytes = bytes as u64;
        match &mut self.last {
            Some((last, packets, sum)) if *last == key => {
                *packets += 1;
                *sum += bytes;
            }
            Some(_) | None => {
                self.put_last_away();
                self.last = Some((key, 1, bytes));
            }
        }
    }

    fn put_last_away(&mut self) {
        let Some((key, packets, bytes)) = self.last.take() else { return };
        if self.counts.len() >= KEYS_MAX && !self.counts.contains_key(&key) {
            self.flush_counts();
        }
        let estimate = packets.wrapping_mul(self.sample);
        self.counts.entry(key).or_default().add(Sum { estimate, packets, bytes });
    }

    fn flush(&mut self) {
        let (seen, not_ip) = (std::mem::take(&mut self.seen), std::mem::take(&mut self.not_ip));
        self.packets.add(seen);
        self.totals.seen += seen;
        self.totals.not_ip += not_ip;
        self.put_last_away();
        // Before the counts, too, so that these leave it its room.
        self.flush_totals();
        self.flush_counts();
        self.flush_totals();
    }

    fn flush_counts(&mut self) {
        for ((source, destination, ttl), since) in std::mem::take(&mut self.counts) {
            let name = format!("{source} {destination} {ttl}");
            let mut sum = kept_sum(name.as_bytes()).unwrap_or_default();
            sum.add(since);
            if kv::set(name.as_bytes(), sum.to_string().as_bytes()).is_err() {
                self.not_kept.add(since.estimate);
                self.totals.no_room += since.packets;
                self.totals.no_room_bytes += since.bytes;
                continue;
            }
            self.totals.counted += since.packets;
            self.totals.bytes += since.bytes;
            show(&name, sum.estimate);
        }
    }

    fn flush_totals(&mut self) {
        if self.totals == Totals::default() {
            return;
        }
        let mut totals = kv::value(TOTALS).and_then(|value| Totals::parse(&value)).unwrap_or_default();
        totals.add(Totals { sample: self.sample, ..self.totals });
        if kv::set(TOTALS, &totals.to_bytes()).is_ok() {
            self.totals = Totals::default();
        }
    }
}

fn show_kept_counts() {
    for name in kv::keys() {
        if let (Ok(text), Some(sum)) = (std::str::from_utf8(&name), kept_sum(&name)) {
            show(text, sum.estimate);
        }
    }
}

fn kept_sum(name: &[u8]) -> Option<Sum> {
    Sum::parse(&kv::value(name)?)
}

/// Shows a count as a counter. What has no counter any more, or too long a name for one, is in the kv state.
fn show(name: &str, count: u64) {
    if let Ok(counter) = Counter::open(name) {
        counter.set(count);
    }
}

const FLUSH_TIMER: u32 = 1;
const FLUSH_PERIOD: Duration = Duration::from_secs(1);
/// Keys that are counted between two flushes.
const KEYS_MAX: usize = 4096;
/// What the server part is told after each flush.
const FLUSHED: &[u8] = b"flushed";

#[cfg(test)]
mod tests;
