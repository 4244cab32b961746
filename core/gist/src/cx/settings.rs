// SPDX-License-Identifier: Apache-2.0
//! What this node was told of itself and of its surroundings.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use netserv_model::domain::{Neighbours, Side};
use netserv_wire::gist::{Direction, Header, Message, Mri, Nli};

use crate::api::{ApiError, Config, InterfaceId, PeerChoice, Peering, Prefix};
use crate::limits;

#[derive(Debug)]
pub(crate) struct Settings {
    config: Config,
    own_addresses: BTreeSet<IpAddr>,
    /// What flows may come in by interfaces; by others, all.
    ingress: BTreeMap<InterfaceId, Vec<Prefix>>,
    neighbours: Neighbours,
}

impl Settings {
    /// # Panics
    /// If the peer identity is empty or longer than [`limits::PEER_IDENTITY_BYTES_MAX`].
    pub(crate) fn new(config: Config) -> Settings {
        let identity = config.peer_identity.len();
        assert!((1..=limits::PEER_IDENTITY_BYTES_MAX).contains(&identity), "a peer identity of {identity} bytes");
        Settings { config, own_addresses: BTreeSet::new(), ingress: BTreeMap::new(), neighbours: Neighbours::default() }
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) fn set_own_addresses(&mut self, addresses: impl IntoIterator<Item = IpAddr>) {
        self.own_addresses = addresses.into_iter().collect();
    }

    pub(crate) fn set_neighbours(&mut self, neighbours: Neighbours) {
        self.neighbours = neighbours;
    }

    pub(crate) fn set_ingress(&mut self, ingress: impl IntoIterator<Item = (InterfaceId, Vec<Prefix>)>) {
        self.ingress = ingress.into_iter().collect();
    }

    pub(crate) fn hosts(&self, nslp_id: u16) -> bool {
        self.config.hosted.contains_key(&nslp_id)
    }

    /// Returns an NSLP's value of the Router Alert Option.
    pub(crate) fn router_alert(&self, nslp_id: u16) -> Option<u16> {
        self.config.hosted.get(&nslp_id).copied()
    }

    /// Hosts one more NSLP from here on.
    pub(crate) fn host(&mut self, nslp_id: u16, router_alert: u16) {
        self.config.hosted.insert(nslp_id, router_alert);
    }

    /// Hosts an NSLP no more, and forgets what it decided.
    pub(crate) fn unhost(&mut self, nslp_id: u16) {
        self.config.hosted.remove(&nslp_id);
        self.config.peering.remove(&nslp_id);
    }

    pub(crate) fn set_peering(&mut self, nslp_id: u16, peering: Peering) -> Result<(), ApiError> {
        if !self.hosts(nslp_id) {
            return Err(ApiError::UnknownNslp(nslp_id));
        }
        if peering.rules.len() > limits::PEER_RULES_MAX {
            return Err(ApiError::TooManyRules(peering.rules.len()));
        }
        if peering == Peering::default() {
            self.config.peering.remove(&nslp_id);
        } else {
            self.config.peering.insert(nslp_id, peering);
        }
        Ok(())
    }

    /// Returns what the node does with Queries about a flow.
    pub(crate) fn peer_choice(&self, nslp_id: u16, mri: &Mri) -> PeerChoice {
        self.config.peering.get(&nslp_id).map_or(PeerChoice::Peer, |peering| peering.choice(mri))
    }

    /// Returns whether a message in Q-mode for somebody else goes on, since the NSLP has no part in its flow.
    pub(crate) fn declines(&self, header: &Header, bytes: &[u8]) -> bool {
        if !self.config.peering.contains_key(&header.nslp_id) {
            return false;
        }
        let mri = Message::parse(bytes).ok().and_then(|message| message.mri);
        mri.is_some_and(|mri| self.peer_choice(header.nslp_id, &mri) == PeerChoice::Forward)
    }

    /// Returns whether a downstream flow may come in by an interface: all its sources lie in one prefix of those named for it.
    pub(crate) fn may_come_in(&self, interface: InterfaceId, mri: &Mri) -> bool {
        let Some(prefixes) = self.ingress.get(&interface) else { return true };
        match mri {
            Mri::PathCoupled(flow) if flow.direction() == Direction::Downstream => {
                prefixes.iter().any(|prefix| prefix.covers(flow.source(), flow.source_prefix()))
            }
            Mri::PathCoupled(_) | Mri::LooseEnd(_) | Mri::Other(_) => true,
        }
    }

    /// Returns whether somebody else may be at an address that a message names.
    pub(crate) fn may_answer(&self, address: IpAddr) -> bool {
        is_unicast(address) && !self.own_addresses.contains(&address)
    }

    /// Returns on which side of the domain's border a peer is, which may have shown a certificate with a name.
    pub(crate) fn side(&self, address: IpAddr, name: Option<&str>) -> Side {
        self.neighbours.side(address, name)
    }

    /// Returns what this node says about itself to peers that reach it at `local`, with the validity of its rows.
    pub(crate) fn nli(&self, local: IpAddr, validity: Duration) -> Nli {
        let peer_identity = self.config.peer_identity.clone();
        Nli { peer_identity, ip_ttl: 0, validity, address: local }
    }

    /// Returns what this node says about itself in a message about `mri` to a peer at a distance: upstream it repeats that
    /// (RFC 5971 A.3.3), downstream it does not know the TTL of its datagrams.
    pub(crate) fn nli_for(&self, mri: &Mri, distance: Option<u8>, local: IpAddr, validity: Duration) -> Nli {
        let ip_ttl = match mri.direction() {
            Some(Direction::Upstream) => distance.unwrap_or(0),
            Some(Direction::Downstream) | None => 0,
        };
        Nli { ip_ttl, ..self.nli(local, validity) }
    }
}

/// Returns whether an address can be one host's, other than this one's loopback.
pub(crate) fn is_unicast(address: IpAddr) -> bool {
    let broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
    !(address.is_unspecified() || address.is_multicast() || address.is_loopback() || broadcast)
}
