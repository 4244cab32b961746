// SPDX-License-Identifier: Apache-2.0
//! What can go wrong with containers.

use std::io;
use std::path::PathBuf;

use netserv_model::{Refusal, RefusalKind};
use netserv_wire::container::frames::FrameError;
use netserv_wire::container::ring::RingError;

/// A container that could not be started or spoken to.
#[derive(Debug, thiserror::Error)]
pub enum ContainerError {
    /// The launcher could not be started.
    #[error("cannot start the launcher: {step}: {source}")]
    Launcher {
        /// What was tried.
        step: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// The launcher started and refused to work.
    #[error("the launcher gave up: {0}")]
    LauncherRefused(String),
    /// The launcher is gone or says what nobody understands.
    #[error("the launcher does not answer: {0}")]
    LauncherGone(String),
    /// Another node uses the same state directory.
    #[error("another node uses {0}")]
    InUse(PathBuf),
    /// An instance name cannot be part of a path.
    #[error("`{0}` is no instance name (1-64 characters of a-z A-Z 0-9 - _ .)")]
    BadInstance(String),
    /// A step of a container's start failed.
    #[error("cannot start a container: {step}: {detail}")]
    Start {
        /// Which step.
        step: String,
        /// Why.
        detail: String,
    },
    /// Too many containers run, or a limit makes no sense.
    #[error("{0}")]
    Quota(String),
    /// The node could not make what a container shares with it.
    #[error("cannot prepare a container: {step}: {source}")]
    Prepare {
        /// What was tried.
        step: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// The control channel failed.
    #[error("the control channel failed: {0}")]
    Control(#[from] ControlError),
    /// The packet ring could not be laid out.
    #[error("the packet ring failed: {0}")]
    Ring(#[from] RingError),
}

impl ContainerError {
    /// Returns the error of a step of starting the launcher.
    pub(crate) fn launcher(step: &'static str) -> impl Fn(io::Error) -> ContainerError {
        move |source| ContainerError::Launcher { step, source }
    }
}

impl From<ContainerError> for Refusal {
    fn from(error: ContainerError) -> Refusal {
        let kind = match &error {
            ContainerError::Quota(_) => RefusalKind::QuotaExceeded,
            ContainerError::Launcher { .. }
            | ContainerError::LauncherRefused(_)
            | ContainerError::LauncherGone(_)
            | ContainerError::InUse(_)
            | ContainerError::BadInstance(_)
            | ContainerError::Start { .. }
            | ContainerError::Prepare { .. }
            | ContainerError::Control(_)
            | ContainerError::Ring(_) => RefusalKind::NodeFailed,
        };
        Refusal::new(kind, error.to_string())
    }
}

/// A control channel that failed.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The worker closed its end, mostly because it is dead.
    #[error("the worker closed it")]
    Closed,
    /// The worker does not read; nothing was sent.
    #[error("the worker does not read")]
    Full,
    /// A frame could not be encoded, or the worker sent none.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The kernel refused.
    #[error(transparent)]
    Io(#[from] io::Error),
}
