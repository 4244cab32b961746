// SPDX-License-Identifier: Apache-2.0
//! What a cache says of how it handled a request: `Cache-Status` (RFC 9211).

use std::fmt::Write;

/// Why a request went on to the origin (RFC 9211 §2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarded {
    /// The cache has no part in it.
    Bypass,
    /// The method is never answered from the cache.
    Method,
    /// Nothing is stored for the target.
    UriMiss,
    /// Something is stored, but no variant for this request.
    VaryMiss,
    /// The request wants it.
    Request,
    /// What is stored is stale.
    Stale,
    /// A part is asked for that is not stored.
    Partial,
}

/// What happened to one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStatus {
    /// Why it went on; nothing for a hit.
    pub forwarded: Option<Forwarded>,
    /// The origin's status, if it is not that of the response.
    pub forwarded_status: Option<u16>,
    /// Whether the response was stored.
    pub stored: bool,
    /// Whether it waited for another request's response.
    pub collapsed: bool,
    /// Seconds for which the response is fresh; negative if it is stale.
    pub ttl: Option<i64>,
}

impl CacheStatus {
    /// Returns the header by which the cache `name` says it.
    #[must_use]
    pub fn field(&self, name: &str) -> (String, Vec<u8>) {
        let mut text = quoted(name);
        // Writing to a string does not fail.
        let _ = match self.forwarded {
            None => write!(text, "; hit"),
            Some(reason) => write!(text, "; fwd={}", reason.token()),
        };
        if let Some(status) = self.forwarded_status {
            let _ = write!(text, "; fwd-status={status}");
        }
        if self.stored {
            text.push_str("; stored");
        }
        if self.collapsed {
            text.push_str("; collapsed");
        }
        if let Some(ttl) = self.ttl {
            let _ = write!(text, "; ttl={ttl}");
        }
        ("cache-status".to_owned(), text.into_bytes())
    }
}

impl Forwarded {
    fn token(self) -> &'static str {
        match self {
            Forwarded::Bypass => "bypass",
            Forwarded::Method => "method",
            Forwarded::UriMiss => "uri-miss",
            Forwarded::VaryMiss => "vary-miss",
            Forwarded::Request => "request",
            Forwarded::Stale => "stale",
            Forwarded::Partial => "partial",
        }
    }
}

/// Returns a name as a token, or as a string if it is none.
fn quoted(name: &str) -> String {
    let is_token = name.bytes().next().is_some_and(|first| first.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.:/*".contains(&byte));
    if is_token {
        return name.to_owned();
    }
    let clean: String = name.chars().filter(|one| matches!(one, ' '..='~') && !"\"\\".contains(*one)).collect();
    format!("\"{clean}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_member_of_a_list() {
        let text = |status: CacheStatus, name| String::from_utf8(status.field(name).1).unwrap();
        let hit = CacheStatus { ttl: Some(-3), ..CacheStatus::default() };
        assert_eq!(text(hit, "netserv"), "netserv; hit; ttl=-3");
        let miss = CacheStatus {
            forwarded: Some(Forwarded::UriMiss),
            forwarded_status: Some(200),
            stored: true,
            collapsed: true,
            ttl: None,
        };
        assert_eq!(text(miss, "a \"b\""), "\"a b\"; fwd=uri-miss; fwd-status=200; stored; collapsed");
    }
}
