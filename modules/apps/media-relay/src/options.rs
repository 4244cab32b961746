// SPDX-License-Identifier: Apache-2.0
//! What a request asks beyond names and a description. Each key and flag is carried out, refused where a call would be less safe or another one
//! than was asked, or named in a warning: docs/apps/ng.md has the table.

use std::net::IpAddr;

use crate::limits::WARNED_MAX;
use crate::sdp::{Sdp, is_machine};
use crate::value::{Dict, Value};

/// What a request asks of the relay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Packets come from one source, which stays.
    pub is_strict: bool,
    /// Packets go where the description says, wherever those of the party come from.
    pub is_fixed: bool,
    /// Where the party is, in place of what its description says.
    pub source: Option<IpAddr>,
    /// The origin is replaced, too.
    pub replaces_origin: bool,
    ignored: Vec<String>,
    refused: Vec<String>,
}

/// What becomes of a part of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    /// It is carried out, or is so already.
    Honoured,
    /// The request is not carried out.
    Refused,
    /// The request is carried out without it.
    Ignored,
}
use Taken::{Honoured, Ignored, Refused};

/// Returns a request with its keys in small letters, with hyphens between their words.
pub fn normal(dict: &Dict) -> Dict {
    dict.iter().map(|(key, value)| (normal_word(key), value.clone())).collect()
}

fn normal_word(word: &[u8]) -> Vec<u8> {
    let byte = |byte: &u8| if matches!(byte, b' ' | b'_') { b'-' } else { byte.to_ascii_lowercase() };
    word.iter().map(byte).collect()
}

impl Options {
    /// Reads them from a request whose keys are [`normal`], with its description and the addresses that the relay has.
    pub fn read(dict: &Dict, sdp: &Sdp<'_>, addresses: &[IpAddr]) -> Options {
        let mut options = Options::default();
        for (key, value) in dict {
            for word in words(key, value) {
                let taken = options.take(key, &word, sdp, addresses);
                options.put(taken, key, &word);
            }
        }
        let asks_for_source = options.source.is_some();
        options.source = received_from(dict).filter(|_| asks_for_source);
        if asks_for_source && options.source.is_none() {
            options.refused.push("SIP-source-address without received-from".to_owned());
        }
        options
    }

    /// Returns why the request is not carried out.
    ///
    /// # Errors
    /// What cannot be done.
    pub fn check(&self) -> Result<(), String> {
        if self.refused.is_empty() { Ok(()) } else { Err(format!("Not supported: {}", named(&self.refused))) }
    }

    /// Returns what the client is told of a request that was carried out without some of it.
    pub fn warning(&self) -> Option<String> {
        (!self.ignored.is_empty()).then(|| format!("Ignored: {}", named(&self.ignored)))
    }

    fn put(&mut self, taken: Taken, key: &[u8], word: &[u8]) {
        let name = || {
            let (key, word) = (String::from_utf8_lossy(key), String::from_utf8_lossy(word));
            if word.is_empty() { key.into_owned() } else { format!("{key}={word}") }
        };
        match taken {
            Honoured => {}
            Refused => self.refused.push(name()),
            Ignored => self.ignored.push(name()),
        }
    }

    fn take(&mut self, key: &[u8], word: &[u8], sdp: &Sdp<'_>, addresses: &[IpAddr]) -> Taken {
        let small = normal_word(word);
        match (key, &small[..]) {
            (
                b"command" | b"call-id" | b"from-tag" | b"to-tag" | b"via-branch" | b"sdp" | b"supports"
                | b"received-from" | b"address-family" | b"limit",
                _,
            ) => Honoured,
            (b"flags", _) => self.take_flag(&small, sdp),
            (b"replace", b"origin") => {
                self.replaces_origin = true;
                Honoured
            }
            (b"replace", b"session-connection") => Honoured,
            (b"media-address", _) => {
                let address = std::str::from_utf8(word).ok().and_then(|word| word.parse().ok());
                if address.is_some_and(|address| addresses.contains(&address)) { Honoured } else { Refused }
            }
            (b"transport-protocol", _) => {
                let is_rtp = |protocol: &[u8]| protocol.to_ascii_uppercase().windows(4).any(|part| part == b"RTP/");
                let mut streams = sdp.media.iter().filter(|media| is_rtp(media.protocol) && media.port > 0);
                if streams.all(|media| media.protocol.eq_ignore_ascii_case(word)) { Honoured } else { Refused }
            }
            (b"sdes", _) => is_off(&small, sdp.has_attribute("crypto:")),
            (b"dtls", _) => is_off(&small, sdp.has_attribute("fingerprint:")),
            (b"ice", b"remove") | (b"ice-lite" | b"generate-rtcp", b"off") | (b"drop-traffic", b"stop") => Honoured,
            (b"ice", b"default") => Ignored,
            (b"record-call", b"off" | b"no") | (b"passthrough" | b"passthru", b"on" | b"yes") => Honoured,
            (b"delete-delay", b"0") => Honoured,
            (b"endpoint-learning", b"off") => {
                self.is_fixed = true;
                Honoured
            }
            (key, _) if REFUSED_KEYS.iter().any(|refused| refused.as_bytes() == key) => Refused,
            _ => Ignored,
        }
    }

    fn take_flag(&mut self, small: &[u8], sdp: &Sdp<'_>) -> Taken {
        match small {
            b"strict-source" => self.is_strict = true,
            b"asymmetric" | b"endpoint-learning-off" => self.is_fixed = true,
            b"sip-source-address" => self.source = Some(IpAddr::from([0, 0, 0, 0])),
            b"trust-address" | b"ice-reject" | b"reject-ice" | b"passthrough" | b"no-redis-update"
            | b"original-sendrecv" | b"reset" | b"fatal" => {}
            _ => {
                if let Some(value) = small.strip_prefix(b"sdes-") {
                    return is_off(value, sdp.has_attribute("crypto:"));
                }
                let is_refused = REFUSED_FLAGS.iter().any(|flag| flag.as_bytes() == small)
                    || REFUSED_PREFIXES.iter().any(|prefix| small.starts_with(prefix.as_bytes()));
                return if is_refused { Refused } else { Ignored };
            }
        }
        Honoured
    }
}

/// Returns what of a request without a description is not carried out: such a request is never refused for it, since it mostly ends a call.
pub fn ignored(dict: &Dict) -> Option<String> {
    let sdp = Sdp::default();
    let mut options = Options::read(dict, &sdp, &[]);
    let refused = std::mem::take(&mut options.refused);
    options.ignored.extend(refused);
    options.warning()
}

/// Returns what is asked by a value: its words, or the names of what it has. An empty list asks for nothing.
fn words(key: &[u8], value: &Value) -> Vec<Vec<u8>> {
    match value {
        Value::Int(number) => vec![number.to_string().into_bytes()],
        Value::Text(text) if matches!(key, b"flags" | b"replace") => {
            text.split(|byte| *byte == b',').map(<[u8]>::to_vec).filter(|word| !word.is_empty()).collect()
        }
        Value::Text(text) => vec![text.clone()],
        Value::List(list) => list.iter().map(|one| one.as_text().unwrap_or_default().to_vec()).collect(),
        Value::Dict(dict) => dict.keys().cloned().collect(),
    }
}

fn received_from(dict: &Dict) -> Option<IpAddr> {
    let value = dict.get(&b"received-from"[..])?;
    let text = value.as_list().map_or(Some(value), <[Value]>::last)?.as_text()?;
    std::str::from_utf8(text).ok()?.parse().ok().filter(|address| is_machine(*address))
}

/// Returns whether a kind of encryption that is to be off is.
fn is_off(small: &[u8], is_described: bool) -> Taken {
    let is_off = matches!(small, b"off" | b"no" | b"disable" | b"disabled");
    if is_off && !is_described { Honoured } else { Refused }
}

fn named(names: &[String]) -> String {
    let more = names.len().saturating_sub(WARNED_MAX);
    let shown = names[..names.len() - more].iter().map(|name| name.chars().take(WARNED_CHARS_MAX).collect::<String>());
    let text = shown.collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{text} and {more} more") } else { text }
}

/// Characters of each that a warning names.
const WARNED_CHARS_MAX: usize = 64;

/// Keys without which a call would be less safe than asked, go by another network, or carry other media.
const REFUSED_KEYS: [&str; 24] = [
    "ice",
    "ice-lite",
    "dtls-reverse",
    "dtls-fingerprint",
    "osrtp",
    "direction",
    "interface",
    "from-interface",
    "to-interface",
    "codec",
    "ptime",
    "ptime-reverse",
    "reverse-ptime",
    "t38",
    "t.38",
    "record-call",
    "drop-traffic",
    "media-echo",
    "dtmf-security",
    "dtmf-security-trigger",
    "dtmf-security-trigger-end",
    "trigger",
    "trigger-end",
    "sdp-attr",
];
const REFUSED_FLAGS: [&str; 8] =
    ["record-call", "always-transcode", "single-codec", "pad-crypto", "fragment", "webrtc", "block-dtmf", "inactive"];
const REFUSED_PREFIXES: [&str; 6] = ["osrtp-", "codec-", "transcode-", "t38-", "t.38-", "sdp-attr-"];
