// SPDX-License-Identifier: Apache-2.0
//! Who is known to the nodes, and what there is to install; a byte names a module and its version.

use std::collections::BTreeMap;

use netserv_model::manifest::{Manifest, ModuleLimits};
use netserv_model::policy::{NodePolicy, UserPolicy};
use netserv_model::{Digest, ModuleRef, PublicKey};

pub(super) const USERS: [&str; 2] = ["jane", "john"];

/// Returns the policy of one of the nodes; requests need no signature, or a fuzzer would never make one that counts.
pub(super) fn policy(at: usize) -> NodePolicy {
    let user = UserPolicy {
        keys: vec![PublicKey([0; 32])],
        prefixes: vec!["10.0.0.0/8".parse().expect("a good prefix")],
        modules_max: 4,
        module_limits: ModuleLimits::default(),
        connect: vec!["tcp dst 10.0.0.0/8 port 80".parse().expect("a good filter")],
        ..UserPolicy::default()
    };
    let mut policy = NodePolicy::new(format!("n{at}").parse().expect("a good name"));
    policy.accept_unsigned = true;
    policy.container_prefixes = vec!["10.200.0.0/24".parse().expect("a prefix")];
    policy.blocks = BTreeMap::from([("packet".to_owned(), 1)]);
    policy.users = USERS.map(|name| (name.parse().expect("a good name"), user.clone())).into();
    policy
}

pub(super) fn module(which: u8) -> ModuleRef {
    format!("example.org/m{}@1.0.{}", which & 3, which >> 2 & 3).parse().expect("a good reference")
}

pub(super) fn digest(which: u8) -> Digest {
    Digest([which & 0x3f; 32])
}

/// Returns what a package says of itself: `m0` and `m1` see packets, `m2` takes connections over, `m3` is a service.
pub(super) fn manifest(which: u8) -> Manifest {
    let ModuleRef { name, version } = module(which);
    let part = match which & 3 {
        0 | 1 => r#""packet":{"abi":1,"filters":["udp dst 10.2.0.0/16"]}"#,
        2 => r#""server":{"intercept":["tcp dst 10.2.0.0/16 port 80"]}"#,
        _ => r#""service":{"chain":["example.org/m0@^1","example.org/m1@^1"]}"#,
    };
    let text = format!(r#"{{"manifest":1,"name":"{name}","version":"{version}",{part}}}"#);
    serde_json::from_str(&text).expect("a good manifest")
}
