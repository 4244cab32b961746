// SPDX-License-Identifier: Apache-2.0
//! `netserv:cache/entries`, `netserv:cache/unread` and `netserv:cache/read`.

use std::sync::Arc;

use netserv_worker_base::compute::Budget;
use netserv_worker_base::storage::cache::{About, CacheError, Details, Entry, Joined, Opened, Scope, Share};
use wasmtime::component::Resource;
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream};

use super::body::{Body, Part, Reading, Source};
use super::found::{seconds, share};
use super::sink::Writing;
use super::wit::entries::{self as wit, Error, Range};
use super::wit::{read, unread};
use crate::disk::spawn_blocking;
use crate::state::ServerState;
use crate::waiting;

type Answer<T> = wasmtime::Result<Result<T, Error>>;

impl wit::Host for ServerState {
    async fn stat(&mut self, key: String) -> wasmtime::Result<Option<wit::Entry>> {
        let Some(share) = share(&self.module).await else { return Ok(None) };
        let found = share.find(&key, false);
        let read = with_meta(&share, found).await?;
        Ok(read.ok().flatten().map(|(entry, meta)| describe(&entry.about(meta))))
    }

    async fn get(&mut self, key: String) -> Answer<Option<Resource<Reading>>> {
        let Some(share) = share(&self.module).await else { return Ok(Ok(None)) };
        let found = share.find(&key, true);
        match with_meta(&share, found).await? {
            Ok(Some(read)) => Ok(Ok(Some(self.table.push(reading(share, read))?))),
            Ok(None) => Ok(Ok(None)),
            Err(error) => Ok(Err(error.into())),
        }
    }

    async fn open_or_join(&mut self, key: String) -> Answer<wit::Opened> {
        let Some(share) = share(&self.module).await else { return Ok(Err(Error::Unavailable)) };
        let long_waits = self.egress.answers().then(|| self.module.long_waits.clone());
        let reading = loop {
            match share.open_or_join(&key, seconds()) {
                Ok(Opened::Entry(entry)) => match with_meta(&share, Some(entry)).await? {
                    Ok(Some(read)) => break reading(share, read),
                    // It was not on the disk, and is no longer found.
                    Ok(None) => {}
                    Err(error) => return Ok(Err(error.into())),
                },
                Ok(Opened::Joined(joined)) => match about(&joined, long_waits.as_ref()).await {
                    Ok(about) => break Reading { source: Source::Joined(Arc::new(joined)), about },
                    Err(error) => return Ok(Err(error.into())),
                },
                Ok(Opened::Writer(writer)) => {
                    return Ok(Ok(wit::Opened::Writer(self.table.push(Writing::new(writer))?)));
                }
                Err(error) => return Ok(Err(error.into())),
            }
        };
        Ok(Ok(wit::Opened::Reader(self.table.push(reading)?)))
    }

    async fn put(&mut self, key: String) -> Answer<Resource<Writing>> {
        let Some(share) = share(&self.module).await else { return Ok(Err(Error::Unavailable)) };
        match share.put(&key) {
            Ok(writer) => Ok(Ok(self.table.push(Writing::new(Box::new(writer)))?)),
            Err(error) => Ok(Err(error.into())),
        }
    }

    async fn update(&mut self, key: String, details: wit::Details) -> Answer<bool> {
        let Some(share) = share(&self.module).await else { return Ok(Ok(false)) };
        let updated = spawn_blocking(move || share.update(&key, &details.into(), seconds())).await?;
        Ok(updated.map_err(Error::from))
    }

    async fn remove(&mut self, key: String) -> wasmtime::Result<bool> {
        let Some(share) = share(&self.module).await else { return Ok(false) };
        Ok(spawn_blocking(move || share.remove(&key)).await?)
    }

    async fn list(&mut self, prefix: String, after: Option<String>, limit: u32) -> Answer<Vec<wit::Listed>> {
        let Some(share) = share(&self.module).await else { return Ok(Ok(vec![])) };
        let listed = spawn_blocking(move || share.list(&prefix, after.as_deref(), limit)).await?;
        let now = seconds();
        let one = |entry: Arc<Entry>| wit::Listed {
            key: entry.key().to_string(),
            size: entry.size(),
            age: entry.age(now),
            max_age: entry.max_age(),
        };
        Ok(listed.map(|listed| listed.into_iter().map(one).collect()).map_err(Error::from))
    }

    async fn purge(&mut self, scope: wit::Scope) -> Answer<u64> {
        let Some(share) = share(&self.module).await else { return Ok(Ok(0)) };
        let scope = match scope {
            wit::Scope::Prefix(prefix) => Scope::Prefix(prefix),
            wit::Scope::Tag(tag) => Scope::Tag(tag),
        };
        let mut purge = match share.purge(scope) {
            Ok(purge) => purge,
            Err(error) => return Ok(Err(error.into())),
        };
        // It goes on if the instance ends, and others have the thread between its steps.
        let whole = tokio::spawn(async move {
            loop {
                let step = move || (purge.step(), purge);
                let (is_more, stepped) = spawn_blocking(step).await?;
                if !is_more {
                    return Ok::<_, tokio::task::JoinError>(stepped.gone());
                }
                purge = stepped;
            }
        });
        Ok(Ok(whole.await??))
    }
}

impl wit::HostWriter for ServerState {
    fn begin(
        &mut self,
        writing: Resource<Writing>,
        details: wit::Details,
        size: Option<u64>,
    ) -> Answer<Resource<DynOutputStream>> {
        let writing = self.table.get_mut(&writing)?;
        if let Err(error) = writing.begin(details.into(), size, seconds()) {
            return Ok(Err(error.into()));
        }
        let Some(body) = writing.body() else { return Ok(Err(Error::Invalid)) };
        Ok(Ok(self.table.push(body)?))
    }

    async fn finish(&mut self, writing: Resource<Writing>) -> Answer<()> {
        Ok(self.table.delete(writing)?.finish().await?.map_err(Error::from))
    }

    fn drop(&mut self, writing: Resource<Writing>) -> wasmtime::Result<()> {
        self.table.delete(writing)?;
        Ok(())
    }
}

impl unread::Host for ServerState {
    fn give_up(&mut self, writing: Resource<Writing>) -> wasmtime::Result<bool> {
        Ok(self.table.get(&writing)?.give_up())
    }
}

impl read::Host for ServerState {
    async fn update(&mut self, reading: Resource<Reading>, details: wit::Details) -> Answer<bool> {
        let Source::Entry(share, entry) = self.table.get(&reading)?.source.clone() else { return Ok(Ok(false)) };
        let updated = spawn_blocking(move || share.update_read(&entry, &details.into(), seconds())).await?;
        Ok(updated.map_err(Error::from))
    }
}

impl wit::HostReader for ServerState {
    fn entry(&mut self, reading: Resource<Reading>) -> wasmtime::Result<wit::Entry> {
        Ok(describe(&self.table.get(&reading)?.about))
    }

    fn body(&mut self, reading: Resource<Reading>, range: Option<Range>) -> Answer<Resource<DynInputStream>> {
        let source = self.table.get(&reading)?.source.clone();
        let Ok(place) = self.blocks.cache_readers.reserve(1) else { return Ok(Err(Error::Busy)) };
        let part = range.map_or(Part::default(), |Range { start, length }| Part { start, length });
        Ok(Ok(self.lend(Body::new(source, part, place))?))
    }

    fn failure(&mut self, reading: Resource<Reading>) -> wasmtime::Result<Option<Error>> {
        Ok(match &self.table.get(&reading)?.source {
            Source::Entry(..) => None,
            Source::Joined(joined) => joined.failure().map(Error::from),
        })
    }

    fn drop(&mut self, reading: Resource<Reading>) -> wasmtime::Result<()> {
        self.table.delete(reading)?;
        Ok(())
    }
}

/// Waits until who writes an entry says what it is. Of a module's instances that answer requests, a part does so for long.
async fn about(joined: &Joined, long_waits: Option<&Budget>) -> Result<Arc<About>, CacheError> {
    match long_waits {
        Some(places) => waiting::bounded(places, joined.about()).await.unwrap_or(Err(CacheError::Stalled)),
        None => joined.about().await,
    }
}

/// Returns an entry that was found with what the module keeps beside it; nothing if it is not on the disk.
async fn with_meta(
    share: &Arc<Share>,
    found: Option<Arc<Entry>>,
) -> wasmtime::Result<Result<Option<(Arc<Entry>, Vec<u8>)>, CacheError>> {
    let Some(entry) = found else { return Ok(Ok(None)) };
    if let Some(meta) = share.find_meta(&entry) {
        return Ok(Ok(Some((entry, meta))));
    }
    let share = Arc::clone(share);
    let read = move || match share.is_there(&entry) {
        true => share.meta(&entry).map(|meta| Some((entry, meta))),
        false => Ok(None),
    };
    Ok(spawn_blocking(read).await?)
}

fn reading(share: Arc<Share>, (entry, meta): (Arc<Entry>, Vec<u8>)) -> Reading {
    let about = Arc::new(entry.about(meta));
    Reading { source: Source::Entry(share, entry), about }
}

fn describe(about: &About) -> wit::Entry {
    let Details { content_type, etag, max_age, meta, tags } = about.details.clone();
    let details = wit::Details { content_type, etag, max_age, meta, tags };
    wit::Entry { size: about.size, age: seconds().saturating_sub(about.put_at), details }
}

impl From<wit::Details> for Details {
    fn from(details: wit::Details) -> Details {
        let wit::Details { content_type, etag, max_age, meta, tags } = details;
        Details { content_type, etag, max_age, meta, tags }
    }
}

impl From<CacheError> for Error {
    fn from(error: CacheError) -> Error {
        match error {
            CacheError::TooLarge => Error::TooLarge,
            CacheError::Invalid => Error::Invalid,
            CacheError::Busy => Error::Busy,
            CacheError::Crowded => Error::TooManyReaders,
            CacheError::Abandoned => Error::Abandoned,
            CacheError::Stalled => Error::Stalled,
            CacheError::Cut | CacheError::Disk(_) | CacheError::Damaged => Error::Unavailable,
        }
    }
}
