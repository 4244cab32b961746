// SPDX-License-Identifier: Apache-2.0
//! Messages to the module's server part. Those from there come by [`PacketModule::message`](crate::PacketModule::message).
//!
//! ```
//! use netserv_sdk::{Packet, PacketModule, StartError, Verdict, messages, netserv_module};
//!
//! struct Guard {
//!     blocked: Vec<Vec<u8>>,
//! }
//!
//! impl PacketModule for Guard {
//!     fn start() -> Result<Guard, StartError> {
//!         Ok(Guard { blocked: Vec::new() })
//!     }
//!
//!     fn process(&mut self, packet: &mut Packet<'_>) -> Verdict {
//!         let is_blocked = self.blocked.iter().any(|start| packet.bytes().starts_with(start));
//!         if is_blocked { Verdict::Drop } else { Verdict::Pass }
//!     }
//!
//!     fn message(&mut self, start: &[u8]) {
//!         self.blocked.push(start.to_vec());
//!         let _ = messages::send(format!("{} blocked", self.blocked.len()).as_bytes());
//!     }
//! }
//!
//! netserv_module!(Guard);
//! ```

use crate::error::Error;
use crate::host;

/// Bytes of a message at most.
pub const MESSAGE_BYTES_MAX: usize = 4096;

/// Sends a message to the server part. Messages arrive in order, each once.
///
/// # Errors
/// [`Error::Quota`] while 1,024 messages or 256 KiB wait there already, [`Error::TooLarge`] for more than 4 KiB,
/// [`Error::NotFound`] if the module has no server part.
pub fn send(message: &[u8]) -> Result<(), Error> {
    host::message_send(message)
}

/// Takes the oldest message from the server part, if there is one.
#[doc(hidden)]
pub fn receive(into: &mut [u8; MESSAGE_BYTES_MAX]) -> Option<&[u8]> {
    let length = host::message_receive(into).ok()?;
    into.get(..length)
}

#[cfg(test)]
mod tests {
    use crate::{Packet, PacketModule, StartError, Verdict, fake, kv};

    /// Answers each message with how many there were.
    struct Answers;

    impl PacketModule for Answers {
        fn start() -> Result<Answers, StartError> {
            Ok(Answers)
        }

        fn process(&mut self, _: &mut Packet<'_>) -> Verdict {
            Verdict::Pass
        }

        fn message(&mut self, message: &[u8]) {
            let count = kv::increment(b"messages", 1).unwrap();
            super::send(&[message, count.to_string().as_bytes()].concat()).unwrap();
        }
    }

    #[test]
    fn messages_are_passed_to_the_module_and_answered() {
        fake::reset(&[]);
        let mut module = Answers::start().unwrap();
        fake::message(&mut module, b"a");
        fake::message(&mut module, b"b");
        assert_eq!(fake::with(|node| node.sent.clone()), [b"a1", b"b2"]);
        assert_eq!(kv::compare_and_set(b"messages", None, Some(b"x")), Ok(false));
        assert_eq!(kv::compare_and_set(b"messages", Some(&2_i64.to_le_bytes()), None), Ok(true));
        assert_eq!(kv::value(b"messages"), None);
    }
}
