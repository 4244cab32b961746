// SPDX-License-Identifier: Apache-2.0
//! `netserv:sip/parser`.

use netserv_wire::sip::{self, SipError, Span};
use netserv_worker_base::compute;
use wasmtime::component::{HasSelf, Linker};

use crate::state::ServerState;

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../../wit/deps/netserv-sip",
        inline: "package netserv:host-sip; world host { import netserv:sip/parser@1.0.0; }",
        imports: { default: trappable },
    });
}

use bindings::netserv::sip::parser::{self as wit, Condition, Error, Header, Message, Start};

/// Adds the interface to a linker.
///
/// # Errors
/// It is there already.
pub fn add_to_linker(linker: &mut Linker<ServerState>) -> wasmtime::Result<()> {
    wit::add_to_linker::<_, HasSelf<ServerState>>(linker, |state| state)
}

impl wit::Host for ServerState {
    fn parse(&mut self, text: Vec<u8>) -> wasmtime::Result<Result<Message, Error>> {
        let mut headers = Vec::new();
        let message = sip::parse(&text, &mut headers);
        Ok(message.map(|message| read(&text, &message, &headers)).map_err(Error::from))
    }

    fn first_match(
        &mut self,
        text: Vec<u8>,
        conditions: Vec<Condition>,
    ) -> wasmtime::Result<Result<Option<u32>, Error>> {
        let mut headers = Vec::new();
        let message = match sip::parse(&text, &mut headers) {
            Ok(message) => message,
            Err(error) => return Ok(Err(error.into())),
        };
        let mut conditions = (0..).zip(conditions.into_iter().map(compute::sip::Condition::from));
        let first = conditions.find(|(_, condition)| condition.fits(&text, &message, &headers));
        Ok(Ok(first.map(|(number, _)| number)))
    }
}

fn read(bytes: &[u8], message: &sip::Message, headers: &[sip::Header]) -> Message {
    let text = |span: Span| String::from_utf8_lossy(span.of(bytes)).into_owned();
    let maybe = |span: Option<Span>| span.map(text).unwrap_or_default();
    let place = |span: Span| (u32::from(span.start), u32::from(span.length));
    let method = text(message.method_name);
    Message {
        start: match message.start {
            sip::Start::Request { uri } => Start::Request((method.clone(), text(uri))),
            sip::Start::Response { status, reason } => Start::Response((status, text(reason))),
        },
        headers: headers
            .iter()
            .map(|header| Header {
                name: header.long_name(bytes),
                value: header.text(bytes),
                place: place(header.value),
            })
            .collect(),
        call_id: text(message.call_id),
        cseq: (message.cseq, method),
        from_uri: text(message.from_uri),
        to_uri: text(message.to_uri),
        from_tag: maybe(message.from_tag),
        to_tag: maybe(message.to_tag),
        sent_by: text(message.via_sent_by),
        branch: maybe(message.via_branch),
        body: place(message.body),
    }
}

impl From<Condition> for compute::sip::Condition {
    fn from(condition: Condition) -> compute::sip::Condition {
        let Condition { methods, status, headers } = condition;
        compute::sip::Condition { methods, status, headers }
    }
}

impl From<SipError> for Error {
    fn from(error: SipError) -> Error {
        match error {
            SipError::NotSip => Error::NotSip,
            SipError::Incomplete => Error::Incomplete,
            SipError::Malformed(what) => Error::Malformed(what.to_owned()),
            SipError::TooManyHeaders | SipError::TooLarge => Error::TooLarge,
        }
    }
}
