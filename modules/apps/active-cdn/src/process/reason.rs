// SPDX-License-Identifier: Apache-2.0
//! Why nothing was made of an original.

use netserv_server_sdk::media;

/// Why an original is answered as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Request or response forbid changes.
    NoTransform,
    /// It is none of the kinds that are processed.
    Kind,
    /// It is too long.
    Long,
    /// There is nothing to do: a picture is small enough, or there is no text.
    Same,
    /// The node's jobs are taken.
    Busy,
    /// The node has no media block.
    Unavailable,
    /// It could not be processed a short while ago.
    Failed,
    /// It is not stored.
    NotStored,
}

impl Reason {
    /// Returns the header that says it.
    pub fn field(self) -> (String, Vec<u8>) {
        let word = match self {
            Reason::NoTransform => "no-transform",
            Reason::Kind => "kind",
            Reason::Long => "too-long",
            Reason::Same => "same",
            Reason::Busy => "busy",
            Reason::Unavailable => "unavailable",
            Reason::Failed => "failed",
            Reason::NotStored => "not-stored",
        };
        (HEADER.to_owned(), format!("original; {word}").into_bytes())
    }
}

/// Returns why there is no result, and says it in the log if it is the provider's to know.
pub fn failed(error: &media::Error) -> Reason {
    match error {
        media::Error::Busy => Reason::Busy,
        media::Error::Unavailable(_) => Reason::Unavailable,
        media::Error::Invalid(why) | media::Error::Failed(why) | media::Error::Limit(why) => {
            eprintln!("an original was not processed: {why}");
            Reason::Failed
        }
    }
}

/// The header that says what was made.
pub const HEADER: &str = "netserv-process";
