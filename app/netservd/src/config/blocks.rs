// SPDX-License-Identifier: Apache-2.0
//! The building blocks that modules of this node may use, as `[blocks]` of the configuration says.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use netserv_model::dependency::{BLOCKS_ALWAYS, BLOCKS_OF_NETWORK, BLOCKS_OPTIONAL};
use netserv_model::limits::{AUTHORITIES_BYTES_MAX, CACHE_FILE_BYTES_MAX};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::media::MediaBlock;

/// Bytes that a block's file has at least.
const FILE_BYTES_MIN: u64 = 1024 * 1024;
/// Bytes of the file of kv state at most; a container's memory bounds it as well.
const KV_FILE_BYTES_MAX: u64 = 16 * 1024 * 1024 * 1024;

/// What modules may use beside their own code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Blocks {
    /// Those that may be used of the ones that can be left out; one that this machine lacks something for is left out.
    pub enabled: Vec<String>,
    /// What modules remember.
    pub kv: KvBlock,
    /// What modules keep on disk to have it at hand.
    pub cache: CacheBlock,
    /// Modules' requests to other servers.
    pub http_client: HttpClientBlock,
    /// Sound and pictures.
    pub media: MediaBlock,
}

impl Default for Blocks {
    fn default() -> Blocks {
        let enabled = BLOCKS_OPTIONAL.map(str::to_owned).to_vec();
        Blocks {
            enabled,
            kv: KvBlock::default(),
            cache: CacheBlock::default(),
            http_client: HttpClientBlock::default(),
            media: MediaBlock::default(),
        }
    }
}

/// The block `kv`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct KvBlock {
    /// Bytes on disk of the state that one user's modules of one flavour keep.
    pub bytes: u64,
}

impl Default for KvBlock {
    fn default() -> KvBlock {
        KvBlock { bytes: 64 * 1024 * 1024 }
    }
}

/// The block `cache`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct CacheBlock {
    /// Bytes on disk of the cache that one user's modules of one flavour share.
    pub bytes: u64,
}

impl Default for CacheBlock {
    fn default() -> CacheBlock {
        CacheBlock { bytes: 256 * 1024 * 1024 }
    }
}

/// The block `http-client`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct HttpClientBlock {
    /// Certificate authorities in PEM that Wasm modules trust beside those of Mozilla's list; empty means none.
    pub authorities: PathBuf,
}

impl HttpClientBlock {
    /// Returns the file of authorities, if there is one.
    pub fn file(&self) -> Option<&Path> {
        Some(self.authorities.as_path()).filter(|path| !path.as_os_str().is_empty())
    }

    fn check(&self) -> Result<()> {
        let Some(path) = self.file() else { return Ok(()) };
        let key = "blocks.http-client.authorities";
        let pem = std::fs::read_to_string(path).with_context(|| format!("{key}: cannot read {}", path.display()))?;
        let most = AUTHORITIES_BYTES_MAX;
        ensure!(pem.len() as u64 <= most, "{key}: {} has over {most} bytes", path.display());
        ensure!(pem.contains("-----BEGIN CERTIFICATE-----"), "{key}: {} has no certificate in PEM", path.display());
        Ok(())
    }
}

impl Blocks {
    /// Returns the blocks that are enabled, with their versions.
    pub fn versions(&self, network: bool) -> BTreeMap<String, u32> {
        let media = self.has("media") && self.media.files().is_ok();
        let works = |name: &&str| (network || !BLOCKS_OF_NETWORK.contains(name)) && (*name != "media" || media);
        let enabled = self.enabled.iter().map(String::as_str).filter(works);
        BLOCKS_ALWAYS.into_iter().chain(enabled).map(|name| (name.to_owned(), 1)).collect()
    }

    /// Returns whether a block is enabled.
    pub fn has(&self, name: &str) -> bool {
        self.enabled.iter().any(|enabled| enabled == name)
    }

    /// Returns how many bytes the files of a worker have: that of the kv state, and that of the cache.
    pub fn file_bytes(&self) -> (u64, u64) {
        let of = |name: &str, bytes: u64| if self.has(name) { bytes } else { 0 };
        (of("kv", self.kv.bytes), of("cache", self.cache.bytes))
    }

    /// Checks what the operator wrote.
    ///
    /// # Errors
    /// A name is unknown or there twice, or a size is out of its bounds.
    pub fn check(&self) -> Result<()> {
        let mut seen = BTreeSet::new();
        for name in &self.enabled {
            ensure!(
                !BLOCKS_ALWAYS.contains(&name.as_str()),
                "blocks.enabled has `{name}`, which every node has anyway"
            );
            let known = BLOCKS_OPTIONAL.join(", ");
            ensure!(BLOCKS_OPTIONAL.contains(&name.as_str()), "blocks.enabled has `{name}`; there are {known}");
            ensure!(seen.insert(name), "blocks.enabled has `{name}` twice");
        }
        let (kv, cache) = (self.kv.bytes, self.cache.bytes);
        for (key, bytes, most) in [("kv", kv, KV_FILE_BYTES_MAX), ("cache", cache, CACHE_FILE_BYTES_MAX)] {
            let is_fit = (FILE_BYTES_MIN..=most).contains(&bytes);
            ensure!(is_fit, "blocks.{key}.bytes is {bytes}, but must be {FILE_BYTES_MIN} to {most}");
        }
        self.http_client.check()?;
        self.media.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operator_chooses() {
        let all = Blocks::default().versions(true);
        let without_ffmpeg = usize::from(MediaBlock::default().files().is_err());
        let expected = BLOCKS_ALWAYS.len() + BLOCKS_OPTIONAL.len() - without_ffmpeg;
        assert_eq!((all.len(), all["kv"], all["packet"]), (expected, 1, 1));
        let media = MediaBlock { ffmpeg: "/nowhere".into(), ..MediaBlock::default() };
        assert!(!Blocks { media, ..Blocks::default() }.versions(true).contains_key("media"));
        let unconnected = Blocks::default().versions(false);
        assert_eq!(
            all.keys().filter(|name| !unconnected.contains_key(*name)).collect::<Vec<_>>(),
            BLOCKS_OF_NETWORK.each_ref()
        );
        let few = Blocks { enabled: vec!["hash".to_owned()], ..Blocks::default() };
        assert!(few.versions(true).contains_key("hash") && !few.versions(true).contains_key("kv"));
        assert_eq!((few.file_bytes(), Blocks::default().file_bytes()), ((0, 0), (64 << 20, 256 << 20)));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let with = |names: &[&str]| Blocks {
            enabled: names.iter().map(|name| (*name).to_owned()).collect(),
            ..Blocks::default()
        };
        let with_authorities =
            |path: &str| Blocks { http_client: HttpClientBlock { authorities: path.into() }, ..Blocks::default() };
        for (blocks, named) in [
            (with(&["kv", "kvv"]), "`kvv`; there are cache, channel"),
            (with(&["kv", "kv"]), "`kv` twice"),
            (with(&["clock"]), "`clock`, which every node has"),
            (Blocks { kv: KvBlock { bytes: 5 }, ..Blocks::default() }, "blocks.kv.bytes is 5"),
            (
                Blocks { cache: CacheBlock { bytes: CACHE_FILE_BYTES_MAX + 1 }, ..Blocks::default() },
                "blocks.cache.bytes",
            ),
            (with_authorities("/nowhere/ca.pem"), "cannot read /nowhere/ca.pem"),
            (with_authorities("/dev/null"), "/dev/null has no certificate"),
        ] {
            let error = blocks.check().unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
        assert!(with(&[]).check().is_ok());
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "-----BEGIN CERTIFICATE-----\n").unwrap();
        assert!(with_authorities(file.path().to_str().unwrap()).check().is_ok());
    }
}
