// SPDX-License-Identifier: Apache-2.0
//! What becomes of a SIP message, whichever part of the module it comes to.

use std::net::{IpAddr, SocketAddr};

use hmac::{Hmac, Mac as _};
use netserv_sdk::text::Writer;
use netserv_sip::message::{self, CALL_ID, CSEQ, Head, TO, VIA, address, number, parameter, tag, top_parameters};
use netserv_sip::{Answer, Forced, Request, Rport, Transport};
use sha2::Sha256;

use crate::bindings::{Aor, Bindings};
use crate::control::{Control, Fate, Feedback};
use crate::emergency::Emergency;
use crate::limits::{ANSWER_PLACES, ASKING_BYTES_MAX, ENDED_MAX, HEAD_BYTES_MAX};
use crate::oc::{Asked, Said, asking};
use crate::proof;
use crate::serving::Serving;
use crate::soundness::is_sound;

/// The topics of what the module's user says: of the server's load,
pub const OVERLOAD: &str = "overload";
/// and of the server itself.
pub const SERVER: &str = "server";

/// What the module's user chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Whether keep-alives by NOTIFY are answered.
    pub notify: bool,
    /// Whether OPTIONS to the server itself are answered.
    pub options: bool,
    /// Whether CRLFs are answered.
    pub crlf: bool,
    /// Whether STUN binding requests are answered.
    pub stun: bool,
    /// Whether refreshes of registrations are answered.
    pub register: bool,
    /// Whether requests are rejected when the server has too much to do.
    pub overload: bool,
    /// Whether the server is asked for its load in Vias (RFC 7339), in the place of clients that do not ask by themselves.
    pub oc: bool,
    /// Which datagrams without `rport` are answered at the port that they came from.
    pub force_rport: Forced,
    /// Seconds in the Retry-After of rejections; 0 leaves it out.
    pub retry_after_s: u16,
    /// Answers to one address in a second; what is beyond is dropped.
    pub answers_per_second: u32,
    /// Seconds without anything for the server on a connection, or without an answer of it, after which the next keep-alive goes on:
    /// servers end connections on which nothing comes, and one that answers nothing serves nobody. 0 is never.
    pub server_silence_s: u32,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            notify: true,
            options: true,
            crlf: true,
            stun: true,
            register: true,
            overload: true,
            oc: false,
            force_rport: Forced::default(),
            retry_after_s: 0,
            answers_per_second: 10_000,
            server_silence_s: 45,
        }
    }
}

/// Why a message was answered or dropped: the names of the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// NOTIFY with `Event: keep-alive`.
    Notify,
    /// OPTIONS to the server.
    Options,
    /// CRLF.
    Crlf,
    /// STUN.
    Stun,
    /// A refresh of a registration.
    Register,
    /// Too much for the server.
    Rejected,
    /// The ACK to what was rejected.
    Ack,
    /// More answers than an address gets.
    Limited,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 8] =
        [Kind::Notify, Kind::Options, Kind::Crlf, Kind::Stun, Kind::Register, Kind::Rejected, Kind::Ack, Kind::Limited];

    /// Returns the name of its counter.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Notify => "notify",
            Kind::Options => "options",
            Kind::Crlf => "crlf",
            Kind::Stun => "stun",
            Kind::Register => "register",
            Kind::Rejected => "rejected",
            Kind::Ack => "ack",
            Kind::Limited => "limited",
        }
    }
}

/// What becomes of a message from a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It goes on.
    Pass,
    /// It goes no further.
    Drop(Kind),
    /// It goes no further, and what was written goes back, to this port over UDP.
    Answer(Kind, u16),
}

/// Stands between clients and their server.
#[derive(Debug)]
pub struct Edge {
    settings: Settings,
    emergency: Emergency,
    secret: [u8; 32],
    asked: Asked,
    bindings: Bindings,
    serving: Serving,
    /// What the other part is to forget.
    ended: Vec<Aor>,
    /// Who may send what on.
    pub control: Control,
    answers: Answers,
}

impl Edge {
    /// Builds one. Nobody may know the secret.
    pub fn new(settings: Settings, secret: [u8; 32]) -> Edge {
        let [a, b, c, d, e, f, g, h, ..] = secret;
        let number = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        let answers = Answers { counts: vec![0; ANSWER_PLACES], second: 0, secret: number };
        Edge {
            settings,
            emergency: Emergency::default(),
            secret,
            asked: Asked::new(secret),
            bindings: Bindings::new(number),
            serving: Serving::new(settings.server_silence_s, number),
            ended: Vec::new(),
            control: Control::new(number),
            answers,
        }
    }

    /// Has other requests than usual be of an emergency.
    pub fn with_emergency(self, emergency: Emergency) -> Edge {
        Edge { emergency, ..self }
    }

    /// Returns what the module's user chose.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Decides on a message from a client to the server, which is whole.
    pub fn request(
        &mut self,
        message: &[u8],
        from: (SocketAddr, Transport),
        now_ms: u64,
        response: &mut Writer<'_>,
    ) -> Decision {
        self.decide(message, from, (now_ms, true), response)
    }

    /// Decides on a message on a connection on which the server is to hear something: a keep-alive goes on, whatever the server has to do.
    pub fn request_to_be_heard(
        &mut self,
        message: &[u8],
        from: (SocketAddr, Transport),
        now_ms: u64,
        response: &mut Writer<'_>,
    ) -> Decision {
        self.decide(message, from, (now_ms, false), response)
    }

    fn decide(
        &mut self,
        message: &[u8],
        (source, transport): (SocketAddr, Transport),
        (now_ms, answers): (u64, bool),
        response: &mut Writer<'_>,
    ) -> Decision {
        let Some(request) = Request::parse(message) else { return Decision::Pass };
        let from = (source, transport);
        match request.method() {
            b"ACK" if self.is_ours(&request) => Decision::Drop(Kind::Ack),
            // What ends or goes on with something costs the server less than to be asked again.
            b"ACK" | b"CANCEL" | b"PRACK" => Decision::Pass,
            _ if request.is_in_dialog() && !request.is_keep_alive_notify() => Decision::Pass,
            b"NOTIFY" if self.settings.notify && request.is_keep_alive_notify() => {
                if !answers || !is_sound(message) {
                    return Decision::Pass;
                }
                if !self.serving.is_heard(now_ms) {
                    return self.regulate(&request, (message, from), now_ms, response);
                }
                self.answer(Kind::Notify, &request, (message, from), (b"200 OK", b""), response)
            }
            b"OPTIONS" if self.settings.options && request.is_ping() => {
                if !answers || !is_sound(message) {
                    return Decision::Pass;
                }
                let ping = (source.ip().to_canonical(), request.call_id(), message::cseq(request.cseq()));
                if !self.serving.answers(&ping, now_ms) {
                    return self.regulate(&request, (message, from), now_ms, response);
                }
                self.answer(Kind::Options, &request, (message, from), (b"200 OK", b""), response)
            }
            b"REGISTER" if self.settings.register && !request.requires() => {
                let Some(head) = Head::parse(message) else { return Decision::Pass };
                if let Some(refresh) = self.bindings.refresh(&head, source, now_ms) {
                    // By the port that it reads a phone knows whether it is where it was; the server's answer says so.
                    let is_unknown = transport == Transport::Tcp(Rport::Unknown) && asks_for_its_port(&request);
                    if !answers || is_unknown || !self.serving.is_heard(now_ms) {
                        self.bindings.refresh_goes_on(&head, &refresh, now_ms);
                        return Decision::Pass;
                    }
                    let expires = refresh.expires.to_string();
                    let more = [b"\r\nContact: <", &refresh.contact[..], b">;expires=", expires.as_bytes()].concat();
                    let decision = self.answer(Kind::Register, &request, (message, from), (b"200 OK", &more), response);
                    if decision != Decision::Pass {
                        self.bindings.refreshed(&refresh);
                        return decision;
                    }
                }
                let decision = self.regulate(&request, (message, from), now_ms, response);
                if decision == Decision::Pass {
                    let _ = self.bindings.goes_on(&head, source, now_ms);
                }
                decision
            }
            _ => self.regulate(&request, (message, from), now_ms, response),
        }
    }

    /// Returns what goes on in the place of a message that passed, unless that is as it came.
    pub fn asking(
        &mut self,
        message: &[u8],
        (source, transport): (SocketAddr, Transport),
        now_ms: u64,
    ) -> Option<Vec<u8>> {
        if !self.settings.overload || !self.settings.oc || message.starts_with(b"SIP/2.0 ") {
            return None;
        }
        let most = match transport {
            Transport::Udp => ASKING_BYTES_MAX,
            Transport::Tcp(_) => HEAD_BYTES_MAX,
        };
        asking(message, most, |head| self.asked.mark(&question(head, source.ip()), now_ms))
    }

    /// Looks at a message from the server to a client.
    pub fn response(&mut self, message: &[u8], to: SocketAddr, now_ms: u64) {
        if !message.starts_with(b"SIP/2.0 ") {
            // STUN's binding success (RFC 8489 §5).
            if message.starts_with(&[1, 1]) {
                self.serving.heard(now_ms);
            }
            return;
        }
        let Some(head) = Head::parse(message) else { return };
        let request =
            (to.ip().to_canonical(), head.only(CALL_ID).unwrap_or_default(), head.only(CSEQ).and_then(message::cseq));
        self.serving.answered(head.status().unwrap_or_default(), &request, now_ms);
        if self.settings.overload
            && self.settings.oc
            && let Some(said) = Said::of(&head, |mark| self.asked.take(mark, &question(&head, to.ip()), now_ms))
        {
            self.control.said(to.ip(), &said, now_ms);
        }
        if !self.settings.register {
            return;
        }
        let is_register = head.only(CSEQ).and_then(message::cseq).is_some_and(|(_, method)| method == b"REGISTER");
        // An edge nearer to the server may not have heard yet that the server has lost what it confirmed.
        if is_register && head.only(TO).and_then(tag).is_some_and(|tag| tag.starts_with(EDGE_TAG.as_bytes())) {
            return;
        }
        let status = head.status().unwrap_or_default();
        if is_register {
            let _ = self.bindings.answered(&head, to, now_ms);
        }
        let ends = if is_register { (200..300).contains(&status) } else { NOBODY_THERE.contains(&status) };
        if ends && let Some((uri, _)) = head.only(TO).and_then(address) {
            let aor = Aor::of(uri);
            if !is_register {
                self.bindings.forget(aor);
            }
            // With more than that waiting, the other part learns of a change by the next REGISTER.
            if self.ended.len() < ENDED_MAX {
                self.ended.push(aor);
            }
        }
    }

    /// Returns whether the server answered anything not long ago, so that it may be answered in its place.
    pub fn is_heard(&mut self, now_ms: u64) -> bool {
        self.serving.is_heard(now_ms)
    }

    /// Returns the next of what the module's other part is to be told at once: of whom it may know what is no more.
    pub fn ended(&mut self) -> Option<[u8; 8]> {
        self.ended.pop().map(Aor::to_bytes)
    }

    /// Takes what the module's other part says.
    pub fn other_says(&mut self, message: &[u8], now_ms: u64) {
        match message.try_into() {
            Ok(aor) => self.bindings.forget(Aor::from_bytes(aor)),
            Err(_) => self.control.other_demand(message, now_ms),
        }
    }

    /// Takes what the module's user says of the server, by the topic of the message. Returns whether it was understood.
    pub fn told(&mut self, topic: &str, text: &[u8], now_ms: u64) -> bool {
        match topic {
            OVERLOAD => {
                let feedback = std::str::from_utf8(text).ok().and_then(Feedback::parse);
                feedback.map(|feedback| self.control.take(feedback, now_ms)).is_some()
            }
            SERVER if text == b"restarted" => {
                self.bindings.forget_all();
                true
            }
            _ => false,
        }
    }

    /// Returns whether one more answer may go to an address.
    pub fn may_answer(&mut self, to: IpAddr, now_ms: u64) -> bool {
        self.answers.one_more(to, now_ms) <= self.settings.answers_per_second
    }

    /// Lets a request go on, or rejects it.
    fn regulate(
        &mut self,
        request: &Request<'_>,
        (message, from): (&[u8], (SocketAddr, Transport)),
        now_ms: u64,
        response: &mut Writer<'_>,
    ) -> Decision {
        if !self.settings.overload || self.emergency.is(request) {
            return Decision::Pass;
        }
        let transaction = (from.0, request.call_id(), tag(request.from()), request.cseq(), branch(request));
        match self.control.decide(from.0.ip(), &transaction, now_ms) {
            Fate::Admitted => Decision::Pass,
            Fate::Rejected => {
                let more = match self.settings.retry_after_s {
                    0 => String::new(),
                    seconds => format!("\r\nRetry-After: {seconds}"),
                };
                let status = b"503 Service Unavailable";
                match self.answer(Kind::Rejected, request, (message, from), (status, more.as_bytes()), response) {
                    // It must not reach the server, though there is nothing to answer it by.
                    Decision::Pass => Decision::Drop(Kind::Rejected),
                    decision @ (Decision::Drop(_) | Decision::Answer(..)) => decision,
                }
            }
        }
    }

    /// Answers a request, unless that would be more than was sent.
    fn answer(
        &self,
        kind: Kind,
        request: &Request<'_>,
        (message, from): (&[u8], (SocketAddr, Transport)),
        (status, more): (&[u8], &[u8]),
        response: &mut Writer<'_>,
    ) -> Decision {
        let answer = Answer { status, more };
        let port = request.respond(&answer, from, self.settings.force_rport, || self.to_tag(request), response);
        match port {
            Some(port) if matches!(from.1, Transport::Tcp(_)) || response.len() <= message.len() => {
                Decision::Answer(kind, port)
            }
            _ => Decision::Pass,
        }
    }

    /// Returns the tag that the To of a request's answer has: the same whenever the request, or its ACK, comes.
    fn to_tag(&self, request: &Request<'_>) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.secret).expect("a key of any length will do");
        let number = message::cseq(request.cseq()).map_or(0, |(number, _)| number);
        for part in [request.call_id(), tag(request.from()).unwrap_or_default(), &number.to_be_bytes(), branch(request)]
        {
            mac.update(&u32::try_from(part.len()).unwrap_or(u32::MAX).to_be_bytes());
            mac.update(part);
        }
        // As long as it was without the mark: an answer may not be longer than the request.
        format!("{EDGE_TAG}{}", &proof::of(mac)[EDGE_TAG.len()..])
    }

    /// Returns whether an ACK is to an answer of ours.
    fn is_ours(&self, ack: &Request<'_>) -> bool {
        tag(ack.to()).is_some_and(|tag| tag == self.to_tag(ack).as_bytes())
    }
}

/// Returns whether the topmost Via asks for the port that the request comes from (RFC 3581).
fn asks_for_its_port(request: &Request<'_>) -> bool {
    top_parameters(request.via()).is_some_and(|parameters| parameter(parameters, "rport").is_some())
}

/// Returns what a server says to `rport` in an answer over a connection; nothing if it was not asked.
pub fn rport_said(message: &[u8]) -> Option<Rport> {
    let head = message.starts_with(b"SIP/2.0 ").then(|| Head::parse(message))??;
    let via = head.all(VIA).next()?;
    let said = parameter(top_parameters(via)?, "rport")?;
    Some(number(said).and_then(|port| u16::try_from(port).ok()).map_or(Rport::Bare, Rport::Port))
}

/// Returns what a question and the answers to it have in common.
fn question(head: &Head<'_>, client: IpAddr) -> Vec<u8> {
    let (number, method) = head.only(CSEQ).and_then(message::cseq).unwrap_or_default();
    let address = client.to_canonical().to_string();
    let call_id = head.only(CALL_ID).unwrap_or_default();
    [address.as_bytes(), b" ", &number.to_be_bytes(), method, b" ", call_id].concat()
}

/// Returns the branch of the topmost Via, which is the same in a request, its CANCEL and its ACK (RFC 3261 §17.1.1.3).
fn branch<'a>(request: &Request<'a>) -> &'a [u8] {
    top_parameters(request.via()).and_then(|parameters| parameter(parameters, "branch")).unwrap_or_default()
}

/// How many answers went to addresses in this second. Addresses may share a place.
#[derive(Debug)]
struct Answers {
    counts: Vec<u32>,
    second: u64,
    secret: u64,
}

impl Answers {
    fn one_more(&mut self, to: IpAddr, now_ms: u64) -> u32 {
        if now_ms / 1000 != self.second {
            self.second = now_ms / 1000;
            self.counts.fill(0);
        }
        let bits = match to {
            IpAddr::V4(address) => u64::from(address.to_bits()),
            // Of IPv6 a client has all addresses of a network.
            IpAddr::V6(address) => u64::try_from(address.to_bits() >> 64).unwrap_or(0),
        };
        let mixed = (bits ^ self.secret).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let place = usize::try_from(mixed >> 40).unwrap_or(0) % self.counts.len();
        self.counts[place] += 1;
        self.counts[place]
    }
}

/// What the tags of all edges' answers begin with, so that they know each other's. With a letter that no hexadecimal tag has.
const EDGE_TAG: &str = "edge";

/// By these the server says of who is called that nobody is registered (404, 410, 480, 604: RFC 3261 §21).
const NOBODY_THERE: [u16; 4] = [404, 410, 480, 604];

#[cfg(test)]
mod tests;
