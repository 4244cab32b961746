// SPDX-License-Identifier: Apache-2.0
//! What is bounded, and by how much.

/// Bindings of registrations that are known.
pub const BINDINGS_MAX: usize = 12_288;
/// REGISTERs whose answers are waited for.
pub const PENDING_MAX: usize = 4096;
/// Addresses of which the module's other part is still to be told that what was confirmed is no more.
pub const ENDED_MAX: usize = 64;
/// Bytes of a Contact that is known.
pub const CONTACT_BYTES_MAX: usize = 256;
/// How long an answer is waited for: a transaction's time (RFC 3261 §17.1.2.2, timer F).
pub const PENDING_MS: u64 = 32_000;

/// Pings that went on to the server and that it may still answer, for a transaction's time (timer F).
pub const PINGS_MAX: usize = 32;
/// The time between two of these.
pub const PINGS_EACH_MS: u64 = 1000;
/// How long the server may take for an answer when it is asked whether it serves, by one ping after the other.
pub const UNHEARD_MS: u64 = 4000;

/// Sources whose requests are told apart; those beyond share places.
pub const SOURCES_MAX: usize = 4096;
/// Transactions of which it is known how they were decided, in each of two generations.
pub const DECIDED_MAX: usize = 16_384;
/// How long a generation lasts. The older one outlives a transaction (64 × T1).
pub const DECIDED_MS: u64 = 32_000;
/// How often a request may come again that went on (RFC 3261 §17.1.1.2: seven times in all); what comes more often is rejected.
pub const REPEATS_MAX: u8 = 7;
/// Places that sources beyond [`SOURCES_MAX`] share.
pub const OTHER_PLACES: u64 = 256;
/// How long what the module's other part has to do counts after it was told last.
pub const OTHER_DEMAND_MS: u64 = 1000;
/// How often shares are worked out anew.
pub const WINDOW_MS: u64 = 100;
/// How long feedback that does not say so is valid (RFC 7339 §4.3).
pub const VALIDITY_MS: u64 = 500;
/// How long feedback may be valid.
pub const VALIDITY_MS_MAX: u64 = 60_000;

/// Requests that a source may send at once whose rate the server says (RFC 7415 §3.5.1: TAU, in requests).
pub const OC_RATE_BURST: f64 = 4.0;
/// Answers about the server's load of which it is known that they were given, in each of two generations.
pub const ANSWERED_MAX: usize = 16_384;
/// Headers of a request that asks: answers to it, which have most of them and some of the server's, are read.
pub const ASKING_HEADERS_MAX: usize = 40;
/// Bytes of a datagram that grows by asking the server for its load: what goes over UDP with room to spare (RFC 3261 §18.1.1).
pub const ASKING_BYTES_MAX: usize = 1300;

/// Places in which answers to sources are counted.
pub const ANSWER_PLACES: usize = 4096;

/// Bytes of the head of a message on a connection; what has a longer one goes on unseen.
pub const HEAD_BYTES_MAX: usize = 16_384;
/// Connections that are followed; those beyond go on unseen.
pub const CONNECTIONS_MAX: usize = 8192;
/// Bytes that are held of all connections together; with more, those that need some go on unseen.
pub const HELD_BYTES_MAX: usize = 3 << 20;
/// Bytes of answers that wait until the server's message to the same client is over; with more, the server answers.
pub const ANSWERS_BYTES_MAX: usize = 16_384;
