// SPDX-License-Identifier: Apache-2.0
//! Cases of the state machines, bytes included: folders of `vectors/gist/cases`, whose README says how they are written.
//!
//! `NETSERV_CASES=write` writes the outputs anew; look at what changed before you keep it.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use netserv_model::Instant;
use netserv_wire::gist::{Message, MessageStream, Mri, PathCoupled, strip_magic};

use super::{NSLP, config, session};
use crate::{
    ApiCall, AssociationId, Channel, Config, Datagram, Disposition, Engine, Event, IcmpError, IcmpKind, InterfaceId,
    MessageHandle, Prefix, SendOptions, TransferAttributes, Transmit,
};

#[test]
fn every_case_has_its_outputs() {
    let write = std::env::var_os("NETSERV_CASES").is_some_and(|value| value == "write");
    let mut cases: Vec<PathBuf> = std::fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.retain(|path| path.is_dir());
    cases.sort();
    let mut failures = String::new();
    for case in &cases {
        failures += &run(case, write);
    }
    assert!(failures.is_empty(), "{failures}\nIf that is as it should be: NETSERV_CASES=write");
    let has = |name: &str| cases.iter().any(|case| case.file_name().is_some_and(|file| file == name));
    for name in
        ["handshake-datagrams", "handshake-connection", "refresh", "route-change", "errors-received", "errors-sent"]
    {
        for version in ["v4", "v6"] {
            assert!(has(&format!("{name}-{version}")), "there is no case {name}-{version}");
        }
    }
}

/// Runs one case and returns what differs.
#[allow(clippy::disallowed_methods, reason = "a test that writes what it is told to")]
fn run(case: &Path, write: bool) -> String {
    let mut player = Player::new();
    let mut differences = String::new();
    for number in 1.. {
        let input = case.join(format!("{number:02}-in.txt"));
        let Ok(text) = std::fs::read_to_string(&input) else {
            assert!(number > 1, "{} is not there", input.display());
            return differences;
        };
        for block in text.split("\n\n").filter(|block| !block.trim().is_empty()) {
            player.play(block);
        }
        let output = case.join(format!("{number:02}-out.txt"));
        let found = std::mem::take(&mut player.output);
        if write {
            std::fs::write(&output, &found).unwrap();
        } else if std::fs::read_to_string(&output).ok().as_deref() != Some(&found) {
            writeln!(differences, "{}: the engine says\n{found}", output.display()).unwrap();
        }
    }
    differences
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/gist/cases")
}

/// One engine, and what of its messages the inputs give back.
struct Player {
    engine: Engine,
    now: Instant,
    local: IpAddr,
    query_cookie: String,
    responder_cookie: String,
    output: String,
}

impl Player {
    fn new() -> Player {
        let config = Config { secret_lifetime: Duration::from_secs(3600), ..config(0xaa) };
        let local = "10.0.0.1".parse().unwrap();
        let cookie = String::new;
        let (now, query_cookie, responder_cookie) = (Instant::from_millis(0), cookie(), cookie());
        Player {
            engine: Engine::new(config, [1; 32]),
            now,
            local,
            query_cookie,
            responder_cookie,
            output: String::new(),
        }
    }

    /// Hands in one input: a line of words, and bytes in hex below it.
    fn play(&mut self, block: &str) {
        let mut lines = block.lines().filter(|line| !line.starts_with('#'));
        let words: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
        let bytes = self.bytes(&lines.collect::<String>());
        let after = |word: &str| {
            let at = words.iter().position(|other| *other == word);
            at.map(|at| words[at + 1]).unwrap_or_else(|| panic!("no `{word}` in {words:?}"))
        };
        match words[0] {
            "at" => self.pass_time(words[1].parse().unwrap()),
            "local" => self.local = words[1].parse().unwrap(),
            "ingress" => {
                let (address, bits) = words[2].split_once('/').unwrap();
                let prefix = Prefix { address: address.parse().unwrap(), bits: bits.parse().unwrap() };
                self.engine.set_ingress([(InterfaceId(words[1].parse().unwrap()), vec![prefix])]);
            }
            "send" => self.send(&words),
            "datagram" | "passing" => self.datagram(words[0] == "passing", &after, &bytes),
            "icmp-too-big" => {
                let kind = IcmpKind::TooBig { mtu: words[1].parse().unwrap() };
                let reporter = Some(after("from").parse().unwrap());
                self.engine.handle_icmp_error(self.now, &IcmpError { kind, reporter, quoted: bytes });
            }
            "accepted" => {
                let peer: SocketAddr = after("from").parse().unwrap();
                let id = self.engine.handle_accepted(self.now, self.local, peer, Channel::Plain);
                writeln!(self.output, "accepted as {}", id.0).unwrap();
            }
            "connected" => self.engine.handle_connected(self.now, association(words[1]), Channel::Plain),
            "stream" => self.engine.handle_stream(self.now, association(words[1]), &bytes),
            "closed" => self.engine.handle_closed(self.now, association(words[1]), Some("cut".to_owned())),
            other => panic!("no input is called {other}"),
        }
        self.drain();
    }

    fn pass_time(&mut self, at_ms: u64) {
        let now = Instant::from_millis(at_ms);
        while let Some((due, why)) = self.engine.poll_timeout().filter(|(due, _)| *due <= now) {
            self.engine.handle_timeout(due);
            writeln!(self.output, "timer {} ms: {why}", due.as_nanos() / 1_000_000).unwrap();
            self.drain();
        }
        self.now = now;
    }

    fn send(&mut self, words: &[&str]) {
        let ["send", handle, "session", number, source, "to", destination, direction, how, text] = words else {
            panic!("{words:?}")
        };
        let flow = PathCoupled::new(source.parse().unwrap(), destination.parse().unwrap()).unwrap();
        let mri = Mri::PathCoupled(flow);
        let call = ApiCall::SendMessage {
            handle: MessageHandle(handle.parse().unwrap()),
            nslp_id: NSLP,
            session: session(number.parse().unwrap()),
            mri: if *direction == "upstream" { mri.inverted() } else { mri },
            attributes: TransferAttributes { reliable: *how == "reliable", ..TransferAttributes::default() },
            sii: None,
            timeout: Duration::from_secs(10),
            data: text.as_bytes().to_vec(),
            hops: None,
            options: SendOptions::default(),
        };
        if let Err(error) = self.engine.handle_api(self.now, call, self.local) {
            writeln!(self.output, "refused: {error}").unwrap();
        }
    }

    fn datagram<'a>(&mut self, passing: bool, after: &impl Fn(&str) -> &'a str, payload: &[u8]) {
        let rx = Datagram {
            interface: InterfaceId(after("interface").parse().unwrap()),
            local: self.local,
            source: after("from").parse().unwrap(),
            destination: after("to").parse().unwrap(),
            destination_is_local: !passing,
            ttl: after("ttl").parse().unwrap(),
            q_mode_interceptable: true,
            payload,
        };
        match self.engine.handle_datagram(self.now, rx) {
            Disposition::Consumed => {}
            Disposition::Held(query) => panic!("{query:?} is held, though the NSLP takes all"),
            Disposition::Forward { payload } => {
                let bytes = payload.map(hex::encode).unwrap_or_else(|| "as it came".to_owned());
                writeln!(self.output, "goes on: {bytes}").unwrap();
            }
        }
    }

    /// Returns bytes, with cookies of the engine's last messages where their names stand.
    fn bytes(&self, text: &str) -> Vec<u8> {
        let text = text.replace("{query-cookie}", &self.query_cookie);
        let text = text.replace("{responder-cookie}", &self.responder_cookie);
        hex::decode(text.split_whitespace().collect::<String>()).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    fn drain(&mut self) {
        while let Some(transmit) = self.engine.poll_transmit() {
            self.tell(&transmit);
        }
        while let Some(event) = self.engine.poll_event() {
            let line = told(&event);
            writeln!(self.output, "{line}").unwrap();
        }
    }

    fn tell(&mut self, transmit: &Transmit) {
        let (line, bytes, message) = match transmit {
            Transmit::QMode { local, destination, ttl, rao, payload, .. } => {
                let line = format!("q-mode from {local} to {destination} ttl {ttl:?} rao {rao:?}");
                (line, payload.as_slice(), strip_magic(payload).and_then(|bytes| Message::parse(bytes).ok()))
            }
            Transmit::Datagram { local, peer, payload, .. } => {
                let line = format!("datagram from {local} to {peer}");
                (line, payload.as_slice(), strip_magic(payload).and_then(|bytes| Message::parse(bytes).ok()))
            }
            Transmit::Connect { association, local, peer, tls } => {
                (format!("connect {} from {local} to {peer} tls {tls}", association.0), &[][..], None)
            }
            Transmit::Stream { association, bytes } => {
                let mut messages = MessageStream::new().handle_bytes(bytes);
                let message = messages.pop().and_then(|message| message.ok().map(|stream| stream.message));
                (format!("stream {}", association.0), bytes.as_slice(), message)
            }
            Transmit::Close { association } => (format!("close {}", association.0), &[][..], None),
        };
        let kind = message.as_ref().map(|message| format!(": {:?}", message.kind)).unwrap_or_default();
        writeln!(self.output, "{line}{kind}").unwrap();
        if !bytes.is_empty() {
            writeln!(self.output, "  {}", hex::encode(bytes)).unwrap();
        }
        let Some(message) = message else { return };
        if let Some(cookie) = message.query_cookie {
            self.query_cookie = hex::encode(cookie.0);
        }
        if let Some(cookie) = message.responder_cookie {
            self.responder_cookie = hex::encode(cookie.0);
        }
    }
}

fn association(word: &str) -> AssociationId {
    AssociationId(word.parse().unwrap())
}

fn told(event: &Event) -> String {
    match event {
        Event::RecvMessage { data, peer, mri, attributes, validated, .. } => {
            let text = String::from_utf8_lossy(data);
            let text = text.trim_end_matches('\0');
            let reliable = attributes.reliable;
            format!("received from {peer} {:?} reliable {reliable} validated {validated}: {text}", mri.direction())
        }
        Event::MessageStatus { handle, status, .. } => format!("status of {}: {status:?}", handle.0),
        Event::NetworkNotification { kind, .. } => format!("notification: {kind:?}"),
        Event::Malformed { error, .. } => format!("malformed: {:?}", error.code),
    }
}
