// SPDX-License-Identifier: Apache-2.0
//! Control messages: what a user tells a running module, and what a module tells the requester of its SETUP.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::Instant;
use crate::ids::Topic;

/// Bytes of one control message to a module.
pub const CONTROL_BYTES_MAX: usize = 4096;
/// Topics of one module of which the last message is kept.
pub const CONTROL_TOPICS_MAX: usize = 16;
/// Bytes of one message of a module to the requester of its SETUP.
pub const MODULE_NOTIFY_BYTES_MAX: usize = 1024;

/// The topic of what a module is told that is gone, and goes on with the connections that it has
/// ([`Drain::Finish`](crate::manifest::Drain::Finish)).
pub const DRAINING_TOPIC: &str = "draining";

/// Messages of one module that go to the requester of its SETUP at once.
pub const MODULE_NOTIFIES_BURST_MAX: u32 = 5;
/// How long after one of them another one may follow, in the long run.
pub const MODULE_NOTIFY_INTERVAL: Duration = Duration::from_secs(1);

/// One control message to a module. The last one of each topic is kept for as long as the module is installed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlMessage {
    /// What it is about.
    pub topic: Topic,
    /// Its place among the messages to this module: each is above the one before.
    pub seq: u64,
    /// The message, at most [`CONTROL_BYTES_MAX`] bytes.
    #[serde(with = "base64_text")]
    pub body: Vec<u8>,
}

/// What a module tells the requester of its SETUP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleMessage {
    /// What it is about.
    pub topic: Topic,
    /// The message, at most [`MODULE_NOTIFY_BYTES_MAX`] bytes.
    #[serde(with = "base64_text")]
    pub body: Vec<u8>,
}

/// How many messages a module may still send to the requester of its SETUP: [`MODULE_NOTIFIES_BURST_MAX`] at once, and one more
/// for each [`MODULE_NOTIFY_INTERVAL`]. Its worker holds it to that, and the controller the worker.
#[derive(Debug)]
pub struct NotifyBucket {
    left: u32,
    /// Since when it fills.
    since: Instant,
}

impl Default for NotifyBucket {
    fn default() -> NotifyBucket {
        NotifyBucket { left: MODULE_NOTIFIES_BURST_MAX, since: Instant::default() }
    }
}

impl NotifyBucket {
    /// Takes one message; false if there is none left.
    pub fn take(&mut self, now: Instant) -> bool {
        while self.left < MODULE_NOTIFIES_BURST_MAX && now.since(self.since) >= MODULE_NOTIFY_INTERVAL {
            self.left += 1;
            self.since = self.since + MODULE_NOTIFY_INTERVAL;
        }
        if self.left == MODULE_NOTIFIES_BURST_MAX {
            self.since = now;
        }
        let left = self.left.checked_sub(1);
        self.left = left.unwrap_or(0);
        left.is_some()
    }
}

/// Writes bytes as base64 text (RFC 4648 §4, with padding).
#[must_use]
pub fn encode_body(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Reads base64 text (RFC 4648 §4, with padding) of at most `bytes_max` bytes.
///
/// # Errors
/// Says in a clause what is wrong: the text is no base64, or of more bytes.
pub fn decode_body(text: &str, bytes_max: usize) -> Result<Vec<u8>, String> {
    let too_long = || format!("longer than {bytes_max} bytes");
    // Before it is decoded, which takes as much memory as the text is long.
    if text.len() > bytes_max.div_ceil(3) * 4 {
        return Err(too_long());
    }
    let bytes = STANDARD.decode(text).map_err(|_| "not base64 (RFC 4648 §4)".to_owned())?;
    if bytes.len() > bytes_max { Err(too_long()) } else { Ok(bytes) }
}

/// Bytes as base64 text in JSON.
pub mod base64_text {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    use super::{CONTROL_BYTES_MAX, decode_body, encode_body};

    /// Writes bytes as text.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&encode_body(bytes))
    }

    /// Reads text of at most [`CONTROL_BYTES_MAX`] bytes.
    ///
    /// # Errors
    /// The text is no base64, or of more bytes.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        decode_body(&text, CONTROL_BYTES_MAX).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_read_as_they_were_written_up_to_their_bound() {
        for length in [0, 1, 2, 3, CONTROL_BYTES_MAX - 1, CONTROL_BYTES_MAX] {
            let bytes: Vec<u8> = (0..length).map(|n| u8::try_from(n % 251).unwrap()).collect();
            assert_eq!(decode_body(&encode_body(&bytes), CONTROL_BYTES_MAX), Ok(bytes));
        }
        let longer = encode_body(&[0; CONTROL_BYTES_MAX + 1]);
        assert_eq!(decode_body(&longer, CONTROL_BYTES_MAX), Err("longer than 4096 bytes".to_owned()));
        let longest = encode_body(&vec![0; 2 * CONTROL_BYTES_MAX]);
        assert_eq!(decode_body(&longest, CONTROL_BYTES_MAX), Err("longer than 4096 bytes".to_owned()));
        for bad in ["=", "a", "ab", "abc", "ab==x", "a b=", "YQ", "YR==", "YQ=\n", "ä"] {
            assert_eq!(decode_body(bad, 16), Err("not base64 (RFC 4648 §4)".to_owned()), "{bad}");
        }
    }

    #[test]
    fn messages_are_text_in_json() {
        let message = ControlMessage { topic: "limit".parse().unwrap(), seq: u64::MAX, body: b"\x00\xff".to_vec() };
        let json = r#"{"topic":"limit","seq":18446744073709551615,"body":"AP8="}"#;
        assert_eq!(serde_json::to_string(&message).unwrap(), json);
        assert_eq!(serde_json::from_str::<ControlMessage>(json).unwrap(), message);
        let longer = format!(r#"{{"topic":"a","seq":1,"body":"{}"}}"#, encode_body(&[0; CONTROL_BYTES_MAX + 1]));
        assert!(serde_json::from_str::<ControlMessage>(&longer).is_err());
    }
}
