// SPDX-License-Identifier: Apache-2.0
//! As much of SIP (RFC 3261) as modules need that stand between phones and their server: requests that are answered in the server's
//! place, and what messages of either direction say.
//!
//! Nothing here keeps a whole message to itself: all is where the message is. Whatever is damaged is nothing, so that
//! the server says what is wrong with it.

mod grammar;
pub mod message;
mod request;
mod via;

pub use request::{Answer, Request};
pub use via::{Forced, Rport, Transport};
