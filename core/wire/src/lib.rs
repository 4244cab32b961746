// SPDX-License-Identifier: Apache-2.0
//! Bytes and meaning: GIST, NSLP and SIP messages, views of IP packets, container frames.
//!
//! Every parser takes bytes that anybody may have sent. None panics, none reads past its input, and what it gives back
//! is a valid value or an error that says what was wrong.
//!
//! Words of RFC 5971 used below: an MRI says which flow a message is about, a SID which signaling session, an NLI who
//! sent it; an MRS is the state that a node keeps about the way to its next peer; an MA is a stream between two peers.
#![forbid(unsafe_code)]

pub mod container;
pub mod gist;
pub mod ip;
pub mod nslp;
pub mod sip;
pub mod state;
