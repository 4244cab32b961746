// SPDX-License-Identifier: Apache-2.0
//! The text that NetServ nodes exchange: requests, responses, and the parts that a long one travels in.
//!
//! A request is a request line, headers and an empty line (design §6). [`Message`] is a request that parsed, with the
//! text it came as, so that a node forwards exactly what the user signed. [`RequestBuilder`] writes one.
//! Between nodes it travels in an [`Envelope`], which nobody signs. A [`Response`] carries one entry per node on the way back, a NOTIFY news of what a SETUP installed, a [`Tear`] that the
//! path does not lead to a node any more. [`parts`] and [`Part`] fit both into NSLP-Data objects,
//! which RFC 5971 §A.2 bounds to 4095 words.
//!
//! Lines end with LF; a CR in front of it is taken for a part of the line's end. Up to three LF or NUL bytes may follow
//! the empty line, since NSLP-Data comes in whole words.
//!
//! The canonical form, which a signature covers, is the request line and every header but `signature`, in the order of
//! the text, each as `name: value` and LF with the name in lower case and the value without spaces around it.

mod builder;
mod envelope;
mod lines;
mod message;
mod notify;
mod part;
mod payload;
mod properties;
mod response;

pub use builder::{RequestBuilder, Unsigned};
pub use envelope::{ENVELOPE_BYTES_MAX, ENVELOPE_HEADERS_MAX, Envelope, Spread};
pub use message::{Message, peek_nonce};
pub use notify::{Tear, emit_notify, notify_detail};
pub use part::{PART_BYTES_MAX, PARTS_MAX, Part, parts};
pub use payload::Payload;
pub use properties::{decode as decode_properties, encode as encode_properties};
pub use response::Response;

#[cfg(test)]
mod tests;
