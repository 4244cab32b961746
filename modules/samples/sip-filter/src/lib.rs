// SPDX-License-Identifier: Apache-2.0
//! Drops SIP that nobody wants, before it reaches a server.
//!
//! - Messages of scanners: those whose User-Agent contains one of the texts of property `agents`, in any case.
//! - Requests of other methods than those of property `methods`, if it names any.
//! - Damaged messages, unless property `malformed` is `pass`.
//!
//! What is no SIP passes: keep-alives, STUN, media. The node reads the messages and looks for the texts (the blocks `sip`
//! and `match`); the module says what becomes of them.

use netserv_sdk::ip::parse_udp;
use netserv_sdk::search::Patterns;
use netserv_sdk::sip::{self, HeaderName, Message, Room};
use netserv_sdk::{Counter, Error, Packet, PacketModule, StartError, Verdict, netserv_module, property};

/// The module.
pub struct SipFilter {
    agents: Option<Patterns>,
    methods: Vec<String>,
    damaged: Verdict,
    room: Room,
    counters: Counters,
}

struct Counters {
    scanners: Counter,
    methods: Counter,
    malformed: Counter,
    passed: Counter,
}

impl PacketModule for SipFilter {
    fn start() -> Result<SipFilter, StartError> {
        let agents = list("agents");
        let damaged = match property::text("malformed").as_deref() {
            None | Some("drop") => Verdict::Drop,
            Some("pass") => Verdict::Pass,
            Some(other) => return Err(format!("property `malformed` is `{other}`; write `drop` or `pass`").into()),
        };
        Ok(SipFilter {
            agents: if agents.is_empty() { None } else { Some(Patterns::open(&agents, true)?) },
            methods: list("methods"),
            damaged,
            room: Room::new(),
            counters: Counters {
                scanners: Counter::open("scanners")?,
                methods: Counter::open("methods")?,
                malformed: Counter::open("malformed")?,
                passed: Counter::open("passed")?,
            },
        })
    }

    fn process(&mut self, packet: &mut Packet<'_>) -> Verdict {
        let Some(udp) = parse_udp(packet.bytes()) else { return Verdict::Pass };
        let (verdict, counter) = match sip::parse(&packet.bytes()[udp.payload], &mut self.room) {
            Ok(message) if is_of_scanner(&message, self.agents.as_ref()) => (Verdict::Drop, self.counters.scanners),
            Ok(message) if !is_wanted(&message, &self.methods) => (Verdict::Drop, self.counters.methods),
            Ok(_) | Err(Error::NotFound) => (Verdict::Pass, self.counters.passed),
            Err(_) => (self.damaged, self.counters.malformed),
        };
        counter.add(1);
        verdict
    }
}

netserv_module!(SipFilter);

fn is_of_scanner(message: &Message<'_>, agents: Option<&Patterns>) -> bool {
    let (Some(agents), Some(agent)) = (agents, message.header(HeaderName::USER_AGENT)) else { return false };
    agents.is_match(agent).unwrap_or(false)
}

/// Responses are always wanted: they answer requests that passed.
fn is_wanted(message: &Message<'_>, methods: &[String]) -> bool {
    let is_listed = || methods.iter().any(|method| method.as_bytes() == message.method_name());
    methods.is_empty() || message.status().is_some() || is_listed()
}

/// Returns the texts of a property, between its commas.
fn list(key: &str) -> Vec<String> {
    let all = property::text(key).unwrap_or_default();
    all.split(',').map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use netserv_sdk::fake;
    use netserv_testing::udp;

    use super::*;

    fn message(first: &str, agent: &str) -> Vec<u8> {
        let method = first.split(' ').next().unwrap();
        let text = format!(
            "{first}\r\nVia: SIP/2.0/UDP 192.0.2.1\r\nFrom: <sip:a@b>;tag=1\r\nTo: <sip:c@d>\r\nCall-ID: 1\r\n\
             CSeq: 1 {method}\r\nUser-Agent: {agent}\r\n\r\n"
        );
        udp("192.0.2.1:5060", "198.51.100.1:5060", 64, text.as_bytes())
    }

    fn check(properties: &[(&str, &str)], packet: &[u8], counter: &str, expected: Verdict) {
        fake::reset(properties);
        let mut module = SipFilter::start().unwrap();
        assert_eq!(fake::process(&mut module, packet).0, expected);
        assert_eq!(fake::with(|node| node.counter(counter)), 1, "{counter}");
    }

    #[test]
    fn each_reason_has_its_counter() {
        let invite = message("INVITE sip:a SIP/2.0", "Friendly-Scanner 1.0");
        check(&[("agents", "x, friendly-scanner")], &invite, "scanners", Verdict::Drop);
        check(&[], &invite, "passed", Verdict::Pass);
        check(&[("methods", "REGISTER")], &invite, "methods", Verdict::Drop);
        check(&[("methods", "REGISTER, INVITE")], &invite, "passed", Verdict::Pass);
        let cut = &invite[..invite.len() - 4];
        let cut = udp("192.0.2.1:5060", "198.51.100.1:5060", 64, &cut[28..]);
        check(&[], &cut, "malformed", Verdict::Drop);
        check(&[("malformed", "pass")], &cut, "malformed", Verdict::Pass);
        check(&[], &udp("192.0.2.1:5060", "198.51.100.1:5060", 64, b"\r\n\r\n"), "passed", Verdict::Pass);
    }

    #[test]
    fn properties_are_checked() {
        fake::reset(&[("malformed", "maybe")]);
        assert!(SipFilter::start().is_err());
    }
}
