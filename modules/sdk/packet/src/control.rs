// SPDX-License-Identifier: Apache-2.0
//! Control messages, which the module's user sends by `netserv tell`, and the way back.
//!
//! Messages come by [`PacketModule::control`](crate::PacketModule::control) to a module that says so:
//! `netserv_module!(MyModule, control)`. An instance that is loaded later begins with the last message of each topic.
//!
//! ```
//! use netserv_sdk::control::{self, Message};
//! use netserv_sdk::{Packet, PacketModule, StartError, Verdict, netserv_module};
//!
//! struct Sampler {
//!     one_in: u64,
//! }
//!
//! impl PacketModule for Sampler {
//!     fn start() -> Result<Sampler, StartError> {
//!         Ok(Sampler { one_in: 100 })
//!     }
//!
//!     fn process(&mut self, _: &mut Packet<'_>) -> Verdict {
//!         Verdict::Pass
//!     }
//!
//!     // netserv tell example.org/sampler --topic sample 10 --to DEST
//!     fn control(&mut self, message: &Message<'_>) {
//!         let number = std::str::from_utf8(message.body).ok().and_then(|text| text.parse().ok());
//!         let answer = match (message.topic, number) {
//!             ("sample", Some(one_in)) => {
//!                 self.one_in = one_in;
//!                 "done"
//!             }
//!             _ => "not understood",
//!         };
//!         // Who asks too often gets no answer.
//!         let _ = control::notify(message.topic, answer.as_bytes());
//!     }
//! }
//!
//! netserv_module!(Sampler, control);
//! ```

use crate::error::Error;
use crate::host;

/// Bytes of the body of a message at most.
pub const BODY_BYTES_MAX: usize = 4096;
/// Bytes of the body of a [`notify`] at most.
pub const NOTIFY_BYTES_MAX: usize = 1024;
/// Characters of a topic at most.
pub const TOPIC_CHARS_MAX: usize = 64;
/// Bytes of a message as the node gives it.
#[doc(hidden)]
pub const MESSAGE_BYTES_MAX: usize = HEAD_BYTES + TOPIC_CHARS_MAX + BODY_BYTES_MAX;

const HEAD_BYTES: usize = 10;

/// One control message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// What it is about: 1 to 64 visible ASCII characters.
    pub topic: &'a str,
    /// Its number, above those of all messages before.
    pub seq: u64,
    /// The message, at most 4,096 bytes.
    pub body: &'a [u8],
}

/// Tells the requester of the module's last SETUP something, who sees it by `netserv watch`. Nothing says whether it arrives.
///
/// # Errors
/// [`Error::Quota`] after 5 at once, or one in each second in the long run; [`Error::TooLarge`] for more than 1,024 bytes;
/// [`Error::Invalid`] for a topic that is none.
pub fn notify(topic: &str, body: &[u8]) -> Result<(), Error> {
    host::control_notify(topic, body)
}

/// Takes the oldest message, if there is one.
#[doc(hidden)]
pub fn receive(into: &mut [u8; MESSAGE_BYTES_MAX]) -> Option<Message<'_>> {
    let length = host::control_receive(into).ok()?;
    parse(into.get(..length)?)
}

fn parse(bytes: &[u8]) -> Option<Message<'_>> {
    let (seq, rest) = bytes.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let (topic, body) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    Some(Message { topic: std::str::from_utf8(topic).ok()?, seq: u64::from_le_bytes(*seq), body })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Packet, PacketModule, StartError, Verdict, fake};

    #[test]
    fn a_message_is_read_as_the_node_writes_it() {
        let bytes = [&7_u64.to_le_bytes()[..], &5_u16.to_le_bytes(), b"limit", b"\x00\xff"].concat();
        assert_eq!(parse(&bytes), Some(Message { topic: "limit", seq: 7, body: b"\x00\xff" }));
        for length in 0..15 {
            assert_eq!(parse(&bytes[..length]), None, "{length} bytes");
        }
    }

    /// Says what it was told.
    struct Parrot;

    impl PacketModule for Parrot {
        fn start() -> Result<Parrot, StartError> {
            Ok(Parrot)
        }

        fn process(&mut self, _: &mut Packet<'_>) -> Verdict {
            Verdict::Pass
        }

        fn control(&mut self, message: &Message<'_>) {
            notify(message.topic, message.body).unwrap();
        }
    }

    #[test]
    fn messages_are_passed_to_the_module_and_answered() {
        fake::reset(&[]);
        let mut module = Parrot::start().unwrap();
        fake::tell(&mut module, &Message { topic: "limit", seq: 7, body: b"1000" });
        assert_eq!(fake::with(|node| node.notified.clone()), [("limit".to_owned(), b"1000".to_vec())]);
    }
}
