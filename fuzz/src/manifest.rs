// SPDX-License-Identifier: Apache-2.0
//! What a node reads of a package's manifest, which a version of NetServ may have written that it does not know.

use netserv_model::RefusalKind;
use netserv_repository::manifest;

/// Reads a manifest.
///
/// # Panics
/// If what is taken does not come back as it was, or what is refused is not refused as a manifest is.
pub fn package_manifest(data: &[u8]) {
    let unknown = manifest::unknown_keys(data);
    match manifest::parse(data) {
        Ok(read) => {
            assert!(read.used_features().is_subset(&read.requires));
            // What is written has more keys than what was read may have had, and can be too long.
            if let Ok(written) = manifest::to_json(&read) {
                assert_eq!(manifest::parse(&written).as_ref(), Ok(&read));
                assert!(manifest::unknown_keys(&written).is_empty());
            }
        }
        Err(refusal) => {
            assert!(unknown.is_empty());
            assert!(matches!(refusal.kind, RefusalKind::BadManifest | RefusalKind::MissingFeature), "{refusal}");
            assert!(refusal.detail.chars().all(|c| !c.is_control()) && refusal.detail.chars().count() <= 400);
        }
    }
}
