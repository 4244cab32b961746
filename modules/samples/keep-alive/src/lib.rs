// SPDX-License-Identifier: Apache-2.0
//! Answers SIP keep-alives in the place of the server, close to the phones that send them (2011 paper, §6.2).
//!
//! It answers over UDP, with the server's address as source:
//! - NOTIFY with `Event: keep-alive`, with 200;
//! - OPTIONS outside a dialog whose request URI names no user, with 200 (property `options`, `on` by default);
//! - a double CRLF with a single one (RFC 5626 §3.5.1). A single CRLF asks for no answer and is dropped.
//!
//! The original goes no further. Everything else, whatever is wrong with it, passes untouched. The filter has to name
//! the server as destination (`udp dst 192.0.2.7 port 5060`), since OPTIONS toward phones are the server's own.
//!
//! The answer goes to where RFC 3261 §18.2.2 and RFC 3581 say: to the port of the topmost Via, or to the port that the
//! request came from if the Via has `rport` or the property `force-rport` is `on`.

use std::net::SocketAddr;

use netserv_sdk::ip::{Udp, parse_udp, write_udp};
use netserv_sdk::text::Writer;
use netserv_sdk::{
    Counter, PACKET_BYTES_MAX, Packet, PacketModule, StartError, Verdict, netserv_module, property, random,
};
use netserv_sip::Request;

/// The module.
pub struct KeepAlive {
    answers_options: bool,
    forces_rport: bool,
    secret: u64,
    /// Where responses are put together.
    room: [u8; PACKET_BYTES_MAX],
    counters: Counters,
}

struct Counters {
    notify: Counter,
    options: Counter,
    crlf: Counter,
    not_understood: Counter,
}

impl PacketModule for KeepAlive {
    fn start() -> Result<KeepAlive, StartError> {
        Ok(KeepAlive {
            answers_options: property::switch_or("options", true)?,
            forces_rport: property::switch_or("force-rport", false)?,
            secret: random::number(),
            room: [0; PACKET_BYTES_MAX],
            counters: Counters {
                notify: Counter::open("notify")?,
                options: Counter::open("options")?,
                crlf: Counter::open("crlf")?,
                not_understood: Counter::open("not-understood")?,
            },
        })
    }

    fn process(&mut self, packet: &mut Packet<'_>) -> Verdict {
        let Some(udp) = parse_udp(packet.bytes()) else { return Verdict::Pass };
        let payload = &packet.bytes()[udp.payload.clone()];
        if payload == b"\r\n\r\n" {
            return answer(packet, &udp, udp.source, b"\r\n", self.counters.crlf);
        }
        if payload == b"\r\n" {
            self.counters.crlf.add(1);
            return Verdict::Drop;
        }
        // Most packets are neither, and are not looked at any further.
        let (is_notify, is_options) = (payload.starts_with(b"NOTIFY "), payload.starts_with(b"OPTIONS "));
        if !(is_notify || is_options && self.answers_options) {
            return Verdict::Pass;
        }
        let Some(request) = Request::parse(payload) else {
            self.counters.not_understood.add(1);
            return Verdict::Pass;
        };
        let wanted = if is_notify { request.is_keep_alive_notify() } else { request.is_ping() };
        if !wanted {
            return Verdict::Pass;
        }
        let mut response = Writer::new(&mut self.room);
        let port = request.ok_response(udp.source, self.forces_rport, self.secret, &mut response);
        let (Some(port), Some(response)) = (port, response.finish()) else { return Verdict::Pass };
        let counter = if is_notify { self.counters.notify } else { self.counters.options };
        answer(packet, &udp, SocketAddr::new(udp.source.ip(), port), response, counter)
    }
}

netserv_module!(KeepAlive);

/// Puts an answer in the place of the packet.
fn answer(packet: &mut Packet<'_>, udp: &Udp, to: SocketAddr, payload: &[u8], counter: Counter) -> Verdict {
    if !write_udp(packet, udp.destination, to, payload) {
        return Verdict::Pass;
    }
    counter.add(1);
    Verdict::Modified
}

#[cfg(test)]
mod tests;
