// SPDX-License-Identifier: Apache-2.0
//! The packet part: media on its way.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use netserv_sdk::ip::parse_udp;
use netserv_sdk::{
    Counter, Packet, PacketModule, StartError, Verdict, kv, log, messages, netserv_module, property, timer,
};

use crate::calls::call::{Call, KEY};
use crate::limits::HOPS_MAX;
use crate::port::{Port, Reason, Saved, VERSION, VERSION_SOURCE};
use crate::rewrite;
use crate::settings::Settings;
use crate::table::{COUNTED_MAX, Counts, Entry, News, Order};

/// The module.
pub struct MediaRelay {
    range: RangeInclusive<u16>,
    per_second: u32,
    /// One place for each port of the range.
    ports: Vec<Option<Box<Port>>>,
    /// What was counted since the counters were set last.
    counted: Counted,
    counters: [Counter; NAMES.len() + Reason::ALL.len()],
    /// Ports to which something came since the server part was told.
    news: Vec<u16>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    packets: u64,
    octets: u64,
    dropped: [u64; Reason::ALL.len()],
}

impl PacketModule for MediaRelay {
    fn start() -> Result<MediaRelay, StartError> {
        let settings = Settings::read(property::text).map_err(StartError)?;
        let mut counters = Vec::new();
        for name in NAMES.into_iter().chain(Reason::ALL.map(Reason::name)) {
            counters.push(Counter::open(name)?);
        }
        timer::every(COUNTERS, COUNTERS_EACH)?;
        timer::every(NEWS, NEWS_EACH)?;
        let mut relay = MediaRelay {
            ports: vec![None; settings.ports.len()],
            range: settings.ports,
            per_second: settings.packets_per_second,
            counted: Counted::default(),
            counters: counters.try_into().map_err(|_| "a counter for each name")?,
            news: Vec::new(),
        };
        relay.load();
        // If the server part is away, it begins with all calls itself.
        let _ = messages::send(&News::Begins.emit());
        Ok(relay)
    }

    fn process(&mut self, packet: &mut Packet<'_>) -> Verdict {
        let Some(udp) = parse_udp(packet.bytes()) else { return Verdict::Pass };
        if !self.range.contains(&udp.destination.port()) {
            return Verdict::Pass;
        }
        let now_us = u64::try_from(packet.time().as_micros()).unwrap_or(u64::MAX);
        let payload = &packet.bytes()[udp.payload.clone()];
        let way = self.way((udp.source, udp.destination), payload, now_us);
        match way {
            Ok((from, to)) if rewrite::redirect(packet, &udp, from, to) => {
                self.counted.packets += 1;
                self.counted.octets += udp.payload.len() as u64;
                Verdict::Modified
            }
            Ok(_) => self.drop(Reason::Way),
            Err(reason) => self.drop(reason),
        }
    }

    fn timer(&mut self, id: u32) {
        if id == NEWS {
            self.tell();
        }
        self.show();
    }

    fn message(&mut self, message: &[u8]) {
        match Order::parse(message) {
            Some(Order::Set(entries)) => entries.into_iter().for_each(|entry| self.set(entry)),
            Some(Order::Free(ports)) => {
                for port in ports {
                    self.place(port).into_iter().for_each(|place| *place = None);
                }
            }
            Some(Order::Confirm(number)) => {
                // An answer that waits for it goes without, a while later.
                let _ = messages::send(&News::Confirmed(number).emit());
            }
            None => log::warn("a message of the server part was not understood"),
        }
    }

    fn export_state(&mut self) -> Result<Vec<u8>, StartError> {
        let mut bytes = vec![VERSION];
        self.ports.iter().flatten().for_each(|port| port.save(&mut bytes));
        Ok(bytes)
    }

    fn import_state(&mut self, state: &[u8]) -> Result<(), StartError> {
        let Some((version @ &(VERSION | VERSION_SOURCE), mut rest)) = state.split_first() else {
            return Err("the state is of another version".into());
        };
        self.load();
        while !rest.is_empty() {
            let saved = Saved::take(&mut rest, *version).ok_or("the state is damaged")?;
            if let Some(Some(port)) = self.place(saved.port) {
                port.restore(saved);
            }
        }
        Ok(())
    }

    fn stop(&mut self) {
        self.tell();
        self.show();
    }
}

netserv_module!(MediaRelay, state);

impl MediaRelay {
    /// Returns between whom a packet goes on: through several ports if one party of a call is another call of this node.
    fn way(
        &mut self,
        (mut source, mut destination): (SocketAddr, SocketAddr),
        payload: &[u8],
        now_us: u64,
    ) -> Result<(SocketAddr, SocketAddr), Reason> {
        for _ in 0..HOPS_MAX {
            let per_second = self.per_second;
            let port = self.at(destination).ok_or(Reason::NoCall)?;
            let judged = port.judge(source, payload, now_us, per_second);
            let (number, out) = (port.entry.port, port.entry.out);
            let next = judged.and_then(|()| {
                let out = self.place(out).and_then(|place| place.as_ref()).ok_or(Reason::NoCall)?;
                Ok((out.local(), out.target().ok_or(Reason::NoPeer)?))
            });
            self.count(number, payload.len(), next.is_ok());
            (source, destination) = next?;
            if self.at(destination).is_none() {
                return Ok((source, destination));
            }
        }
        Err(Reason::Way)
    }

    fn count(&mut self, number: u16, octets: usize, goes_on: bool) {
        let Some(Some(port)) = self.place(number) else { return };
        // Of each port once, until the server part is told.
        let is_first = !std::mem::replace(&mut port.is_news, true);
        if goes_on {
            port.count(octets);
        } else {
            port.counts.dropped += 1;
        }
        if is_first {
            self.news.push(number);
        }
    }

    /// Returns the port that is at an address.
    fn at(&mut self, end: SocketAddr) -> Option<&mut Port> {
        let port = self.place(end.port())?.as_deref_mut()?;
        (port.entry.local == end.ip()).then_some(port)
    }

    fn place(&mut self, port: u16) -> Option<&mut Option<Box<Port>>> {
        let place = port.checked_sub(*self.range.start())?;
        self.ports.get_mut(usize::from(place))
    }

    fn set(&mut self, entry: Entry) {
        match self.place(entry.port) {
            Some(Some(port)) => port.set(entry),
            Some(place) => *place = Some(Box::new(Port::new(entry))),
            None => {}
        }
    }

    /// Takes the calls that kv has.
    fn load(&mut self) {
        for key in kv::keys().filter(|key| key.starts_with(KEY)) {
            let entries = kv::value(&key).and_then(|saved| Call::saved_entries(&saved));
            entries.into_iter().flatten().for_each(|entry| self.set(entry));
        }
    }

    /// Tells the server part what came.
    fn tell(&mut self) {
        while !self.news.is_empty() {
            let some: Vec<u16> = self.news.iter().copied().take(COUNTED_MAX).collect();
            let counted: Vec<(u16, Counts)> =
                some.iter().filter_map(|port| Some((*port, self.place(*port)?.as_ref()?.counts))).collect();
            if messages::send(&News::Counted(counted).emit()).is_err() {
                // It has too much to read: the next time.
                return;
            }
            for port in some {
                if let Some(Some(port)) = self.place(port) {
                    port.is_news = false;
                }
            }
            self.news.drain(..self.news.len().min(COUNTED_MAX));
        }
    }

    fn show(&mut self) {
        let Counted { packets, octets, dropped } = std::mem::take(&mut self.counted);
        for (counter, amount) in self.counters.iter().zip([packets, octets].into_iter().chain(dropped)) {
            if amount > 0 {
                counter.add(amount);
            }
        }
    }

    fn drop(&mut self, reason: Reason) -> Verdict {
        self.counted.dropped[reason as usize] += 1;
        Verdict::Drop
    }
}

const NAMES: [&str; 2] = ["packets", "octets"];
const COUNTERS: u32 = 0;
const COUNTERS_EACH: Duration = Duration::from_millis(200);
const NEWS: u32 = 1;
const NEWS_EACH: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
