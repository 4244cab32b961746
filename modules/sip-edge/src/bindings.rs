// SPDX-License-Identifier: Apache-2.0
//! Registrations that the server has confirmed, so that a phone that only wants to go on with one is answered here.

use std::collections::HashMap;
use std::net::SocketAddr;

use netserv_sip::message::{self, CALL_ID, CONTACT, CSEQ, EXPIRES, Head, TO, address, list, number, parameter};

use crate::limits::{BINDINGS_MAX, EACH_BYTES, KNOWN_BYTES_MAX, PENDING_MAX, PENDING_MS};

/// What is known of registrations.
#[derive(Debug, Default)]
pub struct Bindings {
    confirmed: HashMap<Phone, Binding>,
    /// REGISTERs that went on without credentials: until when an answer is waited for.
    pending: HashMap<(Phone, u32), u64>,
    /// What both take.
    bytes: usize,
    /// When it was looked for what is over.
    looked_ms: u64,
}

/// A phone as the server tells it from others: where it is, its Call-ID and the URI of its To.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Phone {
    at: SocketAddr,
    call_id: Box<[u8]>,
    aor: Box<[u8]>,
}

#[derive(Debug)]
struct Binding {
    /// The URI of its only Contact.
    contact: Box<[u8]>,
    cseq: u32,
    granted_ms: u64,
    until_ms: u64,
}

/// What a phone that refreshes is told: its Contact, and the seconds that are left of its registration.
#[derive(Debug, PartialEq, Eq)]
pub struct Confirmed {
    /// The URI.
    pub contact: Vec<u8>,
    /// Seconds.
    pub expires: u64,
}

impl Bindings {
    /// Looks at a REGISTER. Returns what it is answered here if it is a refresh of a registration with more than half of its time left,
    /// which was made without credentials: same source, Call-ID, To and Contact. All others go on to the server.
    pub fn register(&mut self, head: &Head<'_>, from: SocketAddr, now_ms: u64) -> Option<Confirmed> {
        let phone = Phone::of(head, from)?;
        let (cseq, _) = message::cseq(head.only(CSEQ)?)?;
        if let Some(confirmed) = self.refresh(&phone, cseq, head, now_ms) {
            return Some(confirmed);
        }
        // Whatever it asks for, the server's answer says what is so afterwards.
        self.forget(&phone);
        let cost = phone.cost();
        if !has_credentials(head) && self.has_room(self.pending.len() < PENDING_MAX, cost, now_ms) {
            let before = self.pending.insert((phone, cseq), now_ms + PENDING_MS);
            self.bytes += if before.is_none() { cost } else { 0 };
        }
        None
    }

    fn refresh(&mut self, phone: &Phone, cseq: u32, head: &Head<'_>, now_ms: u64) -> Option<Confirmed> {
        let binding = self.confirmed.get_mut(phone)?;
        let left_ms = binding.until_ms.saturating_sub(now_ms);
        let contact = only_contact(head)?;
        let asks_ms = 1000 * u64::from(asked_expiry(head, contact)?);
        let (uri, _) = address(contact)?;
        let is_same = uri == &*binding.contact && cseq > binding.cseq && !has_credentials(head);
        // One that asks for less than it has wants something else than to go on.
        if !is_same || left_ms * 2 <= binding.granted_ms || asks_ms < left_ms {
            return None;
        }
        binding.cseq = cseq;
        Some(Confirmed { contact: uri.to_vec(), expires: left_ms / 1000 })
    }

    /// Looks at the server's answer to a REGISTER.
    pub fn answered(&mut self, head: &Head<'_>, to: SocketAddr, now_ms: u64) -> Option<()> {
        let phone = Phone::of(head, to)?;
        let (cseq, _) = message::cseq(head.only(CSEQ)?)?;
        let asked = self.pending.remove(&(phone.clone(), cseq))?;
        self.bytes -= phone.cost();
        let contact = only_contact(head)?;
        let (uri, parameters) = address(contact)?;
        let granted = parameter(parameters, "expires").or_else(|| head.only(EXPIRES)).and_then(number)?;
        if head.status()? != 200 || asked < now_ms || granted == 0 {
            return None;
        }
        self.forget(&phone);
        let cost = phone.cost() + uri.len();
        if !self.has_room(self.confirmed.len() < BINDINGS_MAX, cost, now_ms) {
            return None;
        }
        let granted_ms = 1000 * u64::from(granted);
        let binding = Binding { contact: uri.into(), cseq, granted_ms, until_ms: now_ms + granted_ms };
        self.confirmed.insert(phone, binding);
        self.bytes += cost;
        Some(())
    }

    fn forget(&mut self, phone: &Phone) {
        if let Some(binding) = self.confirmed.remove(phone) {
            self.bytes -= phone.cost() + binding.contact.len();
        }
    }

    /// Returns whether one more may be known, after what is over has been forgotten if that helps.
    fn has_room(&mut self, has_place: bool, cost: usize, now_ms: u64) -> bool {
        if has_place && self.bytes + cost <= KNOWN_BYTES_MAX {
            return true;
        }
        let before = (self.confirmed.len(), self.pending.len());
        // Not for each that comes: a look at all of them costs more than one is worth.
        if now_ms < self.looked_ms + LOOK_EACH_MS {
            return false;
        }
        self.looked_ms = now_ms;
        self.confirmed.retain(|_, binding| binding.until_ms > now_ms);
        self.pending.retain(|_, until| *until > now_ms);
        let confirmed = self.confirmed.iter().map(|(phone, binding)| phone.cost() + binding.contact.len());
        self.bytes = confirmed.chain(self.pending.keys().map(|(phone, _)| phone.cost())).sum();
        before != (self.confirmed.len(), self.pending.len()) && self.bytes + cost <= KNOWN_BYTES_MAX
    }

    /// Returns how many registrations are known.
    pub fn count(&self) -> usize {
        self.confirmed.len()
    }
}

impl Phone {
    fn of(head: &Head<'_>, at: SocketAddr) -> Option<Phone> {
        let (aor, _) = address(head.only(TO)?)?;
        Some(Phone { at, call_id: head.only(CALL_ID)?.into(), aor: aor.into() })
    }

    fn cost(&self) -> usize {
        EACH_BYTES + self.call_id.len() + self.aor.len()
    }
}

fn has_credentials(head: &Head<'_>) -> bool {
    let is_one =
        |name: &[u8]| name.eq_ignore_ascii_case(b"Authorization") || name.eq_ignore_ascii_case(b"Proxy-Authorization");
    head.headers.iter().any(|(name, _)| is_one(name))
}

/// Returns the only Contact of a message; nothing if there are others, or it is `*`.
fn only_contact<'a>(head: &Head<'a>) -> Option<&'a [u8]> {
    let mut all = list(head.only(CONTACT)?);
    all.next().filter(|contact| all.next().is_none() && *contact != b"*")
}

/// Returns the seconds that a REGISTER asks for.
fn asked_expiry(head: &Head<'_>, contact: &[u8]) -> Option<u32> {
    let (_, parameters) = address(contact)?;
    parameter(parameters, "expires").or_else(|| head.only(EXPIRES)).and_then(number)
}

/// How often it is looked for what is over, if there is no room.
const LOOK_EACH_MS: u64 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    fn register(cseq: u32, more: &str) -> String {
        format!(
            "REGISTER sip:example.com SIP/2.0\r\nVia: SIP/2.0/UDP 10.0.0.5;branch=z9hG4bK{cseq}\r\n\
             From: <sip:alice@example.com>;tag=1\r\nTo: <sip:alice@example.com>\r\nCall-ID: c1\r\n\
             CSeq: {cseq} REGISTER\r\n{more}\r\n"
        )
    }

    fn ok(cseq: u32, more: &str) -> String {
        register(cseq, more).replace("REGISTER sip:example.com SIP/2.0", "SIP/2.0 200 OK")
    }

    const CONTACT: &str = "Contact: <sip:alice@10.0.0.5>\r\nExpires: 100\r\n";
    const GRANTED: &str = "Contact: <sip:alice@10.0.0.5>;expires=100\r\n";

    fn phone() -> SocketAddr {
        "192.0.2.9:40000".parse().unwrap()
    }

    fn asks(bindings: &mut Bindings, text: &str, now_ms: u64) -> Option<u64> {
        let head = Head::parse(text.as_bytes()).unwrap();
        bindings.register(&head, phone(), now_ms).map(|confirmed| confirmed.expires)
    }

    fn answers(bindings: &mut Bindings, text: &str, now_ms: u64) {
        let _ = bindings.answered(&Head::parse(text.as_bytes()).unwrap(), phone(), now_ms);
    }

    fn registered() -> Bindings {
        let mut bindings = Bindings::default();
        assert_eq!(asks(&mut bindings, &register(1, CONTACT), 0), None);
        answers(&mut bindings, &ok(1, GRANTED), 0);
        assert_eq!(bindings.count(), 1);
        bindings
    }

    #[test]
    fn a_refresh_in_the_first_half_is_answered_with_what_is_left() {
        let mut bindings = registered();
        assert_eq!(asks(&mut bindings, &register(2, CONTACT), 10_000), Some(90));
        assert_eq!(asks(&mut bindings, &register(3, GRANTED), 49_000), Some(51));
        assert_eq!(asks(&mut bindings, &register(4, CONTACT), 50_000), None, "the server is asked in time");
        answers(&mut bindings, &ok(4, GRANTED), 50_000);
        assert_eq!(asks(&mut bindings, &register(5, CONTACT), 60_000), Some(90));
    }

    #[test]
    fn whatever_differs_goes_on() {
        let other = |from: &str, to: &str| register(2, CONTACT).replace(from, to);
        for text in [
            other("alice@10.0.0.5", "alice@10.0.0.6"),
            other("Call-ID: c1", "Call-ID: c2"),
            other("To: <sip:alice", "To: <sip:bob"),
            other("Expires: 100", "Expires: 0"),
            other("Expires: 100", "Expires: 10"),
            other("Contact: <sip:alice@10.0.0.5>", "Contact: *"),
            other("Contact: <sip:alice@10.0.0.5>", "Contact: <sip:alice@10.0.0.5>, <sip:b>"),
            other("Contact: <sip:alice@10.0.0.5>\r\n", ""),
            other("Expires: 100", "Expires: 100\r\nAuthorization: Digest username=\"alice\""),
            other("CSeq: 2", "CSeq: 1"),
            other("Expires: 100\r\n", ""),
        ] {
            let mut bindings = registered();
            assert_eq!(asks(&mut bindings, &text, 1000), None, "{text}");
        }
        let mut bindings = registered();
        let head = register(2, CONTACT);
        let elsewhere = "192.0.2.10:40000".parse().unwrap();
        assert_eq!(bindings.register(&Head::parse(head.as_bytes()).unwrap(), elsewhere, 1000), None);
    }

    #[test]
    fn what_the_server_did_not_confirm_without_credentials_is_not_known() {
        let mut bindings = Bindings::default();
        answers(&mut bindings, &ok(1, GRANTED), 0);
        assert_eq!(bindings.count(), 0, "nobody asked");
        asks(&mut bindings, &register(1, &format!("{CONTACT}authorization: Digest a=b\r\n")), 0);
        answers(&mut bindings, &ok(1, GRANTED), 0);
        assert_eq!(bindings.count(), 0, "with credentials");
        for (answer, now) in [
            (ok(2, GRANTED).replace("200 OK", "401 Unauthorized"), 0),
            (ok(2, &GRANTED.replace("100", "0")), 0),
            (ok(2, "Contact: <sip:a>;expires=9, <sip:b>;expires=9\r\n"), 0),
            (ok(2, ""), 0),
            (ok(2, GRANTED), PENDING_MS + 1),
        ] {
            asks(&mut bindings, &register(2, CONTACT), 0);
            answers(&mut bindings, &answer, now);
            assert_eq!(bindings.count(), 0, "{answer}");
        }
        // One that ends a registration ends what is known of it, before the server has said so.
        let mut bindings = registered();
        asks(&mut bindings, &register(2, &CONTACT.replace("100", "0")), 0);
        assert_eq!(bindings.count(), 0);
    }

    #[test]
    fn what_is_known_is_bounded() {
        let mut bindings = Bindings::default();
        let asked = |bindings: &mut Bindings, number: usize, now: u64| {
            let text = |text: String| text.replace("c1", &format!("c{number}"));
            asks(bindings, &text(register(1, CONTACT)), now);
            answers(bindings, &text(ok(1, GRANTED)), now);
        };
        (0..BINDINGS_MAX + 10).for_each(|number| asked(&mut bindings, number, 0));
        assert_eq!(bindings.count(), BINDINGS_MAX);
        asked(&mut bindings, BINDINGS_MAX + 10, 100_001);
        assert_eq!(bindings.count(), 1, "those that ran out made room");
        for number in 0..PENDING_MAX + 10 {
            asks(&mut bindings, &register(1, CONTACT).replace("c1", &format!("p{number}")), 100_001);
        }
        assert_eq!(bindings.pending.len(), PENDING_MAX);
        // Long texts count for what they are.
        let mut bindings = Bindings::default();
        let long = "c".repeat(1000);
        for number in 0..KNOWN_BYTES_MAX / 1000 {
            let text = |text: String| text.replace("c1", &format!("{long}{number}"));
            asks(&mut bindings, &text(register(1, CONTACT)), 0);
            answers(&mut bindings, &text(ok(1, GRANTED)), 0);
        }
        assert!(bindings.bytes <= KNOWN_BYTES_MAX && bindings.count() < KNOWN_BYTES_MAX / 1000);
        asks(&mut bindings, &register(1, CONTACT).replace("c1", &long), 100_001);
        assert!(bindings.count() == 0 && bindings.bytes < 2000, "{}", bindings.bytes);
    }
}
