// SPDX-License-Identifier: Apache-2.0
//! Named bounds of the worker. What a module may use beyond these is in its own `ModuleLimits`.

use std::time::Duration;

/// Bytes of one log line; longer ones are cut.
pub const LOG_LINE_BYTES_MAX: usize = 1024;
/// Log lines that a module may write at once.
pub const LOG_LINES_BURST: u32 = 256;
/// Log lines per second that a module may write in the long run.
pub const LOG_LINES_PER_SECOND: u32 = 100;
/// Random bytes in one call.
pub const RANDOM_BYTES_MAX: usize = 4096;
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
/// The longest delay and period of a timer.
pub const TIMER_DELAY_MAX: Duration = Duration::from_nanos(1 << 62);
/// Packets that a module may inject in one call.
pub const INJECTS_PER_CALL_MAX: usize = 64;
/// Bytes of the shortest packet that a module may leave or inject: an IPv4 header.
pub const PACKET_BYTES_MIN: usize = 20;
/// Elements of one table of a module.
pub const TABLE_ELEMENTS_MAX: usize = 65_536;
/// Tables of one module.
pub const TABLES_MAX: usize = 4;
/// Bytes of linear memory that `compile` accepts as a module's least; the module's own limit is checked when it is
/// loaded.
pub const MEMORY_BYTES_MAX: u64 = 1 << 30;
/// Bytes of a WebAssembly file that `compile` reads.
pub const WASM_BYTES_MAX: u64 = netserv_model::limits::BLOB_BYTES_MAX;
/// Bytes of compiled code that `serve` loads.
pub const CODE_BYTES_MAX: u64 = 8 * WASM_BYTES_MAX;
/// Bytes of stack that a module has.
pub const STACK_BYTES_MAX: usize = 512 * 1024;
/// Frames that wait for the node to read them; log lines beyond are counted and lost.
pub const FRAMES_WAITING_MAX: usize = 1024;
/// Rounds of packets after which the control socket is looked at although there are more packets.
pub const ROUNDS_BETWEEN_CONTROL: u32 = 16;
/// Bytes of a bundle that the JVM's worker copies into its container.
pub const BUNDLE_BYTES_MAX: u64 = netserv_model::limits::PACKAGE_BYTES_MAX;
/// Reports of Java threads that wait for the packet thread; further ones are counted and lost.
pub const JAVA_EVENTS_WAITING_MAX: usize = 4096;
/// Counters of one module that are taken from Java; further ones are left out.
pub const JAVA_COUNTERS_MAX: usize = 4096;
/// How long bundles have to stop when the node shuts a worker down.
pub const JAVA_SHUTDOWN_MAX: Duration = Duration::from_secs(2);
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
/// Bytes of memory of all sets of patterns of an instance.
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
/// Bytes of memory of all coders of a module's instances together.
pub const COMPRESS_MEMORY_BYTES_MAX: usize = 64 << 20;
/// Compressors and decompressors that an instance may have at a time.
pub const CODERS_MAX: usize = 16;
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
