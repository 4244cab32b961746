// SPDX-License-Identifier: Apache-2.0
//! What NSLP-Data may hold.

use netserv_model::Refusal;

use super::message::Message;
use super::part::Part;
use super::response::Response;

/// One NSLP-Data object, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// A whole request.
    Request(Box<Message>),
    /// A whole response.
    Response(Box<Response>),
    /// A part of either.
    Part(Part),
}

impl Payload {
    /// Understands NSLP-Data; `bytes` may be anything.
    ///
    /// # Errors
    /// What is neither a part nor a response must be a request.
    pub fn parse(bytes: &[u8]) -> Result<Payload, Refusal> {
        if let Some(part) = Part::parse(bytes) {
            return Ok(Payload::Part(part));
        }
        if Response::is_response(bytes) {
            return Response::parse(bytes).map(|response| Payload::Response(Box::new(response)));
        }
        Message::parse(bytes).map(|message| Payload::Request(Box::new(message)))
    }
}
