// SPDX-License-Identifier: Apache-2.0
//! The server part: SIP over TCP, on connections that phones open to the server.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Instant;

use netserv_sdk::text::Writer;
use netserv_server_sdk::tcp::{self, Action, Connection, Decision as Taken, Flow, Side, TcpModule};
use netserv_server_sdk::wasi::random::random::get_random_bytes;
use netserv_server_sdk::{control, counters, messages, properties, tcp_module};
use netserv_sip::{Rport, Transport};

use crate::edge::{Decision, Edge, Kind, OVERLOAD, SERVER, Settings, rport_said};
use crate::emergency::{Emergency, NAMESPACES, USERS};
use crate::framing::Piece;
use crate::limits::{ANSWERS_BYTES_MAX, CONNECTIONS_MAX, HEAD_BYTES_MAX, HELD_BYTES_MAX};
use crate::phone::Phone;

/// The module.
struct Stream {
    edge: Edge,
    phones: HashMap<Connection, Phone>,
    /// Bytes that are held of all of them.
    held: usize,
    begun: Instant,
    /// The numbers of the user's last messages of each topic; those of before this began say nothing of now.
    told: [(&'static str, u64); 2],
}

impl Default for Stream {
    fn default() -> Stream {
        let secret = get_random_bytes(32).try_into().unwrap_or([0; 32]);
        let watched = [tcp::watch(messages::subscribe(), DEMAND), tcp::set_timer(0, DEMAND_EACH_MS, DEMAND_EACH_MS)];
        if let Some(Err(error)) = watched.into_iter().find(Result::is_err) {
            eprintln!("the other part is not heard: {error:?}");
        }
        Stream {
            edge: Edge::new(settings(), secret).with_emergency(emergency()),
            phones: HashMap::new(),
            held: 0,
            begun: Instant::now(),
            told: [OVERLOAD, SERVER].map(|topic| (topic, control::last(topic).map_or(0, |message| message.seq))),
        }
    }
}

impl TcpModule for Stream {
    fn connect(&mut self, id: Connection, flow: &Flow) -> Taken {
        let now_ms = self.now_ms();
        match client(flow) {
            Some(at) if self.phones.len() < CONNECTIONS_MAX => {
                self.phones.insert(id, Phone::new(at, now_ms));
                Taken::Accept
            }
            _ => Taken::Splice,
        }
    }

    fn data(&mut self, id: Connection, source: Side, bytes: &[u8]) -> Action {
        let now_ms = self.now_ms();
        let Some(phone) = self.phones.get_mut(&id) else { return Action::Pass };
        let held = self.held - phone.held();
        let has_room = held + phone.held() <= HELD_BYTES_MAX;
        let action = match source {
            Side::Client => {
                let mut on = Vec::with_capacity(bytes.len());
                let is_silent = phone.is_silent(self.edge.settings().server_silence_s, now_ms);
                let mut client = Client {
                    edge: &mut self.edge,
                    at: phone.at,
                    rport: phone.rport,
                    now_ms,
                    is_silent,
                    on: &mut on,
                    answers: &mut phone.answers,
                };
                let may_answer = !phone.to_client.is_lost();
                phone.to_server.push(bytes, |piece| client.take(piece, may_answer));
                if !has_room {
                    on.extend_from_slice(&phone.to_server.give_up());
                }
                if !on.is_empty() {
                    phone.heard(now_ms);
                }
                if phone.to_client.is_between() && !phone.answers.is_empty() {
                    // A client that reads nothing gets no answers.
                    let _ = tcp::send(id, Side::Client, &phone.answers);
                    phone.answers.clear();
                }
                if on == bytes { Action::Pass } else { Action::Replace(on) }
            }
            Side::Server => {
                let (edge, at, rport) = (&mut self.edge, phone.at, &mut phone.rport);
                phone.to_client.push(bytes, |piece| {
                    if let Piece::Head(head) = piece {
                        *rport = rport_said(head).unwrap_or(*rport);
                        edge.response(head, at, now_ms);
                    }
                    true
                });
                while let Some(ended) = edge.ended() {
                    let _ = messages::send(&ended);
                }
                if !has_room {
                    // Its bytes go on as they come.
                    phone.to_client.give_up();
                }
                if phone.answers.is_empty() {
                    Action::Pass
                } else if phone.to_client.is_lost() {
                    // Nobody would answer what is answered already.
                    Action::Close
                } else if phone.to_client.is_between() {
                    Action::Replace([bytes, &std::mem::take(&mut phone.answers)].concat())
                } else {
                    Action::Pass
                }
            }
        };
        self.held = held + phone.held();
        action
    }

    fn end(&mut self, id: Connection, source: Side) {
        let Some(phone) = self.phones.get_mut(&id) else { return };
        self.held -= phone.held();
        let (to, rest) = match source {
            Side::Client => (Side::Server, phone.to_server.give_up()),
            Side::Server => (Side::Client, std::mem::take(&mut phone.answers)),
        };
        if !rest.is_empty() {
            let _ = tcp::send(id, to, &rest);
        }
        self.held += phone.held();
    }

    fn export(&mut self, id: Connection) -> Option<Vec<u8>> {
        let phone = self.phones.get(&id)?;
        phone.to_bytes(self.now_ms())
    }

    fn import(&mut self, id: Connection, flow: Option<&Flow>, state: &[u8]) -> bool {
        let at = flow.and_then(client);
        let Some(phone) = at.and_then(|at| Phone::from_bytes(at, state, self.now_ms())) else { return false };
        self.held += phone.held();
        self.phones.insert(id, phone);
        true
    }

    fn closed(&mut self, id: Connection) {
        if let Some(phone) = self.phones.remove(&id) {
            self.held -= phone.held();
        }
    }

    fn timer(&mut self, _: u32) {
        let now_ms = self.now_ms();
        // Not by the inbox, which would be full before the first connection, with which this begins.
        for (topic, told_seq) in &mut self.told {
            let Some(message) = control::last(topic).filter(|message| message.seq > *told_seq) else { continue };
            *told_seq = message.seq;
            if !self.edge.told(topic, &message.body, now_ms) {
                eprintln!("a message of topic {topic} was not understood");
            }
        }
        if let Some(news) = self.edge.control.news(now_ms) {
            // A part that is away learns it the next time.
            let _ = messages::send(&news);
        }
    }

    fn ready(&mut self, token: u32) {
        let now_ms = self.now_ms();
        if token == DEMAND {
            while let Some(message) = messages::receive() {
                self.edge.other_says(&message, now_ms);
            }
            let _ = tcp::watch(messages::subscribe(), DEMAND);
        }
    }
}

impl Stream {
    fn now_ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// What comes from a client, and where it goes.
struct Client<'a> {
    edge: &'a mut Edge,
    at: SocketAddr,
    rport: Rport,
    now_ms: u64,
    /// Whether the server had heard nothing for long before this.
    is_silent: bool,
    /// To the server.
    on: &'a mut Vec<u8>,
    /// Back to the client.
    answers: &'a mut Vec<u8>,
}

impl Client<'_> {
    /// Takes a piece, and returns whether the body behind it goes on.
    fn take(&mut self, piece: Piece<'_>, may_answer: bool) -> bool {
        match piece {
            Piece::Ping if self.edge.settings().crlf && self.may(may_answer) && !self.is_to_hear() => {
                self.answers.extend_from_slice(b"\r\n");
                count(Kind::Crlf);
            }
            Piece::Ping => self.on.extend_from_slice(b"\r\n\r\n"),
            Piece::Pong => self.on.extend_from_slice(b"\r\n"),
            Piece::Body(_, false) => {}
            Piece::Body(bytes, true) | Piece::Other(bytes) => self.on.extend_from_slice(bytes),
            Piece::Head(head) => return self.message(head, may_answer),
        }
        true
    }

    fn message(&mut self, head: &[u8], may_answer: bool) -> bool {
        let mut room = [0; HEAD_BYTES_MAX];
        let mut response = Writer::new(&mut room);
        let from = (self.at, Transport::Tcp(self.rport));
        let decision = match (self.may(may_answer), self.is_to_hear()) {
            (true, false) => self.edge.request(head, from, self.now_ms, &mut response),
            (true, true) => self.edge.request_to_be_heard(head, from, self.now_ms, &mut response),
            (false, _) => Decision::Pass,
        };
        match (decision, response.finish()) {
            (Decision::Answer(kind, _), Some(response)) => {
                count(kind);
                self.answers.extend_from_slice(response);
                false
            }
            (Decision::Drop(kind) | Decision::Answer(kind @ Kind::Rejected, _), _) => {
                count(kind);
                false
            }
            (Decision::Answer(..) | Decision::Pass, _) => {
                let asking = self.edge.asking(head, from, self.now_ms);
                self.on.extend_from_slice(asking.as_deref().unwrap_or(head));
                true
            }
        }
    }

    /// Returns whether the next keep-alive is the server's.
    fn is_to_hear(&self) -> bool {
        self.is_silent && self.on.is_empty()
    }

    /// Returns whether an answer can be given; else the server gives it.
    fn may(&self, may_answer: bool) -> bool {
        may_answer && self.answers.len() < ANSWERS_BYTES_MAX
    }
}

fn count(kind: Kind) {
    // A module without counters answers all the same.
    let _ = counters::add(kind.name(), 1);
}

fn client(flow: &Flow) -> Option<SocketAddr> {
    Some(SocketAddr::new(flow.client.ip.parse().ok()?, flow.client.port))
}

/// What the packet part does not understand it refuses to start with, so that nothing wrong comes here.
fn settings() -> Settings {
    let default = Settings::default();
    let is_on = |key: &str, default: bool| properties::get(key).map_or(default, |value| value == "on");
    Settings {
        notify: is_on("notify", default.notify),
        options: is_on("options", default.options),
        crlf: is_on("crlf", default.crlf),
        stun: false,
        register: is_on("register", default.register),
        overload: is_on("overload", default.overload),
        oc: is_on("oc", default.oc),
        force_rport: default.force_rport,
        retry_after_s: properties::get("retry-after-s")
            .and_then(|text| text.parse().ok())
            .unwrap_or(default.retry_after_s),
        // Nobody can have answers of a connection sent to others.
        answers_per_second: default.answers_per_second,
        server_silence_s: properties::get("server-silence-s")
            .and_then(|text| text.parse().ok())
            .unwrap_or(default.server_silence_s),
    }
}

fn emergency() -> Emergency {
    let of = |name, usual: &str| properties::get(name).unwrap_or_else(|| usual.to_owned());
    Emergency::new(&of("emergency", USERS), &of("emergency-namespaces", NAMESPACES))
}

const DEMAND: u32 = 1;
/// How often the module's other part is told how much comes.
const DEMAND_EACH_MS: u64 = 200;

tcp_module!(Stream);
