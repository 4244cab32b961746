// SPDX-License-Identifier: Apache-2.0
//! How a node behaves, apart from what its operator may change while it runs.

use netserv_model::NodeId;
use serde::{Deserialize, Serialize};

use crate::applications::ApplicationConfig;

/// The settings of a node's engines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeConfig {
    /// GIST's.
    pub gist: netserv_gist::Config,
    /// The NSLP's.
    pub nslp: netserv_nslp::Config,
    /// What NSLPs of others are taken.
    pub applications: ApplicationConfig,
}

impl NodeConfig {
    /// Returns the defaults for a node of this name.
    ///
    /// `identity` is the node's identity toward its GIST peers, new at each start; 1 to
    /// [`PEER_IDENTITY_BYTES_MAX`](netserv_gist::limits::PEER_IDENTITY_BYTES_MAX) bytes.
    pub fn new(node: NodeId, identity: Vec<u8>) -> NodeConfig {
        let mut gist = netserv_gist::Config::new(identity);
        gist.hosted.insert(NSLP_ID, ROUTER_ALERT);
        let applications = ApplicationConfig { router_alert: ROUTER_ALERT, ..ApplicationConfig::default() };
        NodeConfig { gist, nslp: netserv_nslp::Config::new(node, NSLP_ID), applications }
    }
}

/// The NSLPID of NetServ, for private use (RFC 5971 §9).
const NSLP_ID: u16 = 32_704;
/// The Router Alert Option's value for it, experimental (RFC 5350).
const ROUTER_ALERT: u16 = 65_503;
