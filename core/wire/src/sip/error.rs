// SPDX-License-Identifier: Apache-2.0
//! Why bytes are not a SIP message.

/// Why bytes are not a SIP message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SipError {
    /// They do not start like one.
    #[error("not a SIP message")]
    NotSip,
    /// They end before the message does; with more of them it may be one.
    #[error("the message goes on after the last byte")]
    Incomplete,
    /// What is named is damaged, missing, or there twice.
    #[error("malformed: {0}")]
    Malformed(&'static str),
    /// More than [`HEADERS_MAX`](super::limits::HEADERS_MAX) headers.
    #[error("too many headers")]
    TooManyHeaders,
    /// More than [`MESSAGE_BYTES_MAX`](super::limits::MESSAGE_BYTES_MAX) bytes.
    #[error("too large")]
    TooLarge,
}
