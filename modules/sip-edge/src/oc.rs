// SPDX-License-Identifier: Apache-2.0
//! What a server says of its load in Vias (RFC 7339, RFC 7415), to clients in whose place the edge asked for it.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher as _};

use netserv_sip::message::{Head, VIA, list, parameter, parameters, top_parameters};

use crate::control::{Limit, loss};
use crate::limits::{ASKED_MAX, DECIDED_MS, OC_RATE_BURST, VALIDITY_MS, VALIDITY_MS_MAX};

/// What a response says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Said {
    /// Nothing if the server can take all.
    pub limit: Option<Limit>,
    /// Milliseconds from when it was said.
    pub validity_ms: u64,
    /// Which of two was said later.
    pub sequence: Option<Sequence>,
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
        // §4.3: a validity of 0 ends it.
        Some(Said { limit: (validity_ms > 0).then_some(limit), validity_ms, sequence })
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
/// does, or it would be longer than `most`.
pub fn asking<'a>(message: &'a [u8], most: usize, mark: impl FnOnce(&Head<'a>) -> &'a str) -> Option<Vec<u8>> {
    let head = Head::parse(message)?;
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
    asking.extend_from_slice(format!(";oc;oc-algo=\"loss,rate\";{ASKED}={}", mark(&head)).as_bytes());
    if asking.len() + message.len() - end > most {
        asking.truncate(without);
    }
    asking.extend_from_slice(&message[end..]);
    (asking != message).then_some(asking)
}

/// Questions that have no answer yet. One that is forgotten is not answered; the first answer alone counts, since its client can read
/// what marks it there, and have a server say more.
#[derive(Debug)]
pub struct Asked {
    secret: u64,
    young: HashSet<u64>,
    old: HashSet<u64>,
    begun_ms: u64,
}

impl Asked {
    /// Builds one without questions. Nobody may know the secret.
    pub fn new(secret: u64) -> Asked {
        Asked { secret, young: HashSet::new(), old: HashSet::new(), begun_ms: 0 }
    }

    /// Takes note of a question.
    pub fn put(&mut self, question: &impl Hash, now_ms: u64) {
        self.roll(now_ms);
        if self.young.len() >= ASKED_MAX {
            self.turn(now_ms);
        }
        self.young.insert(self.key(question));
    }

    /// Returns whether this question waits for its answer, which it does no more then.
    pub fn take(&mut self, question: &impl Hash, now_ms: u64) -> bool {
        self.roll(now_ms);
        let key = self.key(question);
        self.young.remove(&key) || self.old.remove(&key)
    }

    fn key(&self, question: &impl Hash) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.secret.hash(&mut hasher);
        question.hash(&mut hasher);
        hasher.finish()
    }

    fn roll(&mut self, now_ms: u64) {
        if now_ms.saturating_sub(self.begun_ms) >= DECIDED_MS {
            self.turn(now_ms);
        }
    }

    fn turn(&mut self, now_ms: u64) {
        self.begun_ms = now_ms;
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
        super::asking(message, ASKING_BYTES_MAX, |_| "e")
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
            let message = format!("INVITE sip:b SIP/2.0\r\nTo: x;oc=1\r\nVia: {via}\r\nVia: c;oc=2\r\n\r\nbody;oc=3");
            asking(message.as_bytes()).map(|bytes| {
                let text = String::from_utf8(bytes).unwrap();
                let (before, rest) = text.split_once("\r\nVia: ").unwrap();
                let (via, after) = rest.split_once("\r\n").unwrap();
                assert_eq!((before, after), ("INVITE sip:b SIP/2.0\r\nTo: x;oc=1", "Via: c;oc=2\r\n\r\nbody;oc=3"));
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
        for damaged in [&b""[..], b"INVITE", b"INVITE sip:b SIP/2.0\r\n\r\n", b"INVITE sip:b SIP/2.0\r\nVia:\r\n\r\n"] {
            let asked = asking(damaged);
            assert!(asked.is_none() || damaged.ends_with(b"Via:\r\n\r\n"), "{asked:?}");
        }
    }

    #[test]
    fn without_room_the_server_is_not_asked_but_nothing_is_said_in_its_place() {
        let long = |via: &str| {
            format!("INVITE sip:b SIP/2.0\r\nVia: SIP/2.0/UDP a{via}\r\n\r\n{}", "x".repeat(ASKING_BYTES_MAX - 60))
        };
        assert_eq!(asking(long("").as_bytes()), None);
        assert_eq!(asking(long(";oc=100;oc-algo=loss;oc-edge=e").as_bytes()), Some(long("").into_bytes()));
    }

    #[test]
    fn questions_are_answered_once_in_time_and_bounded() {
        let mut asked = Asked::new(1);
        asked.put(&1, 0);
        assert_eq!([2, 1, 1].map(|number| asked.take(&number, 10)), [false, true, false]);
        asked.put(&2, 10);
        asked.put(&3, 10);
        assert!(asked.take(&2, DECIDED_MS));
        assert!(!asked.take(&3, 2 * DECIDED_MS), "after so long");
        (0..3 * ASKED_MAX).for_each(|number| asked.put(&number, 2 * DECIDED_MS));
        assert_eq!(asked.young.len() + asked.old.len(), 2 * ASKED_MAX);
        assert!(!asked.take(&0, 2 * DECIDED_MS) && asked.take(&(3 * ASKED_MAX - 1), 2 * DECIDED_MS));
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
