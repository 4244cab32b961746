// SPDX-License-Identifier: Apache-2.0
//! A tree, a checklist and the cache that both are checked in.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use ipnet::IpNet;
use netserv_model::evidence::Holder;
use netserv_model::{Digest, UnixTime};
use netserv_rpki::{Cache, Invalid};
use netserv_rpki_tree::{Checklist, Files, Tree, digest, write};
use tempfile::TempDir;

pub(crate) const GRANT: &[u8] = b"a grant";
pub(crate) const AGE_MAX: Duration = Duration::from_secs(86_400);
/// The authorities of every tree, by number. The holder is under the registry, and that under the trust anchor.
pub(crate) const ANCHOR: usize = 0;
pub(crate) const REGISTRY: usize = 1;
pub(crate) const HOLDER: usize = 2;

/// What is checked.
pub(crate) struct Scene {
    pub(crate) tree: Tree,
    /// What [`HOLDER`] signs, unless `signer` is another.
    pub(crate) checklist: Checklist,
    pub(crate) signer: usize,
}

/// What both relying parties get.
#[derive(Clone)]
pub(crate) struct Staged {
    pub(crate) files: Files,
    pub(crate) checklist: Vec<u8>,
    pub(crate) locator: String,
}

impl Scene {
    pub(crate) fn new() -> Scene {
        static TREE: OnceLock<Tree> = OnceLock::new();
        let tree = TREE.get_or_init(|| {
            let mut tree = Tree::new(now());
            let mut registry = tree.certificate(&nets(&["10.0.0.0/8", "2001:db8::/32"]));
            registry.asns = vec![64_496, 64_497];
            let mut holder = tree.certificate(&nets(&["10.1.0.0/16", "2001:db8:1::/48"]));
            holder.asns = vec![64_496];
            let registry = tree.authority(ANCHOR, "registry", &registry);
            let holder = tree.authority(registry, "holder", &holder);
            tree.route_origin(holder, "route", nets(&["10.1.0.0/24"])[0]);
            tree
        });
        let tree = tree.clone();
        let checklist = tree.checklist(&nets(&["10.1.2.0/24", "2001:db8:1:2::/64"]), grant());
        Scene { tree, checklist, signer: HOLDER }
    }

    pub(crate) fn stage(mut self) -> Staged {
        let checklist = self.tree.sign(self.signer, &self.checklist);
        Staged { files: self.tree.publish(), checklist, locator: self.tree.locator() }
    }
}

impl Staged {
    /// Returns one with nothing wrong.
    pub(crate) fn good() -> Staged {
        static GOOD: OnceLock<Staged> = OnceLock::new();
        GOOD.get_or_init(|| Scene::new().stage()).clone()
    }

    /// Writes the cache and the locator.
    pub(crate) fn write(&self) -> Written {
        let folder = tempfile::tempdir().unwrap();
        let (cache, tal) = (folder.path().join("cache"), folder.path().join("lab.tal"));
        write(&self.files, &cache).unwrap();
        std::fs::write(&tal, &self.locator).unwrap();
        Written { folder, cache, tal }
    }
}

/// The files of a [`Staged`].
pub(crate) struct Written {
    pub(crate) folder: TempDir,
    pub(crate) cache: PathBuf,
    pub(crate) tal: PathBuf,
}

impl Written {
    pub(crate) fn open(&self) -> Cache {
        self.open_for(AGE_MAX)
    }

    pub(crate) fn open_for(&self, age_max: Duration) -> Cache {
        Cache::open(self.cache.clone(), std::slice::from_ref(&self.tal), age_max).unwrap()
    }

    pub(crate) fn check(&self, checklist: &[u8]) -> Result<Holder, Invalid> {
        self.open().check(checklist, &grant(), now())
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.cache.join(Path::new(netserv_rpki_tree::HOST).join("repo").join(file))
    }
}

pub(crate) fn grant() -> Digest {
    digest(GRANT)
}

pub(crate) fn nets(texts: &[&str]) -> Vec<IpNet> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// The time at which the tests began.
pub(crate) fn now() -> UnixTime {
    static NOW: OnceLock<UnixTime> = OnceLock::new();
    *NOW.get_or_init(|| {
        UnixTime::from_secs(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs())
    })
}
