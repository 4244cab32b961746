// SPDX-License-Identifier: Apache-2.0
//! What a server says of its load in Vias (RFC 7339, RFC 7415), to clients in whose place the edge asked for it.

use std::collections::HashSet;

use hmac::{Hmac, Mac as _};
use netserv_sip::message::{CSEQ, Head, VIA, cseq, list, parameter, parameters, top_parameters};
use sha2::Sha256;

use crate::limits::{ANSWERED_MAX, ASKING_HEADERS_MAX, DECIDED_MS, OC_RATE_BURST, VALIDITY_MS, VALIDITY_MS_MAX};
use crate::proof;

/// What the server can take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// So many requests a second.
    Rate(f64),
    /// So much of what comes is too much, from 0 to 1.
    Loss(f64),
}

/// Returns the limit that a number of percent is.
pub fn loss(percent: &str) -> Option<Limit> {
    let percent: f64 = percent.parse().ok().filter(|percent| (0.0..=100.0).contains(percent))?;
    Some(Limit::Loss(percent / 100.0))
}

/// What a response says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Said {
    /// Nothing if the server can take all.
    pub limit: Option<Limit>,
    /// Milliseconds from when it was said.
    pub validity_ms: u64,
    /// Which of two was said later.
    pub sequence: Option<Sequence>,
    /// Whether it is the server's answer, and not of who is called: a 100 to an INVITE, which nobody sends on (RFC 3261 §16.7).
    pub is_servers_own: bool,
}

/// An `oc-seq` (RFC 7339 §4.4): seconds, and a fraction in 100,000ths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sequence(u64, u32);

impl Said {
    /// Returns what the topmost Via of a response says; nothing if the request did not ask for it with a mark that is the edge's own.
    pub fn of(head: &Head<'_>, is_own: impl FnOnce(&str) -> bool) -> Option<Said> {
        let via = top_parameters(head.all(VIA).next()?)?;
        let text = |name: &str| parameter(via, name).and_then(|value| std::str::from_utf8(value).ok());
        text(ASKED).filter(|mark| is_own(mark))?;
        let validity_ms = text("oc-validity").map_or(Some(VALIDITY_MS), |text| text.parse().ok())?.min(VALIDITY_MS_MAX);
        let limit = match text("oc-algo")? {
            name if name.eq_ignore_ascii_case("loss") => loss(text("oc")?)?,
            name if name.eq_ignore_ascii_case("rate") => {
                Limit::Rate(f64::from(text("oc")?.parse::<u32>().ok()?.min(RATE_MAX)))
            }
            _ => return None,
        };
        let sequence = match text("oc-seq") {
            Some(text) => Some(Sequence::parse(text)?),
            None => None,
        };
        let is_servers_own = head.status() == Some(100) && method(head) == Some(b"INVITE");
        // §4.3: a validity of 0 ends it.
        Some(Said { limit: (validity_ms > 0).then_some(limit), validity_ms, sequence, is_servers_own })
    }
}

impl Sequence {
    /// Reads one.
    pub(crate) fn parse(text: &str) -> Option<Sequence> {
        let (seconds, fraction) = text.split_once('.')?;
        let are_digits =
            |digits: &str, most| (1..=most).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
        if !are_digits(seconds, 12) || !are_digits(fraction, 5) {
            return None;
        }
        Some(Sequence(seconds.parse().ok()?, format!("{fraction:0<5}").parse().ok()?))
    }
}

/// Returns a request whose topmost Via asks the server for its load (RFC 7339 §4.1), without what the client wrote as if the server
/// had, with the mark by which the edge knows that it asked. Nothing if it is to stay as it is: the client asks by itself, another edge
/// does, it would be longer than `most`, nobody answers it, or it could not be told which answer is to it.
pub fn asking(message: &[u8], most: usize, mark: impl FnOnce(&Head<'_>) -> String) -> Option<Vec<u8>> {
    let head = Head::parse(message)?;
    if head.first.starts_with(b"ACK ") {
        return None;
    }
    let top = list(head.all(VIA).next()?).next()?;
    let own = top_parameters(top).unwrap_or_default();
    let is_of_oc = |name: &[u8]| {
        name.eq_ignore_ascii_case(b"oc") || name.get(..3).is_some_and(|start| start.eq_ignore_ascii_case(b"oc-"))
    };
    let asks = |(name, value): (&[u8], &[u8])| match () {
        () if name.eq_ignore_ascii_case(b"oc") => value.is_empty(),
        () => name.eq_ignore_ascii_case(b"oc-algo") || name.eq_ignore_ascii_case(ASKED.as_bytes()),
    };
    let mut said = parameters(own).filter(|(name, _)| is_of_oc(name)).peekable();
    if said.peek().is_some() && said.all(asks) {
        return None;
    }
    // `own` is the end of `top`, which lies in `message`.
    let end = top.as_ptr().addr() + top.len() - message.as_ptr().addr();
    let mut asking = message[..end - own.len()].to_vec();
    for (name, value) in parameters(own).filter(|(name, _)| !is_of_oc(name)) {
        asking.push(b';');
        asking.extend_from_slice(name);
        if !value.is_empty() {
            asking.push(b'=');
            asking.extend_from_slice(value);
        }
    }
    let without = asking.len();
    // What is asked has to be known again by the answer, which has the method in CSeq and has to be read, whatever the server adds.
    let is_method = head.first.split(|byte| *byte == b' ').next() == method(&head);
    if is_method && head.headers.len() <= ASKING_HEADERS_MAX {
        asking.extend_from_slice(format!(";oc;oc-algo=\"loss,rate\";{ASKED}={}", mark(&head)).as_bytes());
    }
    if asking.len() + message.len() - end > most {
        asking.truncate(without);
    }
    asking.extend_from_slice(&message[end..]);
    (asking != message).then_some(asking)
}

/// Returns the method that a message's CSeq names.
fn method<'a>(head: &Head<'a>) -> Option<&'a [u8]> {
    head.only(CSEQ).and_then(cseq).map(|(_, method)| method)
}

/// Marks of questions, and which of them were answered. The first answer alone counts, since its client can read the mark there, and have
/// the server say more. Questions cost nothing: a mark says by itself which question it is of, by HMAC.
#[derive(Debug)]
pub struct Asked {
    secret: [u8; 32],
    /// The number of the last question.
    last: u64,
    /// Numbers of the questions that were answered in this generation, and in the one before.
    young: HashSet<u64>,
    old: HashSet<u64>,
    /// The last question before the one before, and before this one. What was asked earlier is answered no more.
    since: [u64; 2],
    begun_ms: u64,
}

impl Asked {
    /// Builds one without questions. Nobody may know the secret.
    pub fn new(secret: [u8; 32]) -> Asked {
        Asked { secret, last: 0, young: HashSet::new(), old: HashSet::new(), since: [0; 2], begun_ms: 0 }
    }

    /// Returns the mark of a new question.
    pub fn mark(&mut self, question: &[u8], now_ms: u64) -> String {
        self.roll(now_ms);
        self.last += 1;
        format!("{:016x}{}", self.last, self.proof(self.last, question))
    }

    /// Returns whether a mark is of this question and came back for the first time, and in time.
    pub fn take(&mut self, mark: &str, question: &[u8], now_ms: u64) -> bool {
        self.roll(now_ms);
        let Some((number, proof)) = mark.split_at_checked(16) else { return false };
        let Ok(number) = u64::from_str_radix(number, 16) else { return false };
        if number <= self.since[0] || number > self.last || proof != self.proof(number, question) {
            return false;
        }
        if self.young.len() >= ANSWERED_MAX {
            self.turn(now_ms);
        }
        number > self.since[0] && !self.old.contains(&number) && self.young.insert(number)
    }

    fn proof(&self, number: u64, question: &[u8]) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.secret).expect("a key of any length will do");
        // Beginning like no tag does, whose first part has a length.
        mac.update(b"oc-edge");
        mac.update(&number.to_be_bytes());
        mac.update(question);
        proof::of(mac)
    }

    fn roll(&mut self, now_ms: u64) {
        let gone_ms = now_ms.saturating_sub(self.begun_ms);
        if gone_ms >= DECIDED_MS {
            self.turn(now_ms);
        }
        if gone_ms >= 2 * DECIDED_MS {
            self.turn(now_ms);
        }
    }

    fn turn(&mut self, now_ms: u64) {
        self.begun_ms = now_ms;
        self.since = [self.since[1], self.last];
        std::mem::swap(&mut self.young, &mut self.old);
        self.young.clear();
    }
}

/// Keeps to a rate (RFC 7415 §3.5.1: a leaky bucket), in requests and milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bucket {
    filled: f64,
    looked_ms: u64,
}

impl Bucket {
    /// Returns whether one more request may go on at a rate a second.
    pub fn take(&mut self, rate: f64, now_ms: u64) -> bool {
        #[allow(clippy::cast_precision_loss, reason = "a few seconds")]
        let gone = now_ms.saturating_sub(self.looked_ms) as f64 / 1000.0 * rate;
        self.filled = (self.filled - gone).max(0.0);
        self.looked_ms = now_ms;
        let may = rate > 0.0 && self.filled <= OC_RATE_BURST - 1.0;
        if may {
            self.filled += 1.0;
        }
        may
    }
}

/// The parameter with the mark of the edge that asked, so that of several on the way one alone acts on the answer.
const ASKED: &str = "oc-edge";
/// More than any server takes.
const RATE_MAX: u32 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::ASKING_BYTES_MAX;

    fn asking(message: &[u8]) -> Option<Vec<u8>> {
        super::asking(message, ASKING_BYTES_MAX, |_| "e".to_owned())
    }

    fn said(via: &str) -> Option<Said> {
        let message = format!(
            "SIP/2.0 200 OK\r\nv: SIP/2.0/UDP a;branch=1;{via}, SIP/2.0/UDP b;oc=9;oc-algo=loss;oc-edge=e\r\n\r\n"
        );
        Said::of(&Head::parse(message.as_bytes()).unwrap(), |mark| mark == "e")
    }

    #[test]
    fn what_the_server_says_is_understood() {
        let loss = said("oc=20;oc-algo=\"loss\";oc-edge=e;oc-validity=1000;oc-seq=1282321615.782").unwrap();
        assert_eq!((loss.limit, loss.validity_ms), (Some(Limit::Loss(0.2)), 1000));
        assert_eq!(loss.sequence, Some(Sequence(1_282_321_615, 78_200)));
        let rate = said("oc=150;oc-algo=rate;oc-edge=e").unwrap();
        assert_eq!((rate.limit, rate.validity_ms, rate.sequence), (Some(Limit::Rate(150.0)), VALIDITY_MS, None));
        assert_eq!(said("oc=20;oc-algo=loss;oc-edge=e;oc-validity=0").map(|said| said.limit), Some(None));
        assert_eq!(said("oc=20;oc-algo=loss;oc-edge=e;oc-validity=99999999").unwrap().validity_ms, VALIDITY_MS_MAX);
        assert!(!loss.is_servers_own, "who is called answers with 200, too");
        let own = |first: &str, method: &str| {
            let message =
                format!("SIP/2.0 {first}\r\nv: SIP/2.0/UDP a;oc=1;oc-algo=loss;oc-edge=e\r\nCSeq: 1 {method}\r\n\r\n");
            Said::of(&Head::parse(message.as_bytes()).unwrap(), |_| true).unwrap().is_servers_own
        };
        let all = ["100 INVITE", "503 INVITE", "180 INVITE", "100 MESSAGE", "200 REGISTER"];
        let are_own =
            all.map(|one| one.split_once(' ').unwrap()).map(|(status, method)| own(&format!("{status} x"), method));
        assert_eq!(are_own, [true, false, false, false, false]);
        for not in [
            "oc=20;oc-algo=loss",
            "oc;oc-algo=\"loss,rate\";oc-edge=e",
            "oc=101;oc-algo=loss;oc-edge=e",
            "oc=-1;oc-algo=rate;oc-edge=e",
            "oc=1.5;oc-algo=rate;oc-edge=e",
            "oc=20;oc-edge=e",
            "oc=20;oc-algo=window;oc-edge=e",
            "x=y",
            "oc=20;oc-algo=loss;oc-edge=f",
            "oc=20;oc-algo=loss;oc-edge",
            "oc=20;oc-algo=loss;oc-edge=e;oc-validity=x",
            "oc=20;oc-algo=loss;oc-edge=e;oc-seq=1",
            "oc=20;oc-algo=loss;oc-edge=e;oc-seq=1.123456",
            "oc=20;oc-algo=loss;oc-edge=e;oc-seq=1234567890123.1",
        ] {
            assert_eq!(said(not), None, "{not}");
        }
        let order = ["1.5", "1.51", "2.0", "10.00001", "10.1"].map(|text| Sequence::parse(text).unwrap());
        assert!(order.is_sorted(), "{order:?}");
    }

    #[test]
    fn requests_ask_and_say_nothing_in_the_servers_place() {
        let asked = |via: &str| {
            let message = format!(
                "INVITE sip:b SIP/2.0\r\nCSeq: 1 INVITE\r\nTo: x;oc=1\r\nVia: {via}\r\nVia: c;oc=2\r\n\r\nbody;oc=3"
            );
            asking(message.as_bytes()).map(|bytes| {
                let text = String::from_utf8(bytes).unwrap();
                let (before, rest) = text.split_once("\r\nVia: ").unwrap();
                let (via, after) = rest.split_once("\r\n").unwrap();
                assert_eq!(
                    (before, after),
                    ("INVITE sip:b SIP/2.0\r\nCSeq: 1 INVITE\r\nTo: x;oc=1", "Via: c;oc=2\r\n\r\nbody;oc=3")
                );
                via.to_owned()
            })
        };
        let ask = ";oc;oc-algo=\"loss,rate\";oc-edge=e";
        for (via, asks) in [
            ("SIP/2.0/UDP a;branch=1;rport", format!("SIP/2.0/UDP a;branch=1;rport{ask}")),
            ("SIP/2.0/UDP a", format!("SIP/2.0/UDP a{ask}")),
            ("SIP/2.0/UDP a;x=\",;\", SIP/2.0/UDP b;oc=3", format!("SIP/2.0/UDP a;x=\",;\"{ask}, SIP/2.0/UDP b;oc=3")),
            ("SIP/2.0/UDP a;OC=100;branch=1;oc-algo=\"loss\";oc-validity=9", format!("SIP/2.0/UDP a;branch=1{ask}")),
            ("SIP/2.0/UDP a;oc;oc-algo=\"loss\";oc-edge=f;oc-seq=9.9", format!("SIP/2.0/UDP a{ask}")),
        ] {
            assert_eq!(asked(via), Some(asks.clone()), "{via}");
            assert_eq!(asked(&asks), None, "again: {asks}");
        }
        assert_eq!(asked("SIP/2.0/UDP a;oc;oc-algo=\"loss\";branch=1"), None, "it asks by itself");
        assert_eq!(asked("SIP/2.0/UDP a;oc;oc-algo=\"loss\";oc-edge=f"), None, "another edge asks");
        assert_eq!(asking(b"ACK sip:b SIP/2.0\r\nVia: SIP/2.0/UDP a\r\n\r\n"), None, "nobody answers it");
        for damaged in [&b""[..], b"INVITE", b"INVITE sip:b SIP/2.0\r\n\r\n", b"INVITE sip:b SIP/2.0\r\nVia:\r\n\r\n"] {
            let asked = asking(damaged);
            assert!(asked.is_none() || damaged.ends_with(b"Via:\r\n\r\n"), "{asked:?}");
        }
    }

    #[test]
    fn without_room_the_server_is_not_asked_but_nothing_is_said_in_its_place() {
        let long = |via: &str| {
            let body = "x".repeat(ASKING_BYTES_MAX - 80);
            format!("INVITE sip:b SIP/2.0\r\nCSeq: 1 INVITE\r\nVia: SIP/2.0/UDP a{via}\r\n\r\n{body}")
        };
        let many = |via: &str, most: usize| {
            let vias = "v: a\r\n".repeat(most - 2);
            format!("INVITE sip:b SIP/2.0\r\nCSeq: 1 INVITE\r\nVia: SIP/2.0/UDP a{via}\r\n{vias}\r\n")
        };
        let other = |via: &str| format!("MESSAGE sip:b SIP/2.0\r\nCSeq: 1 INVITE\r\nVia: SIP/2.0/UDP a{via}\r\n\r\n");
        let said = ";oc=100;oc-algo=loss;oc-edge=e";
        let too_many = ["", said].map(|via| many(via, ASKING_HEADERS_MAX + 1));
        for [plain, said] in [["", said].map(long), too_many, ["", said].map(other)] {
            assert_eq!(asking(plain.as_bytes()), None);
            assert_eq!(asking(said.as_bytes()), Some(plain.into_bytes()));
        }
        assert!(asking(many("", ASKING_HEADERS_MAX).as_bytes()).is_some());
    }

    #[test]
    fn questions_are_answered_once_in_time_and_bounded() {
        let mut asked = Asked::new([1; 32]);
        let before = asked.mark(b"0", 0);
        assert!(!asked.take(&before, b"0", 10 * DECIDED_MS), "long after");
        let mut asked = Asked::new([1; 32]);
        let first = asked.mark(b"1", 0);
        let took = [("2", &first), ("1", &first), ("1", &first)].map(|(to, mark)| asked.take(mark, to.as_bytes(), 10));
        assert_eq!(took, [false, true, false]);
        let [second, third] = ["2", "3"].map(|question| asked.mark(question.as_bytes(), 10));
        assert!(asked.take(&second, b"2", DECIDED_MS) && !asked.take(&first, b"1", DECIDED_MS));
        assert!(!asked.take(&third, b"3", 2 * DECIDED_MS), "after so long");
        // However many questions stay without an answer.
        let waits = asked.mark(b"waits", 2 * DECIDED_MS);
        (0..3 * ANSWERED_MAX).for_each(|_| _ = asked.mark(b"flood", 2 * DECIDED_MS));
        assert!(asked.take(&waits, b"waits", 2 * DECIDED_MS));
        // After so many answers the earlier questions have none any more, and what was answered is not answered again.
        let [early, used] = [asked.mark(b"early", 2 * DECIDED_MS), asked.mark(b"used", 2 * DECIDED_MS)];
        assert!(asked.take(&used, b"used", 2 * DECIDED_MS));
        let mut most = 0;
        for _ in 0..3 * ANSWERED_MAX {
            let mark = asked.mark(b"flood", 2 * DECIDED_MS);
            assert!(asked.take(&mark, b"flood", 2 * DECIDED_MS) && !asked.take(&used, b"used", 2 * DECIDED_MS));
            most = most.max(asked.young.len() + asked.old.len());
        }
        assert_eq!(most, 2 * ANSWERED_MAX);
        assert!(!asked.take(&early, b"early", 2 * DECIDED_MS));
    }

    #[test]
    fn a_rate_is_kept_with_a_few_at_once() {
        let mut bucket = Bucket::default();
        let burst = (0..100).filter(|_| bucket.take(10.0, 5)).count();
        assert_eq!(burst, 4);
        let steady = (0..10_000).filter(|now| bucket.take(10.0, 1000 + now)).count();
        assert!((99..=105).contains(&steady), "{steady}");
        assert!((0..1000).all(|now| !bucket.take(0.0, 20_000 + now)));
    }
}
