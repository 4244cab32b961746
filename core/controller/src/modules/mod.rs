// SPDX-License-Identifier: Apache-2.0
//! What is known of the modules on the node, and of those that were there.

pub(crate) mod answers;
pub(crate) mod checks;
pub(crate) mod dry_run;
pub(crate) mod ending;
pub(crate) mod failing;
pub(crate) mod fetching;
pub(crate) mod forbidden;
pub(crate) mod lifecycle;
pub(crate) mod loading;
pub(crate) mod passing;
pub(crate) mod policy_change;
pub(crate) mod preparing;
pub(crate) mod requests;
pub(crate) mod restoring;
pub(crate) mod resuming;
pub(crate) mod sessions;
pub(crate) mod settling;
pub(crate) mod suspending;

use crate::control::told::ToldBefore;
use crate::modules::suspending::Suspended;
use crate::moves::epochs::Epochs;
use crate::rules::buffering::Buffers;
use crate::tenants::Tenants;
use crate::tenants::later::Later;
use crate::users::quota::{Nonces, Quarantine};

/// The parts that the life of modules works on.
#[derive(Debug, Default)]
pub(crate) struct Modules {
    pub(crate) tenants: Tenants,
    /// Packets that wait for modules which move.
    pub(crate) buffers: Buffers,
    /// The least epochs that are taken of modules that are gone.
    pub(crate) epochs: Epochs,
    /// The last messages to modules that are gone.
    pub(crate) told_before: ToldBefore,
    pub(crate) quarantine: Quarantine,
    /// Of requests; a REMOVE that took something away is noted with its nonce.
    pub(crate) nonces: Nonces,
    pub(crate) later: Later,
    pub(crate) suspended: Suspended,
}
