// SPDX-License-Identifier: Apache-2.0
//! A cache that is opened when a module that may use it comes, or somebody first uses it.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use netserv_model::ModuleName;
use tokio::sync::SetOnce;

use super::error::CacheError;
use super::shares::{Cache, Share};
use crate::limits::SMALL_STACK_BYTES;
use crate::storage::StoreFile;
use crate::storage::limits::CACHE_TEST_CONTAINER_BYTES;
use crate::storage::testing::Memory;

/// Where the cache of a worker comes from.
#[derive(Default)]
pub struct CacheSource {
    file: Option<File>,
    /// Of the container.
    memory_bytes: u64,
    is_begun: AtomicBool,
    pub(super) cache: SetOnce<Result<Arc<Cache>, CacheError>>,
}

enum File {
    At(PathBuf),
    InMemory(u64),
    On(Memory),
}

impl CacheSource {
    /// Returns a cache in a file that the node granted, in a container of `memory_bytes`.
    pub fn at(path: impl Into<PathBuf>, memory_bytes: u64) -> Arc<CacheSource> {
        Arc::new(CacheSource { file: Some(File::At(path.into())), memory_bytes, ..CacheSource::default() })
    }

    /// Returns a cache in memory, for tests.
    pub fn in_memory(bytes: u64) -> Arc<CacheSource> {
        CacheSource::of(File::InMemory(bytes))
    }

    /// Returns a cache on a disk that breaks as it is told, for tests.
    pub fn on(disk: &Memory) -> Arc<CacheSource> {
        CacheSource::of(File::On(disk.clone()))
    }

    fn of(file: File) -> Arc<CacheSource> {
        let memory_bytes = CACHE_TEST_CONTAINER_BYTES;
        Arc::new(CacheSource { file: Some(file), memory_bytes, ..CacheSource::default() })
    }

    /// Returns how many times the file could not be opened, read or written, or was damaged.
    pub fn failures(&self) -> u64 {
        match self.cache.get() {
            None => 0,
            Some(Ok(cache)) => cache.failures(),
            Some(Err(_)) => 1,
        }
    }

    /// Has the file be looked through, on a thread of its own.
    fn begin(self: &Arc<CacheSource>) {
        if !self.is_begun.swap(true, Ordering::Relaxed) {
            let source = Arc::clone(self);
            let thread = std::thread::Builder::new().name("cache".to_owned()).stack_size(SMALL_STACK_BYTES);
            if let Err(error) = thread.spawn(move || drop(source.cache.set(source.look()))) {
                drop(self.cache.set(Err(error.into())));
            }
        }
    }

    /// Returns the cache once the whole file was looked through. That goes on if nobody waits.
    async fn open(self: &Arc<CacheSource>) -> &Result<Arc<Cache>, CacheError> {
        self.begin();
        self.cache.wait().await
    }

    fn look(&self) -> Result<Arc<Cache>, CacheError> {
        match &self.file {
            Some(File::At(path)) => Cache::open_within(StoreFile::try_open(path)?, self.memory_bytes),
            Some(File::InMemory(bytes)) => Cache::open_within(StoreFile::in_memory(*bytes)?, self.memory_bytes),
            Some(File::On(disk)) => Cache::open_within(disk.clone(), self.memory_bytes),
            None => Err(io::Error::from(io::ErrorKind::NotFound).into()),
        }
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

    /// Has the file be looked through before the module uses it.
    pub fn prepare(&self) {
        self.source.begin();
    }

    /// Returns the module's share if the module has used it.
    pub fn known(&self) -> Option<&Arc<Share>> {
        self.share.get()?.as_ref()
    }

    /// Returns the module's share; nothing where there is no file of use, which `report` is told once. The first time,
    /// this waits until the file was looked through.
    pub async fn share(&self, report: impl FnOnce(&CacheError)) -> Option<&Arc<Share>> {
        if let Some(known) = self.share.get() {
            return known.as_ref();
        }
        let cache = self.source.open().await;
        let join = || match cache {
            Ok(cache) => Some(Arc::new(cache.share(self.module.as_ref()?))),
            Err(error) => {
                report(error);
                None
            }
        };
        self.share.get_or_init(join).as_ref()
    }
}

impl fmt::Debug for CacheHandle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "CacheHandle({:?})", self.module)
    }
}
