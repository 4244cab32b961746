// SPDX-License-Identifier: Apache-2.0
//! Named bounds, each with a test in `tests/limits.rs` that hits it.

use std::time::Duration;

/// Exchanges that this node works on; what is over it is refused and goes no further.
pub const PENDING_MAX: usize = netserv_model::limits::REQUESTS_PENDING_MAX;
/// Finished exchanges that are kept for duplicates; the one that ends first makes room.
pub const FINISHED_MAX: usize = 256;
/// Sessions with state: each has at least one exchange.
pub const SESSIONS_MAX: usize = PENDING_MAX + FINISHED_MAX;
/// Local callers that wait for one exchange.
pub const WAITERS_MAX: usize = 8;
/// Texts of which some parts are still to come; the oldest makes room.
pub const ASSEMBLIES_MAX: usize = 64;
/// How long the next part of a text may take.
pub const ASSEMBLY_TIME: Duration = Duration::from_secs(10);
/// What one hop takes off the time that a request has.
pub const HOP_TIME: Duration = Duration::from_millis(500);
/// Times that a request is sent again after its connection broke.
pub const RESENDS_MAX: u8 = 2;
/// How long an answer may wait for its connection.
pub const ANSWER_SEND_TIME: Duration = Duration::from_secs(5);
