// SPDX-License-Identifier: Apache-2.0
//! Named bounds, each with a test in `tests/limits.rs` that hits it.

use std::time::Duration;

/// Exchanges that this node works on; what is over it is refused and goes no further.
pub const PENDING_MAX: usize = netserv_model::limits::REQUESTS_PENDING_MAX;
/// Of these, the requests of peers whose users the controller has not found to have signed them.
pub const UNPROVEN_MAX: usize = PENDING_MAX / 4 * 3;
/// Finished exchanges that are kept for duplicates; the one that ends first makes room.
pub const FINISHED_MAX: usize = 256;
/// Sessions with state: each has at least one exchange.
pub const SESSIONS_MAX: usize = PENDING_MAX + FINISHED_MAX;
/// Local callers that wait for one exchange.
pub const WAITERS_MAX: usize = 8;
/// Texts of which some parts are still to come; the oldest of the site with the most (24 bits of IPv4, 56 of IPv6) makes room.
pub const ASSEMBLIES_MAX: usize = 64;
/// How long the next part of a text may take.
pub const ASSEMBLY_TIME: Duration = Duration::from_secs(10);
/// How much earlier than this node the next one answers: time for its answer to come back.
pub const HOP_TIME: Duration = Duration::from_millis(500);
/// The shortest time to answer in that a request is sent on with.
pub const BUDGET_MIN: Duration = Duration::from_millis(100);
/// Times that a request is sent again after its connection broke.
pub const RESENDS_MAX: u8 = 2;
/// Leases that are followed, unless configured; of what is over it, the path is not followed.
pub const LEASES_MAX: usize = 1 << 15;
/// Bytes of SETUPs for each lease that there may be: all texts together are bounded by so much for each.
pub const LEASE_BYTES: usize = 2048;
/// Leases that are followed along one flow.
pub const LEASES_PER_FLOW_MAX: usize = 256;
/// Previous nodes of one lease that are told apart; where there are more, it runs to its end whoever leaves.
pub const UPSTREAM_MAX: usize = 8;
/// How often a node looks for one after it, where there is none: at random between half of this and all of it.
pub const LOOK_INTERVAL: Duration = Duration::from_secs(30);
/// The same where the path led to a node that looked at it at the same time, or that worked on too many requests; and, at first,
/// where a new path is not whole and somebody who is not on it any more has still to be told so.
pub const LOOK_LOOPED_INTERVAL: Duration = Duration::from_secs(4);
/// How long a node waits at least before it looks at a path again, however often that changes.
pub const LOOK_AGAIN_MIN: Duration = Duration::from_secs(1);
/// Flows that are looked at at once for those that a change of routes concerns: some 2 ms of a processor.
pub const FLOWS_SCANNED_MAX: usize = 10_000;
/// Flows whose next node is checked at once after routes changed; the next ones [`CHECK_INTERVAL`] later.
pub const CHECKS_AT_ONCE_MAX: usize = 50;
/// See [`CHECKS_AT_ONCE_MAX`].
pub const CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// How long after the begin of one check of all paths the next one begins at the earliest.
pub const CHECK_AGAIN_MIN: Duration = Duration::from_secs(1);
/// News about one lease that are passed on within [`NEWS_INTERVAL`]; more are dropped.
pub const NEWS_BURST_MAX: u8 = 16;
/// Messages of the modules of one lease that are passed on within [`NEWS_INTERVAL`], beside the news; more are dropped.
pub const MODULE_MESSAGES_BURST_MAX: u8 = 64;
/// See [`NEWS_BURST_MAX`].
pub const NEWS_INTERVAL: Duration = Duration::from_secs(10);
/// Times that the previous nodes of a lease are asked whether their path still leads here, after a sign that it may not.
pub const QUESTIONS_MAX: u8 = 4;
/// How long after such a sign they are asked first.
pub const QUESTION_DELAY: Duration = Duration::from_secs(1);
/// How long after one question the next one follows, if there is no answer.
pub const QUESTION_INTERVAL: Duration = Duration::from_secs(5);
/// How long after the last of these questions further signs count.
pub const QUESTIONS_PAUSE: Duration = Duration::from_secs(10);
/// Questions that a node sends to previous nodes within [`QUESTIONS_BURST_INTERVAL`], of all its leases; further leases wait.
pub const QUESTIONS_BURST_MAX: usize = 100;
/// See [`QUESTIONS_BURST_MAX`].
pub const QUESTIONS_BURST_INTERVAL: Duration = Duration::from_secs(1);
/// Leases that ended before their time and are kept for news of nodes further on; of the user who has most, the one whose time is over first makes room.
pub const ENDED_MAX: usize = 1024;
/// How long they are kept: nodes whose issuer takes a grant back hear of it within a minute of each other.
pub const ENDED_TIME: Duration = Duration::from_secs(120);
/// Leases that are remembered after they were torn or removed, for those further on who ask; the oldest of the user who has most makes room.
pub const WITHDRAWN_MAX: usize = 1024;
/// How long they are remembered.
pub const WITHDRAWN_TIME: Duration = Duration::from_secs(120);
/// Leases of which a node that is going to stop tells at once; of the next ones [`FAREWELL_INTERVAL`] later.
pub const FAREWELLS_AT_ONCE_MAX: usize = 50;
/// See [`FAREWELLS_AT_ONCE_MAX`].
pub const FAREWELL_INTERVAL: Duration = Duration::from_millis(10);
/// How long a node that is going to stop tells that; whom it has not reached by then finds out by itself.
pub const FAREWELL_TIME_MAX: Duration = Duration::from_secs(2);
/// How long GIST keeps state beyond the end of a lease, so that neither ends before the other for a rounded second.
pub const STATE_TIME_MORE: Duration = Duration::from_secs(5);
/// Requests that a node sends back to one requester (an IPv4 address or IPv6 network, 64 bits) within [`RETURNS_INTERVAL`].
pub const RETURNS_BURST_MAX: usize = 20;
/// Requests that a node sends back within [`RETURNS_INTERVAL`], to all requesters together.
pub const RETURNS_OF_ALL_MAX: usize = 200;
/// See [`RETURNS_BURST_MAX`].
pub const RETURNS_INTERVAL: Duration = Duration::from_secs(1);
/// Nodes next to this one that are remembered; the one that was seen last longest ago makes room.
pub const NEIGHBOURS_MAX: usize = 256;
/// How long they are remembered.
pub const NEIGHBOUR_TIME: Duration = Duration::from_secs(3600);
/// Neighbours off the path to which a node sends a request.
pub const FANOUT_MAX: usize = 8;
/// Messages to nodes off the path that one node of the path brings about, those of nodes off the path included.
pub const COPIES_MAX: u16 = 64;
/// Messages to nodes off the path that a node sends within [`COPIES_INTERVAL`], of all requests together.
pub const COPIES_BURST_MAX: usize = 256;
/// See [`COPIES_BURST_MAX`].
pub const COPIES_INTERVAL: Duration = Duration::from_secs(1);
/// How long after a request went by datagram its first copy follows, if there is no answer; the gaps double.
pub const RETRANSMISSION_FIRST: Duration = Duration::from_millis(500);
/// The longest gap between two copies.
pub const RETRANSMISSION_GAP_MAX: Duration = Duration::from_secs(4);
/// Modules of which a node remembers the neighbours off the path; if there are more, the one that ends first is dropped.
pub const BROUGHT_MAX: usize = 4096;
/// Neighbours that one module's SETUP went to; if there are more, the one whose lease ends first is dropped.
pub const BROUGHT_TO_MAX: usize = 16;
/// How long an answer may wait for its connection.
pub const ANSWER_SEND_TIME: Duration = Duration::from_secs(5);
