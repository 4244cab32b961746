// SPDX-License-Identifier: Apache-2.0
//! Cookies (objects 5 and 6, RFC 5971 A.3.6 and A.3.7): opaque bytes that a peer gives back.

use super::error::ValueError;

/// Opaque bytes that a peer gives back; whole 32-bit words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cookie(pub Vec<u8>);

impl Cookie {
    pub(super) fn parse(value: &[u8]) -> Result<Cookie, ValueError> {
        Ok(Cookie(value.to_vec()))
    }
}
