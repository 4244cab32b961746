// SPDX-License-Identifier: Apache-2.0
//! Checklists of the RPKI, against the cache of a relying party that the corpus has.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use ipnet::IpNet;
use netserv_model::limits::CHECKLIST_BYTES_MAX;
use netserv_model::{Digest, Refusal, RefusalKind, UnixTime};
use netserv_rpki::{Cache, limits};

/// When the trust anchor's tree was made. Everything in it ends a day later.
pub const CHECKED_AT: UnixTime = UnixTime::from_secs(1_800_000_000);
/// What the holder's certificate has.
pub const HELD: [&str; 2] = ["10.1.0.0/16", "2001:db8:1::/48"];
/// The digest of the grant for which checklists are.
pub const LISTED: Digest = Digest([7; 32]);
/// The folder of the cache and its trust anchor locator.
pub const CACHE: &str = "corpus/checklist_cache";

/// Reads a checklist.
///
/// # Panics
/// If its holder speaks for what it does not hold, or at a time at which it does not.
pub fn checklist(data: &[u8]) {
    match cache().check(data, &LISTED, CHECKED_AT) {
        Ok(holder) => {
            let held: Vec<IpNet> = HELD.iter().map(|net| net.parse().expect("a prefix")).collect();
            let is_held = |prefix: &IpNet| held.iter().any(|outer| outer.contains(prefix));
            assert!((1..=limits::PREFIXES_MAX).contains(&holder.prefixes.len()));
            assert!(holder.prefixes.iter().all(is_held), "{:?}", holder.prefixes);
            assert!(CHECKED_AT <= holder.until && holder.until <= CHECKED_AT + Duration::from_secs(24 * 3600));
            assert!(data.len() <= CHECKLIST_BYTES_MAX);
            assert!(cache().check(data, &Digest([8; 32]), CHECKED_AT).is_err(), "it lists one grant");
        }
        Err(invalid) => {
            let refusal = Refusal::new(RefusalKind::BadProof, invalid.to_string());
            assert!(!refusal.detail.is_empty() && refusal.detail.chars().all(|letter| !letter.is_control()));
        }
    }
}

fn cache() -> &'static Cache {
    static OPEN: OnceLock<Cache> = OnceLock::new();
    OPEN.get_or_init(|| {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(CACHE);
        // Its files are as old as the checkout.
        let age_max = Duration::from_secs(100 * 366 * 24 * 3600);
        Cache::open(folder.clone(), &[folder.join("lab.tal")], age_max).expect("the corpus has a locator")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_reach_what_they_are_for() {
        let check = |seed: &[u8]| cache().check(seed, &LISTED, CHECKED_AT).map_err(|invalid| invalid.to_string());
        assert!(check(include_bytes!("../corpus/checklist/good")).is_ok());
        let said = check(include_bytes!("../corpus/checklist/beyond")).expect_err("it overclaims");
        assert!(said.contains("its issuer does not have"), "{said}");
    }
}
