// SPDX-License-Identifier: Apache-2.0
//! NAT traversal (object 7, RFC 5971 A.3.8): what GIST-aware NATs changed on the way.

use super::Mri;

/// What GIST-aware NATs changed on the way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NatTraversal {
    /// The MRI as the querying node wrote it.
    pub mri: Mri,
    /// The first half of the object header of each translated object.
    pub translated: Vec<u16>,
    /// One opaque entry per NAT.
    pub nats: Vec<Vec<u8>>,
}
