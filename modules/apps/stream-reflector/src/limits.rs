// SPDX-License-Identifier: Apache-2.0
//! Bounds of the module.

/// Bytes of a request's head; one that is longer goes to the server as it is.
pub const REQUEST_HEAD_BYTES_MAX: usize = 8 * 1024;
/// Lines of a request's head; one with more goes to the server as it is.
pub const REQUEST_LINES_MAX: usize = 64;
/// Bytes of the head of a server's answer; one that is longer is no stream's.
pub const ANSWER_HEAD_BYTES_MAX: usize = 16 * 1024;
/// How long a client may take for its request; what has come by then goes to the server.
pub const REQUEST_MS_MAX: u64 = 10_000;
/// How long a server may say nothing, be it before its answer or in a stream.
pub const SILENT_MS_MAX: u64 = 10_000;
/// Streams at a time that the property `streams` may name; requests for others go to their servers one by one.
pub const STREAMS_MAX: usize = 64;
/// Bytes that are kept of a stream.
pub const RING_BYTES_MAX: usize = 768 << 10;
/// Frames that are kept of a stream.
pub const FRAMES_MAX: usize = 4096;
/// Bytes behind the newest at which a listener begins at most.
pub const START_BYTES_MAX: u64 = 256 * 1024;
/// Bytes that a source may be ahead of the listener that has got most; one that is further is not read.
pub const AHEAD_BYTES_MAX: u64 = 256 * 1024;
/// Bytes that it is ahead when it is read again.
pub const AHEAD_BYTES_AGAIN: u64 = 192 * 1024;
/// Bytes that a source sends before there must be a frame.
pub const NO_FRAME_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a source that came back in which the place is looked for where it went away.
pub const JOIN_BYTES_MAX: usize = 96 * 1024;
/// How long that is looked for.
pub const JOIN_MS_MAX: u64 = 1500;
/// The same where the source may be a reflector, which begins by as much as it has.
pub const MOVED_JOIN_BYTES_MAX: usize = 384 * 1024;
/// See [`MOVED_JOIN_BYTES_MAX`].
pub const MOVED_JOIN_MS_MAX: u64 = 7000;
/// Bytes of a new stream in which a frame is looked for that needs none before it.
pub const LEAD_BYTES_MAX: usize = 32 * 1024;
/// Titles that are kept of a stream.
pub const TITLES_MAX: usize = 16;
/// Bytes of a title, which its length's byte can say (255 times 16).
pub const TITLE_BYTES_MAX: usize = 4080;
/// Bytes between two titles that a server may ask its listeners to count.
pub const INTERVAL_MAX: usize = 1 << 20;
/// Bytes between two titles of a listener.
pub const INTERVAL: usize = 16_000;
/// Bytes that may wait for a listener in the node for it to get more.
pub const QUEUED_BYTES_MAX: u64 = 128 * 1024;
/// Bytes that one gets at once who took nothing before.
pub const BLOCKED_BYTES_MAX: u64 = 16 * 1024;
/// Bytes that a listener gets at once.
pub const SEND_BYTES_MAX: usize = 128 * 1024;
/// How long until a source that went away is asked for again, at first and at most.
pub const RETRY_MS_MIN: u64 = 250;
/// See [`RETRY_MS_MIN`].
pub const RETRY_MS_MAX: u64 = 2000;
/// Servers that are learned.
pub const SERVERS_MAX: u32 = 1024;
/// Bytes that the next version is told of a connection, as `netserv:tcp` says.
pub const STATE_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a stream's titles that go along to the next version.
pub const CARRIED_TITLES_BYTES_MAX: usize = 8 * 1024;
/// Bytes that wait for an end of a connection that is passed on, and go along to the next version.
pub const PASSED_BYTES_MAX: usize = 60_000;
/// Bytes that the newest frame is ahead of a listener when it gets its own a little faster than they sound.
pub const CATCH_UP_BYTES: u64 = 160 * 1024;
/// How much faster, in percent.
pub const CATCH_UP_PERCENT: u64 = 5;
/// How much later than it began a listener may be before the same happens, in microseconds.
pub const LATE_US: u64 = 2_000_000;
/// Every so many milliseconds a part of the listeners gets what is due.
pub const TICK_MS: u64 = 50;
/// So many parts there are: each listener gets something four times a second.
pub const PARTS: u64 = 5;
/// Frames by which it is known where a source went away.
pub const ANCHOR_FRAMES: usize = 3;
/// Bytes of requests that have not come whole, of all clients; with more, those that are longest go to their servers.
pub const ASKED_BYTES_MAX: usize = 256 << 10;
/// Bytes of requests of those who wait for a stream's answer; with more, clients are passed on.
pub const UNANSWERED_BYTES_MAX: usize = 64 << 10;
/// Connections at a time whose server is watched; others go on without the module.
pub const WATCHED_MAX: usize = 1024;
/// Bytes that are kept of answers of all servers that are watched; with more, connections go on without the module.
pub const WATCHED_BYTES_MAX: usize = 256 << 10;
/// How long a connection is watched.
pub const WATCHED_MS_MAX: u64 = 10_000;
/// How long it is not asked again whether the module may connect to a server.
pub const DENIED_MS_MAX: u64 = 60_000;
/// Bytes that wait in the module for the ends of connections that are passed on; with more, who has taken nothing for longest is cut.
pub const WAITING_BYTES_MAX: usize = 512 << 10;
/// Bytes that wait in the node for an end of a connection that is passed on for its other end not to be read.
pub const PASSED_QUEUED_MAX: u64 = 128 * 1024;
/// Bytes that wait when it is read again.
pub const PASSED_QUEUED_AGAIN: u64 = 64 * 1024;
/// Bytes for which the node always has room when nothing waits.
pub const PIECE_BYTES_MIN: usize = 2 * 1024;
/// Bytes of an answer's head that listeners get; an answer with more is for one client.
pub const SHARED_HEAD_BYTES_MAX: usize = 4 * 1024;
/// Bytes of frames by which it is known that a server begins with the same once more.
pub const OPENING_BYTES_MAX: usize = 4 * 1024;
/// Requests that are known to be for files.
pub const FILES_MAX: usize = 64;
/// How long that is known.
pub const FILE_MS_MAX: u64 = 600_000;
/// Times in a row that a source may come back with what is there, and go away: then it was no stream, and is over.
pub const SAME_AGAIN_MAX: u32 = 3;
