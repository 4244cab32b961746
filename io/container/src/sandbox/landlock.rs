// SPDX-License-Identifier: Apache-2.0
//! Landlock: files, abstract sockets, signals and TCP ports.

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetStatus, Scope, path_beneath_rules,
};

use super::paths::{DATA, NULL, STORE_CACHE, STORE_KV};
use crate::sys;

/// The Landlock version that a container's whole rule set needs.
const LANDLOCK_WANTED: u32 = 6;

/// Returns the Landlock version in words, or why there is none.
pub(crate) fn version() -> Result<String, String> {
    match sys::landlock_version() {
        0 => Err("Landlock: the kernel has none, or it is off (boot with `lsm=landlock,…`)".to_owned()),
        version if version < LANDLOCK_WANTED => {
            Err(format!("Landlock: version {version} enforces less than version {LANDLOCK_WANTED}"))
        }
        version => Ok(format!("Landlock version {version}")),
    }
}

/// Restricts files to reading the root and writing `/data` and what is in `/store`, and forbids abstract sockets and
/// signals to the outside, and TCP ports unless a network's own firewall looks after them. Returns how much of it the kernel enforces:
/// all of it is done by other means too.
pub(crate) fn restrict(network: bool) -> Result<String, landlock::RulesetError> {
    let abi = ABI::V6;
    let data = AccessFs::from_all(abi) & !AccessFs::Execute;
    let mut ruleset =
        Ruleset::default().set_compatibility(CompatLevel::BestEffort).handle_access(AccessFs::from_all(abi))?;
    if !network {
        ruleset = ruleset.handle_access(AccessNet::from_all(abi))?;
    }
    let status = ruleset
        .scope(Scope::from_all(abi))?
        .create()?
        .add_rules(path_beneath_rules(["/"], AccessFs::from_read(abi)))?
        .add_rules(path_beneath_rules([DATA], data))?
        .add_rules(path_beneath_rules([NULL], AccessFs::from_read(abi) | AccessFs::WriteFile))?
        .add_rules(path_beneath_rules([STORE_KV, STORE_CACHE], AccessFs::from_file(abi) & !AccessFs::Execute))?
        .restrict_self()?;
    Ok(match status.ruleset {
        RulesetStatus::FullyEnforced => "fully enforced".to_owned(),
        RulesetStatus::PartiallyEnforced => "partly enforced".to_owned(),
        RulesetStatus::NotEnforced => "not enforced".to_owned(),
    })
}
