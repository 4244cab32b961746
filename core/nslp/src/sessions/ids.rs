// SPDX-License-Identifier: Apache-2.0
//! The session of a request of the node's own client that names none.

use std::net::IpAddr;

use netserv_model::target::Target;
use netserv_model::{ModuleName, SessionId, UserId};
use netserv_wire::nslp::Message;
use rand::RngExt;
use rand::rngs::StdRng;
use sha2::{Digest as _, Sha256};

use crate::cx::{LocalPath, module_of};

/// What sessions are made from.
#[derive(Debug)]
pub(crate) struct SessionIds {
    secret: [u8; 32],
}

impl SessionIds {
    pub(crate) fn new(secret: [u8; 32]) -> SessionIds {
        SessionIds { secret }
    }

    /// Returns the session of a request: what installs or removes a module has one of its user, module, path and target, so that it goes
    /// on with what came before. Those toward one destination are of one family, which a REMOVE ends: whichever nodes they are for, and
    /// whichever address this machine had. Nobody can guess it (RFC 5971 §4.1.1) who does not know this node's secret.
    pub(crate) fn of(&self, random: &mut StdRng, message: &Message, path: Option<LocalPath>) -> SessionId {
        match message.user().zip(module_of(message.body())) {
            Some((user, module)) => derived(&self.secret, (user, module), path, message.target()),
            None => SessionId(random.random()),
        }
    }
}

fn derived(
    secret: &[u8; 32],
    (user, module): (&UserId, &ModuleName),
    path: Option<LocalPath>,
    target: &Target,
) -> SessionId {
    let mut hash = Sha256::new();
    hash.update(secret);
    // Neither name has a line end in it.
    hash.update(format!("{user}\n{module}\n"));
    path.iter().for_each(|path| add(&mut hash, path.destination));
    let family = hash.clone().finalize();
    path.iter().for_each(|path| add(&mut hash, path.source));
    // A node that was updated goes on with its clients' sessions.
    let Target { scope, nodes, domains, require } = target;
    hash.update(format!("Target {{ scope: {scope:?}, nodes: {nodes:?}, require: {require:?} }}"));
    domains.iter().for_each(|domain| hash.update(domain.as_str()));
    let mut session = [0; 16];
    session[..8].copy_from_slice(&family[..8]);
    session[8..].copy_from_slice(&hash.finalize()[..8]);
    SessionId(session)
}

fn add(hash: &mut Sha256, address: IpAddr) {
    match address {
        IpAddr::V4(address) => hash.update(address.octets()),
        IpAddr::V6(address) => hash.update(address.octets()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_of_one_user_module_and_path() {
        let (jane, john): (UserId, UserId) = ("jane".parse().unwrap(), "john".parse().unwrap());
        let (one, other): (ModuleName, ModuleName) =
            ("example.org/m".parse().unwrap(), "example.org/o".parse().unwrap());
        let path = |source: &str, destination: &str| {
            Some(LocalPath { source: source.parse().unwrap(), destination: destination.parse().unwrap() })
        };
        let of = |secret: u8, user: &UserId, module: &ModuleName, path| {
            derived(&[secret; 32], (user, module), path, &Target::default())
        };
        let there = path("10.0.0.1", "10.0.1.1");
        let sessions = [
            of(1, &jane, &one, there),
            of(2, &jane, &one, there),
            of(1, &john, &one, there),
            of(1, &jane, &other, there),
            of(1, &jane, &one, None),
            of(1, &jane, &one, path("10.0.0.1", "10.0.1.2")),
            of(1, &jane, &one, path("10.0.0.2", "10.0.1.1")),
            of(1, &jane, &one, path("2001:db8::1", "2001:db8::2")),
        ];
        assert_eq!(sessions[0], of(1, &jane, &one, there));
        let all: std::collections::BTreeSet<_> = sessions.iter().collect();
        assert_eq!(all.len(), sessions.len());
        // Those for other nodes are others, of the same family.
        let target = Target { nodes: vec!["n1".parse().unwrap()], ..Target::default() };
        let of_node = derived(&[1; 32], (&jane, &one), there, &target);
        assert_ne!(of_node, sessions[0]);
        assert_eq!([of_node.family(), of_node.twin().family()], [sessions[0].family(); 2]);
        assert_ne!(of_node.family(), sessions[5].family());
        // So are those of a machine that has another address now.
        assert_eq!(sessions[6].family(), sessions[0].family());
    }
}
