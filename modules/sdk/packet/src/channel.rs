// SPDX-License-Identifier: Apache-2.0
//! The module's channel: what it publishes here, readers in its server part get as it comes.
//!
//! A topic keeps its last messages, up to 1 MiB of them; older ones give way, so that [`publish`] waits for nobody.
//!
//! ```
//! use netserv_sdk::{channel, log};
//!
//! /// Tells readers of the topic `rates` of one host: who comes later gets the last rate of each.
//! fn tell(host: &str, rate: u64) {
//!     let event = format!("data: {host} {rate}\n\n");
//!     if let Err(error) = channel::publish_keyed("rates", event.as_bytes(), host.as_bytes()) {
//!         log::warn(&format!("not told: {error:?}"));
//!     }
//! }
//! # netserv_sdk::fake::reset(&[]);
//! # tell("192.0.2.1", 7);
//! # assert_eq!(netserv_sdk::fake::with(|node| node.published.len()), 1);
//! ```

use crate::error::Error;
use crate::host;

/// Publishes a message of up to 65,536 bytes in a topic of 1 to 64 visible ASCII characters.
///
/// # Errors
/// [`Error::Quota`] for a 65th topic, or if other topics keep as much memory as there is; [`Error::TooLarge`];
/// [`Error::Invalid`] for a topic that is none.
pub fn publish(topic: &str, message: &[u8]) -> Result<(), Error> {
    host::channel_publish(topic, message, b"")
}

/// Publishes a message that replaces the one of the same key for readers that come later. A key has 1 to 256 bytes; an empty one
/// is none.
///
/// # Errors
/// As [`publish`].
pub fn publish_keyed(topic: &str, message: &[u8], key: &[u8]) -> Result<(), Error> {
    host::channel_publish(topic, message, key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake;

    #[test]
    fn messages_are_published_with_and_without_a_key() {
        fake::reset(&[]);
        publish("a", b"one").unwrap();
        publish_keyed("b", b"two", b"key").unwrap();
        let published = fake::with(|node| node.published.clone());
        let entry = |topic: &str, message: &[u8], key: &[u8]| (topic.to_owned(), message.to_vec(), key.to_vec());
        assert_eq!(published, [entry("a", b"one", b""), entry("b", b"two", b"key")]);
    }
}
