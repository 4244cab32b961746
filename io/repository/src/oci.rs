// SPDX-License-Identifier: Apache-2.0
//! The few documents of the OCI image format that a package is made of.
//!
//! They are written with their fields in one order, so that the same package has the same bytes everywhere; unknown
//! fields are read over, as the OCI image specification asks.

use std::collections::BTreeMap;

use netserv_model::{Digest, Refusal, RefusalKind};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::limits::JSON_BYTES_MAX;

/// Type of an OCI image manifest.
pub(crate) const IMAGE_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// Type of an OCI image index.
pub(crate) const IMAGE_INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// Type of the empty config, `{}`.
pub(crate) const EMPTY: &str = "application/vnd.oci.empty.v1+json";
/// The artifact type of a module.
pub(crate) const MODULE: &str = "application/vnd.netserv.module.v1";
/// Type of a module's config: its manifest.
pub(crate) const MODULE_CONFIG: &str = "application/vnd.netserv.manifest.v1+json";
/// The artifact type of a signature.
pub(crate) const SIGNATURE: &str = "application/vnd.netserv.signature.v1";
/// Type of a signature's only layer.
pub(crate) const SIGNATURE_LAYER: &str = "application/vnd.netserv.signature.v1+json";
/// Type of the layer of a core module, and of that of a component: their headers tell them apart.
pub(crate) const WASM: &str = "application/wasm";
/// Type of the OSGi flavour's layer.
pub(crate) const JAR: &str = "application/java-archive";
/// Type of the layer with a certificate chain and its key.
pub(crate) const PEM: &str = "application/x-pem-file";
/// The annotation of the module's index entry that lists its signatures, separated by commas.
///
/// Signatures are no index entries of their own, because tools that are given no tag take only a layout with one entry.
pub(crate) const SIGNATURES: &str = "org.netserv.signatures";

/// Content of `oci-layout`.
pub(crate) const LAYOUT: &str = r#"{"imageLayoutVersion":"1.0.0"}"#;

/// Points to a blob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Descriptor {
    pub(crate) media_type: String,
    pub(crate) digest: Digest,
    pub(crate) size: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) artifact_type: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) annotations: BTreeMap<String, String>,
}

impl Descriptor {
    pub(crate) fn of(media_type: &str, blob: &[u8]) -> Descriptor {
        Descriptor {
            media_type: media_type.to_owned(),
            digest: digest_of(blob),
            size: u64::try_from(blob.len()).expect("a length fits 64 bits"),
            artifact_type: None,
            annotations: BTreeMap::new(),
        }
    }
}

/// An image manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ImageManifest {
    pub(crate) schema_version: u32,
    pub(crate) media_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) artifact_type: Option<String>,
    pub(crate) config: Descriptor,
    pub(crate) layers: Vec<Descriptor>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) subject: Option<Descriptor>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) annotations: BTreeMap<String, String>,
}

/// `index.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ImageIndex {
    pub(crate) schema_version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) media_type: Option<String>,
    pub(crate) manifests: Vec<Descriptor>,
}

/// What the layer of a signature holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignatureDocument {
    pub(crate) key: netserv_model::PublicKey,
    pub(crate) signature: netserv_model::Signature,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Layout {
    image_layout_version: String,
}

/// Returns the digest of a blob.
pub(crate) fn digest_of(blob: &[u8]) -> Digest {
    Digest(Sha256::digest(blob).into())
}

/// Writes a document.
pub(crate) fn to_json<T: Serialize>(document: &T) -> Vec<u8> {
    serde_json::to_vec(document).expect("the documents are plain JSON")
}

/// Reads a document.
pub(crate) fn from_json<T: DeserializeOwned>(what: &str, bytes: &[u8]) -> Result<T, Refusal> {
    if bytes.len() > JSON_BYTES_MAX {
        return Err(bad(format!("{what} has {} bytes, at most {JSON_BYTES_MAX}", bytes.len())));
    }
    serde_json::from_slice(bytes).map_err(|error| bad(format!("{what}: {error}")))
}

/// Checks `oci-layout`.
pub(crate) fn check_layout(bytes: &[u8]) -> Result<(), Refusal> {
    let Layout { image_layout_version } = from_json("oci-layout", bytes)?;
    if image_layout_version == "1.0.0" {
        return Ok(());
    }
    let version: String = image_layout_version.chars().take(20).collect();
    Err(bad(format!("image layout version {version}, understood is 1.0.0")))
}

/// Says what is wrong with a package.
pub(crate) fn bad(detail: impl AsRef<str>) -> Refusal {
    Refusal::new(RefusalKind::BadPackage, detail)
}
