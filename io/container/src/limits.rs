// SPDX-License-Identifier: Apache-2.0
//! Named bounds of service containers.

use std::time::Duration;

use netserv_model::limits::CONTAINERS_MAX;
use netserv_model::policy::ContainerLimits;

/// Bytes of one message between a node and its launcher.
pub const LAUNCHER_MESSAGE_BYTES_MAX: usize = 16 * 1024;
/// How long the launcher may take to answer before the node gives it up.
pub const LAUNCHER_ANSWER_TIME_MAX: Duration = Duration::from_secs(10);
/// How long a new process may take between locking itself up and asking to become the worker, and how long from there
/// to being it: both together less than the launcher may take to answer, or it would be given up for one container.
pub const PERMIT_TIME_MAX: Duration = Duration::from_secs(4);
const _: () = assert!(PERMIT_TIME_MAX.as_secs() * 2 < LAUNCHER_ANSWER_TIME_MAX.as_secs(), "each of its two waits");
/// How long a worker that was told to end may take before one that takes over its files has it killed.
pub const END_PATIENCE: Duration = Duration::from_millis(300);
/// Containers and compilations at a time; also how many user ids the launcher takes, from its `uid_base` on.
pub const PROCESSES_MAX: usize = CONTAINERS_MAX;
/// How long a packet thread keeps a processor at most while others want it: the least that Linux gives.
pub const PACKET_SLICE: Duration = Duration::from_micros(100);
/// Processes that the launcher keeps ready to become workers.
pub const SPARES: usize = 2;
/// For how long after a request the launcher makes no more than the one that is needed next: the worker that begins then has the
/// processor.
pub const SPARES_PAUSE: Duration = Duration::from_millis(8);
/// The first user id of containers unless the operator says otherwise.
pub const UID_BASE: u32 = 64_000;
/// Open files of a Wasm worker.
pub const OPEN_FILES_MAX: u64 = 256;
/// Open files of a Wasm worker in a container with a network: two for each intercepted connection.
pub const NETWORK_OPEN_FILES_MAX: u64 = 24 * 1024;
/// Open files of a Java worker, which has jars and sockets.
pub const JAVA_OPEN_FILES_MAX: u64 = 1024;
/// Files and directories in a container's writable directory.
pub const DATA_ENTRIES_MAX: u64 = 4096;
/// Libraries that a worker may be linked with.
pub const LIBRARIES_MAX: usize = 64;
/// Libraries that ffmpeg may be linked with.
pub const MEDIA_LIBRARIES_MAX: usize = 512;
/// Bytes of a media job's directory beside those for what is kept of the input.
pub const MEDIA_SPARE_BYTES: u64 = 1024 * 1024;
/// Pixels of one picture that ffmpeg takes: as many as 4096 × 2304.
pub const MEDIA_PIXELS_MAX: u64 = 4096 * 2304;
/// Streams of one input that ffmpeg takes.
pub const MEDIA_STREAMS_MAX: u32 = 32;
/// Files and directories of a Java installation's `lib` and `conf`.
pub const JAVA_ENTRIES_MAX: usize = 4096;
/// Bytes of the host's jars of one kind.
pub const JARS_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Bytes of a file that is copied into the root of Java workers; larger ones are bound.
pub const COPIED_FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Bytes kept of what a process wrote to its standard error before it ended.
pub const STDERR_BYTES_MAX: usize = 2048;
/// Bytes of the report on how a process ended.
pub const EXIT_REPORT_BYTES_MAX: usize = 8 * 1024;
/// Control frames that a worker may have sent ahead of the node's reading them.
pub const CONTROL_BUFFER_BYTES: usize = 208 * 1024;
/// The least memory of a container: less does not start a worker.
pub const MEMORY_BYTES_MIN: u64 = 4 * 1024 * 1024;
/// Under cgroup version 1, which counts the memory of sockets by itself, they may have as much again as this part of a
/// container's memory. Version 2 counts both together.
pub const SOCKET_MEMORY_SHARE: u64 = 4;
/// The least memory of a container with a Java worker.
pub const JAVA_MEMORY_BYTES_MIN: u64 = 32 * 1024 * 1024;

/// How often the processor time of a build is looked at.
pub const BUILD_LOOK_INTERVAL: Duration = Duration::from_millis(10);
/// The part of the usual weight for processor time that a build has beside the node's other containers,
pub const BUILD_WEIGHT_PART: u64 = 8;
/// and one in the background.
pub const BACKGROUND_WEIGHT_PART: u64 = 32;

/// What a program may use that makes one file, in a container of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuildLimits {
    /// Memory, processor, processes and the size of input and output together.
    pub container: ContainerLimits,
    /// How long it may take.
    pub time: Duration,
    /// Processor time of all its threads together, to the second. A machine that is busy does not use it up.
    pub cpu_time: Duration,
}

impl BuildLimits {
    /// For a module's code, and that of a service.
    pub const CODE: BuildLimits = BuildLimits {
        container: ContainerLimits {
            memory_bytes: 1024 * 1024 * 1024,
            cpu_permille: 2000,
            pids: 32,
            disk_bytes: 256 * 1024 * 1024,
        },
        time: Duration::from_secs(20),
        cpu_time: Duration::from_secs(20),
    };
    /// For the archive of Java's classes.
    pub const ARCHIVE: BuildLimits = BuildLimits {
        container: ContainerLimits {
            memory_bytes: 1024 * 1024 * 1024,
            cpu_permille: 2000,
            pids: 64,
            disk_bytes: 128 * 1024 * 1024,
        },
        time: Duration::from_secs(60),
        cpu_time: Duration::from_secs(60),
    };
}

/// What a media job may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaLimits {
    /// Memory, processor, threads, and bytes of an input that are kept because it may be read twice; these count as
    /// memory too.
    pub container: ContainerLimits,
}

impl Default for MediaLimits {
    fn default() -> MediaLimits {
        MediaLimits {
            container: ContainerLimits {
                memory_bytes: 512 * 1024 * 1024,
                cpu_permille: 1000,
                pids: 64,
                disk_bytes: 128 * 1024 * 1024,
            },
        }
    }
}
