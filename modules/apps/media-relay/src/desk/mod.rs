// SPDX-License-Identifier: Apache-2.0
//! The server part without sockets: datagrams and what the packet part says come in, datagrams, entries of kv and what the packet part is
//! told go out.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use crate::calls::call::{key, number_of};
use crate::calls::{Change, Draw, Now, Relay};
use crate::limits::{APPLIED_MS, WAITING_MAX};
use crate::ng::{self, Answers, Message};
use crate::settings::Settings;
use crate::table::{ENTRIES_MAX, News, Order};

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A datagram is to be sent.
    Reply(Reply),
    /// The packet part is to be told.
    Tell(Vec<u8>),
    /// An entry of kv is to be so, or to be forgotten.
    Keep(Vec<u8>, Option<Vec<u8>>),
}

/// A datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The number of the socket by which the request came.
    pub socket: usize,
    /// The client.
    pub to: SocketAddr,
    /// The answer.
    pub bytes: Vec<u8>,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Calls at the moment.
    pub calls: u64,
    /// Requests that were carried out.
    pub requests: u64,
    /// Of them those that failed.
    pub failed: u64,
    /// Of them those that were carried out with a warning.
    pub warned: u64,
    /// Requests of those who may not ask.
    pub refused: u64,
    /// Datagrams that are none of the protocol.
    pub damaged: u64,
    /// Calls that ended since nobody was heard.
    pub expired: u64,
}

/// Takes requests, and has their answers wait for the packet part.
#[derive(Debug)]
pub struct Desk {
    control: Vec<IpAddr>,
    relay: Relay,
    answers: Answers,
    outputs: VecDeque<Output>,
    /// Answers that wait until the packet part has confirmed a number, or for some milliseconds.
    waiting: VecDeque<(u32, u64, Reply)>,
    confirm: u32,
    counted: Counted,
}

impl Desk {
    /// Builds one without calls, which names these addresses.
    pub fn new(settings: Settings, addresses: Vec<IpAddr>, draw: Draw) -> Desk {
        Desk {
            control: settings.control.clone(),
            relay: Relay::new(settings, addresses, draw),
            answers: Answers::default(),
            outputs: VecDeque::new(),
            waiting: VecDeque::new(),
            confirm: 0,
            counted: Counted::default(),
        }
    }

    /// Takes an entry that kv has. To be called for all of them before anything else, then [`Desk::begin`].
    pub fn restore(&mut self, entry: &[u8], value: &[u8], now: Now) {
        if let Some(number) = number_of(entry) {
            self.relay.restore(number, value, now);
        }
    }

    /// Has the packet part told of all calls.
    pub fn begin(&mut self) {
        self.relay.tell_all();
        self.take_changes();
    }

    /// Takes a datagram.
    pub fn handle_datagram(&mut self, socket: usize, from: SocketAddr, datagram: &[u8], now: Now) {
        let source = from.ip().to_canonical();
        if !self.control.contains(&source) {
            self.counted.refused += 1;
            return;
        }
        let Some(message) = Message::parse(datagram) else {
            self.counted.damaged += 1;
            return;
        };
        if let Some(answer) = self.answers.find(from, message.cookie, now.ms) {
            let reply = Reply { socket, to: from, bytes: answer.to_vec() };
            return self.outputs.push_back(Output::Reply(reply));
        }
        let value = match &message.dict {
            Ok(dict) => self.relay.handle(source, dict, now),
            Err(reason) => ng::error(reason),
        };
        self.counted.requests += 1;
        let has = |key: &str| value.as_dict().is_some_and(|dict| dict.contains_key(key.as_bytes()));
        self.counted.failed += u64::from(has("error-reason"));
        self.counted.warned += u64::from(has("warning"));
        let mut bytes = message.answer(&value);
        if bytes.len() > DATAGRAM_BYTES_MAX {
            bytes = message.answer(&ng::error("The answer is too long"));
        }
        self.answers.keep(from, message.cookie, &bytes, now.ms);
        let reply = Reply { socket, to: from, bytes };
        if !self.take_changes() {
            return self.outputs.push_back(Output::Reply(reply));
        }
        self.confirm = self.confirm.wrapping_add(1);
        self.outputs.push_back(Output::Tell(Order::Confirm(self.confirm).emit()));
        if self.waiting.len() >= WAITING_MAX {
            self.release_first();
        }
        self.waiting.push_back((self.confirm, now.ms + APPLIED_MS, reply));
    }

    /// Takes what the packet part says.
    pub fn handle_news(&mut self, news: &[u8], now: Now) {
        match News::parse(news) {
            Some(News::Begins) => self.begin(),
            Some(News::Confirmed(number)) => {
                // They are confirmed in order; numbers go round.
                while self.waiting.front().is_some_and(|(waits, ..)| number.wrapping_sub(*waits) < u32::MAX / 2) {
                    self.release_first();
                }
            }
            Some(News::Counted(counted)) => {
                counted.into_iter().for_each(|(port, counts)| self.relay.counted(port, counts, now));
            }
            None => {}
        }
    }

    /// Does what is due. An early call does nothing.
    pub fn handle_timeout(&mut self, now: Now) {
        while self.waiting.front().is_some_and(|(_, until, _)| *until <= now.ms) {
            self.release_first();
        }
        self.relay.expire(now);
        self.take_changes();
    }

    /// Returns the next thing that is to be done. To be called until there is none after each of the calls above.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Returns when [`Desk::handle_timeout`] is to be called at the latest, of the milliseconds of [`Now`].
    pub fn poll_timeout(&self, now: Now) -> u64 {
        let expiry = now.ms + EXPIRY_EACH_MS;
        self.waiting.front().map_or(expiry, |(_, until, _)| expiry.min(*until))
    }

    /// Returns what was counted so far.
    pub fn counted(&self) -> Counted {
        Counted { calls: self.relay.len() as u64, expired: self.relay.totals().expired, ..self.counted }
    }

    /// Passes on what became of calls. Returns whether the packet part has something to take before it is true.
    fn take_changes(&mut self) -> bool {
        let mut is_to_be_confirmed = false;
        while let Some(change) = self.relay.poll_change() {
            match change {
                Change::Put { number, saved, entries } => {
                    self.outputs.push_back(Output::Keep(key(number), Some(saved)));
                    for some in entries.chunks(ENTRIES_MAX) {
                        self.outputs.push_back(Output::Tell(Order::Set(some.to_vec()).emit()));
                    }
                    is_to_be_confirmed = true;
                }
                Change::Gone { number, ports } => {
                    self.outputs.push_back(Output::Keep(key(number), None));
                    self.outputs.push_back(Output::Tell(Order::Free(ports).emit()));
                }
                Change::Free(ports) => self.outputs.push_back(Output::Tell(Order::Free(ports).emit())),
            }
        }
        is_to_be_confirmed
    }

    fn release_first(&mut self) {
        self.outputs.extend(self.waiting.pop_front().map(|(_, _, reply)| Output::Reply(reply)));
    }
}

/// How often calls are looked at.
const EXPIRY_EACH_MS: u64 = 1000;
/// The longest payload of UDP over IPv4.
const DATAGRAM_BYTES_MAX: usize = 65_507;

#[cfg(test)]
mod tests;
