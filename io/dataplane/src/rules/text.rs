// SPDX-License-Identifier: Apache-2.0
//! Our rules as text. Every line is the input of `iptables-restore`, so nothing that a user chose may stand in it
//! but what [`instance_text`] lets through.

use netserv_model::{Filter, PortRange, Protocol};
use netserv_wire::gist::UDP_PORT;
use netserv_wire::ip::IpVersion;

/// What a chain is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Packets for modules.
    Packets,
    /// Signaling messages for the node.
    Signaling,
}

/// Queues with numbers in a row; a packet's addresses and protocol choose the one that it goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueRow {
    pub first: u16,
    /// Not 0.
    pub count: u16,
}

impl QueueRow {
    /// Returns a row of one queue.
    pub fn one(number: u16) -> QueueRow {
        QueueRow { first: number, count: 1 }
    }
}

/// Returns an instance name in the characters that may stand in rules.
pub(crate) fn instance_text(name: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    name.chars().map(keep).take(INSTANCE_CHARS_MAX).collect()
}

/// Returns the chain's name. A long instance name is cut, and told from others by a checksum.
pub(super) fn chain(purpose: Purpose, instance: &str) -> String {
    let prefix = match purpose {
        Purpose::Packets => "netserv-p-",
        Purpose::Signaling => "netserv-s-",
    };
    if prefix.len() + instance.len() <= CHAIN_CHARS_MAX {
        return format!("{prefix}{instance}");
    }
    let kept: String = instance.chars().take(CHAIN_CHARS_MAX - prefix.len() - 9).collect();
    format!("{prefix}{kept}-{:08x}", checksum(instance))
}

/// Returns the lines that make an empty chain and lead packets through it.
///
/// Signaling goes first: a message of ours that a module's filter matches too is a message. Every packet of the machine
/// pays for what stands here, so it is as little as possible: what only some packets need is in the chains' own rules.
pub(super) fn opening(purpose: Purpose, instance: &str) -> Vec<String> {
    let chain = chain(purpose, instance);
    let jump = match purpose {
        Purpose::Packets => format!("-A PREROUTING -j {chain}"),
        Purpose::Signaling => format!("-I PREROUTING 1 -p udp --dport {UDP_PORT} -j {chain}"),
    };
    vec![format!(":{chain} - [0:0]"), jump]
}

/// Returns the rule of a filter without its `-A`; `None` if it matches nothing in this version of IP. Packets with the
/// node's own mark are left alone.
pub(super) fn filter(
    purpose: Purpose,
    instance: &str,
    (queues, mark): (QueueRow, u32),
    version: IpVersion,
    filter: &Filter,
) -> Option<String> {
    let number = match version {
        IpVersion::V4 => 4,
        IpVersion::V6 => 6,
    };
    if filter.version().is_some_and(|wanted| wanted != number) {
        return None;
    }
    let mut rule = chain(purpose, instance);
    for (option, net) in [("-s", filter.source()), ("-d", filter.destination())] {
        if let Some(net) = net {
            rule += &format!(" {option} {net}");
        }
    }
    rule += match (filter.protocol(), version) {
        (Protocol::Any, _) => "",
        (Protocol::Tcp, _) => " -p tcp",
        (Protocol::Udp, _) => " -p udp",
        (Protocol::Icmp, IpVersion::V4) => " -p icmp",
        (Protocol::Icmp, IpVersion::V6) => " -p ipv6-icmp",
    };
    if filter.opens_only() {
        rule += " --tcp-flags SYN,ACK,RST,FIN SYN";
    }
    for (option, ports) in [("--sport", filter.source_ports()), ("--dport", filter.destination_ports())] {
        if let Some(ports) = ports {
            rule += &format!(" {option} {}", port_text(ports));
        }
    }
    // No comment that names the filter: the kernel walks it for each packet, like any other match.
    Some(rule + &not_ours(mark) + &target(queues))
}

/// Returns the line that leads signaling messages for other nodes to the queue.
///
/// The magic number is looked for where the UDP payload of IPv4 packets starts; behind IPv6 extension headers, of
/// which the router alert option is one, it has no fixed place.
pub(super) fn intercepting(
    purpose: Purpose,
    instance: &str,
    (queue, mark): (u16, u32),
    version: IpVersion,
    port: u16,
    magic: Option<u32>,
) -> String {
    let chain = chain(purpose, instance);
    let magic = match (version, magic) {
        (IpVersion::V4, Some(magic)) => format!(" -m u32 --u32 \"0>>22&0x3C@8={magic:#x}\""),
        (IpVersion::V4, None) | (IpVersion::V6, _) => String::new(),
    };
    let (not_ours, target) = (not_ours(mark), target(QueueRow::one(queue)));
    format!(
        "-A {chain} -p udp --dport {port}{not_ours} -m addrtype ! --dst-type LOCAL{magic} \
         -m comment --comment \"netserv:{instance}:gist\"{target}"
    )
}

/// Returns the lines that remove a chain and all that leads to it from a table as `iptables-save` shows it; none if the
/// chain is not there.
pub(super) fn removal(chain: &str, saved: &str) -> Vec<String> {
    let declared = format!(":{chain} ");
    if !saved.lines().any(|line| line.starts_with(&declared)) {
        return Vec::new();
    }
    let jump = format!("-j {chain}");
    let jumps = saved.lines().filter(|line| line.ends_with(&jump));
    let mut lines: Vec<String> =
        jumps.filter_map(|line| line.strip_prefix("-A ")).map(|rest| format!("-D {rest}")).collect();
    lines.extend([format!("-F {chain}"), format!("-X {chain}")]);
    lines
}

/// Returns the input of `iptables-restore` that carries out the lines, all or none.
pub(super) fn script(lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    format!("*mangle\n{}\nCOMMIT\n", lines.join("\n"))
}

/// What netfilter allows (`XT_EXTENSION_MAXNAMELEN`), less its terminating zero.
const CHAIN_CHARS_MAX: usize = 28;
/// A comment may have 255 characters.
const INSTANCE_CHARS_MAX: usize = 100;

fn target(queues: QueueRow) -> String {
    let QueueRow { first, count } = queues;
    match count {
        0 | 1 => format!(" -j NFQUEUE --queue-num {first} --queue-bypass"),
        _ => format!(" -j NFQUEUE --queue-balance {first}:{} --queue-bypass", first + (count - 1)),
    }
}

fn not_ours(mark: u32) -> String {
    format!(" -m mark ! --mark {mark:#x}")
}

fn port_text(ports: PortRange) -> String {
    if ports.first() == ports.last() {
        return ports.first().to_string();
    }
    format!("{}:{}", ports.first(), ports.last())
}

/// FNV-1a, 32 bits.
fn checksum(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |sum, byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_become_rules() {
        check("udp dst 10.2.0.0/24 port 5060", Some("-d 10.2.0.0/24 -p udp --dport 5060"), None);
        check("tcp src 10.0.0.1 sport 1-9", Some("-s 10.0.0.1/32 -p tcp --sport 1:9"), None);
        check("udp src 2001:db8::/32", None, Some("-s 2001:db8::/32 -p udp"));
        check("icmp", Some("-p icmp"), Some("-p ipv6-icmp"));
        check("ip", Some(""), Some(""));
    }

    #[test]
    fn rows_of_queues_share_the_packets() {
        let row = |first, count| target(QueueRow { first, count });
        assert_eq!(row(7, 1), " -j NFQUEUE --queue-num 7 --queue-bypass");
        assert_eq!(row(7, 4), " -j NFQUEUE --queue-balance 7:10 --queue-bypass");
        assert_eq!(row(u16::MAX - 1, 2), " -j NFQUEUE --queue-balance 65534:65535 --queue-bypass");
    }

    #[test]
    fn chain_names_are_short_and_differ() {
        assert_eq!(chain(Purpose::Packets, "pop1"), "netserv-p-pop1");
        let long = "a-very-long-instance-name-of-a-node";
        assert_eq!(chain(Purpose::Packets, long).len(), 28);
        assert_ne!(chain(Purpose::Packets, long), chain(Purpose::Packets, &format!("{long}2")));
        assert_ne!(chain(Purpose::Packets, long), chain(Purpose::Signaling, long));
        assert_eq!(chain(Purpose::Packets, "exactly-18-letters").len(), 28);
    }

    #[test]
    fn names_cannot_carry_rules() {
        assert_eq!(instance_text("a b\"\n-j DROP;ü"), "a_b__-j_DROP__");
        assert_eq!(instance_text(&"x".repeat(300)).len(), INSTANCE_CHARS_MAX);
    }

    #[test]
    fn a_saved_table_tells_what_to_remove() {
        let saved = "*mangle\n:PREROUTING ACCEPT [0:0]\n:netserv-p-a - [0:0]\n:netserv-p-ab - [0:0]\n\
                     -A PREROUTING -p udp -m udp --dport 270 -j netserv-p-a\n\
                     -A PREROUTING -j netserv-p-ab\n-A netserv-p-a -p udp -j NFQUEUE --queue-num 5\nCOMMIT\n";
        let lines = removal("netserv-p-a", saved);
        let jump = "-D PREROUTING -p udp -m udp --dport 270 -j netserv-p-a";
        assert_eq!(lines, [jump, "-F netserv-p-a", "-X netserv-p-a"]);
        assert!(removal("netserv-p-b", saved).is_empty());
    }

    fn check(text: &str, v4: Option<&str>, v6: Option<&str>) {
        let parsed: Filter = text.parse().unwrap();
        for (version, expected) in [(IpVersion::V4, v4), (IpVersion::V6, v6)] {
            let rule = filter(Purpose::Packets, "n", (QueueRow::one(5), 0x2a), version, &parsed);
            let space = if expected == Some("") { "" } else { " " };
            let tail = "-m mark ! --mark 0x2a -j NFQUEUE --queue-num 5 --queue-bypass";
            let expected = expected.map(|matches| format!("netserv-p-n{space}{matches} {tail}"));
            assert_eq!(rule, expected, "{text}");
        }
    }
}
