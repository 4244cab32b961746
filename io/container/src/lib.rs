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

pub use doctor::{Check, doctor};
pub use error::{ContainerError, ControlError};
pub use host::clock::WorkerClock;
pub use host::container::{Container, ControlChannel, Exit, ExitCause, Process};
pub use host::detached::{DetachedContainer, DetachedJob};
pub use host::launcher::{JvmFiles, LaunchSpec, Launcher, LauncherConfig, LauncherReport, cleanup_leftovers};
pub use host::media::{MediaEnds, MediaFiles, MediaJob, media_outcome};
pub use host::ring::{DetachedWorker, HostRing};
pub use launcher::{ARCHIVE_FILE, run_if_launcher};
pub use limits::{BuildLimits, MediaLimits};
pub use netserv_wire::container::ring::{Activity, Answer, Ingress, Outstanding, Returned, RingError};
pub use sandbox::storage::{STORE_CACHE, STORE_KV, Storage, retain_storage};
