// SPDX-License-Identifier: Apache-2.0
//! What the module's user chose: its properties.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::limits::{ADDRESSES_MAX, CALLS_MAX, CONTROL_MAX, PORTS_MAX, PORTS_OF_STREAM};

/// The properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Who may ask for relays.
    pub control: Vec<IpAddr>,
    /// The port of the ng protocol.
    pub ng_port: u16,
    /// Ports of media.
    pub ports: RangeInclusive<u16>,
    /// Addresses to listen at and to name in descriptions; those of the container if there are none.
    pub addresses: Vec<IpAddr>,
    /// Calls at a time.
    pub calls: usize,
    /// Calls at a time that one address asked for.
    pub calls_per_source: usize,
    /// Packets that a port relays in a second.
    pub packets_per_second: u32,
    /// How long an answered call may be without media.
    pub timeout_s: u64,
    /// How long a call may be without an answer.
    pub offer_timeout_s: u64,
    /// How long an answered call on hold may be without media.
    pub silent_timeout_s: u64,
}

impl Settings {
    /// Reads the properties.
    ///
    /// # Errors
    /// Which of them is not understood.
    pub fn read(property: impl Fn(&str) -> Option<String>) -> Result<Settings, String> {
        let of = |name: &str| property(name).unwrap_or_default();
        let ports = range(&property("ports").unwrap_or_else(|| "30000-30999".to_owned()))?;
        // As many as there are ports for, if each has one stream.
        let calls = number(&property, "calls", (ports.len() / PORTS_OF_STREAM).clamp(1, CALLS_MAX))?;
        let settings = Settings {
            control: list("control", &of("control"), CONTROL_MAX)?,
            ng_port: number(&property, "ng-port", 2223)?,
            ports,
            addresses: list("addresses", &of("addresses"), ADDRESSES_MAX)?,
            calls,
            calls_per_source: number(&property, "calls-per-source", calls)?,
            packets_per_second: number(&property, "packets-per-second", 1000)?,
            timeout_s: number(&property, "timeout-s", 60)?,
            offer_timeout_s: number(&property, "offer-timeout-s", 180)?,
            silent_timeout_s: number(&property, "silent-timeout-s", 3600)?,
        };
        if settings.control.is_empty() {
            return Err(
                "property `control` is empty; write the addresses of the SIP servers, with spaces between".to_owned()
            );
        }
        if settings.packets_per_second == 0 || settings.ng_port == 0 || !(1..=CALLS_MAX).contains(&settings.calls) {
            return Err(format!("`packets-per-second` and `ng-port` are above 0, and `calls` is 1 to {CALLS_MAX}"));
        }
        Ok(settings)
    }
}

fn list(name: &str, text: &str, most: usize) -> Result<Vec<IpAddr>, String> {
    let addresses: Option<Vec<IpAddr>> = text.split_ascii_whitespace().map(|address| address.parse().ok()).collect();
    addresses
        .filter(|addresses| addresses.len() <= most)
        .ok_or_else(|| format!("property `{name}` is `{text}`; write up to {most} addresses, with spaces between"))
}

fn range(text: &str) -> Result<RangeInclusive<u16>, String> {
    let read = || {
        let (first, last) = text.split_once('-')?;
        let (first, last): (u16, u16) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        let is_fit = first >= 1024 && first.is_multiple_of(2) && last > first && usize::from(last - first) < PORTS_MAX;
        is_fit.then_some(first..=last)
    };
    read().ok_or_else(|| {
        format!("property `ports` is `{text}`; write a range from an even port on, such as 30000-30999, of up to {PORTS_MAX}")
    })
}

fn number<T: FromStr>(property: &impl Fn(&str) -> Option<String>, name: &str, default: T) -> Result<T, String> {
    let Some(text) = property(name).filter(|text| !text.is_empty()) else { return Ok(default) };
    text.parse().map_err(|_| format!("property `{name}` is `{text}`, which is not understood"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(properties: &[(&str, &str)]) -> Result<Settings, String> {
        let all = [&[("control", "192.0.2.7 2001:db8::7")], properties].concat();
        Settings::read(|name| all.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn properties_are_read() {
        let settings = read(&[]).unwrap();
        assert_eq!((settings.control.len(), settings.ports.clone(), settings.ng_port), (2, 30000..=30999, 2223));
        assert_eq!((settings.calls, settings.calls_per_source), (250, 250));
        assert_eq!(read(&[("calls", ""), ("ports", "30000-30001")]).unwrap().calls, 1);
        assert_eq!(read(&[("ports", "30000-46383")]).unwrap().calls, CALLS_MAX);
        let settings = read(&[("ports", "40000 - 40009"), ("calls", "7")]).unwrap();
        assert_eq!((settings.ports, settings.calls, settings.calls_per_source), (40000..=40009, 7, 7));
    }

    #[test]
    fn what_is_said_wrongly_is_said_so() {
        for (name, value) in [
            ("control", ""),
            ("control", "sip.example.com"),
            ("ports", "30001-30009"),
            ("ports", "30000-30000"),
            ("ports", "100-200"),
            ("ports", "1024-65535"),
            ("ports", "x"),
            ("calls", "0"),
            ("calls", "2001"),
            ("ng-port", "0"),
            ("packets-per-second", "-1"),
            ("packets-per-second", "0"),
            ("addresses", "1.2.3"),
        ] {
            assert!(read(&[(name, value)]).is_err(), "{name} {value}");
        }
        let many = "192.0.2.1 ".repeat(CONTROL_MAX + 1);
        assert!(read(&[("control", &many)]).is_err());
        assert!(read(&[("control", &many[10..])]).is_ok());
        assert!(read(&[("addresses", &"192.0.2.1 ".repeat(ADDRESSES_MAX + 1))]).is_err());
    }
}
