// SPDX-License-Identifier: Apache-2.0
//! Who is known in the world, and what there is to install.

use std::collections::BTreeMap;

use ed25519_dalek::{Signer as _, SigningKey};
use netserv_model::manifest::{Manifest, ModuleLimits};
use netserv_model::policy::{NodePolicy, UserPolicy};
use netserv_model::{Digest, ModuleRef, NodeId, Nonce, PublicKey, Signature, UnixTime, UserId};
use netserv_wire::nslp::RequestBuilder;

/// The users that every node knows.
pub const USERS: [&str; 3] = ["janedoe", "johndoe", "isp"];
/// The packages that every node can fetch.
pub const MODULES: [&str; 3] =
    ["example.org/net-monitor@1.2.0", "example.org/net-monitor@1.3.0", "example.org/keep-alive@1.0.0"];

/// Returns what a node of the world allows: every user every address of 10.0.0.0/8.
pub(super) fn policy(node: NodeId, host_only: bool) -> NodePolicy {
    let user = |name: &str| {
        let policy = UserPolicy {
            keys: vec![PublicKey(key(name).verifying_key().to_bytes())],
            prefixes: vec!["10.0.0.0/8".parse().expect("a good prefix")],
            modules_max: 10,
            module_limits: ModuleLimits::default(),
            ..UserPolicy::default()
        };
        (user_id(name), policy)
    };
    let mut policy = NodePolicy::new(node);
    policy.host_only = host_only;
    policy.blocks = BTreeMap::from([("packet".to_owned(), 1)]);
    policy.users = USERS.into_iter().map(user).collect();
    policy
}

/// Returns a module of [`MODULES`] by its place.
pub(super) fn module(place: usize) -> ModuleRef {
    MODULES[place].parse().expect("a good reference")
}

/// Returns the digest of the package of a module.
pub(super) fn digest(place: usize) -> Digest {
    Digest([u8::try_from(place).expect("there are few modules"); 32])
}

/// Returns what the package with a digest says of itself, if there is one.
pub(super) fn package(wanted: &Digest) -> Option<Manifest> {
    let place = (0..MODULES.len()).find(|place| digest(*place) == *wanted)?;
    let ModuleRef { name, version } = module(place);
    let manifest = serde_json::json!({
        "manifest": 1, "name": name, "version": version,
        "packet": { "abi": 1, "filters": [format!("udp dst 10.2.0.0/16 port {}", 5060 + place)] },
    });
    Some(serde_json::from_value(manifest).expect("a good manifest"))
}

/// Returns the text of a request that a user signed.
pub(super) fn signed(builder: RequestBuilder, user: &str, created: UnixTime, nonce: Nonce) -> String {
    let unsigned = builder.user(&user_id(user)).build(created, nonce).expect("a good request");
    let signature = Signature(key(user).sign(unsigned.canonical_bytes()).to_bytes());
    unsigned.with_signature(signature).expect("there is room for it").as_str().to_owned()
}

pub(super) fn user_id(user: &str) -> UserId {
    user.parse().expect("a good name")
}

fn key(user: &str) -> SigningKey {
    SigningKey::from_bytes(&[user.bytes().fold(0, u8::wrapping_add); 32])
}
