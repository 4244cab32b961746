// SPDX-License-Identifier: Apache-2.0
//! The ladder of tests: golden bytes, timed scripts against one engine, and several engines on a lossy path.

mod backlog;
mod cases;
mod conformance;
mod guests;
mod handshake;
mod icmp;
mod limits;
mod loss;
mod nat;
mod net;
mod options;
mod paths;
mod peering;
mod refresh;
mod reroute;
mod script;
mod tls;

use std::net::IpAddr;
use std::time::Duration;

use netserv_model::SessionId;
use netserv_wire::gist::{Mri, PathCoupled};

use crate::{ApiCall, Config, MessageHandle, SendOptions, TransferAttributes};

pub(crate) const NSLP: u16 = 33;
pub(crate) const RAO: u16 = 65_503;
pub(crate) const UNRELIABLE: TransferAttributes = TransferAttributes { reliable: false, secure: false, inside: false };
pub(crate) const RELIABLE: TransferAttributes = TransferAttributes { reliable: true, secure: false, inside: false };

pub(crate) const SECURE: TransferAttributes = TransferAttributes { reliable: true, secure: true, inside: false };

pub(crate) fn config(identity: u8) -> Config {
    let mut config = Config::new(vec![identity; 16]);
    config.hosted.insert(NSLP, RAO);
    config
}

pub(crate) fn session(number: u64) -> SessionId {
    let mut id = [0; 16];
    id[8..].copy_from_slice(&number.to_be_bytes());
    SessionId(id)
}

/// Returns the downstream flow between two addresses.
pub(crate) fn flow(source: IpAddr, destination: IpAddr) -> Mri {
    Mri::PathCoupled(PathCoupled::new(source, destination).unwrap())
}

/// Returns a call that sends a message; change its fields for the odd case.
pub(crate) fn send(handle: u64, number: u64, mri: Mri, attributes: TransferAttributes, data: &[u8]) -> ApiCall {
    ApiCall::SendMessage {
        handle: MessageHandle(handle),
        nslp_id: NSLP,
        session: session(number),
        mri,
        attributes,
        sii: None,
        timeout: Duration::from_secs(10),
        data: data.to_vec(),
        hops: None,
        options: SendOptions::default(),
    }
}

/// Returns the seed given by `NETSERV_SEED`, or a run of seeds; each is printed, so that a failure shows its own.
pub(crate) fn seeds(count: u64) -> Vec<u64> {
    match std::env::var("NETSERV_SEED") {
        Ok(seed) => vec![seed.parse().expect("NETSERV_SEED is a number")],
        Err(_) => (1..=count).collect(),
    }
}
