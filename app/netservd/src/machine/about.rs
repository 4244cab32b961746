// SPDX-License-Identifier: Apache-2.0
//! What the node says of itself.

use netserv_api::PlaneInfo;
use netserv_model::UnixTime;
use netserv_model::api::DeviceInfo;

use super::notices::Notices;
use super::runtimes::Runtimes;

/// What the node says of itself.
pub struct About {
    /// When it started.
    pub started: UnixTime,
    /// The forwarding plane, and why that one.
    pub driver: String,
    /// What runs modules.
    pub runtimes: Runtimes,
    /// What it cannot do on this machine.
    pub missing: Vec<String>,
    /// What it cannot do for the time being.
    pub notices: Notices,
    /// The devices that the forwarding plane serves.
    pub devices: Vec<DeviceInfo>,
    /// The forwarding planes that were looked at.
    pub planes: Vec<PlaneInfo>,
}
