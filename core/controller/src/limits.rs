// SPDX-License-Identifier: Apache-2.0
//! Bounds of the controller's own; those that others share are in `netserv_model::limits`.

use std::time::Duration;

use netserv_model::limits;

/// Modules that one user may have installed: a worker's places less one, which a replacement needs beside the old.
pub const MODULES_PER_USER_MAX: usize = limits::MODULES_PER_CONTAINER_MAX - 1;

/// Sessions that may hold one module.
pub const SESSIONS_PER_MODULE_MAX: usize = 256;
/// Filters that the sessions of one module may ask for together, of packets and of connections each.
pub const FILTERS_OF_SESSIONS_MAX: usize = 4 * limits::FILTERS_PER_MODULE_MAX;

/// Failures within [`FAILURE_WINDOW`] that put a module into quarantine.
pub const FAILURES_MAX: usize = 5;
/// How long a failure counts.
pub const FAILURE_WINDOW: Duration = Duration::from_secs(60);
/// The wait before the second restart; the first is at once, each further one waits twice as long.
pub const BACKOFF_MIN: Duration = Duration::from_millis(100);
/// The longest wait before a restart.
pub const BACKOFF_MAX: Duration = Duration::from_secs(30);
/// How long a module stays in quarantine.
pub const QUARANTINE_TIME: Duration = Duration::from_secs(600);
/// Digests remembered as quarantined; over it, the one that would leave first is let go.
pub const QUARANTINED_MAX: usize = 4096;

/// Sessions of one user's modules of which the newest request is remembered; over it, the one with the oldest goes, and no late
/// request that is as old is taken.
pub const SESSIONS_REMEMBERED_PER_USER_MAX: usize = 4096;

/// SETUPs of one user of which the session is remembered by which they came; over it, the oldest goes, and no late one that is as old
/// is taken.
pub const SETUPS_REMEMBERED_PER_USER_MAX: usize = 4096;

/// How long a fetch may stay unanswered, with checking and compiling.
pub const FETCH_ANSWER_TIME_MAX: Duration = Duration::from_secs(60);
/// How long the start of a worker may stay unanswered.
pub const START_ANSWER_TIME_MAX: Duration = Duration::from_secs(10);
/// How long a worker stays that was made ready for a module which may come: as long as its state may be on its way.
pub const PREPARED_TIME: Duration = limits::FREEZE_TIME_MAX;
/// How long a worker stays that has no modules while its user has others. Its last module's packets are on their way.
pub const IDLE_WORKER_TIME: Duration = Duration::from_secs(1);
/// How long connections of a module that is gone may go on without it.
pub const DRAIN_TIME_MAX: Duration = Duration::from_secs(3600);
/// Modules of one worker that are gone while connections of theirs go on; with one more, those of the first end.
pub const DRAINING_MAX: usize = 8;
/// The part of a container's memory that those of them may have together which go on with their connections themselves; with more, the
/// first ends.
pub const FINISHING_MEMORY_PART: u64 = 4;
/// How long the load of a module may stay unanswered.
pub const LOAD_ANSWER_TIME_MAX: Duration = Duration::from_secs(10);

/// Control messages to one module within a second.
pub const TELLS_PER_SECOND_MAX: usize = 20;
/// How long a worker may take to say whether a control message is in the inbox.
pub const TELL_ANSWER_TIME_MAX: Duration = Duration::from_secs(5);
/// Modules that are not installed any more of which the last control message is remembered; over it, the one that would be
/// forgotten first is.
pub const TOLD_REMEMBERED_MAX: usize = 4096;

/// States that are written to somewhere at a time, of all users.
pub const EXPORTS_MAX: usize = 4;
/// Of one user.
pub const EXPORTS_OF_USER_MAX: usize = 2;
/// How long writing one may take.
pub const EXPORT_ANSWER_TIME_MAX: Duration = Duration::from_secs(60);
/// Modules for which packets wait at a time, since they move; for others these go on unseen meanwhile.
pub const BUFFERED_MODULES_MAX: usize = 64;
/// Of one user.
pub const BUFFERED_MODULES_OF_USER_MAX: usize = 8;
/// Modules that are not installed any more of which the first epoch is remembered that is taken of
/// them.
pub const EPOCHS_REMEMBERED_MAX: usize = 4096;
/// Of one user.
pub const EPOCHS_OF_USER_MAX: usize = 256;

/// How often meters are read while there is something to read.
pub const METER_INTERVAL: Duration = Duration::from_secs(10);
/// How soon they are read after something began or ended.
pub const METER_SOON: Duration = Duration::from_secs(1);
/// By how much the wall clock may go faster or slower than the monotonic one while the node runs, before it counts as set anew.
pub const CLOCK_SLEW_MAX: Duration = Duration::from_secs(2);
/// How long at most until proofs of users' rights are looked at again: the wall clock may be set meanwhile.
pub(crate) const PROOFS_LOOKED_AT_AFTER: Duration = Duration::from_secs(30);
/// How long at most until it is looked at again who is behind a checklist: a certificate may be revoked meanwhile.
pub(crate) const CHECKLISTS_LOOKED_AT_AFTER: Duration = Duration::from_secs(30);
/// Likewise if that was not found out last time, as while files of the cache are replaced.
pub(crate) const DOUBTS_LOOKED_AT_AFTER: Duration = Duration::from_secs(5);
/// How long at least from the last look at a checklist to the next one at the first.
pub(crate) const CHECKLISTS_PAUSE_MIN: Duration = Duration::from_secs(1);
/// Users of whose requests something is remembered, above which strangers who are new are refused.
pub const REMEMBERED_USERS_MAX: usize = 4096;
/// Addresses that are asked at one time whom they vouch for; and as many checklists of which it is found out who is behind them.
pub const PROOFS_MAX: usize = 64;
/// Addresses of one site: 24 bits of IPv4, 48 of IPv6.
pub const PROOFS_OF_SITE_MAX: usize = 4;
/// Of [`PROOFS_MAX`], those that peers of one site brought: all requests of a path come by its previous node.
pub const PROOFS_OF_PEERS_MAX: usize = PROOFS_MAX / 2;
/// Sources of filters that are remembered for so long, since modules could answer for addresses in them; if there are more, no address vouches meanwhile.
pub const HEARING_MAX: usize = 4096;
/// How long one may take to answer.
pub const PROOF_ANSWER_TIME_MAX: Duration = Duration::from_secs(8);
/// How long a revocation list may be on its way before that counts as a failure.
pub const LIST_ANSWER_TIME_MAX: Duration = Duration::from_secs(20);
/// Of the time until a revocation list is asked for again, the part by which it is shortened at most.
pub const LIST_JITTER_PART: u32 = 10;
