// SPDX-License-Identifier: Apache-2.0
//! One program's names for peers: numbers that say nothing of GIST's handles, and that no other program can use.

use std::collections::BTreeMap;

use netserv_gist::SiiHandle;

use crate::limits::APPLICATION_PEERS_MAX;

/// The peers that a program heard of lately.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    names: BTreeMap<SiiHandle, u64>,
    named: BTreeMap<u64, Peer>,
    by_use: BTreeMap<u64, u64>,
    last_name: u64,
    last_use: u64,
}

#[derive(Clone, Copy, Debug)]
struct Peer {
    sii: SiiHandle,
    used: u64,
}

impl Peers {
    /// Returns the program's name for a peer; one name too many, and the one unused for longest is forgotten.
    pub(crate) fn name(&mut self, sii: SiiHandle) -> u64 {
        let name = match self.names.get(&sii) {
            Some(name) => *name,
            None => {
                self.last_name += 1;
                self.names.insert(sii, self.last_name);
                self.last_name
            }
        };
        self.use_again(name, sii);
        if self.named.len() > APPLICATION_PEERS_MAX
            && let Some((_, oldest)) = self.by_use.pop_first()
            && let Some(peer) = self.named.remove(&oldest)
        {
            self.names.remove(&peer.sii);
        }
        name
    }

    /// Returns the peer of a name.
    pub(crate) fn named(&mut self, name: u64) -> Option<SiiHandle> {
        let sii = self.named.get(&name)?.sii;
        self.use_again(name, sii);
        Some(sii)
    }

    fn use_again(&mut self, name: u64, sii: SiiHandle) {
        self.last_use += 1;
        if let Some(before) = self.named.insert(name, Peer { sii, used: self.last_use }) {
            self.by_use.remove(&before.used);
        }
        self.by_use.insert(self.last_use, name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn application_peers_max_peers_have_a_name_and_the_ones_in_use_keep_it() {
        let mut peers = Peers::default();
        let sii = |n: usize| SiiHandle::new(1, u32::try_from(n).unwrap());
        assert_eq!((peers.name(sii(0)), peers.name(sii(1)), peers.name(sii(0))), (1, 2, 1));
        for n in 2..=APPLICATION_PEERS_MAX {
            peers.name(sii(n));
        }
        assert_eq!((peers.named(1), peers.named(2)), (Some(sii(0)), None));
        assert_eq!((peers.names.len(), peers.named.len(), peers.by_use.len()), [APPLICATION_PEERS_MAX; 3].into());
        assert_eq!(peers.name(sii(1)), u64::try_from(APPLICATION_PEERS_MAX).unwrap() + 2, "no name comes back");
    }
}
