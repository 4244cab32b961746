// SPDX-License-Identifier: Apache-2.0
//! What the kernel's own tables say of forwarded packets: chains of nftables, and policies of IPsec.
//!
//! `iptables-save` shows neither, and their own tools need not be installed.

use std::io;
use std::time::Duration;

use netserv_model::container_link::is_container_link;
use rustix::io::Errno;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};

use crate::DriverError;
use netserv_wire::netlink::{
    FLAG_DUMP, FLAG_REQUEST, Message, TYPE_DONE, TYPE_ERROR, append, attributes, error_number, messages,
};

/// Returns a chain of nftables that forwarded packets go through and that is not one of the tables of `iptables`, in
/// words.
///
/// # Errors
/// The kernel does not tell.
pub(super) fn first_chain() -> Result<Option<String>, DriverError> {
    // nfgenmsg: all families, version 0, no resource.
    dump(netlink::NETFILTER, GET_CHAIN, &[0; 4], |message| foreign_chain(message.body))
}

/// Returns whether there is any policy of IPsec.
///
/// # Errors
/// The kernel does not tell.
pub(super) fn has_ipsec() -> Result<bool, DriverError> {
    let found = dump(netlink::XFRM, GET_POLICY, &[0; POLICY_ID_BYTES], |_| Some(()))?;
    Ok(found.is_some())
}

fn foreign_chain(body: &[u8]) -> Option<String> {
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
    let on_the_way = family == FAMILY_NETDEV || matches!(number, HOOK_PREROUTING | HOOK_FORWARD | HOOK_POSTROUTING);
    let of_iptables = matches!(family, FAMILY_IPV4 | FAMILY_IPV6) && TABLES_OF_IPTABLES.contains(&table.as_str());
    // Ours only marks flows that modules take over, which the node's filters are not about.
    let own = family == FAMILY_INET && is_container_link(&format!("{table}n0"));
    (on_the_way && !of_iptables && !own).then(|| format!("chain `{chain}` of nftables' table `{name} {table}`"))
}

/// Asks for a whole table, and returns what `pick` makes of the first message that it takes.
fn dump<T>(
    protocol: Protocol,
    kind: u16,
    family: &[u8],
    pick: impl Fn(&Message<'_>) -> Option<T>,
) -> Result<Option<T>, DriverError> {
    let failed = |error: Errno| DriverError::system("asking for rules of the packet filter", error);
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(protocol));
    let socket = match socket {
        Ok(socket) => socket,
        // The kernel has no such thing.
        Err(Errno::PROTONOSUPPORT | Errno::AFNOSUPPORT) => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(ANSWER_WAIT)).map_err(failed)?;
    let mut request = Vec::new();
    append(&mut request, kind, FLAG_REQUEST | FLAG_DUMP, 1, family, &[]);
    let kernel = SocketAddrNetlink::new(0, 0);
    rustix::net::sendto(&socket, &request, SendFlags::empty(), &kernel).map_err(failed)?;
    let mut buffer = vec![0; ANSWER_BYTES];
    let mut found = None;
    for _ in 0..ANSWERS_MAX {
        let (length, _) = rustix::net::recv(&socket, buffer.as_mut_slice(), RecvFlags::empty()).map_err(failed)?;
        for message in messages(&buffer[..length]) {
            match (message.kind, error_number(message.body)) {
                (TYPE_DONE, _) => return Ok(found),
                // Nobody there who could answer.
                (TYPE_ERROR, Some(libc::EINVAL | libc::EOPNOTSUPP | libc::EPROTONOSUPPORT | libc::ENOENT)) => {
                    return Ok(None);
                }
                (TYPE_ERROR, Some(number)) => return Err(failed(Errno::from_raw_os_error(number))),
                _ => found = found.or_else(|| pick(&message)),
            }
        }
    }
    Err(DriverError::system("asking for rules of the packet filter", io::Error::other("the answer has no end")))
}

/// `NFT_MSG_GETCHAIN` of `NFNL_SUBSYS_NFTABLES`.
const GET_CHAIN: u16 = 10 << 8 | 4;
const CHAIN_TABLE: u16 = 1;
const CHAIN_NAME: u16 = 3;
const CHAIN_HOOK: u16 = 4;
const HOOK_NUMBER: u16 = 1;
const HOOK_PREROUTING: u32 = 0;
const HOOK_FORWARD: u32 = 2;
const HOOK_POSTROUTING: u32 = 4;
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
const ANSWER_WAIT: Duration = Duration::from_secs(1);
const ANSWER_BYTES: usize = 64 * 1024;
/// Datagrams of one answer at most.
const ANSWERS_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(family: u8, table: &str, hook: Option<u32>) -> Option<String> {
        let number = hook.map(|hook| [&[8, 0, 1, 0][..], &hook.to_be_bytes()].concat());
        let table = [table.as_bytes(), &[0]].concat();
        let mut list: Vec<(u16, &[u8])> = vec![(CHAIN_TABLE, &table), (CHAIN_NAME, b"c\0")];
        list.extend(number.as_deref().map(|number| (CHAIN_HOOK, number)));
        let mut bytes = Vec::new();
        append(&mut bytes, GET_CHAIN, 0, 1, &[family, 0, 0, 0], &list);
        let message = messages(&bytes).next().unwrap();
        // Cut short, it says nothing, and does no harm.
        (0..message.body.len()).for_each(|end| drop(foreign_chain(&message.body[..end])));
        foreign_chain(message.body)
    }

    #[test]
    fn chains_on_the_way_of_forwarded_packets_are_told_from_others() {
        let found = "chain `c` of nftables' table `inet fw`";
        assert_eq!(chain(FAMILY_INET, "fw", Some(HOOK_FORWARD)).as_deref(), Some(found));
        assert!(chain(FAMILY_IPV4, "fw", Some(HOOK_POSTROUTING)).is_some());
        assert!(chain(FAMILY_NETDEV, "fw", Some(0)).is_some());
        for (family, table, hook) in [
            (FAMILY_INET, "fw", None),
            (FAMILY_INET, "ns0a1b2c3d", Some(HOOK_PREROUTING)),
            (FAMILY_INET, "fw", Some(1)),
            (FAMILY_IPV4, "mangle", Some(HOOK_PREROUTING)),
            (FAMILY_IPV6, "filter", Some(HOOK_FORWARD)),
            (7, "bridge", Some(HOOK_FORWARD)),
        ] {
            assert_eq!(chain(family, table, hook), None, "{family} {table} {hook:?}");
        }
    }
}
