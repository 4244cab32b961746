// SPDX-License-Identifier: Apache-2.0
//! Bounds of the module.

/// Bytes of a request's head.
pub const REQUEST_HEAD_BYTES_MAX: usize = 8 * 1024;
/// How long a client may take for its request, and for what it is answered with if that is no video.
pub const REQUEST_MS_MAX: u64 = 10_000;
/// Clients at a time that watch nothing.
pub const CLIENTS_MAX: usize = 64;
/// Viewers at a time that the property `viewers` may name.
pub const VIEWERS_MAX: usize = 1024;
/// Qualities at a time that the property `qualities` may name. Until a viewer has the first picture of another one there may be
/// two for it, and a module has eight jobs at most.
pub const QUALITIES_MAX: usize = 4;
/// Jobs at a time.
pub const JOBS_MAX: usize = 2 * QUALITIES_MAX;
/// Jobs that begin at once, after as many times [`BEGIN_MS`] without one.
pub const BEGINS_MAX: u32 = 4;
/// How long it takes until another one may begin.
pub const BEGIN_MS: u64 = 1_000;
/// Bytes of the name of a viewer.
pub const NAME_BYTES_MAX: usize = 32;
/// Bytes of the path of a source.
pub const PATH_BYTES_MAX: usize = 1024;
/// Bytes of the head of a source's answer.
pub const ANSWER_HEAD_BYTES_MAX: usize = 16 * 1024;
/// Bytes of a line that says how long a chunk is.
pub const CHUNK_LINE_BYTES_MAX: usize = 1024;
/// How long a source may say nothing.
pub const SILENT_MS_MAX: u64 = 10_000;
/// How long until a source that went away is asked again, at first and at most.
pub const RETRY_MS_MIN: u64 = 250;
/// See [`RETRY_MS_MIN`].
pub const RETRY_MS_MAX: u64 = 8_000;
/// How long a source has to be there for the next outage to begin with the least wait.
pub const SETTLED_MS: u64 = 10_000;
/// Bytes that a source may send before there is a clock among its packets.
pub const NO_CLOCK_BYTES_MAX: usize = 1 << 20;
/// Bytes of a source that wait for their time; with more, it is read no more.
pub const EARLY_BYTES_MAX: usize = 512 << 10;
/// Bytes that wait when it is read again.
pub const EARLY_BYTES_AGAIN: usize = 256 << 10;
/// Bytes of a source that are looked at in a second: 24 Mbit/s.
pub const BYTES_PER_S_MAX: u64 = 3_000_000;
/// Bytes that come at once of what was not used of that.
pub const BURST_BYTES_MAX: u64 = 1 << 20;
/// How much later than its clock says a source may be before its clock counts from there.
pub const LATE_MS_MAX: u64 = 10_000;
/// How far its clock may go at once before it counts from there.
pub const JUMP_MS_MAX: u64 = 1_000;
/// Bytes that are kept from places on at which a picture can be begun with; with more, a job waits for the next such picture.
pub const KEPT_BYTES_MAX: usize = 1 << 20;
/// How much of a stream ffmpeg looks at before it begins, and a little more.
pub const LOOKED_AT_MS: u64 = 700;
/// Bytes that wait for a job; with more, it goes on with the next picture that can be begun with.
pub const WAITING_BYTES_MAX: usize = KEPT_BYTES_MAX + (256 << 10);
/// Bytes of a picture.
pub const PICTURE_BYTES_MAX: usize = 384 << 10;
/// Bytes that may wait in the node for a viewer for it to get a picture.
pub const QUEUED_BYTES_MAX: u64 = 64 * 1024;
/// How long a quality is made for which there is no viewer, and how long a source is read without any.
pub const LINGER_MS: u64 = 2_000;
/// How long a job waits for its turn until one that is watched only until then ends.
pub const TURN_MS: u64 = 300;
/// How long pictures are left out with which a job begins, since viewers are past them.
pub const SKIP_MS_MAX: u64 = 1_500;
/// How long until a job that failed is begun again, at first and at most.
pub const AGAIN_MS_MIN: u64 = 500;
/// See [`AGAIN_MS_MIN`].
pub const AGAIN_MS_MAX: u64 = 8_000;
/// How long a job may give nothing while it gets something, until another is begun in its place.
pub const STUCK_MS_MAX: u64 = 15_000;
/// Every so many milliseconds it is looked what is due.
pub const TICK_MS: u64 = 40;
/// How long a stream may say nowhere that a picture can be begun with, until jobs begin with any packet of it.
pub const UNMARKED_MS: u64 = 3_000;
/// Pictures that are taken of a job at once.
pub const PICTURES_AT_ONCE: usize = 64;
/// Bytes of them that are.
pub const PICTURE_BYTES_AT_ONCE: usize = 256 * 1024;
/// How far ahead the clock of what waits may be.
pub const EARLY_MS_MAX: u64 = 120_000;
/// Bytes that are no packets, until five in a row are.
pub const LOST_BYTES_MAX: usize = 64 * 1024;
