// SPDX-License-Identifier: Apache-2.0
//! The packet part: SIP over UDP.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use netserv_sdk::ip::{Udp, parse_udp, replace_udp, write_udp};
use netserv_sdk::text::Writer;
use netserv_sdk::{
    Counter, PACKET_BYTES_MAX, Packet, PacketModule, StartError, Verdict, clock, control, log, messages,
    netserv_module, property, random, timer,
};
use netserv_sip::{Forced, Transport};

use crate::edge::{Decision, Edge, Kind, Settings};
use crate::emergency::{Emergency, NAMESPACES, USERS};
use crate::stun;

/// The module.
pub struct SipEdge {
    edge: Edge,
    servers: Vec<IpAddr>,
    port: u16,
    /// Where answers are put together.
    room: Box<[u8; PACKET_BYTES_MAX]>,
    counters: [Counter; Kind::ALL.len()],
    /// When the packet came that is looked at.
    now_ms: u64,
}

impl PacketModule for SipEdge {
    fn start() -> Result<SipEdge, StartError> {
        let mut secret = [0; 32];
        random::fill(&mut secret);
        timer::every(0, DEMAND_EACH)?;
        let mut counters = Vec::new();
        for kind in Kind::ALL {
            counters.push(Counter::open(kind.name())?);
        }
        Ok(SipEdge {
            edge: Edge::new(settings()?, secret).with_emergency(emergency()?),
            servers: servers()?,
            port: property::parse_or("port", 5060)?,
            room: Box::new([0; PACKET_BYTES_MAX]),
            counters: counters.try_into().map_err(|_| "a counter for each kind")?,
            now_ms: 0,
        })
    }

    fn process(&mut self, packet: &mut Packet<'_>) -> Verdict {
        let Some(udp) = parse_udp(packet.bytes()) else { return Verdict::Pass };
        let now_ms = millis(packet.time());
        self.now_ms = now_ms;
        let payload = &packet.bytes()[udp.payload.clone()];
        let is_server = |end: SocketAddr| end.port() == self.port && self.servers.contains(&end.ip());
        if !is_server(udp.destination) {
            if is_server(udp.source) {
                self.edge.response(payload, udp.destination, now_ms);
                while let Some(ended) = self.edge.ended() {
                    let _ = messages::send(&ended);
                }
            }
            return Verdict::Pass;
        }
        let settings = *self.edge.settings();
        match payload {
            b"\r\n\r\n" if settings.crlf => return self.answer(packet, &udp, udp.source, Kind::Crlf, Reply::Pong),
            b"\r\n" if settings.crlf => return self.drop(Kind::Crlf),
            [0, 1, ..] if settings.stun && self.edge.is_heard(now_ms) => {
                let mut into = [0; stun::ANSWER_BYTES_MAX];
                let Some(length) = stun::answer(payload, udp.source, &mut into) else { return Verdict::Pass };
                return self.answer(packet, &udp, udp.source, Kind::Stun, Reply::Bytes(&into[..length]));
            }
            _ => {}
        }
        let mut response = Writer::new(&mut self.room[..]);
        let decision = self.edge.request(payload, (udp.source, Transport::Udp), now_ms, &mut response);
        match (decision, response.finish().map(<[u8]>::len)) {
            (Decision::Pass, _) => match self.edge.asking(payload, (udp.source, Transport::Udp), now_ms) {
                Some(asking) if replace_udp(packet, &udp, &asking) => Verdict::Modified,
                _ => Verdict::Pass,
            },
            (Decision::Drop(kind), _) | (Decision::Answer(kind @ Kind::Rejected, _), None) => self.drop(kind),
            (Decision::Answer(..), None) => Verdict::Pass,
            (Decision::Answer(kind, port), Some(length)) => {
                self.answer(packet, &udp, SocketAddr::new(udp.source.ip(), port), kind, Reply::Room(length))
            }
        }
    }

    fn timer(&mut self, _: u32) {
        if let Some(news) = self.edge.control.news(millis(clock::monotonic())) {
            // A part that is away learns it the next time.
            let _ = messages::send(&news);
        }
    }

    fn message(&mut self, message: &[u8]) {
        self.edge.other_says(message, millis(clock::monotonic()));
    }

    fn control(&mut self, message: &control::Message<'_>) {
        let now_ms = millis(clock::monotonic());
        if !self.edge.told(message.topic, message.body, now_ms) {
            log::warn(&format!("a message of topic {} was not understood", message.topic));
        }
    }
}

netserv_module!(SipEdge, control);

/// What is sent back.
enum Reply<'a> {
    Pong,
    Bytes(&'a [u8]),
    /// So many bytes of the room.
    Room(usize),
}

impl SipEdge {
    /// Puts an answer in the place of the packet.
    fn answer(&mut self, packet: &mut Packet<'_>, udp: &Udp, to: SocketAddr, kind: Kind, reply: Reply<'_>) -> Verdict {
        if !self.edge.may_answer(to.ip(), self.now_ms) {
            return self.drop(Kind::Limited);
        }
        let bytes = match reply {
            Reply::Pong => b"\r\n",
            Reply::Bytes(bytes) => bytes,
            Reply::Room(length) => &self.room[..length],
        };
        if !write_udp(packet, udp.destination, to, bytes) {
            return if kind == Kind::Rejected { self.drop(kind) } else { Verdict::Pass };
        }
        self.counters[kind as usize].add(1);
        Verdict::Modified
    }

    fn drop(&self, kind: Kind) -> Verdict {
        self.counters[kind as usize].add(1);
        Verdict::Drop
    }
}

fn servers() -> Result<Vec<IpAddr>, StartError> {
    let text = property::text("server").unwrap_or_default();
    let servers: Option<Vec<IpAddr>> = text.split_ascii_whitespace().map(|address| address.parse().ok()).collect();
    match servers {
        Some(servers) if !servers.is_empty() => Ok(servers),
        _ => {
            Err(format!("property `server` is `{text}`; write the addresses of the SIP server, with spaces between")
                .into())
        }
    }
}

fn settings() -> Result<Settings, StartError> {
    let default = Settings::default();
    Ok(Settings {
        notify: property::switch_or("notify", default.notify)?,
        options: property::switch_or("options", default.options)?,
        crlf: property::switch_or("crlf", default.crlf)?,
        stun: property::switch_or("stun", default.stun)?,
        register: property::switch_or("register", default.register)?,
        overload: property::switch_or("overload", default.overload)?,
        oc: property::switch_or("oc", default.oc)?,
        force_rport: forced()?,
        retry_after_s: property::parse_or("retry-after-s", default.retry_after_s)?,
        answers_per_second: property::parse_or("answers-per-second", default.answers_per_second)?,
        server_silence_s: property::parse_or("server-silence-s", default.server_silence_s)?,
    })
}

fn forced() -> Result<Forced, StartError> {
    match &property::text("force-rport").unwrap_or_default()[..] {
        "" | "nat" => Ok(Forced::BehindNat),
        "on" => Ok(Forced::Always),
        "off" => Ok(Forced::Never),
        other => Err(format!("property `force-rport` is `{other}`, not `nat`, `on` or `off`").into()),
    }
}

fn emergency() -> Result<Emergency, StartError> {
    let of = |name, usual: &str| property::parse_or(name, usual.to_owned());
    Ok(Emergency::new(&of("emergency", USERS)?, &of("emergency-namespaces", NAMESPACES)?))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// How often the module's other part is told how much comes.
const DEMAND_EACH: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests;
