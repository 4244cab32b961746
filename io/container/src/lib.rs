// SPDX-License-Identifier: Apache-2.0
//! Service containers: the sandbox around one user's modules, and the node's ends of what it shares with them.
//!
//! A node starts one [`Launcher`], a process of its own with a single thread, and asks it for containers. A container
//! is a worker process in mount, pid, ipc, uts and network namespaces of its own, with an unprivileged user id, no
//! capabilities, a read-only root that holds the worker and its libraries only, a writable `/data` of limited size,
//! resource limits, Landlock, a seccomp allow-list, and cgroup limits for memory, processor and processes.
//!
//! All that connects it with the node are four descriptors: a control socket, the memory of a packet ring, and two
//! eventfds ([`netserv_wire::container`]). Everything that comes through them is untrusted.
//!
//! Invariant: nothing outlives the node. The launcher ends all containers when its socket closes, the kernel ends them
//! when the launcher dies, mounts are in namespaces that die along, and cgroups that a killed launcher leaves are
//! found by name at the next start.

mod doctor;
mod error;
mod host;
mod launcher;
pub mod limits;
pub mod network;
mod protocol;
mod sandbox;
mod sys;

pub use doctor::{Check, doctor, real_time};
pub use error::{ContainerError, ControlError};
pub use host::{
    Class, Container, ControlChannel, DetachedContainer, DetachedJob, DetachedWorker, Exit, ExitCause, HostRing,
    JvmFiles, LaunchSpec, Launcher, LauncherConfig, LauncherReport, MediaEnds, MediaJob, Process, Progress,
    ScheduledThread, Storage, WorkerClock, WorkerThread, cleanup_leftovers, media_outcome, remove_storage,
    retain_storage, stored_bytes,
};
pub use launcher::run_if_launcher;
pub use limits::{BuildLimits, MediaLimits};
pub use netserv_wire::container::ring::{Activity, Answer, Ingress, Outstanding, Returned, RingError};
pub use protocol::files::MediaFiles;
pub use protocol::names::ARCHIVE_FILE;
pub use sandbox::paths::{STORE_CACHE, STORE_KV};
pub use sys::thread_sleeps;
