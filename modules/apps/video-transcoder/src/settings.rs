// SPDX-License-Identifier: Apache-2.0
//! What the module's user chose.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::limits::{PATH_BYTES_MAX, QUALITIES_MAX, VIEWERS_MAX};
use crate::quality::Quality;

/// What the module's user chose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Where the video comes from, or why from nowhere.
    pub source: Result<Url, String>,
    /// What viewers get who name nothing, until that is changed.
    pub quality: Quality,
    /// Qualities at a time.
    pub qualities: usize,
    /// Viewers at a time.
    pub viewers: usize,
    /// How long a viewer may take nothing.
    pub slow_ms: u64,
    /// How long the source may be away.
    pub outage_ms: u64,
    /// Processor time of a job, in thousandths of a processor.
    pub cpu_permille: u32,
}

/// Where a video comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// The server.
    pub server: SocketAddr,
    /// How it is called.
    pub host: String,
    /// The path, with its query.
    pub path: String,
}

impl Settings {
    /// Reads them; what is not there, or is nothing that can be, is as in the manifest.
    pub fn read(property: impl Fn(&str) -> Option<String>) -> Settings {
        let number = |name: &str, usual: u64, most: u64| -> u64 {
            let given = property(name).and_then(|text| text.trim().parse().ok());
            given.unwrap_or(usual).min(most)
        };
        let size = |name: &str, usual: u64, most: usize| {
            usize::try_from(number(name, usual, most as u64)).unwrap_or(most).max(1)
        };
        Settings {
            source: Url::parse(property("source").unwrap_or_default().trim()),
            quality: Quality::default().with(&property("quality").unwrap_or_default()).unwrap_or_default(),
            qualities: size("qualities", 2, QUALITIES_MAX),
            viewers: size("viewers", 64, VIEWERS_MAX),
            slow_ms: number("slow-ms", 10_000, MS_MAX),
            outage_ms: number("outage-ms", 60_000, MS_MAX),
            cpu_permille: u32::try_from(number("cpu-permille", 0, 1_000_000)).unwrap_or(0),
        }
    }
}

impl Url {
    /// Reads one, such as `http://192.0.2.7:8080/live.ts`.
    ///
    /// # Errors
    /// It is none that can be asked for.
    pub fn parse(text: &str) -> Result<Url, String> {
        let rest = text.strip_prefix("http://").ok_or("the source begins with http://")?;
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let path = if path.is_empty() { "/" } else { path };
        if path.len() > PATH_BYTES_MAX || !path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#') {
            return Err("the source's path is too long, or has letters that no path has".to_owned());
        }
        let server = host.parse().ok().or_else(|| {
            let six = host.strip_prefix('[').and_then(|text| text.strip_suffix(']')?.parse::<Ipv6Addr>().ok());
            let ip = host.parse::<IpAddr>().ok().filter(IpAddr::is_ipv4).or(six.map(IpAddr::V6))?;
            Some(SocketAddr::new(ip, 80))
        });
        let server = server.ok_or("the source's server is an address, with a port if it is not 80")?;
        Ok(Url { server, host: host.to_owned(), path: path.to_owned() })
    }
}

const MS_MAX: u64 = 3_600_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_nothing_that_can_be_is_as_usual() {
        let usual = Settings::read(|_| None);
        assert_eq!((usual.qualities, usual.viewers, usual.slow_ms, usual.quality), (2, 64, 10_000, Quality::default()));
        assert!(usual.source.is_err());
        let odd = Settings::read(|_| Some("-1".to_owned()));
        assert_eq!((odd.qualities, odd.cpu_permille), (2, 0));
        let all = Settings::read(|_| Some("18446744073709551615".to_owned()));
        assert_eq!((all.viewers, all.qualities, all.outage_ms), (VIEWERS_MAX, QUALITIES_MAX, MS_MAX));
        assert_eq!(Settings::read(|_| Some("0".to_owned())).qualities, 1);
    }

    #[test]
    fn sources_are_addresses_with_a_path() {
        for (text, server, path) in [
            ("http://192.0.2.7:8080/live.ts?a=b", "192.0.2.7:8080", "/live.ts?a=b"),
            ("http://192.0.2.7", "192.0.2.7:80", "/"),
            ("http://[2001:db8::7]/x", "[2001:db8::7]:80", "/x"),
            ("http://[2001:db8::7]:81/", "[2001:db8::7]:81", "/"),
        ] {
            let url = Url::parse(text).unwrap();
            assert_eq!((url.server, &*url.path), (server.parse().unwrap(), path));
        }
        let long = format!("http://192.0.2.7/{}", "a".repeat(PATH_BYTES_MAX));
        for text in [
            "",
            "https://192.0.2.7/",
            "http://example.org/",
            "http://2001:db8::7/",
            "http://192.0.2.7/a b",
            "http://192.0.2.7/\r\nx: y",
            &long,
        ] {
            assert!(Url::parse(text).is_err(), "{text:.40}");
        }
    }
}
