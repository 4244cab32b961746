// SPDX-License-Identifier: Apache-2.0
//! Conditions of clients (RFC 9110 §13), against a stored response.

use std::time::Duration;

use crate::date;
use crate::fields::{Fields, has, members, text, trim, values};
use crate::limits::ENTITY_TAGS_MAX;
use crate::stored::Stored;

/// Returns whether a client has what is stored: 304.
pub fn is_not_modified(stored: &Stored, request: &Fields, now: Duration) -> bool {
    if stored.status != 200 {
        return false;
    }
    if has(request, "if-none-match") {
        return none_match_fails(stored, request);
    }
    let since = text(request, "if-modified-since").and_then(|date| date::parse(date, now));
    let modified = text(&stored.headers, "last-modified").or_else(|| text(&stored.headers, "date"));
    let modified = modified.and_then(|date| date::parse(date, now));
    since.zip(modified).is_some_and(|(since, modified)| modified <= since)
}

/// Returns whether a range is wanted of what is stored, and of nothing else (RFC 9110 §13.1.5).
pub fn if_range_holds(stored: &Stored, request: &Fields) -> bool {
    let Some(condition) = text(request, "if-range").map(trim) else {
        return !has(request, "if-range");
    };
    if condition.starts_with('"') {
        return text(&stored.headers, "etag") == Some(condition);
    }
    // A date is compared byte by byte; a weak tag is none of both.
    !condition.starts_with("W/") && text(&stored.headers, "last-modified") == Some(condition)
}

fn none_match_fails(stored: &Stored, request: &Fields) -> bool {
    let mut tags = members(request, "if-none-match").peekable();
    if tags.peek() == Some(&&b"*"[..]) {
        return true;
    }
    let own = values(&stored.headers, "etag").next().map(opaque);
    own.is_some_and(|own| tags.take(ENTITY_TAGS_MAX).any(|tag| opaque(tag) == own))
}

/// Returns a tag without the sign that it is weak: the comparison is weak (RFC 9110 §8.8.3.2).
fn opaque(tag: &[u8]) -> &[u8] {
    let tag = tag.trim_ascii();
    tag.strip_prefix(b"W/").unwrap_or(tag)
}
