// SPDX-License-Identifier: Apache-2.0
//! What can go wrong with a container's network.

use std::io;

use netserv_model::{Refusal, RefusalKind};
use netserv_netlink::Refused;

/// A container's network that could not be made or changed.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// It was asked for more than there may be, or for what makes no sense.
    #[error("{0}")]
    Spec(String),
    /// The kernel refused a step.
    #[error("{step}: {source}")]
    Kernel {
        /// What was tried.
        step: String,
        /// What the kernel said.
        source: io::Error,
    },
}

impl NetworkError {
    pub(super) fn kernel(step: impl Into<String>) -> impl FnOnce(io::Error) -> NetworkError {
        let step = step.into();
        move |source| NetworkError::Kernel { step, source }
    }
}

impl From<Refused> for NetworkError {
    fn from(Refused { step, source }: Refused) -> NetworkError {
        NetworkError::Kernel { step, source }
    }
}

impl From<NetworkError> for Refusal {
    fn from(error: NetworkError) -> Refusal {
        let kind = match &error {
            NetworkError::Spec(_) => RefusalKind::QuotaExceeded,
            NetworkError::Kernel { .. } => RefusalKind::NodeFailed,
        };
        Refusal::new(kind, format!("the container's network could not be made: {error}"))
    }
}
