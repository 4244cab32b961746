// SPDX-License-Identifier: Apache-2.0
//! Rules of others that forwarded packets meet, and that a driver which forwards by itself would lead packets past.

use std::collections::BTreeMap;

use netserv_model::container_link::is_container_link;
use netserv_plane::DriverError;

use super::netlink_tables::Chain;
use super::{OURS, netlink_tables, tool};

/// What of others is on the way of forwarded packets, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Foreign {
    /// On the way of all of them.
    pub everywhere: Option<String>,
    /// On the way of those that come in or leave by a device, by its name. What limits containers is among it.
    pub devices: BTreeMap<String, String>,
}

/// Returns the first rule for forwarded packets that is not ours, in words, if there is one.
///
/// # Errors
/// As [`find`].
pub fn first() -> Result<Option<String>, DriverError> {
    let own = |device: &String| is_container_link(device);
    let Foreign { everywhere, devices } = find()?;
    Ok(everywhere.or_else(|| devices.into_iter().find(|(device, _)| !own(device)).map(|(_, chain)| chain)))
}

/// Returns the first rule for all forwarded packets that is not ours, and those of devices.
///
/// # Errors
/// The tables cannot be read. Without the tool `iptables-save`, nothing is known of its tables, and nothing found.
pub fn find() -> Result<Foreign, DriverError> {
    let tables = tool::save_all()?;
    let mut found = Foreign { everywhere: tables.iter().find_map(|text| first_in(text)), devices: BTreeMap::new() };
    for Chain { text, devices } in netlink_tables::chains()? {
        match devices.is_empty() {
            true => found.everywhere = found.everywhere.or(Some(text)),
            false => found.devices.extend(devices.into_iter().map(|device| (device, text.clone()))),
        }
    }
    if found.everywhere.is_none() && netlink_tables::has_ipsec()? {
        found.everywhere = Some("policies of IPsec".to_owned());
    }
    Ok(found)
}

fn first_in(saved: &str) -> Option<String> {
    let mut table = "";
    saved.lines().find_map(|line| {
        if let Some(name) = line.strip_prefix('*') {
            table = name;
        }
        is_for_forwarded(line).then(|| format!("`{}` in table {table}", line.trim_start_matches("# ")))
    })
}

fn is_for_forwarded(line: &str) -> bool {
    let mut words = line.split_whitespace();
    match words.next() {
        Some("-A") => {
            matches!(words.next(), Some("PREROUTING" | "FORWARD" | "POSTROUTING"))
        }
        Some(":FORWARD") => words.next() == Some("DROP"),
        // Made by `nft`, so that nobody here knows what it does.
        Some("#") => line.contains("is incompatible, use 'nft'") && !line.contains(OURS),
        Some(_) | None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(saved: &str, expected: Option<&str>) {
        assert_eq!(first_in(saved).as_deref(), expected);
    }

    #[test]
    fn rules_of_others_on_the_way_of_forwarded_packets_are_found() {
        check("*filter\n:INPUT DROP [0:0]\n-A INPUT -i lo -j ACCEPT\nCOMMIT\n", None);
        check("*filter\n:FORWARD DROP [0:0]\nCOMMIT\n", Some("`:FORWARD DROP [0:0]` in table filter"));
        let nat = "-A POSTROUTING -s 172.17.0.0/16 -j MASQUERADE";
        check(&format!("*nat\n{nat}\nCOMMIT\n"), Some(&format!("`{nat}` in table nat")));
        let nft = "# Table `fw' is incompatible, use 'nft' tool.";
        check("# Table `netserv-p-n' is incompatible, use 'nft' tool.", None);
        check(nft, Some(&format!("`{}` in table ", &nft[2..])));
    }
}
