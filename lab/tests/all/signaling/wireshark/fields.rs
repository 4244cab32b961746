// SPDX-License-Identifier: Apache-2.0
//! What the dissector is to show, by what our own parser reads.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::IpAddr;

use netserv_model::request::Outcome;
use netserv_wire::gist::{AdditionalInfo, Direction, ErrorObject, Message, Mri};
use netserv_wire::nslp::Response;

/// What the dissector is to show of a message: values of fields, in the order of the message.
pub type Fields = BTreeMap<String, Vec<String>>;

pub fn fields_of(message: &Message) -> Fields {
    let mut fields = Shower::default();
    fields.put("hops", message.hops);
    fields.put("nslp_id", message.nslp_id);
    fields.put("type", message.kind.number());
    fields.put("flags.c", u8::from(message.context_free));
    fields.put("flags.s", u8::from(message.source_is_signaller));
    fields.put("flags.r", u8::from(message.reply_wanted));
    fields.put("flags.e", u8::from(message.explicit));
    if let Some(nat) = &message.nat_traversal {
        fields.put_mri(&nat.mri);
        nat.translated.iter().for_each(|half| fields.put("nat.type", half & 0x0FFF));
        nat.nats.iter().for_each(|entry| fields.put_bytes("nat.entry", entry));
    }
    message.mri.iter().for_each(|mri| fields.put_mri(mri));
    message.session.iter().for_each(|session| fields.put_bytes("session_id", &session.0));
    if let Some(nli) = &message.nli {
        fields.put("nli.ip_ttl", nli.ip_ttl);
        fields.put("nli.validity", nli.validity.as_millis());
        fields.put_bytes("nli.identity", &nli.peer_identity);
        fields.put_address("nli.address", nli.address);
    }
    message.query_cookie.iter().for_each(|cookie| fields.put_bytes("query_cookie", &cookie.0));
    message.responder_cookie.iter().for_each(|cookie| fields.put_bytes("responder_cookie", &cookie.0));
    for profile in message.stack_proposal.iter().flat_map(|proposal| &proposal.profiles) {
        fields.put("stack_proposal.layers", profile.len());
        profile.iter().for_each(|protocol| fields.put("stack_proposal.protocol", protocol));
    }
    if let Some(configuration) = &message.stack_configuration {
        fields.put("stack_configuration.hold_time", configuration.hold_time.as_millis());
        for option in &configuration.options {
            fields.put("stack_configuration.protocol", option.protocol);
            fields.put("stack_configuration.profile", option.profile);
            fields.put("stack_configuration.forbidden", u8::from(option.forbidden));
            option.port.iter().for_each(|port| fields.put("stack_configuration.port", port));
        }
    }
    message.hello_id.iter().for_each(|id| fields.put("hello_id", id));
    message.error.iter().for_each(|error| fields.put_error(error));
    message.nslp_data.iter().for_each(|data| fields.put_bytes("nslp_data", &padded(data)));
    message.unknown.iter().for_each(|object| fields.put_bytes("object.value", &object.value));
    fields.0
}

#[derive(Default)]
struct Shower(Fields);

impl Shower {
    fn put(&mut self, name: &str, value: impl Display) {
        self.0.entry(format!("gist.{name}")).or_default().push(value.to_string());
    }

    fn put_bytes(&mut self, name: &str, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.put(name, hex(bytes));
        }
    }

    fn put_address(&mut self, name: &str, address: IpAddr) {
        self.put(&format!("{name}.ipv{}", if address.is_ipv4() { 4 } else { 6 }), address);
    }

    fn put_mri(&mut self, mri: &Mri) {
        let direction = u8::from(mri.direction() == Some(Direction::Upstream));
        match mri {
            Mri::PathCoupled(flow) => {
                self.put("mri.method", 0);
                self.put("mri.direction", direction);
                self.put_address("mri.source", flow.source());
                self.put_address("mri.destination", flow.destination());
                self.put("mri.source_prefix", flow.source_prefix());
                self.put("mri.destination_prefix", flow.destination_prefix());
                flow.protocol().iter().for_each(|value| self.put("mri.protocol", value));
                flow.dscp().iter().for_each(|value| self.put("mri.dscp", value));
                flow.flow_label().iter().for_each(|value| self.put("mri.flow_label", value));
                flow.spi().iter().for_each(|value| self.put("mri.spi", value));
                flow.source_port().iter().for_each(|value| self.put("mri.source_port", value));
                flow.destination_port().iter().for_each(|value| self.put("mri.destination_port", value));
            }
            Mri::LooseEnd(flow) => {
                self.put("mri.method", 1);
                self.put("mri.loose_end.direction", direction);
                self.put_address("mri.source", flow.source());
                self.put_address("mri.destination", flow.destination());
            }
            Mri::Other(other) => {
                self.put("mri.method", other.method());
                self.put_bytes("mri.other", other.raw().get(2..).unwrap_or_default());
            }
        }
    }

    fn put_error(&mut self, error: &ErrorObject) {
        self.put("error.class", error.class);
        self.put("error.code", error.code);
        self.put("error.subcode", error.subcode);
        self.put("error.flags.d", u8::from(error.datagram));
        self.put("error.flags.q", u8::from(error.q_mode));
        self.put_bytes("error.header", &error.header);
        error.session.iter().for_each(|session| self.put_bytes("error.session_id", &session.0));
        error.mri.iter().for_each(|mri| self.put_mri(mri));
        for info in &error.infos {
            match info {
                AdditionalInfo::MessageLength(words) => self.put("error.info.message_length", words),
                AdditionalInfo::Mtu(bytes) => self.put("error.info.mtu", bytes),
                AdditionalInfo::ObjectType(kind) => self.put("error.info.object_type", kind),
                AdditionalInfo::ObjectValue { object, offset } => {
                    self.put("error.info.object_offset", offset);
                    self.put_bytes("error.info.object", object);
                }
                AdditionalInfo::Other { kind: _, value } => self.put_bytes("error.info.value", value),
            }
        }
        error.comment.iter().for_each(|comment| self.put("error.comment", comment));
    }
}

/// What the dissector is to show of a text.
pub fn lines_of(text: &str) -> Fields {
    let mut fields = Fields::new();
    let mut put = |name: &str, value: &str| fields.entry(format!("netserv.{name}")).or_default().push(value.to_owned());
    let first = text.lines().next().unwrap();
    let request = text.split_once("\n\n").map_or("", |(_, rest)| rest);
    if first == "NETSERV/1 RESPONSE" {
        put("response", "");
        for entry in &Response::parse(text.as_bytes()).unwrap().entries {
            put("entry.node", entry.node.as_str());
            put("entry.result", if matches!(entry.outcome, Outcome::Refused(_)) { "refused" } else { "installed" });
        }
        put("incomplete.kind", "timeout");
    } else if let Some(kind) = first.strip_prefix("NETSERV/1 ") {
        put(&kind.to_lowercase(), "");
    } else {
        for (name, word) in ["method", "subject", "version"].into_iter().zip(first.split(' ')) {
            put(name, word);
        }
    }
    for line in text.lines().skip(1).take_while(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').unwrap();
        let value = value.strip_prefix(' ').unwrap_or(value);
        if name.starts_with("x-") {
            put("header", line);
        } else {
            put(&name.to_lowercase().replace('-', "_"), value);
        }
    }
    if !request.is_empty() {
        fields.extend(lines_of(request));
    }
    fields
}

/// Returns bytes as tshark writes them.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
}

/// Returns data as it travels: whole words.
fn padded(data: &[u8]) -> Vec<u8> {
    let mut data = data.to_vec();
    data.resize(data.len().next_multiple_of(4), 0);
    data
}
