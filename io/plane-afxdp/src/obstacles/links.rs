// SPDX-License-Identifier: Apache-2.0
//! News of links, as far as what is in the way of forwarding in XDP depends on them.

use std::collections::BTreeMap;

use netserv_model::container_link::is_container_link;
use netserv_netlink::routes;
use netserv_netlink::{Family, Socket};
use netserv_plane::DriverError;

use crate::kernel::{Interface, Kernel};

/// Tells when links change in what obstacles depend on. A device that comes up has the queueing discipline that is usual on
/// this machine, of which the kernel gives no news.
pub(super) struct Links {
    notices: Socket,
    known: BTreeMap<u32, LinkState>,
}

/// A link's name, the one that it is a port of, and whether it is up.
type LinkState = (String, Option<u32>, bool);

impl Links {
    /// Begins to listen.
    pub fn open(kernel: &Kernel) -> Result<Links, DriverError> {
        let notices = routes::listen(Family::Route, LINK_GROUPS)?;
        Ok(Links { notices, known: link_states(&kernel.interfaces()?) })
    }

    /// Returns what becomes readable when there is something to hear.
    pub fn notices(&self) -> &Socket {
        &self.notices
    }

    /// Returns whether they changed since the last call.
    pub fn changed(&mut self, kernel: &Kernel) -> bool {
        if !self.notices.drain() {
            return false;
        }
        let Ok(interfaces) = kernel.interfaces() else { return true };
        let links = link_states(&interfaces);
        let changed = links != self.known;
        self.known = links;
        changed
    }
}

/// Returns the links that matter. Those to containers come and go, and nothing is forwarded to them in XDP.
fn link_states(interfaces: &BTreeMap<u32, Interface>) -> BTreeMap<u32, LinkState> {
    let links = interfaces.iter().filter(|(_, one)| !is_container_link(&one.name));
    links.map(|(index, one)| (*index, (one.name.clone(), one.master, one.up))).collect()
}

/// `RTNLGRP_LINK`
const LINK_GROUPS: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_containers_are_no_news() {
        let one = |name: &str, up: bool| Interface { name: name.to_owned(), up, ..Interface::example() };
        let before = BTreeMap::from([(1, one("eth0", true))]);
        let states = |links: &[(u32, Interface)]| {
            let all = before.iter().map(|(index, one)| (*index, one.clone())).chain(links.iter().cloned());
            link_states(&all.collect())
        };
        assert_eq!(states(&[(2, one("ns0123abcdn7", true))]), states(&[]));
        assert_eq!(states(&[(1, Interface { mtu: 9000, ..one("eth0", true) })]), states(&[]));
        assert_ne!(states(&[(2, one("eth1", true))]), states(&[]));
        assert_ne!(states(&[(1, one("eth0", false))]), states(&[]));
        assert_ne!(states(&[(1, Interface { master: Some(3), ..one("eth0", true) })]), states(&[]));
    }
}
