// SPDX-License-Identifier: Apache-2.0
//! Named bounds of what all workers share. What a module may use beyond these is in its own `ModuleLimits`.

use std::time::Duration;

/// Bytes of one log line; longer ones are cut.
pub const LOG_LINE_BYTES_MAX: usize = 1024;
/// Log lines that a module may write at once.
pub const LOG_LINES_BURST: u32 = 256;
/// Log lines per second that a module may write in the long run.
pub const LOG_LINES_PER_SECOND: u32 = 100;
/// Control messages that wait for one part of a module.
pub const CONTROL_MESSAGES_MAX: usize = 64;
/// Bytes of them, with their topics.
pub const CONTROL_WAITING_BYTES_MAX: usize = 256 * 1024;
/// Bytes of what an instance wrote as an error that are kept for the case that it fails.
pub const SAID_BYTES_MAX: usize = 2048;
/// How long before its failure what a module wrote has to do with it.
pub const SAID_TIME_MAX: Duration = Duration::from_secs(1);
/// Lines of what it said that a refusal shows.
pub const SAID_LINES_SHOWN_MAX: usize = 8;
/// Characters of the line of it that is in a refusal's detail.
pub const SAID_LINE_SHOWN_CHARS_MAX: usize = 280;
/// Bytes of a counter's name.
pub const COUNTER_NAME_BYTES_MAX: usize = netserv_wire::container::frames::COUNTER_NAME_BYTES_MAX;
/// Bytes of a kv key.
pub const KV_KEY_BYTES_MAX: usize = 256;
/// Bytes of a kv value.
pub const KV_VALUE_BYTES_MAX: usize = 65_536;
/// How long kv state is kept after the last module that used it is gone.
pub const KV_KEPT: Duration = Duration::from_secs(60);
/// Kv states kept without a module at a time; the one that was left first goes first.
pub const KV_KEPT_MAX: usize = 64;
/// The shortest delay and period of a timer.
pub const TIMER_DELAY_MIN: Duration = Duration::from_millis(1);
/// Packets that a module may inject in one call.
pub const INJECTS_PER_CALL_MAX: usize = 64;
/// Bytes of the shortest packet that a module may leave or inject: an IPv4 header.
pub const PACKET_BYTES_MIN: usize = 20;
/// Frames that wait for the node to read them; log lines beyond are counted and lost.
pub const FRAMES_WAITING_MAX: usize = 1024;
/// Rounds of packets after which the control socket is looked at although there are more packets.
pub const ROUNDS_BETWEEN_CONTROL: u32 = 16;

/// Bytes of the stack of threads that do little.
pub const SMALL_STACK_BYTES: usize = 128 * 1024;
/// Topics of one module's channel.
pub const CHANNEL_TOPICS_MAX: usize = 64;
/// Bytes of the messages that one topic keeps, with [`CHANNEL_MESSAGE_COST`] for each.
pub const CHANNEL_TOPIC_BYTES_MAX: usize = 1 << 20;
/// Bytes of one message of a channel.
pub const CHANNEL_MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// Bytes of the key of a message.
pub const CHANNEL_KEY_BYTES_MAX: usize = 256;
/// Bytes that a message counts for beside its own and those of its key: about what it takes in memory.
pub const CHANNEL_MESSAGE_COST: usize = 192;
/// Readers of one module's channel.
pub const CHANNEL_SUBSCRIBERS_MAX: usize = 8192;
/// Bytes that a reader of a channel gets at once.
pub const CHANNEL_READ_BYTES_MAX: usize = 32 * 1024;
/// The messages of all channels have one of so many parts of the container's memory.
pub const CHANNELS_MEMORY_SHARE: u64 = 8;
/// Bytes that a module may have searched in one call.
pub const SEARCH_BYTES_MAX: usize = 1 << 20;
/// Patterns of one set.
pub const PATTERNS_MAX: usize = 4096;
/// Bytes of one pattern.
pub const PATTERN_BYTES_MAX: usize = 1024;
/// Bytes of all patterns of one set.
pub const PATTERNS_BYTES_MAX: usize = 128 * 1024;
/// Bytes of all patterns of a set that is searched for by a table, which is faster and takes more memory.
pub const PATTERNS_TABLE_BYTES_MAX: usize = 2048;
/// Sets of patterns that an instance may have at a time.
pub const PATTERN_SETS_MAX: usize = 16;
/// Bytes of memory of all sets of patterns of a module's packet part, and of all instances of its server part together.
pub const PATTERNS_MEMORY_BYTES_MAX: usize = 16 << 20;
/// Hits that one call gives.
pub const HITS_MAX: usize = 1024;
/// Bytes that are hashed in one call.
pub const HASH_BYTES_MAX: usize = 16 << 20;
/// Bytes that are signed, sealed or opened in one call.
pub const CRYPTO_BYTES_MAX: usize = 16 << 20;
/// Bytes that a compressor takes in one call.
pub const COMPRESS_INPUT_BYTES_MAX: usize = 1 << 20;
/// Bytes that a decompressor takes in one call.
pub const DECOMPRESS_INPUT_BYTES_MAX: usize = 64 * 1024;
/// Bytes that a decompressor gives in one call.
pub const DECOMPRESS_READ_BYTES_MAX: usize = 256 * 1024;
/// Bytes that a decompressor gives in all, whatever its user allows.
pub const DECOMPRESS_OUTPUT_BYTES_MAX: u64 = 1 << 40;
/// Bytes of memory of all coders of a container's server modules together, however much it has.
pub const COMPRESS_MEMORY_BYTES_MAX: usize = 64 << 20;
/// Bytes of memory that a compressor for gzip is taken to need.
pub const GZIP_ENCODER_BYTES: usize = 512 * 1024;
/// Bytes of memory that a compressor for Brotli is taken to need.
pub const BROTLI_ENCODER_BYTES: usize = 6 << 20;
/// Bytes of memory that a compressor for Zstandard is taken to need.
pub const ZSTD_ENCODER_BYTES: usize = 5 << 20;
/// Bytes of memory that a decompressor for gzip is taken to need.
pub const GZIP_DECODER_BYTES: usize = 128 * 1024;
/// Bytes of memory that a decompressor for Brotli is taken to need besides its window, which the stream says.
pub const BROTLI_DECODER_BYTES: usize = 512 * 1024;
/// Bytes of memory that a decompressor for Zstandard is taken to need.
pub const ZSTD_DECODER_BYTES: usize = 9 << 20;
/// Logarithm of the largest window of a Zstandard stream (RFC 9659).
pub const ZSTD_WINDOW_LOG_MAX: u32 = 23;
/// Bytes of the header of a gzip stream's member.
pub const GZIP_HEADER_BYTES_MAX: usize = 4096;
/// Media jobs of one process at a time, those that wait included.
pub const MEDIA_JOBS_MAX: usize = 64;
/// Media jobs of one module at a time.
pub const MEDIA_JOBS_PER_MODULE_MAX: usize = 8;
/// Bytes that a media job may give.
pub const MEDIA_OUTPUT_BYTES_MAX: u64 = 4 << 30;
/// Streams of an input that are told of.
pub const MEDIA_STREAMS_TOLD_MAX: usize = 32;
/// Bytes of the name of a format or codec.
pub const MEDIA_NAME_BYTES_MAX: usize = 64;
/// Bytes that a stream of a media job takes or gives in one call.
pub const MEDIA_PIECE_BYTES_MAX: usize = 64 << 10;
