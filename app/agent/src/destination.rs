// SPDX-License-Identifier: Apache-2.0
//! Where requests go.

use std::net::IpAddr;

/// A client toward whom requests go. Logs have its region alone.
#[derive(Clone, Debug)]
pub struct Destination {
    /// The client.
    pub client: IpAddr,
    /// The prefix that its rule makes one region.
    pub region: String,
    /// The address of the node that they are for, toward which they go instead, if they are for one whose address is known.
    pub node: Option<IpAddr>,
}

impl Destination {
    /// Returns the same for a node whose address is known.
    pub fn at(self, node: Option<IpAddr>) -> Destination {
        Destination { node, ..self }
    }

    /// Returns a text for logs, in which the region is in the place of the client.
    pub fn without_client(&self, text: &str) -> String {
        text.replace(&self.client.to_canonical().to_string(), &self.region)
    }

    /// Returns where they go.
    pub fn address(&self) -> IpAddr {
        self.node.unwrap_or(self.client)
    }
}
