// SPDX-License-Identifier: Apache-2.0
//! The bounds of evidence.

use std::time::Duration;

/// Grants in one chain: an issuer's, and three delegations.
pub const CHAIN_GRANTS_MAX: usize = 4;
/// Bytes of all grants of a request together.
pub const EVIDENCE_BYTES_MAX: usize = 4 * 1024;
/// Prefixes in one grant.
pub const GRANT_PREFIXES_MAX: usize = 16;
/// Ranges of ports in one grant.
pub const GRANT_PORTS_MAX: usize = 16;
/// Users with rights by proofs, at one time: half of the containers that a node may have.
pub const GRANTED_USERS_MAX: usize = 512;
/// Bytes of a revocation list.
pub const REVOCATIONS_BYTES_MAX: usize = 64 * 1024;
/// Grants and keys in a revocation list, together.
pub const REVOKED_MAX: usize = 512;
/// How long an address vouches for a user after it was asked, unless the class has a longest lease.
pub const ADDRESS_TIME: Duration = Duration::from_secs(3600);
/// After this time, a SETUP has the address asked again: what it vouches for is prolonged by that.
pub const ADDRESS_ASKED_AFTER: Duration = Duration::from_secs(60);
/// How long rights stay, from the begin of a round of checks on, though none of these finds out who is behind a checklist: the relying party
/// may be replacing files, or its disk may hang.
pub const DOUBTED_TIME: Duration = Duration::from_secs(20);
/// How long a user is remembered, with what its modules kept, while it is not known who is behind its checklist.
pub const UNKNOWN_KEPT_TIME: Duration = Duration::from_secs(24 * 3600);
