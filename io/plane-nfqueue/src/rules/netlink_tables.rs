// SPDX-License-Identifier: Apache-2.0
//! What the kernel's own tables say of forwarded packets: chains of nftables, and policies of IPsec.
//!
//! `iptables-save` shows neither, and their own tools need not be installed.

use std::collections::BTreeSet;

use netserv_model::container_link::is_container_link;
use netserv_netlink::message::{FLAG_DUMP, Message, attributes};
use netserv_netlink::{Family, Socket};
use netserv_plane::DriverError;

use super::OURS;

/// A chain of nftables that forwarded packets go through and that is not one of the tables of `iptables`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chain {
    /// Which it is, in words.
    pub text: String,
    /// The devices whose packets go through it; none if all do.
    pub devices: Vec<String>,
}

/// Returns all such chains.
///
/// # Errors
/// The kernel does not tell.
pub(super) fn chains() -> Result<Vec<Chain>, DriverError> {
    let mut found: Vec<Chain> = Vec::new();
    // nfgenmsg: all families, version 0, no resource.
    dump(Family::Netfilter, GET_CHAIN, &[0; 4], |message| {
        found.extend(parse_chain(message.body));
    })?;
    Ok(found)
}

/// Returns whether there is any policy of IPsec.
///
/// # Errors
/// The kernel does not tell.
pub(super) fn has_ipsec() -> Result<bool, DriverError> {
    let mut found = false;
    dump(Family::Xfrm, GET_POLICY, &[0; POLICY_ID_BYTES], |_| found = true)?;
    Ok(found)
}

fn parse_chain(body: &[u8]) -> Option<Chain> {
    let family = *body.first()?;
    let text = |wanted: u16| {
        let (_, bytes) = attributes(body.get(4..)?).find(|(kind, _)| *kind == wanted)?;
        Some(String::from_utf8_lossy(bytes.strip_suffix(&[0]).unwrap_or(bytes)).into_owned())
    };
    let (_, hook) = attributes(body.get(4..)?).find(|(kind, _)| *kind == CHAIN_HOOK)?;
    let (_, number) = attributes(hook).find(|(kind, _)| *kind == HOOK_NUMBER)?;
    let number = u32::from_be_bytes(*number.first_chunk()?);
    let (table, chain) = (text(CHAIN_TABLE)?, text(CHAIN_NAME)?);
    let name = match family {
        FAMILY_INET => "inet",
        FAMILY_IPV4 => "ip",
        FAMILY_IPV6 => "ip6",
        FAMILY_NETDEV => "netdev",
        _ => return None,
    };
    let of_devices = family == FAMILY_NETDEV || (family == FAMILY_INET && number == HOOK_INET_INGRESS);
    let on_the_way = of_devices || matches!(number, HOOK_PREROUTING | HOOK_FORWARD | HOOK_POSTROUTING);
    let of_iptables = matches!(family, FAMILY_IPV4 | FAMILY_IPV6) && TABLES_OF_IPTABLES.contains(&table.as_str());
    // Ours lead packets to modules, mark flows that modules take over, which the node's filters are not about, and count.
    let instance = table.strip_suffix('s').unwrap_or(&table);
    let own = table.starts_with(OURS) || family == FAMILY_INET && is_container_link(&format!("{instance}n0"));
    (on_the_way && !of_iptables && !own).then(|| Chain {
        text: format!("chain `{chain}` of nftables' table `{name} {table}`"),
        devices: if of_devices { devices_of(hook).unwrap_or_default() } else { Vec::new() },
    })
}

/// Returns the devices of a chain that belongs to devices; `None` if they are not all named, but by how their names begin.
fn devices_of(hook: &[u8]) -> Option<Vec<String>> {
    // Without an end it is the beginning of names (Linux 6.16).
    let text = |bytes: &[u8]| Some(String::from_utf8_lossy(bytes.strip_suffix(&[0])?).into_owned());
    let mut devices = BTreeSet::new();
    for (kind, bytes) in attributes(hook) {
        match kind & ATTRIBUTE_KIND {
            HOOK_DEVICE => drop(devices.insert(text(bytes)?)),
            HOOK_DEVICES => {
                for (kind, bytes) in attributes(bytes) {
                    devices.insert(text(bytes).filter(|_| kind & ATTRIBUTE_KIND == DEVICE_NAME)?);
                }
            }
            _ => {}
        }
    }
    Some(devices.into_iter().collect())
}

/// Asks for a whole table, and hands out its messages; none if the kernel has no such table.
fn dump(family: Family, kind: u16, header: &[u8], each: impl FnMut(Message<'_>)) -> Result<(), DriverError> {
    match Socket::open(family).and_then(|socket| socket.ask(kind, FLAG_DUMP, header, &[], each)) {
        // The kernel has no such thing, or nobody there who could answer.
        Err(error) if error.raw_os_error().is_some_and(|number| MISSING.contains(&number)) => Ok(()),
        asked => asked.map_err(|error| DriverError::system("asking for rules of the packet filter", error)),
    }
}

const MISSING: [i32; 5] = [libc::EPROTONOSUPPORT, libc::EAFNOSUPPORT, libc::EINVAL, libc::EOPNOTSUPP, libc::ENOENT];
/// `NFT_MSG_GETCHAIN` of `NFNL_SUBSYS_NFTABLES`.
const GET_CHAIN: u16 = 10 << 8 | 4;
const CHAIN_TABLE: u16 = 1;
const CHAIN_NAME: u16 = 3;
const CHAIN_HOOK: u16 = 4;
const HOOK_NUMBER: u16 = 1;
const HOOK_DEVICE: u16 = 3;
const HOOK_DEVICES: u16 = 4;
const DEVICE_NAME: u16 = 1;
/// Without the flags of an attribute's kind.
const ATTRIBUTE_KIND: u16 = 0x3fff;
const HOOK_PREROUTING: u32 = 0;
const HOOK_FORWARD: u32 = 2;
const HOOK_POSTROUTING: u32 = 4;
const HOOK_INET_INGRESS: u32 = 5;
const FAMILY_INET: u8 = 1;
const FAMILY_IPV4: u8 = 2;
const FAMILY_NETDEV: u8 = 5;
const FAMILY_IPV6: u8 = 10;
/// These are shown by `iptables-save`, rule by rule.
const TABLES_OF_IPTABLES: [&str; 5] = ["raw", "mangle", "nat", "filter", "security"];
/// `XFRM_MSG_GETPOLICY`.
const GET_POLICY: u16 = 0x15;
/// Bytes of `struct xfrm_userpolicy_id`.
const POLICY_ID_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use netserv_netlink::message::{append, append_attribute, messages};

    use super::*;

    fn chain(family: u8, table: &str, hook: Option<(u32, &[&str])>) -> Option<Chain> {
        let hook = hook.map(|(number, devices)| {
            let mut bytes = Vec::new();
            append_attribute(&mut bytes, HOOK_NUMBER, &number.to_be_bytes());
            let text = |name: &str| [name.as_bytes(), &[0]].concat();
            match devices {
                [] => {}
                [one] => append_attribute(&mut bytes, HOOK_DEVICE, &text(one)),
                several => {
                    let mut list = Vec::new();
                    several.iter().for_each(|name| append_attribute(&mut list, 1, &text(name)));
                    append_attribute(&mut bytes, HOOK_DEVICES | !ATTRIBUTE_KIND & 0x8000, &list);
                }
            }
            bytes
        });
        let table = [table.as_bytes(), &[0]].concat();
        let mut list: Vec<(u16, &[u8])> = vec![(CHAIN_TABLE, &table), (CHAIN_NAME, b"c\0")];
        list.extend(hook.as_deref().map(|hook| (CHAIN_HOOK, hook)));
        let mut bytes = Vec::new();
        append(&mut bytes, GET_CHAIN, 0, 1, &[family, 0, 0, 0], &list);
        let message = messages(&bytes).next().unwrap();
        // Cut short, it says nothing, and does no harm.
        (0..message.body.len()).for_each(|end| drop(parse_chain(&message.body[..end])));
        parse_chain(message.body)
    }

    #[test]
    fn chains_on_the_way_of_forwarded_packets_are_told_from_others() {
        let found = chain(FAMILY_INET, "fw", Some((HOOK_FORWARD, &[]))).unwrap();
        assert_eq!(found.text, "chain `c` of nftables' table `inet fw`");
        assert!(found.devices.is_empty());
        assert!(chain(FAMILY_IPV4, "fw", Some((HOOK_POSTROUTING, &[]))).is_some());
        for (family, table, hook) in [
            (FAMILY_INET, "fw", None),
            (FAMILY_INET, "ns0a1b2c3d", Some(HOOK_PREROUTING)),
            (FAMILY_IPV4, "netserv-p-n", Some(HOOK_PREROUTING)),
            (FAMILY_INET, "fw", Some(1)),
            (FAMILY_IPV4, "mangle", Some(HOOK_PREROUTING)),
            (FAMILY_IPV6, "filter", Some(HOOK_FORWARD)),
            (7, "bridge", Some(HOOK_FORWARD)),
        ] {
            assert_eq!(chain(family, table, hook.map(|hook| (hook, &[][..]))), None, "{family} {table} {hook:?}");
        }
    }

    #[test]
    fn chains_of_devices_name_them() {
        // Of one that names none, nobody knows whose packets go through it.
        for devices in [&["eth0"][..], &["eth0", "eth1"], &[]] {
            assert_eq!(chain(FAMILY_NETDEV, "fw", Some((0, devices))).unwrap().devices, devices);
            assert_eq!(chain(FAMILY_INET, "fw", Some((HOOK_INET_INGRESS, devices))).unwrap().devices, devices);
        }
        // Names that begin so, in the forms of two versions of Linux.
        let with = |kind: u16, name: &[u8]| {
            let (mut list, mut hook) = (Vec::new(), Vec::new());
            append_attribute(&mut list, DEVICE_NAME, b"lo\0");
            append_attribute(&mut list, kind, name);
            append_attribute(&mut hook, HOOK_DEVICES, &list);
            devices_of(&hook)
        };
        assert_eq!(with(DEVICE_NAME, b"eth0\0").unwrap(), ["eth0", "lo"]);
        assert_eq!((with(DEVICE_NAME, b"eth"), with(2, b"eth\0"), with(2, b"eth")), (None, None, None));
    }
}
