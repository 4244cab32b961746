// SPDX-License-Identifier: Apache-2.0
//! `netserv:cache/store@1.0.0`.

use netserv_worker_base::storage::cache::{CacheError, Details, Entry, Writer};
use wasmtime::component::Resource;
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream};

use super::body::{Body, Part, Source};
use super::found::{find, seconds, share};
use super::sink::Writing;
use super::wit::first::store::{self as wit, Error, Range};
use crate::disk::spawn_blocking;
use crate::state::ServerState;

type Got = Option<(wit::Entry, Resource<DynInputStream>)>;

impl wit::Host for ServerState {
    async fn stat(&mut self, key: String) -> wasmtime::Result<Option<wit::Entry>> {
        let Some(share) = share(&self.module).await else { return Ok(None) };
        let entry = find(&share, &key, false).await?;
        Ok(entry.map(|entry| describe(&entry)))
    }

    async fn get(&mut self, key: String, range: Option<Range>) -> wasmtime::Result<Result<Got, Error>> {
        let Some(share) = share(&self.module).await else { return Ok(Ok(None)) };
        let Some(entry) = find(&share, &key, true).await? else { return Ok(Ok(None)) };
        let described = describe(&entry);
        let Ok(place) = self.blocks.cache_readers.reserve(1) else { return Ok(Err(Error::Unavailable)) };
        let part = range.map_or(Part::default(), |Range { start, length }| Part { start, length });
        let body = Body::new(Source::Entry(share, entry), part, place);
        Ok(Ok(Some((described, self.lend(body)?))))
    }

    async fn put(
        &mut self,
        key: String,
        content_type: String,
        etag: String,
        max_age: u64,
    ) -> wasmtime::Result<Result<Resource<Writing>, Error>> {
        let Some(share) = share(&self.module).await else { return Ok(Err(Error::Unavailable)) };
        let details = Details { content_type, etag, max_age, ..Details::default() };
        match Writer::alone(&share, &key, details, seconds()) {
            Ok(writer) => Ok(Ok(self.table.push(Writing::new(Box::new(writer)))?)),
            Err(error) => Ok(Err(error.into())),
        }
    }

    async fn remove(&mut self, key: String) -> wasmtime::Result<bool> {
        let Some(share) = share(&self.module).await else { return Ok(false) };
        Ok(spawn_blocking(move || share.remove(&key)).await?)
    }
}

impl wit::HostWriter for ServerState {
    fn body(&mut self, writing: Resource<Writing>) -> wasmtime::Result<Result<Resource<DynOutputStream>, Error>> {
        let Some(body) = self.table.get_mut(&writing)?.body() else { return Ok(Err(Error::Invalid)) };
        Ok(Ok(self.table.push(body)?))
    }

    async fn finish(&mut self, writing: Resource<Writing>) -> wasmtime::Result<Result<(), Error>> {
        Ok(self.table.delete(writing)?.finish().await?.map_err(Error::from))
    }

    fn drop(&mut self, writing: Resource<Writing>) -> wasmtime::Result<()> {
        self.table.delete(writing)?;
        Ok(())
    }
}

impl From<CacheError> for Error {
    fn from(error: CacheError) -> Error {
        match error {
            CacheError::TooLarge => Error::TooLarge,
            CacheError::Invalid => Error::Invalid,
            CacheError::Busy
            | CacheError::Crowded
            | CacheError::Abandoned
            | CacheError::Stalled
            | CacheError::Cut
            | CacheError::Disk(_)
            | CacheError::Damaged => Error::Unavailable,
        }
    }
}

fn describe(entry: &Entry) -> wit::Entry {
    wit::Entry {
        size: entry.size(),
        content_type: entry.content_type().to_owned(),
        etag: entry.etag().to_owned(),
        age: entry.age(seconds()),
        max_age: entry.max_age(),
    }
}
