// SPDX-License-Identifier: Apache-2.0
//! Cookies (objects 5 and 6, RFC 5971 A.3.6 and A.3.7): opaque bytes that a peer gives back.

/// Opaque bytes that a peer gives back; whole 32-bit words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cookie(pub Vec<u8>);
