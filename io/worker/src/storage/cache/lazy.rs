// SPDX-License-Identifier: Apache-2.0
//! A cache that is opened when somebody first uses it.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use netserv_model::ModuleName;

use super::{Cache, Share};
use crate::storage::StoreFile;

/// Where the cache of a worker comes from.
#[derive(Default)]
pub struct CacheSource {
    file: Option<File>,
    pub(super) cache: OnceLock<Option<Arc<Cache>>>,
}

enum File {
    At(PathBuf),
    InMemory(u64),
}

impl CacheSource {
    /// Returns a cache in a file, if the node granted one.
    pub fn at(path: impl Into<PathBuf>) -> Arc<CacheSource> {
        Arc::new(CacheSource { file: Some(File::At(path.into())), cache: OnceLock::new() })
    }

    /// Returns a cache in memory, for tests.
    pub fn in_memory(bytes: u64) -> Arc<CacheSource> {
        Arc::new(CacheSource { file: Some(File::InMemory(bytes)), cache: OnceLock::new() })
    }

    /// Returns how many times the file could not be read or written, or was damaged.
    pub fn failures(&self) -> u64 {
        self.cache.get().and_then(Option::as_ref).map_or(0, |cache| cache.failures())
    }

    fn cache(&self) -> Option<&Arc<Cache>> {
        let open = || {
            let file = match self.file.as_ref()? {
                File::At(path) => StoreFile::open(path)?,
                File::InMemory(bytes) => StoreFile::in_memory(*bytes).ok()?,
            };
            Cache::open(file).ok()
        };
        self.cache.get_or_init(open).as_ref()
    }
}

/// A module's hold on the cache.
#[derive(Default)]
pub struct CacheHandle {
    source: Arc<CacheSource>,
    module: Option<ModuleName>,
    share: OnceLock<Option<Arc<Share>>>,
}

impl CacheHandle {
    /// Returns the hold of a module, which takes no share before it uses it.
    pub fn new(source: &Arc<CacheSource>, module: &ModuleName) -> CacheHandle {
        CacheHandle { source: Arc::clone(source), module: Some(module.clone()), share: OnceLock::new() }
    }

    /// Returns the module's share; nothing where there is no file of use. The first time, the whole file is looked
    /// through.
    pub fn share(&self) -> Option<&Arc<Share>> {
        let join = || Some(Arc::new(self.source.cache()?.share(self.module.as_ref()?)));
        self.share.get_or_init(join).as_ref()
    }
}

impl fmt::Debug for CacheHandle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "CacheHandle({:?})", self.module)
    }
}
