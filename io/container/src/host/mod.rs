// SPDX-License-Identifier: Apache-2.0
//! The node's side: it asks the launcher for containers, and holds its ends of what it shares with them.

mod build;
mod clock;
mod config;
mod container;
mod control;
mod detached;
mod launcher;
mod leftovers;
mod media;
mod process;
mod ring;
mod scheduling;
mod shared;
mod storage;

pub use build::Progress;
pub use clock::{WorkerClock, WorkerThread};
pub use config::{JvmFiles, LaunchSpec, LauncherConfig, LauncherReport};
pub use container::Container;
pub use control::ControlChannel;
pub use detached::{DetachedContainer, DetachedJob};
pub use launcher::Launcher;
pub use leftovers::cleanup_leftovers;
pub use media::{MediaEnds, MediaJob, media_outcome};
pub use process::{Exit, ExitCause, Process};
pub use ring::{DetachedWorker, HostRing};
pub use scheduling::{Class, ScheduledThread};
pub use storage::{Storage, remove_storage, retain_storage, stored_bytes};
