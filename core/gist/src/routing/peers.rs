// SPDX-License-Identifier: Apache-2.0
//! Peers that have proven their address, under the handles that NSLPs know them by.

use std::collections::BTreeMap;
use std::net::IpAddr;

use netserv_wire::gist::{Nli, UDP_PORT};

use crate::api::SiiHandle;
use crate::limits;

/// One peer.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) identity: Vec<u8>,
    pub(crate) address: IpAddr,
    /// The UDP port for datagrams to it.
    pub(crate) port: u16,
    /// This node's address toward it.
    pub(crate) local: IpAddr,
    routes: usize,
    /// When the last route to it went, as a key of `PeerTable::unused`.
    unused_since: Option<u64>,
}

/// All peers that a route leads to, and some that routes led to before.
#[derive(Debug, Default)]
pub(crate) struct PeerTable {
    peers: BTreeMap<SiiHandle, Peer>,
    names: BTreeMap<(Vec<u8>, IpAddr), SiiHandle>,
    /// The number of each node, and how many names it has.
    nodes: BTreeMap<Vec<u8>, (u32, usize)>,
    unused: BTreeMap<u64, SiiHandle>,
    last_node: u32,
    last_name: u32,
    last_release: u64,
}

impl PeerTable {
    pub(crate) fn get(&self, sii: SiiHandle) -> Option<&Peer> {
        self.peers.get(&sii)
    }

    pub(crate) fn find(&self, identity: &[u8], address: IpAddr) -> Option<SiiHandle> {
        self.names.get(&(identity.to_vec(), address)).copied()
    }

    /// Returns a peer of this identity: at the address, or else at another one.
    pub(crate) fn find_node(&self, identity: &[u8], address: IpAddr) -> Option<SiiHandle> {
        let any = || {
            let from = (identity.to_vec(), IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED));
            let first = self.names.range(from..).next();
            first.filter(|((name, _), _)| name == identity).map(|(_, sii)| *sii)
        };
        self.find(identity, address).or_else(any)
    }

    pub(crate) fn len(&self) -> usize {
        self.peers.len()
    }

    /// Returns the peer's handle and counts one route more to it. Without a `port` the one that is known stays.
    pub(crate) fn acquire(&mut self, nli: &Nli, port: Option<u16>, local: IpAddr) -> SiiHandle {
        let name = (nli.peer_identity.clone(), nli.address);
        let sii = *self.names.entry(name).or_insert_with(|| {
            let (node, names) = self.nodes.entry(nli.peer_identity.clone()).or_insert_with(|| {
                self.last_node = self.last_node.wrapping_add(1).max(1);
                (self.last_node, 0)
            });
            *names += 1;
            self.last_name = self.last_name.wrapping_add(1).max(1);
            SiiHandle::new(*node, self.last_name)
        });
        let peer = self.peers.entry(sii).or_insert_with(|| Peer {
            identity: nli.peer_identity.clone(),
            address: nli.address,
            port: UDP_PORT,
            local,
            routes: 0,
            unused_since: None,
        });
        if let Some(since) = peer.unused_since.take() {
            self.unused.remove(&since);
        }
        (peer.port, peer.local, peer.routes) = (port.unwrap_or(peer.port), local, peer.routes + 1);
        sii
    }

    /// Counts one route less to the peer, and forgets the peer that is unused for longest if there are too many.
    pub(crate) fn release(&mut self, sii: SiiHandle) {
        let peer = self.peers.get_mut(&sii).expect("a route holds its peer");
        peer.routes -= 1;
        if peer.routes > 0 {
            return;
        }
        self.last_release += 1;
        peer.unused_since = Some(self.last_release);
        self.unused.insert(self.last_release, sii);
        if self.unused.len() > limits::PEERS_KEPT_MAX {
            let (_, oldest) = self.unused.pop_first().expect("the map is larger than its bound");
            let peer = self.peers.remove(&oldest).expect("an unused peer is a peer");
            if let Some((_, names)) = self.nodes.get_mut(&peer.identity) {
                *names -= 1;
                if *names == 0 {
                    self.nodes.remove(&peer.identity);
                }
            }
            self.names.remove(&(peer.identity, peer.address));
        }
    }
}
