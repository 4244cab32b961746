// SPDX-License-Identifier: Apache-2.0
//! Filters of traces as people write them: the grammar of [`Filter`] and the short forms that `tcpdump` has taught.

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::text::one_line;
use crate::{Filter, PortRange, Protocol};

/// What the words of a trace's filter may be, for error messages.
const GRAMMAR: &str = "[ip|ip4|ip6] [tcp|udp|icmp|icmp6] [host NET] [src NET] [dst NET] [sport PORTS] [dport PORTS]";
/// Characters of a word that an error repeats.
const WORD_CHARS_MAX: usize = 40;

/// Returns the filters that a text stands for; a packet is meant that one of them matches.
///
/// Every text of a [`Filter`] stands for that filter. Beyond it, `host NET` means source or destination, `dport` and
/// `sport` without a protocol mean TCP or UDP, `ip4`, `ip6` and `icmp6` fix the version, `src host`, `src net`,
/// `src port` and the like are read as without the middle word, and `and` may stand between words.
///
/// # Errors
/// Says which word is wrong, where it stands, and what to write.
pub fn parse_filters(text: &str) -> Result<Vec<Filter>, TraceFilterError> {
    let words: Vec<Word<'_>> = words(text).collect();
    let mut wish = Wish::default();
    let mut rest = Words { text, words: &words };
    while let Some(word) = rest.next() {
        wish.take(word, &mut rest)?;
    }
    wish.filters(text)
}

/// Why a text is no filter of a trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cause} (character {at} of `{text}`)")]
pub struct TraceFilterError {
    /// The whole text.
    pub text: String,
    /// Where the wrong word starts, counted from 1 in characters.
    pub at: usize,
    /// What is wrong.
    pub cause: String,
    /// What to do about it.
    pub fix: String,
}

/// A word and where it starts, in bytes.
#[derive(Clone, Copy)]
struct Word<'a> {
    start: usize,
    text: &'a str,
}

impl fmt::Display for Word<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: String = one_line(self.text).chars().take(WORD_CHARS_MAX).collect();
        write!(f, "`{shown}`")
    }
}

/// The words that are still to be read.
struct Words<'t, 'a> {
    text: &'t str,
    words: &'a [Word<'t>],
}

impl<'t> Words<'t, '_> {
    fn next(&mut self) -> Option<Word<'t>> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(*first)
    }

    fn peek(&self) -> &'t str {
        self.words.first().map_or("", |word| word.text)
    }

    /// Returns the word after `key`.
    fn value(&mut self, key: Word<'t>, what: &str) -> Result<Word<'t>, TraceFilterError> {
        let text = self.text;
        self.next().ok_or_else(|| wrong(text, key, format!("{key} lacks its value"), format!("write {what} after it")))
    }
}

/// What the words read so far ask for, each with the word that did.
#[derive(Default)]
struct Wish<'t> {
    version: Option<(u8, Word<'t>)>,
    protocol: Option<(Protocol, Word<'t>)>,
    host: Option<(IpNet, Word<'t>)>,
    source: Option<(IpNet, Word<'t>)>,
    destination: Option<(IpNet, Word<'t>)>,
    source_ports: Option<(PortRange, Word<'t>)>,
    destination_ports: Option<(PortRange, Word<'t>)>,
}

impl<'t> Wish<'t> {
    fn take(&mut self, word: Word<'t>, rest: &mut Words<'t, '_>) -> Result<(), TraceFilterError> {
        let text = rest.text;
        let again = match word.text {
            "and" | "&&" if word.start > 0 && !rest.words.is_empty() => false,
            "ip" => false,
            "ip4" => self.version.replace((4, word)).is_some(),
            "ip6" => self.version.replace((6, word)).is_some(),
            "tcp" => self.protocol.replace((Protocol::Tcp, word)).is_some(),
            "udp" => self.protocol.replace((Protocol::Udp, word)).is_some(),
            "icmp" => self.protocol.replace((Protocol::Icmp, word)).is_some(),
            "icmp6" => {
                let versions = self.version.replace((6, word)).is_some();
                self.protocol.replace((Protocol::Icmp, word)).is_some() || versions
            }
            "host" | "net" => self.host.replace((net(rest, word)?, word)).is_some(),
            "src" if rest.peek() == "port" => {
                rest.next();
                self.source_ports.replace((ports(rest, word)?, word)).is_some()
            }
            "dst" if rest.peek() == "port" => {
                rest.next();
                self.destination_ports.replace((ports(rest, word)?, word)).is_some()
            }
            "src" => self.source.replace((net(rest, word)?, word)).is_some(),
            "dst" => self.destination.replace((net(rest, word)?, word)).is_some(),
            "sport" => self.source_ports.replace((ports(rest, word)?, word)).is_some(),
            "dport" | "port" => self.destination_ports.replace((ports(rest, word)?, word)).is_some(),
            "or" | "||" | "not" | "!" => {
                let fix = "run one trace for each alternative; ports can be ranges such as 5060-5061";
                return Err(wrong(text, word, format!("a trace has no {word}"), fix));
            }
            _ => {
                let fix = format!("a filter is `{GRAMMAR}`");
                return Err(wrong(text, word, format!("{word} is no word of a filter"), fix));
            }
        };
        let fix = format!("a filter is `{GRAMMAR}`");
        if again { Err(wrong(text, word, format!("{word} says again what is said"), fix)) } else { Ok(()) }
    }

    fn filters(self, text: &str) -> Result<Vec<Filter>, TraceFilterError> {
        self.check(text)?;
        let has_ports = self.source_ports.is_some() || self.destination_ports.is_some();
        let protocols = match self.protocol {
            Some((protocol, _)) => vec![protocol],
            None if has_ports => vec![Protocol::Udp, Protocol::Tcp],
            None => vec![Protocol::Any],
        };
        let (source, destination) = (self.source.map(first), self.destination.map(first));
        let ways = match self.host.map(first) {
            Some(host) => vec![(Some(host), None), (None, Some(host))],
            None => vec![(source, destination)],
        };
        let every = self.version.map(|(version, _)| if version == 4 { EVERY_V4 } else { EVERY_V6 });
        let mut filters = Vec::new();
        for protocol in protocols {
            for (source, destination) in &ways {
                let source = if destination.is_some() { *source } else { source.or(every) };
                let ports = (self.source_ports.map(first), self.destination_ports.map(first));
                let filter = Filter::new(protocol, source, *destination, ports.0, ports.1);
                let whole = Word { start: 0, text };
                filters.push(filter.map_err(|error| wrong(text, whole, error.to_string(), GRAMMAR))?);
            }
        }
        Ok(filters)
    }

    /// Refuses what would match nothing.
    fn check(&self, text: &str) -> Result<(), TraceFilterError> {
        let ports = self.source_ports.or(self.destination_ports);
        if let (Some((protocol, _)), Some((_, word))) = (self.protocol, ports)
            && !protocol.has_ports()
        {
            let cause = format!("packets of {} have no ports", protocol.as_str());
            return Err(wrong(text, word, cause, "leave the ports out, or write `tcp` or `udp`"));
        }
        let nets = [self.host, self.source, self.destination];
        let mut version = self.version.map(|(version, _)| version);
        for (net, word) in nets.into_iter().flatten() {
            let its = if net.addr().is_ipv4() { 4 } else { 6 };
            if version.is_some_and(|version| version != its) {
                let cause = format!("{net} is of another IP version than the rest, so no packet would match");
                return Err(wrong(text, word, cause, "write addresses of one version"));
            }
            version = Some(its);
        }
        if let (Some((_, word)), Some(_)) = (self.host, self.source.or(self.destination)) {
            let cause = format!("{word} means source or destination, and one of them is said already");
            return Err(wrong(text, word, cause, "write `src` and `dst`"));
        }
        Ok(())
    }
}

fn net<'t>(rest: &mut Words<'t, '_>, key: Word<'t>) -> Result<IpNet, TraceFilterError> {
    let what = "an address or a prefix such as 10.2.0.0/24";
    if matches!(rest.peek(), "host" | "net") {
        rest.next();
    }
    let text = rest.text;
    let word = rest.value(key, what)?;
    let net = word.text.parse::<IpNet>().ok().or_else(|| word.text.parse::<IpAddr>().ok().map(IpNet::from));
    net.ok_or_else(|| wrong(text, word, format!("{word} is not {what}"), "write numbers; names are not looked up"))
}

fn ports<'t>(rest: &mut Words<'t, '_>, key: Word<'t>) -> Result<PortRange, TraceFilterError> {
    let what = "a port or a range such as 16384-32767";
    let text = rest.text;
    let word = rest.value(key, what)?;
    word.text.parse().map_err(|_| wrong(text, word, format!("{word} is not {what}"), "write numbers from 0 to 65535"))
}

fn words(text: &str) -> impl Iterator<Item = Word<'_>> {
    let start = |word: &str| word.as_ptr().addr() - text.as_ptr().addr();
    text.split_ascii_whitespace().map(move |word| Word { start: start(word), text: word })
}

fn wrong(text: &str, word: Word<'_>, cause: String, fix: impl Into<String>) -> TraceFilterError {
    let at = text[..word.start].chars().count() + 1;
    TraceFilterError { text: text.to_owned(), at, cause, fix: fix.into() }
}

fn first<T, U>((value, _): (T, U)) -> T {
    value
}

const EVERY_V4: IpNet = IpNet::V4(ipnet::Ipv4Net::new_assert(std::net::Ipv4Addr::UNSPECIFIED, 0));
const EVERY_V6: IpNet = IpNet::V6(ipnet::Ipv6Net::new_assert(std::net::Ipv6Addr::UNSPECIFIED, 0));

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, filters: &[&str]) {
        let parsed = parse_filters(text).map(|filters| filters.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(parsed, Ok(filters.iter().map(ToString::to_string).collect()), "{text}");
    }

    #[test]
    fn filters_are_read_as_they_are() {
        for text in ["udp dst 10.2.0.0/24 port 5060", "ip", "tcp src 2001:db8::/32 port 80-90", "icmp", "udp sport 9"] {
            check(text, &[text]);
        }
        check("dst 10.2.0.1", &["ip dst 10.2.0.1/32"]);
    }

    #[test]
    fn short_forms_stand_for_filters() {
        check("", &["ip"]);
        check("udp dport 5060", &["udp port 5060"]);
        check("dport 5060", &["udp port 5060", "tcp port 5060"]);
        check("sport 1-2 tcp", &["tcp sport 1-2"]);
        check("host 10.1.0.2", &["ip src 10.1.0.2/32", "ip dst 10.1.0.2/32"]);
        check("icmp6", &["icmp src ::/0"]);
        check("ip4", &["ip src 0.0.0.0/0"]);
        check("ip6 tcp", &["tcp src ::/0"]);
        check("ip6 dst 2001:db8::1", &["ip dst 2001:db8::1/128"]);
        check("udp and src host 10.1.0.2 and dst port 53", &["udp src 10.1.0.2/32 port 53"]);
        check(
            "net 10.0.0.0/8 dport 1",
            &[
                "udp src 10.0.0.0/8 port 1",
                "udp dst 10.0.0.0/8 port 1",
                "tcp src 10.0.0.0/8 port 1",
                "tcp dst 10.0.0.0/8 port 1",
            ],
        );
    }

    #[test]
    fn errors_say_where_and_what_to_do() {
        for (text, at, cause, fix) in [
            ("udp dprt 5060", 5, "`dprt` is no word of a filter", GRAMMAR),
            ("udp dport", 5, "`dport` lacks its value", "write a port or a range"),
            ("udp dport 70000", 11, "`70000` is not a port or a range such as 16384-32767", "from 0 to 65535"),
            ("dst www.example.org", 5, "`www.example.org` is not an address", "names are not looked up"),
            ("icmp dport 7", 6, "packets of icmp have no ports", "`tcp` or `udp`"),
            ("udp or tcp", 5, "a trace has no `or`", "one trace for each"),
            ("udp udp", 5, "`udp` says again what is said", GRAMMAR),
            ("ip6 dst 10.0.0.1", 5, "10.0.0.1/32 is of another IP version", "one version"),
            ("src 10.0.0.1 dst ::1", 14, "::1/128 is of another IP version", "one version"),
            ("src 10.0.0.2 host 10.0.0.1", 14, "`host` means source or destination", "write `src`"),
            ("é and", 1, "`é` is no word", GRAMMAR),
            ("ip é", 4, "`é` is no word", GRAMMAR),
            ("udp and", 5, "`and` is no word", GRAMMAR),
        ] {
            let error = parse_filters(text).unwrap_err();
            assert_eq!(error.at, at, "{text}: {error}");
            assert!(error.cause.starts_with(cause), "{text}: {error}");
            assert!(error.fix.contains(fix), "{text}: {}", error.fix);
        }
    }
}
