// SPDX-License-Identifier: Apache-2.0
//! Cache directives of responses and of requests.

mod targeted;

use crate::fields::{Fields, directive, has, members};
use crate::limits::DELTA_SECONDS_MAX;
use crate::policy::Policy;

/// What a response says to caches that several users share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseControl {
    /// Whether a targeted field says it, so that `Cache-Control` and `Expires` say nothing (RFC 9213 §2.2).
    pub is_targeted: bool,
    pub no_store: bool,
    pub no_cache: Scope,
    pub private: Scope,
    pub public: bool,
    pub must_revalidate: bool,
    pub proxy_revalidate: bool,
    pub must_understand: bool,
    /// Seconds; what cannot be read is 0 (RFC 9111 §4.2.1).
    pub max_age: Option<u64>,
    /// Seconds; what cannot be read is 0.
    pub s_maxage: Option<u64>,
    pub stale_while_revalidate: u64,
    pub stale_if_error: u64,
}

/// What `no-cache` or `private` are about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Nothing.
    #[default]
    Nothing,
    /// Fields of these names.
    Fields(Vec<String>),
    /// The whole response.
    All,
}

impl ResponseControl {
    /// Reads the first targeted field that counts, or `Cache-Control`.
    pub fn of(fields: &Fields, policy: &Policy) -> ResponseControl {
        let targeted = targeted::dictionary(fields, "cdn-cache-control");
        let targeted = targeted.or_else(|| targeted::surrogate(fields, policy.surrogate.as_ref()?));
        let mut control = ResponseControl { is_targeted: targeted.is_some(), ..ResponseControl::default() };
        let general = || members(fields, "cache-control").map(directive).collect();
        for (name, value) in targeted.unwrap_or_else(general) {
            control.add(&name, value.as_deref());
        }
        control
    }

    fn add(&mut self, name: &str, value: Option<&[u8]>) {
        let seconds = || value.and_then(delta_seconds).unwrap_or(0);
        match name {
            "no-store" => self.no_store = true,
            "no-cache" => self.no_cache.add(value),
            "private" => self.private.add(value),
            "public" => self.public = true,
            "must-revalidate" => self.must_revalidate = true,
            "proxy-revalidate" => self.proxy_revalidate = true,
            "must-understand" => self.must_understand = true,
            // Of several, the first one counts.
            "max-age" => self.max_age = self.max_age.or_else(|| Some(seconds())),
            "s-maxage" => self.s_maxage = self.s_maxage.or_else(|| Some(seconds())),
            "stale-while-revalidate" => self.stale_while_revalidate = seconds(),
            "stale-if-error" => self.stale_if_error = seconds(),
            _ => {}
        }
    }

    /// Returns whether a stale response is never served, also where the origin cannot be asked.
    pub fn forbids_stale(&self) -> bool {
        self.must_revalidate || self.proxy_revalidate || self.no_cache == Scope::All
    }
}

impl Scope {
    fn add(&mut self, value: Option<&[u8]>) {
        let names = value.map(|value| String::from_utf8_lossy(value).into_owned());
        let names = names.iter().flat_map(|names| names.split(',')).map(|name| name.trim().to_ascii_lowercase());
        let names: Vec<String> = names.filter(|name| !name.is_empty()).collect();
        match self {
            Scope::All => {}
            Scope::Fields(all) if !names.is_empty() => all.extend(names),
            Scope::Nothing if !names.is_empty() => *self = Scope::Fields(names),
            Scope::Nothing | Scope::Fields(_) => *self = Scope::All,
        }
    }

    /// Returns whether a field is meant that is named on its own.
    pub fn names(&self, field: &str) -> bool {
        match self {
            Scope::Fields(names) => names.iter().any(|name| name.eq_ignore_ascii_case(field)),
            Scope::Nothing | Scope::All => false,
        }
    }
}

/// What a request says to caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestControl {
    pub no_cache: bool,
    pub no_store: bool,
    pub only_if_cached: bool,
    pub max_age: Option<u64>,
    pub min_fresh: Option<u64>,
    /// How stale a response may be; any without a value.
    pub max_stale: Option<u64>,
}

impl RequestControl {
    /// Reads `Cache-Control`, or `Pragma` without it (RFC 9111 §5.4).
    pub fn of(fields: &Fields) -> RequestControl {
        let mut control = RequestControl::default();
        for member in members(fields, "cache-control") {
            let (name, value) = directive(member);
            let seconds = || value.as_deref().and_then(delta_seconds);
            match &*name {
                "no-cache" => control.no_cache = true,
                "no-store" => control.no_store = true,
                "only-if-cached" => control.only_if_cached = true,
                "max-age" => control.max_age = Some(seconds().unwrap_or(0)),
                "min-fresh" => control.min_fresh = seconds(),
                "max-stale" => control.max_stale = if value.is_none() { Some(u64::MAX) } else { seconds() },
                _ => {}
            }
        }
        let pragma = || members(fields, "pragma").any(|member| member.eq_ignore_ascii_case(b"no-cache"));
        control.no_cache |= !has(fields, "cache-control") && pragma();
        control
    }
}

/// Reads seconds (RFC 9111 §1.2.2): digits and nothing else.
///
/// More than there may be is the most there may be.
pub fn delta_seconds(value: &[u8]) -> Option<u64> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let add = |sum: u64, digit: &u8| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
    Some(value.iter().fold(0, add).min(DELTA_SECONDS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(values: &[&str]) -> ResponseControl {
        let fields: Vec<_> =
            values.iter().map(|value| ("Cache-Control".to_owned(), value.as_bytes().to_vec())).collect();
        ResponseControl::of(&fields, &Policy::default())
    }

    #[test]
    fn ages_are_read_strictly() {
        for (text, age) in [
            ("max-age=3600", Some(3600)),
            ("MaX-aGe=3600", Some(3600)),
            ("max-age=\"3600\"", Some(3600)),
            ("max-age=003600", Some(3600)),
            ("max-age=99999999999999999999999", Some(DELTA_SECONDS_MAX)),
            ("max-age='3600'", Some(0)),
            ("max-age=-3600", Some(0)),
            ("max-age=3600.0", Some(0)),
            ("max-age= 3600", Some(0)),
            ("max-age=a3600", Some(0)),
            ("max-age", Some(0)),
            ("max-age=1, max-age=3600", Some(1)),
            ("extension=\"max-age=3600\", max-age=1", Some(1)),
            ("extension=\"a\\\", max-age=3600\", max-age=1", Some(1)),
            ("max-age =3600", None),
            ("", None),
            ("\"max-age=3600", None),
        ] {
            assert_eq!(response(&[text]).max_age, age, "{text}");
        }
        assert_eq!(response(&["max-age=3600", "s-maxage=1"]).s_maxage, Some(1));
    }

    #[test]
    fn fields_that_are_named_are_told_from_all() {
        let control = response(&["no-cache=\"a, B\"", "private=c"]);
        assert!(control.no_cache.names("A") && control.no_cache.names("b") && !control.no_cache.names("c"));
        assert!(control.private.names("C") && !control.forbids_stale());
        assert_eq!(response(&["no-cache=\"a\", no-cache"]).no_cache, Scope::All);
        assert_eq!(response(&["private, private=\"a\""]).private, Scope::All);
        assert_eq!(response(&["no-cache=\"\""]).no_cache, Scope::All);
    }

    #[test]
    fn a_targeted_field_is_in_place_of_the_general_one() {
        let of = |fields: &[(&str, &str)], surrogate: Option<&str>| {
            let fields: Vec<_> =
                fields.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())).collect();
            let policy = Policy { surrogate: surrogate.map(str::to_owned), ..Policy::default() };
            ResponseControl::of(&fields, &policy)
        };
        let control = of(&[("Cache-Control", "no-store"), ("CDN-Cache-Control", "max-age=60, must-revalidate")], None);
        assert!(control.is_targeted && !control.no_store && control.must_revalidate);
        assert_eq!(control.max_age, Some(60));
        // What does not parse, or is empty, is as if it were not there.
        for damaged in ["max-age=60,", "Max-Age=60", "max-age=", "", "max-age=60 no-store", "\"a\""] {
            let control = of(&[("Cache-Control", "max-age=5"), ("CDN-Cache-Control", damaged)], None);
            assert_eq!((control.is_targeted, control.max_age), (false, Some(5)), "{damaged}");
        }
        let lists = "a=(1 \"x\";p=?0 t), max-age=7;q=1.5, b=:aGk=:, c=@5, no-store=?0, public=?1, max-age=x";
        let control = of(&[("CDN-Cache-Control", lists)], None);
        assert_eq!((control.max_age, control.no_store, control.public), (None, false, true));
        let control = of(&[("Surrogate-Control", "max-age=9;me, no-store;other")], Some("me"));
        assert_eq!((control.max_age, control.no_store), (Some(9), false));
        let control = of(&[("Surrogate-Control", "max-age=9;other"), ("Cache-Control", "max-age=5")], Some("me"));
        assert_eq!(control.max_age, Some(5));
        assert_eq!(of(&[("Surrogate-Control", "max-age=9")], None).max_age, None);
    }

    #[test]
    fn pragma_counts_without_cache_control_only() {
        let of = |fields: &[(&str, &str)]| {
            let fields: Vec<_> =
                fields.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())).collect();
            RequestControl::of(&fields)
        };
        assert!(of(&[("Pragma", "no-cache")]).no_cache);
        assert!(!of(&[("Pragma", "no-cache"), ("Cache-Control", "max-age=5")]).no_cache);
        assert_eq!(of(&[("Cache-Control", "max-stale")]).max_stale, Some(u64::MAX));
        assert_eq!(of(&[("Cache-Control", "max-stale=5, max-age=x")]).max_stale, Some(5));
        assert_eq!(of(&[("Cache-Control", "max-stale=x")]).max_stale, None);
    }
}
