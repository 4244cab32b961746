// SPDX-License-Identifier: Apache-2.0
//! Registrations that the server has confirmed, so that a phone that only wants to go on with one is answered here.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::net::SocketAddr;

use netserv_sip::message::{self, CALL_ID, CONTACT, CSEQ, EXPIRES, Head, TO, VIA, address, list, number, parameter};

use crate::limits::{BINDINGS_MAX, CONTACT_BYTES_MAX, PENDING_MAX, PENDING_MS};

/// What is known of registrations. Texts are told apart by keyed digests, so that each takes the same.
#[derive(Debug)]
pub struct Bindings {
    secret: u64,
    confirmed: HashMap<u64, Binding>,
    /// The phone of each address-of-record among them.
    phones: HashMap<Aor, u64>,
    /// REGISTERs that went on without credentials, of each phone the last one.
    pending: HashMap<u64, Pending>,
    /// When it was looked for what is over.
    looked_ms: u64,
}

/// Stands for an address-of-record, for both parts of the module alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Aor(u64);

impl Aor {
    /// Returns what stands for the URI of a To: its user or number, without escapes (RFC 3261 §19.1.4) and in lower case. Those that a server
    /// takes for the same are to be the same here, and Kamailio's `registrar` tells users apart by nothing else (`use_domain = 0`). Others may be
    /// the same, too, which costs a REGISTER.
    pub fn of(uri: &[u8]) -> Aor {
        let (scheme, rest) = uri.split_at(uri.iter().position(|byte| *byte == b':').map_or(0, |at| at + 1));
        let user = match rest.iter().position(|byte| *byte == b'@') {
            Some(at) => &rest[..at],
            // A domain, of which there is no user.
            None if [&b"sip:"[..], b"sips:"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) => b"",
            None => rest,
        };
        // A password, and parameters.
        let user = unescaped(user.split(|byte| *byte == b':').next().unwrap_or_default()).to_ascii_lowercase();
        let mut hasher = DefaultHasher::new();
        user.split(|byte| matches!(byte, b';' | b'?')).next().unwrap_or_default().hash(&mut hasher);
        Aor(hasher.finish())
    }

    /// Returns it as the other part is told.
    pub fn to_bytes(self) -> [u8; 8] {
        self.0.to_le_bytes()
    }

    /// Returns what the other part told.
    pub fn from_bytes(bytes: [u8; 8]) -> Aor {
        Aor(u64::from_le_bytes(bytes))
    }
}

#[derive(Debug)]
struct Binding {
    aor: Aor,
    /// What the server calls its only Contact.
    contact: Box<[u8]>,
    /// The REGISTER that it confirmed.
    request: u64,
    cseq: u32,
    granted_ms: u64,
    until_ms: u64,
    wish: Wish,
}

#[derive(Debug)]
struct Pending {
    request: u64,
    cseq: u32,
    until_ms: u64,
    wish: Wish,
}

/// How long a phone wants to be registered.
#[derive(Clone, Copy, Debug)]
struct Wish {
    /// The seconds that it asked for last.
    seconds: u32,
    /// It once asked for fewer than before. It may ask for what it was granted last: for fewer after each answer with the remaining time.
    shrinks: bool,
}

impl Wish {
    /// Returns that of a REGISTER after an earlier one, if there was one.
    fn of(head: &Head<'_>, before: Option<Wish>) -> Wish {
        let seconds = only_contact(head).and_then(|contact| expires(head, address(contact)?.1)).unwrap_or(u32::MAX);
        Wish { seconds, shrinks: before.is_some_and(|before| before.shrinks || (1..before.seconds).contains(&seconds)) }
    }
}

/// A REGISTER, and what its phone is told if it is a refresh: its Contact, and the seconds that are left of its registration.
#[derive(Debug, PartialEq, Eq)]
pub struct Refresh {
    phone: u64,
    cseq: u32,
    /// The URI.
    pub contact: Vec<u8>,
    /// Seconds.
    pub expires: u64,
}

impl Bindings {
    /// Builds one that knows nothing. Nobody may know the secret.
    pub fn new(secret: u64) -> Bindings {
        Bindings { secret, confirmed: HashMap::new(), phones: HashMap::new(), pending: HashMap::new(), looked_ms: 0 }
    }

    /// Returns what a REGISTER is answered here: only if it is the one that the server confirmed, without credentials and with more than
    /// half of its time and a second left, but for CSeq and Via. All others are the server's, and so are those of a phone whose wishes
    /// shrink.
    pub fn refresh(&self, head: &Head<'_>, from: SocketAddr, now_ms: u64) -> Option<Refresh> {
        let (phone, cseq) = self.phone(head, from)?;
        let binding = self.confirmed.get(&phone)?;
        let left_ms = binding.until_ms.saturating_sub(now_ms);
        let is_same = self.request(head) == binding.request && cseq > binding.cseq && !has_credentials(head);
        let goes_on = left_ms * 2 > binding.granted_ms && left_ms >= 1000;
        (is_same && goes_on && !binding.wish.shrinks).then(|| Refresh {
            phone,
            cseq,
            contact: binding.contact.to_vec(),
            expires: left_ms / 1000,
        })
    }

    /// Takes note that a refresh was answered.
    pub fn refreshed(&mut self, refresh: &Refresh) {
        if let Some(binding) = self.confirmed.get_mut(&refresh.phone) {
            binding.cseq = refresh.cseq;
        }
    }

    /// Takes note that a REGISTER goes on: whatever it asks for, the server's answer says what is so afterwards.
    pub fn goes_on(&mut self, head: &Head<'_>, from: SocketAddr, now_ms: u64) -> Option<()> {
        let (phone, cseq) = self.phone(head, from)?;
        let before = self.forget_phone(phone).map(|binding| binding.wish);
        self.wait_for_the_answer(head, (phone, cseq), before, now_ms);
        Some(())
    }

    /// Takes note that a refresh goes on which could be answered here. What the server confirmed stays if it answers nothing, or has too
    /// much to do.
    pub fn refresh_goes_on(&mut self, head: &Head<'_>, refresh: &Refresh, now_ms: u64) {
        self.refreshed(refresh);
        let before = self.confirmed.get(&refresh.phone).map(|binding| binding.wish);
        if !self.wait_for_the_answer(head, (refresh.phone, refresh.cseq), before, now_ms) {
            self.forget_phone(refresh.phone);
        }
    }

    /// Returns whether the server's answer will be known.
    fn wait_for_the_answer(
        &mut self,
        head: &Head<'_>,
        (phone, cseq): (u64, u32),
        before: Option<Wish>,
        now_ms: u64,
    ) -> bool {
        let wish = Wish::of(head, self.pending.remove(&phone).map(|asked| asked.wish).or(before));
        if self.pending.len() >= PENDING_MAX {
            self.forget_what_is_over(now_ms);
        }
        let waits = !has_credentials(head) && self.pending.len() < PENDING_MAX && head.body_length() == Some(0);
        if waits {
            let pending = Pending { request: self.request(head), cseq, until_ms: now_ms + PENDING_MS, wish };
            self.pending.insert(phone, pending);
        }
        waits
    }

    /// Looks at the server's answer to a REGISTER.
    pub fn answered(&mut self, head: &Head<'_>, to: SocketAddr, now_ms: u64) -> Option<()> {
        let (phone, cseq) = self.phone(head, to)?;
        let status = head.status()?;
        let aor = Aor::of(address(head.only(TO)?)?.0);
        match status {
            // It has all bindings of the address (RFC 3261 §10.3): whoever else was confirmed may be none of them, or not the only one.
            200..300 if self.phones.get(&aor).is_some_and(|other| *other != phone) => self.forget(aor),
            100..300 | 500..600 => {}
            // Whichever it is to, and however late: the server does not want it so.
            _ => _ = self.forget_phone(phone),
        }
        let asked = self.pending.get(&phone).filter(|asked| asked.cseq == cseq && asked.until_ms >= now_ms)?;
        let (request, wish) = (asked.request, asked.wish);
        if status < 200 {
            return None;
        }
        self.pending.remove(&phone);
        if (500..600).contains(&status) {
            // It says nothing of the registration, which is as it was.
            return None;
        }
        let answered_here = self.forget_phone(phone).map_or(0, |binding| binding.cseq);
        let contact = only_contact(head)?;
        let (uri, parameters) = address(contact)?;
        let granted = expires(head, parameters)?;
        if status != 200 || granted == 0 || uri.len() > CONTACT_BYTES_MAX || says_more(head, parameters) {
            return None;
        }
        if self.confirmed.len() >= BINDINGS_MAX {
            self.forget_what_is_over(now_ms);
        }
        if self.confirmed.len() >= BINDINGS_MAX {
            return None;
        }
        let granted_ms = 1000 * u64::from(granted);
        let cseq = cseq.max(answered_here);
        let until_ms = now_ms + granted_ms;
        self.phones.insert(aor, phone);
        let contact = uri.into();
        let binding = Binding { aor, contact, request, cseq, granted_ms, until_ms, wish };
        self.confirmed.insert(phone, binding);
        Some(())
    }

    /// Forgets what was confirmed of an address-of-record: its next REGISTER is the server's.
    pub fn forget(&mut self, aor: Aor) {
        if let Some(phone) = self.phones.get(&aor).copied() {
            self.forget_phone(phone);
        }
    }

    /// Forgets everything, also what is asked at the moment: all REGISTERs are the server's.
    pub fn forget_all(&mut self) {
        self.confirmed.clear();
        self.phones.clear();
        self.pending.clear();
    }

    fn forget_phone(&mut self, phone: u64) -> Option<Binding> {
        let binding = self.confirmed.remove(&phone)?;
        if self.phones.get(&binding.aor) == Some(&phone) {
            self.phones.remove(&binding.aor);
        }
        Some(binding)
    }

    /// Returns how many registrations are known.
    pub fn count(&self) -> usize {
        self.confirmed.len()
    }

    /// Returns what stands for a phone, as the server tells it from others (where it is, Call-ID and the URI of To), and its CSeq.
    fn phone(&self, head: &Head<'_>, at: SocketAddr) -> Option<(u64, u32)> {
        let (aor, _) = address(head.only(TO)?)?;
        let (cseq, _) = message::cseq(head.only(CSEQ)?)?;
        Some((self.digest(&(at, head.only(CALL_ID)?, aor)), cseq))
    }

    /// Returns what stands for a REGISTER: its request line and all headers but those that differ in a refresh.
    fn request(&self, head: &Head<'_>) -> u64 {
        let differs = |name: &[u8]| [VIA, CSEQ].iter().any(|known| known.is(name));
        let headers: Vec<_> = head.headers.iter().filter(|(name, _)| !differs(name)).collect();
        self.digest(&(head.first, headers))
    }

    fn digest(&self, of: &impl Hash) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.secret.hash(&mut hasher);
        of.hash(&mut hasher);
        hasher.finish()
    }

    /// Not for each that comes: a look at all of them costs more than one is worth.
    fn forget_what_is_over(&mut self, now_ms: u64) {
        if now_ms >= self.looked_ms + LOOK_EACH_MS {
            self.looked_ms = now_ms;
            self.confirmed.retain(|_, binding| binding.until_ms > now_ms);
            let confirmed = &self.confirmed;
            self.phones.retain(|_, phone| confirmed.contains_key(phone));
            self.pending.retain(|_, pending| pending.until_ms > now_ms);
        }
    }
}

fn has_credentials(head: &Head<'_>) -> bool {
    has(head, &["authorization", "proxy-authorization"])
}

/// Returns whether an answer says what a refresh would have to be told as well (RFC 3608, 3455, 3327, 5627).
fn says_more(head: &Head<'_>, contact_parameters: &[u8]) -> bool {
    has(head, &["service-route", "p-associated-uri", "path", "require", "flow-timer"])
        || ["pub-gruu", "temp-gruu"].iter().any(|name| parameter(contact_parameters, name).is_some())
}

fn has(head: &Head<'_>, names: &[&str]) -> bool {
    head.headers.iter().any(|(given, _)| names.iter().any(|name| given.eq_ignore_ascii_case(name.as_bytes())))
}

/// Returns the only Contact of a message; nothing if there are others, or it is `*`.
fn only_contact<'a>(head: &Head<'a>) -> Option<&'a [u8]> {
    let mut all = list(head.only(CONTACT)?);
    all.next().filter(|contact| all.next().is_none() && *contact != b"*")
}

/// Returns the seconds that a message names for a Contact with these parameters.
fn expires(head: &Head<'_>, contact_parameters: &[u8]) -> Option<u32> {
    parameter(contact_parameters, "expires").or_else(|| head.only(EXPIRES)).and_then(number)
}

/// Returns text with what `%` and two digits stand for.
pub(crate) fn unescaped(text: &[u8]) -> Vec<u8> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (mut plain, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some((byte, after)) = rest.split_first() {
        let escaped = match after {
            [high, low, ..] if *byte == b'%' => digit(high).zip(digit(low)),
            _ => None,
        };
        match escaped {
            Some((high, low)) => {
                plain.push(high << 4 | low);
                rest = &after[2..];
            }
            None => {
                plain.push(*byte);
                rest = after;
            }
        }
    }
    plain
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
    /// As a server says it that looks through NATs.
    const GRANTED: &str = "Contact: <sip:alice@192.0.2.9:40000>;expires=100\r\n";

    fn phone() -> SocketAddr {
        "192.0.2.9:40000".parse().unwrap()
    }

    fn asks(bindings: &mut Bindings, text: &str, now_ms: u64) -> Option<u64> {
        let head = Head::parse(text.as_bytes()).unwrap();
        match bindings.refresh(&head, phone(), now_ms) {
            Some(refresh) => {
                bindings.refreshed(&refresh);
                assert_eq!(refresh.contact, b"sip:alice@192.0.2.9:40000");
                Some(refresh.expires)
            }
            None => {
                let _ = bindings.goes_on(&head, phone(), now_ms);
                None
            }
        }
    }

    fn answers(bindings: &mut Bindings, text: &str, now_ms: u64) {
        let _ = bindings.answered(&Head::parse(text.as_bytes()).unwrap(), phone(), now_ms);
    }

    fn registered() -> Bindings {
        let mut bindings = Bindings::new(7);
        assert_eq!(asks(&mut bindings, &register(1, CONTACT), 0), None);
        answers(&mut bindings, &ok(1, GRANTED), 0);
        assert_eq!(bindings.count(), 1);
        bindings
    }

    #[test]
    fn a_refresh_in_the_first_half_is_answered_with_what_is_left() {
        let mut bindings = registered();
        assert_eq!(asks(&mut bindings, &register(2, CONTACT), 10_000), Some(90));
        assert_eq!(asks(&mut bindings, &register(2, CONTACT), 11_000), None, "a number comes once");
        let mut bindings = registered();
        assert_eq!(asks(&mut bindings, &register(2, CONTACT), 49_000), Some(51));
        assert_eq!(asks(&mut bindings, &register(3, CONTACT), 50_000), None, "the server is asked in time");
        answers(&mut bindings, &ok(3, GRANTED), 50_000);
        assert_eq!(asks(&mut bindings, &register(4, CONTACT), 60_000), Some(90));
    }

    /// Goal: a phone that asks next time for what it was granted last, as some do (asterisk#702, OpenSIPS#3659), is not talked down, from one
    /// answer with the remaining time to the next. Method: such a phone, each 10 s, and a server that grants what it is asked for.
    #[test]
    fn a_phone_that_asks_for_what_was_left_is_not_talked_down() {
        let mut bindings = Bindings::new(7);
        let (mut wanted, mut least) = (100, 100);
        for cseq in 1..40 {
            let now_ms = u64::from(cseq) * 10_000;
            let text = register(cseq, &CONTACT.replace("100", &wanted.to_string()));
            wanted = asks(&mut bindings, &text, now_ms).unwrap_or_else(|| {
                answers(&mut bindings, &ok(cseq, &GRANTED.replace("100", &wanted.to_string())), now_ms);
                wanted
            });
            least = least.min(wanted);
        }
        assert_eq!(least, 90, "one answer of the edge, and it knows the phone");
        // Of several edges only the nearest one answered, and the others saw what the phone asked for then.
        let mut bindings = registered();
        for (cseq, asked, left) in [(2, 90, None), (3, 90, None), (4, 100, None), (5, 100, None), (6, 0, None)] {
            let text = register(cseq, &CONTACT.replace("100", &asked.to_string()));
            assert_eq!(asks(&mut bindings, &text, 1000), left, "{asked}");
            answers(&mut bindings, &ok(cseq, GRANTED), 1000);
        }
        let mut bindings = registered();
        for (cseq, asked, left) in [(2, 200, None), (3, 200, Some(100))] {
            let text = register(cseq, &CONTACT.replace("100", &asked.to_string()));
            assert_eq!(asks(&mut bindings, &text, 1000), left, "{asked}");
            answers(&mut bindings, &ok(cseq, GRANTED), 1000);
        }
    }

    #[test]
    fn no_answer_has_less_than_a_second_left() {
        let mut bindings = Bindings::new(7);
        assert_eq!(asks(&mut bindings, &register(1, CONTACT), 0), None);
        answers(&mut bindings, &ok(1, &GRANTED.replace("100", "1")), 0);
        assert_eq!(asks(&mut bindings, &register(2, CONTACT), 100), None, "0 would end the registration");
    }

    #[test]
    fn whatever_differs_goes_on() {
        let other = |from: &str, to: &str| register(2, CONTACT).replace(from, to);
        for text in [
            other("alice@10.0.0.5", "alice@10.0.0.6"),
            other("Call-ID: c1", "Call-ID: c2"),
            other("To: <sip:alice", "To: <sip:bob"),
            other("From: <sip:alice", "From: <sip:bob"),
            other("REGISTER sip:example.com", "REGISTER sip:example.org"),
            other("Expires: 100", "Expires: 0"),
            other("Expires: 100", "Expires: 10"),
            other("10.0.0.5>", "10.0.0.5>;q=0.1"),
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
        let bindings = registered();
        let head = register(2, CONTACT);
        let elsewhere = "192.0.2.10:40000".parse().unwrap();
        assert_eq!(bindings.refresh(&Head::parse(head.as_bytes()).unwrap(), elsewhere, 1000), None);
    }

    #[test]
    fn what_the_server_did_not_confirm_without_credentials_is_not_known() {
        let mut bindings = Bindings::new(7);
        answers(&mut bindings, &ok(1, GRANTED), 0);
        assert_eq!(bindings.count(), 0, "nobody asked");
        asks(&mut bindings, &register(1, &format!("{CONTACT}authorization: Digest a=b\r\n")), 0);
        answers(&mut bindings, &ok(1, GRANTED), 0);
        assert_eq!(bindings.count(), 0, "with credentials");
        for (answer, now) in [
            (ok(2, GRANTED).replace("200 OK", "401 Unauthorized"), 0),
            (ok(2, &GRANTED.replace("100", "0")), 0),
            (ok(2, "Contact: <sip:a>;expires=9, <sip:b>;expires=9\r\n"), 0),
            (ok(2, &format!("{GRANTED}Service-Route: <sip:proxy>\r\n")), 0),
            (ok(2, &GRANTED.replace(";expires", ";pub-gruu=\"sip:a\";expires")), 0),
            (ok(2, ""), 0),
            (ok(2, GRANTED), PENDING_MS + 1),
        ] {
            asks(&mut bindings, &register(2, CONTACT), 0);
            answers(&mut bindings, &answer, now);
            assert_eq!(bindings.count(), 0, "{answer}");
        }
    }

    #[test]
    fn a_registration_that_ends_is_not_confirmed_by_an_answer_of_before() {
        let mut bindings = registered();
        asks(&mut bindings, &register(2, &CONTACT.replace("100", "0")), 0);
        assert_eq!(bindings.count(), 0, "before the server has said so");
        let mut bindings = Bindings::new(7);
        asks(&mut bindings, &register(1, CONTACT), 0);
        asks(&mut bindings, &register(2, &CONTACT.replace("100", "0")), 10);
        answers(&mut bindings, &ok(1, GRANTED), 20);
        answers(&mut bindings, &ok(2, ""), 30);
        answers(&mut bindings, &ok(1, GRANTED), 40);
        assert_eq!(bindings.count(), 0);
    }

    /// Goal: a phone whose refresh the server is to hear stays known while that has too much to do, and only then.
    #[test]
    fn a_refresh_that_goes_on_leaves_what_was_confirmed_until_the_server_says_otherwise() {
        let goes_on = |bindings: &mut Bindings, now_ms| {
            let text = register(2, CONTACT);
            let head = Head::parse(text.as_bytes()).unwrap();
            let refresh = bindings.refresh(&head, phone(), now_ms).unwrap();
            bindings.refresh_goes_on(&head, &refresh, now_ms);
        };
        for (answer, left) in [
            (None, Some(80)),
            (Some(ok(2, "").replace("200 OK", "503 Service Unavailable")), Some(80)),
            (Some(ok(2, GRANTED)), Some(90)),
            (Some(ok(2, "").replace("200 OK", "401 Unauthorized")), None),
            (Some(ok(2, "")), None),
        ] {
            let mut bindings = registered();
            goes_on(&mut bindings, 10_000);
            assert_eq!(asks(&mut bindings, &register(2, CONTACT), 10_000), None, "a number comes once");
            let mut bindings = registered();
            goes_on(&mut bindings, 10_000);
            if let Some(answer) = &answer {
                answers(&mut bindings, answer, 10_000);
            }
            assert_eq!(asks(&mut bindings, &register(3, CONTACT), 20_000), left, "{answer:?}");
        }
        // A refusal counts however late, and whichever it is to.
        for (cseq, now) in [(2, 10_001 + PENDING_MS), (1, 10_000)] {
            let mut bindings = registered();
            goes_on(&mut bindings, 10_000);
            answers(&mut bindings, &ok(cseq, "").replace("200 OK", "403 Forbidden"), now);
            assert_eq!(bindings.count(), 0, "{cseq}");
        }
        let mut bindings = registered();
        goes_on(&mut bindings, 10_000);
        assert_eq!(asks(&mut bindings, &register(9, CONTACT), 11_000), Some(89));
        answers(&mut bindings, &ok(2, GRANTED), 12_000);
        assert_eq!(asks(&mut bindings, &register(9, CONTACT), 13_000), None, "a number comes once");
        let mut bindings = registered();
        for number in 0..PENDING_MAX {
            asks(&mut bindings, &register(1, CONTACT).replace("c1", &format!("p{number}")), 10_000);
        }
        goes_on(&mut bindings, 10_000);
        assert_eq!(bindings.count(), 0, "the answer will not be known");
    }

    /// Goal: the server's word about an address counts, whichever phone it is said to: `*` of another one, another one in its place, and
    /// another one beside it. Method: a second phone registers, whose REGISTER went on.
    #[test]
    fn what_the_server_says_to_another_phone_of_the_address_counts() {
        let other_at: SocketAddr = "192.0.2.10:40001".parse().unwrap();
        let other = |text: String| text.replace("Call-ID: c1", "Call-ID: c2");
        let beside = "Contact: <sip:alice@192.0.2.9:40000>;expires=90, <sip:alice@192.0.2.10:40001>;expires=100\r\n";
        for (asked, answer) in [
            ("Contact: *\r\nExpires: 0\r\n", ""),
            (CONTACT, "Contact: <sip:alice@192.0.2.10:40001>;expires=100\r\n"),
            (CONTACT, beside),
        ] {
            for to in [
                "To: <sip:alice@example.com>",
                "To: \"A\" <sips:alice@EXAMPLE.com:5061;x=y>;tag=2",
                "To: <sip:%61lice:secret@example.com>",
                "To: <sip:alice@192.0.2.1>",
                "To: sip:Alice@other.example:5070;x=%40y",
                "To: <SIP:alice;x=y@[2001:db8::1]?a=b@c>",
                "To: <tel:alice;phone-context=example.com>",
            ] {
                let text = |text: String| other(text).replace("To: <sip:alice@example.com>", to);
                let mut bindings = registered();
                let question = text(register(7, asked));
                let _ = bindings.goes_on(&Head::parse(question.as_bytes()).unwrap(), other_at, 1000);
                assert_eq!(asks(&mut bindings, &register(2, CONTACT), 1000), Some(99), "until the server answers");
                let answer = text(ok(7, answer));
                let _ = bindings.answered(&Head::parse(answer.as_bytes()).unwrap(), other_at, 2000);
                assert_eq!(asks(&mut bindings, &register(3, CONTACT), 3000), None, "{answer}");
            }
        }
        // A refusal, or another address, leaves it.
        for answer in [
            ok(7, "").replace("200 OK", "403 Forbidden"),
            ok(7, "").replace("sip:alice@example.com", "sip:bob@example.com"),
        ] {
            let mut bindings = registered();
            let answer = other(answer);
            let _ = bindings.answered(&Head::parse(answer.as_bytes()).unwrap(), other_at, 2000);
            assert_eq!(asks(&mut bindings, &register(2, CONTACT), 3000), Some(97), "{answer}");
        }
        let mut bindings = registered();
        bindings.forget(Aor::from_bytes(Aor::of(b"sip:alice@example.com;user=phone").to_bytes()));
        assert_eq!((bindings.count(), bindings.phones.len()), (0, 0));
        bindings.forget(Aor::of(b"sip:alice@example.com"));
    }

    /// Goal: what stands for a user stands for no other one, whatever a URI has besides.
    #[test]
    fn a_user_is_told_from_others() {
        let alice = Aor::of(b"sip:alice@example.com");
        for other in [
            "sip:bob@example.com",
            "sip:alice%40b@example.com",
            "sip:alice2@a",
            "tel:+1",
            "sip:alice",
            "sip:@a",
            "alice",
            "",
        ] {
            let is_no_uri = other == "alice";
            assert_eq!(Aor::of(other.as_bytes()) == alice, is_no_uri, "{other}");
        }
        assert_eq!(Aor::of(b"tel:+49-30;phone-context=a"), Aor::of(b"sip:+49-30@b;user=phone"));
        assert_eq!(Aor::of(b"sip:a.example"), Aor::of(b"sips:b.example:5061"), "both without a user");
    }

    /// Goal: of a server that has begun anew nothing is confirmed that the one before confirmed, or was asked.
    #[test]
    fn nothing_is_left_of_a_server_that_has_begun_anew() {
        let mut bindings = registered();
        bindings.forget_all();
        assert_eq!((bindings.count(), bindings.phones.len()), (0, 0));
        assert_eq!(asks(&mut bindings, &register(2, CONTACT), 1000), None);
        bindings.forget_all();
        answers(&mut bindings, &ok(2, GRANTED), 1000);
        assert_eq!(asks(&mut bindings, &register(3, CONTACT), 2000), None, "the one before was asked");
        answers(&mut bindings, &ok(3, GRANTED), 2000);
        assert_eq!(asks(&mut bindings, &register(4, CONTACT), 3000), Some(99));
    }

    #[test]
    fn what_is_known_is_bounded() {
        let mut bindings = Bindings::new(7);
        let asked = |bindings: &mut Bindings, number: usize, now: u64| {
            let text = |text: String| {
                text.replace("c1", &format!("c{number}")).replace("alice@example", &format!("a{number}@example"))
            };
            asks(bindings, &text(register(1, CONTACT)), now);
            answers(bindings, &text(ok(1, GRANTED)), now);
        };
        (0..BINDINGS_MAX + 10).for_each(|number| asked(&mut bindings, number, 0));
        assert_eq!(bindings.count(), BINDINGS_MAX);
        asked(&mut bindings, BINDINGS_MAX + 10, 100_001);
        assert_eq!((bindings.count(), bindings.phones.len()), (1, 1), "those that ran out made room");
        for number in 0..PENDING_MAX + 10 {
            asks(&mut bindings, &register(1, CONTACT).replace("c1", &format!("p{number}")), 100_001);
        }
        assert_eq!(bindings.pending.len(), PENDING_MAX);
        let mut bindings = Bindings::new(7);
        asks(&mut bindings, &register(1, CONTACT), 0);
        answers(&mut bindings, &ok(1, &GRANTED.replace("alice", &"a".repeat(CONTACT_BYTES_MAX))), 0);
        assert_eq!(bindings.count(), 0, "a long Contact");
    }
}
