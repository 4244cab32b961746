// SPDX-License-Identifier: Apache-2.0
//! NSLPs of others on this node: `[signaling.applications]`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// NSLPs of others: programs on this machine that signal over this node's GIST (`docs/nslp-api.md`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Applications {
    /// The Unix socket where such programs register, its owner's alone; empty means that there is none.
    pub socket: PathBuf,
    /// The group that may use the socket, too, by name or number; netservd has to be in it.
    pub group: String,
    /// NSLPs that may register beside those of the range for private use, 32704–32767, each with its Router Alert value.
    pub nslps: Vec<NamedNslp>,
}

/// An NSLP that the operator named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct NamedNslp {
    /// Its NSLPID.
    pub id: u16,
    /// Its Router Alert value.
    pub router_alert: u16,
}

impl Applications {
    /// Returns whether programs can register.
    pub fn is_on(&self) -> bool {
        !self.socket.as_os_str().is_empty()
    }

    /// Returns the named NSLPs with their Router Alert values.
    pub fn named(&self) -> BTreeMap<u16, u16> {
        self.nslps.iter().map(|nslp| (nslp.id, nslp.router_alert)).collect()
    }

    /// Checks the values, `own` being NetServ's NSLPID.
    ///
    /// # Errors
    /// The error names the key.
    pub fn check(&self, own: u16) -> Result<()> {
        for NamedNslp { id, router_alert } in &self.nslps {
            ensure!(*id != own, "signaling.applications.nslps has {id}, which is NetServ's own (signaling.nslp-id)");
            ensure!(*id != 0 && *id <= NSLP_ID_MAX, "signaling.applications.nslps has {id}, which is no NSLPID");
            let is_value = *router_alert < u16::MAX;
            ensure!(is_value, "signaling.applications.nslps has the Router Alert value 65535, which is reserved");
        }
        ensure!(self.named().len() == self.nslps.len(), "signaling.applications.nslps has an id twice");
        ensure!(
            self.is_on() || (self.group.is_empty() && self.nslps.is_empty()),
            "signaling.applications has group or nslps, but no socket"
        );
        Ok(())
    }
}

/// The highest NSLPID; those above are reserved (RFC 5971 §9).
const NSLP_ID_MAX: u16 = 32_767;
