// SPDX-License-Identifier: Apache-2.0
//! What a node and its launcher say to each other. Knows neither side.

pub(crate) mod files;
pub(crate) mod names;
pub(crate) mod socket;
pub(crate) mod step;

use std::net::IpAddr;
use std::path::PathBuf;

use netserv_model::policy::ContainerLimits;
use netserv_model::{Flavour, UserId};
use netserv_wire::container::media::MediaTask;
use serde::{Deserialize, Serialize};

use files::MediaFiles;

/// The node's requests. The first is always `Setup`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Get ready; answered by `Ready` or `Failed`.
    Setup(Box<Setup>),
    /// Start a worker. Beside it: control socket, ring memory, eventfd to the worker, eventfd to the host, the pipe for
    /// the exit report, and the network namespace if it gets one. Answered by `Started` with a pidfd, or `Failed`.
    Serve(Serve),
    /// Start a compilation. Beside it: the Wasm file and the pipe for the exit report. Answered by `Started` with a
    /// pidfd and the directory where the output will be, or `Failed`.
    Compile { limits: ContainerLimits, cpu_seconds: u64 },
    /// Start the making of an archive of Java classes. Beside it: the pipe for the exit report. Answered as `Compile`.
    Archive { limits: ContainerLimits, cpu_seconds: u64 },
    /// Start a media job. Beside it: the pipe for the exit report, the input's end, each output's, and the picture's if
    /// the task has one. Answered by `Started` with a pidfd, or `Failed`.
    Media(MediaOrder),
    /// Hold a compilation to other limits, and give it less processor time than others who want some. Answered by `Limited` or
    /// `Failed`.
    Background { pid: i32, limits: ContainerLimits },
    /// Hold a user's workers that run to other limits. Answered by `Limited` or `Failed`.
    Limit { user: UserId, limits: ContainerLimits },
}

/// A worker that is wanted.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Serve {
    pub(crate) user: UserId,
    pub(crate) flavour: Flavour,
    pub(crate) limits: ContainerLimits,
    /// The process whose groups it joins, if that still runs and is of the same user.
    pub(crate) beside: Option<i32>,
    /// Whether a network namespace comes along.
    pub(crate) network: bool,
    pub(crate) storage: Option<StorageSetup>,
}

/// What a worker may keep on disk.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StorageSetup {
    pub(crate) directory: PathBuf,
    pub(crate) kv_bytes: u64,
    pub(crate) cache_bytes: u64,
}

/// A media job that is wanted.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct MediaOrder {
    pub(crate) task: MediaTask,
    pub(crate) limits: ContainerLimits,
}

/// What a launcher works with.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Setup {
    pub(crate) worker: PathBuf,
    pub(crate) root: PathBuf,
    pub(crate) name_servers: Vec<IpAddr>,
    pub(crate) authorities: Option<PathBuf>,
    pub(crate) jvm: Option<JvmSetup>,
    pub(crate) media: Option<MediaSetup>,
    pub(crate) instance: String,
    pub(crate) uid_base: u32,
    pub(crate) cgroup_parent: Option<PathBuf>,
}

/// What media jobs are made of; all paths are canonical.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct MediaSetup {
    pub(crate) files: MediaFiles,
    pub(crate) root: PathBuf,
}

/// What Java workers are made of; all paths are canonical.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct JvmSetup {
    pub(crate) worker: PathBuf,
    pub(crate) java_home: PathBuf,
    pub(crate) host: PathBuf,
    pub(crate) archive: PathBuf,
    pub(crate) name_servers: Vec<IpAddr>,
    pub(crate) root: PathBuf,
}

/// The launcher's answers.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    Ready {
        enforced: Vec<String>,
        missing: Vec<String>,
    },
    /// With the file that says how much memory the container's processes hold, if the kernel counts that.
    Started {
        pid: i32,
        uid: u32,
        landlock: String,
        memory: Option<PathBuf>,
    },
    Limited,
    Failed {
        step: String,
        detail: String,
        quota: bool,
    },
}

/// How a process ended, written to its exit pipe by the launcher.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ExitReport {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) out_of_memory: bool,
    pub(crate) out_of_cpu_time: bool,
    /// Processor time of all its threads.
    #[serde(default)]
    pub(crate) cpu_ns: u64,
    pub(crate) stderr: String,
}
