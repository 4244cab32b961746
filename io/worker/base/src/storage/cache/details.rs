// SPDX-License-Identifier: Apache-2.0
//! What a module says of an entry.

use std::sync::Arc;

use netserv_model::ModuleName;

use super::block::Head;
use crate::storage::limits::{CACHE_META_BYTES_MAX, CACHE_TAG_BYTES_MAX, CACHE_TAGS_MAX, CACHE_TEXT_BYTES_MAX};

/// What a module says of an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// The media type, at most [`CACHE_TEXT_BYTES_MAX`] bytes.
    pub content_type: String,
    /// The validator, at most as many.
    pub etag: String,
    /// Seconds after which it counts as stale.
    pub max_age: u64,
    /// What the module keeps beside the body, at most [`CACHE_META_BYTES_MAX`] bytes.
    pub meta: Vec<u8>,
    /// Words by which entries are purged: at most [`CACHE_TAGS_MAX`] of 1 to [`CACHE_TAG_BYTES_MAX`] bytes.
    pub tags: Vec<String>,
}

/// What is known of an entry, which may be being written.
#[derive(Debug)]
pub struct About {
    /// What its writer said of it.
    pub details: Details,
    /// The bytes of its body, or what was promised of them.
    pub size: Option<u64>,
    /// Seconds since 1970.
    pub put_at: u64,
}

impl Details {
    pub(super) fn is_valid(&self) -> bool {
        let Details { content_type, etag, meta, tags, .. } = self;
        let is_short = [content_type, etag].iter().all(|text| text.len() <= CACHE_TEXT_BYTES_MAX);
        let are_tags = tags.iter().all(|tag| is_tag(tag)) && tags.len() <= CACHE_TAGS_MAX;
        is_short && are_tags && meta.len() <= CACHE_META_BYTES_MAX
    }

    /// Returns the head of a new entry without a body.
    pub(super) fn head(&self, module: ModuleName, key: Arc<str>, put_at: u64, number: u64) -> Head {
        Head {
            module,
            key,
            content_type: self.content_type.as_str().into(),
            etag: self.etag.as_str().into(),
            tags: self.tags.iter().map(|tag| tag.as_str().into()).collect(),
            max_age: self.max_age,
            put_at,
            size: 0,
            inline: 0,
            rest_number: number,
            revision: 0,
            meta_bytes: u32::try_from(self.meta.len()).expect("it was looked at"),
        }
    }
}

pub(super) fn is_tag(text: &str) -> bool {
    (1..=CACHE_TAG_BYTES_MAX).contains(&text.len())
}
