// SPDX-License-Identifier: Apache-2.0
//! What is bounded, and by how much.

/// Bytes of a request's cookie.
pub const COOKIE_BYTES_MAX: usize = 128;
/// Lists and dictionaries within each other.
pub const DEPTH_MAX: usize = 16;
/// Values of one request, all together.
pub const VALUES_MAX: usize = 4096;
/// Answers that are kept for requests that come again.
pub const ANSWERS_MAX: usize = 512;
/// Bytes of the answers that are kept.
pub const ANSWERS_BYTES_MAX: usize = 1 << 20;
/// How long an answer is kept.
pub const ANSWER_MS: u64 = 10_000;
/// How long an answer waits until the packet part has taken what it is about.
pub const APPLIED_MS: u64 = 50;
/// Answers that wait for the packet part; with more, the oldest goes without.
pub const WAITING_MAX: usize = 64;

/// Parts of a request that a warning or a refusal names.
pub const WARNED_MAX: usize = 16;

/// Bytes of a session description.
pub const SDP_BYTES_MAX: usize = 32_768;
/// Streams of a call, those that are not relayed among them.
pub const STREAMS_MAX: usize = 16;
/// Streams of all calls together, those that are not relayed among them.
pub const STREAMS_OF_ALL_MAX: usize = 4096;
/// Bytes of a Call-ID and of a tag.
pub const NAME_BYTES_MAX: usize = 255;
/// Bytes of the kind and of the protocol of a stream.
pub const WORD_BYTES_MAX: usize = 64;

/// Calls at a time; the property `calls` asks for fewer.
pub const CALLS_MAX: usize = 2000;
/// Calls that a list names at most.
pub const LIST_MAX: usize = 1000;
/// Calls that a list names if the request does not say.
pub const LIST_DEFAULT: usize = 32;
/// Ports of the range.
pub const PORTS_MAX: usize = 16_384;
/// Ports that a stream takes: for each of two parties one of RTP and one of RTCP.
pub const PORTS_OF_STREAM: usize = 4;
/// Addresses that are listened at.
pub const ADDRESSES_MAX: usize = 8;
/// Addresses that may ask.
pub const CONTROL_MAX: usize = 64;

/// How long after the first packet behind a description somebody else may be the party, if nothing was known of it before, and packets
/// from where the party was before are heard.
pub const LEARNING_MS: u64 = 3000;
/// Packets after a description that say that a party still is where it was: more than may have been on their way.
pub const GOES_ON_PACKETS: u8 = 10;
/// How long a party may be silent between these.
pub const PAUSE_MS: u64 = 1000;
/// Packets that follow each other, with none of the party between, that say that it is elsewhere.
pub const LEADS_PACKETS: u8 = 5;
/// Addresses of one description that a port remembers.
pub const PLACES_MAX: usize = 4;
/// Addresses of earlier descriptions that a port remembers.
pub const LEFT_MAX: usize = 8;
/// Branches of a call that was forked.
pub const BRANCHES_MAX: usize = 16;
/// Relayed legs that a packet passes on this node.
pub const HOPS_MAX: usize = 4;
/// What a port may send at once, in milliseconds of its rate.
pub const BURST_MS: u64 = 500;
/// Messages that wait until the packet part has room for them.
pub const TOLD_MAX: usize = 8192;
