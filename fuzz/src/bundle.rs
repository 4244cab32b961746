// SPDX-License-Identifier: Apache-2.0
//! What a node reads of an OSGi bundle before it runs it.

use netserv_model::RefusalKind;
use netserv_repository::bundle;

/// Looks at a bundle.
///
/// # Panics
/// If what is taken has not the headers of a bundle, or what is refused is not refused as a bundle is.
pub fn bundle_jar(data: &[u8]) {
    match bundle::headers(data) {
        Ok(headers) => {
            assert!(headers.contains_key("manifest-version") && headers.contains_key("bundle-symbolicname"));
            assert!(headers.keys().all(|name| *name == name.to_ascii_lowercase()));
            assert_eq!(bundle::check(data), Ok(()));
        }
        Err(refusal) => {
            assert!(matches!(refusal.kind, RefusalKind::BadCode | RefusalKind::BadManifest), "{refusal}");
            assert!(refusal.detail.chars().all(|c| !c.is_control()) && refusal.detail.chars().count() <= 400);
        }
    }
}
