// SPDX-License-Identifier: Apache-2.0
//! What NSLP-Data may hold.

use netserv_model::Refusal;
use netserv_model::notify::Notify;

use super::envelope::Envelope;
use super::message::Message;
use super::notify::{Tear, is_notify, parse_notify};
use super::part::Part;
use super::response::Response;

/// One NSLP-Data object, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// A whole request, and what the previous node says about it.
    Request(Envelope, Box<Message>),
    /// A whole response.
    Response(Box<Response>),
    /// News for the requester.
    Notify(Box<Notify>),
    /// What was installed is not needed any more.
    Tear(Box<Tear>),
    /// A part of any of them.
    Part(Part),
}

impl Payload {
    /// Understands NSLP-Data; `bytes` may be anything.
    ///
    /// # Errors
    /// What is nothing else must be a request.
    pub fn parse(bytes: &[u8]) -> Result<Payload, Refusal> {
        if let Some(part) = Part::parse(bytes) {
            return Ok(Payload::Part(part));
        }
        if Response::is_response(bytes) {
            return Response::parse(bytes).map(|response| Payload::Response(Box::new(response)));
        }
        if is_notify(bytes) {
            return parse_notify(bytes).map(|notify| Payload::Notify(Box::new(notify)));
        }
        if Tear::is_tear(bytes) {
            return Tear::parse(bytes).map(|tear| Payload::Tear(Box::new(tear)));
        }
        let (envelope, request) = Envelope::take(bytes)?;
        Message::parse(request).map(|message| Payload::Request(envelope, Box::new(message)))
    }
}
