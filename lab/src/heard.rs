// SPDX-License-Identifier: Apache-2.0
//! Which packets of RTP a phone sends and which of them the other one hears, by tcpdump at both.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use anyhow::Result;

use crate::netns::Lab;

/// What became of the packets that one phone sent, in one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Way {
    /// How many it sent.
    pub sent: usize,
    /// How many the other phone heard.
    pub heard: usize,
    /// Those before the first that was heard: where the other phone is behind its NAT is known once it sends.
    pub early: usize,
    /// Those behind the last one, when the call had ended.
    pub late: usize,
    /// Those between, which were not heard.
    pub lost: usize,
    /// Those that were heard and not sent.
    pub strange: usize,
}

impl Lab {
    /// Has a machine note all RTP that it sends and gets, from here on.
    ///
    /// # Errors
    /// tcpdump is missing.
    pub fn note_rtp(&mut self, machine: &str) -> Result<()> {
        let interface = self.topology().interfaces_of(machine).remove(0).name;
        let mut command = self.command(machine, "tcpdump");
        command.args([
            "-l",
            "-n",
            "-tt",
            "-i",
            &interface,
            "--immediate-mode",
            "-T",
            "rtp",
            "udp",
            "portrange",
            "1024-65535",
        ]);
        self.start(machine, "rtp", &mut command)?;
        self.wait_for_start((machine, "rtp"), "capture", |lab| lab.log(machine, "rtp").contains("listening on"))
    }

    /// Returns what became of what one phone sent to a relay of these addresses for another one, or to whomever it was if there are none.
    pub fn way(&self, from: &str, to: &str, relays: &[IpAddr]) -> Way {
        let by = |end: SocketAddr| relays.is_empty() || relays.contains(&end.ip());
        let own = [from, to].map(|phone| self.topology().interfaces_of(phone).remove(0));
        let is_of = |phone: usize, end: SocketAddr| [own[phone].v4.into(), own[phone].v6.into()].contains(&end.ip());
        let sent =
            noted(&self.log(from, "rtp")).filter(|packet| is_of(0, packet.from) && by(packet.to)).collect::<Vec<_>>();
        let came =
            noted(&self.log(to, "rtp")).filter(|packet| is_of(1, packet.to) && by(packet.from)).collect::<Vec<_>>();
        way(&sent, &came)
    }

    /// Returns how long packets of one phone that a relay sent on were under way to another phone, in microseconds.
    pub fn delays_us(&self, from: &str, to: &str, relay: IpAddr) -> Vec<u64> {
        let of = |packet: &Noted| (packet.sequence, packet.timestamp);
        let (sent, came) = (self.log(from, "rtp"), self.log(to, "rtp"));
        let sent: BTreeMap<_, _> =
            noted(&sent).filter(|packet| packet.to.ip() == relay).map(|one| (of(&one), one)).collect();
        let came = noted(&came).filter(|packet| packet.from.ip() == relay);
        came.filter_map(|packet| Some(packet.at_us.saturating_sub(sent.get(&of(&packet))?.at_us))).collect()
    }
}

/// A packet of RTP in what tcpdump says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Noted {
    /// Microseconds of Unix time.
    at_us: u64,
    from: SocketAddr,
    to: SocketAddr,
    sequence: u16,
    timestamp: u32,
}

/// Reads what tcpdump says of packets of G.711: `SECONDS.MICROSECONDS IP FROM > TO: udp/rtp BYTES c0 [*] SEQUENCE TIMESTAMP`, with `*` for a mark.
fn noted(log: &str) -> impl Iterator<Item = Noted> {
    log.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [time, "IP" | "IP6", from, ">", to, "udp/rtp", _, "c0", rest @ ..] = &words[..] else { return None };
        let at_us = time.replace('.', "").parse().ok()?;
        let mut numbers = rest.iter().filter(|word| **word != "*");
        let (sequence, timestamp) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
        Some(Noted { at_us, from: end(from)?, to: end(to.strip_suffix(':')?)?, sequence, timestamp })
    })
}

/// Reads an address with its port behind a dot.
fn end(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.rsplit_once('.')?;
    Some(SocketAddr::new(address.parse().ok()?, port.parse().ok()?))
}

fn way(sent: &[Noted], came: &[Noted]) -> Way {
    let places: BTreeMap<u16, usize> =
        sent.iter().enumerate().map(|(place, packet)| (packet.sequence, place)).collect();
    let mut heard: Vec<usize> = came.iter().filter_map(|packet| places.get(&packet.sequence).copied()).collect();
    heard.sort_unstable();
    heard.dedup();
    let (Some(first), Some(last)) = (heard.first(), heard.last()) else {
        return Way { sent: sent.len(), strange: came.len(), ..Way::default() };
    };
    Way {
        sent: sent.len(),
        heard: heard.len(),
        early: *first,
        late: sent.len() - 1 - last,
        lost: last + 1 - first - heard.len(),
        // One that came twice is none that was sent.
        strange: came.len() - heard.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "listening on v0, link-type EN10MB (Ethernet), snapshot length 262144 bytes\n\
        1796000000.653324 IP 10.55.0.1.5070 > 10.55.0.2.5071: udp/rtpv1 805 c14 * 22089 1413816435\n\
        1796000000.669455 IP 10.55.0.2.3259 > 10.55.0.1.27983: udp/rtp 4 c76 * 3 1584443771\n\
        1796000000.821135 IP 10.55.0.2.3258 > 10.55.0.1.27982: udp/rtp 160 c0 * 8122 46869\n\
        1796000000.829148 IP6 fd00:1::2.3258 > fd00:1::1.27982: udp/rtp 160 c0  8123 47029\n";

    #[test]
    fn packets_are_read() {
        let packets: Vec<Noted> = noted(LOG).collect();
        assert_eq!(packets.iter().map(|packet| packet.sequence).collect::<Vec<_>>(), [8122, 8123]);
        assert_eq!((packets[0].at_us, packets[1].timestamp), (1_796_000_000_821_135, 47029));
        assert_eq!(packets[0].to, "10.55.0.1:27982".parse().unwrap());
        assert_eq!(packets[1].from, "[fd00:1::2]:3258".parse().unwrap());
    }

    #[test]
    fn what_is_lost_is_told_from_what_comes_too_early_or_too_late() {
        let packets = |numbers: &[u16]| {
            let end = "192.0.2.1:4000".parse().unwrap();
            let noted = |sequence: &u16| Noted { at_us: 0, from: end, to: end, sequence: *sequence, timestamp: 0 };
            numbers.iter().map(noted).collect::<Vec<_>>()
        };
        let sent = packets(&[65534, 65535, 0, 1, 2, 3]);
        let check = |came: &[u16], expected: Way| assert_eq!(way(&sent, &packets(came)), expected);
        let all = Way { sent: 6, ..Way::default() };
        check(&[], all);
        check(&[9], Way { strange: 1, ..all });
        check(&[65534, 65535, 0, 1, 2, 3], Way { heard: 6, ..all });
        check(&[65535, 1, 0, 2], Way { heard: 4, early: 1, late: 1, ..all });
        check(&[65535, 2, 2], Way { heard: 2, early: 1, late: 1, lost: 2, strange: 1, ..all });
    }
}
