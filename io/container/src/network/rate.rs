// SPDX-License-Identifier: Apache-2.0
//! How fast a container sends and receives, held on both ends of its link.
//!
//! Bits are held by a token bucket with a queue (`tbf`) at the sending end of each direction, so that TCP is slowed down and
//! not cut; the container has no right to change its own end. It counts what goes over the wire, also of what
//! the kernel sends in large segments.
//!
//! Packets over their number are dropped. What the container sends is counted where it comes out of the link, since the
//! kernel could have a program's datagrams by the hundred in one until then (`UDP_SEGMENT`): the inner end takes them apart
//! ([`sent`](super::sent)). What it receives is counted after the firewall inside.

use std::io;

use netserv_model::policy::NetworkRate;
use netserv_netlink::generic::{CONTROL, FAMILY_ID, FAMILY_NAME, GET_FAMILY};
use netserv_netlink::message::{attributes, nested};
use netserv_netlink::nftables::{Rule, Verdict};
use netserv_netlink::rtnetlink::{CREATE, REPLACE};
use netserv_netlink::{Requests, Socket};

use super::error::NetworkError;
use super::limits::{
    RATE_BURST_BYTES_MIN, RATE_BURST_BYTES_TIME, RATE_BURST_TIME, RATE_QUEUE_BYTES_MAX, RATE_QUEUE_BYTES_MIN,
    RATE_QUEUE_TIME,
};

/// Why packets are dropped, as the counters are called.
pub(super) const PACKETS_IN: &str = "packet-rate-in";
pub(super) const PACKETS_OUT: &str = "packet-rate-out";
const BITS_IN: &str = "bit-rate-in";
const BITS_OUT: &str = "bit-rate-out";

/// Returns the rule that drops and counts packets over the number.
pub(super) fn over(rate: NetworkRate, counter: &str) -> Rule {
    let packets = rate.packets_per_second;
    Rule::new().over_per_second(packets, packets_at_once(packets)).count(counter).verdict(Verdict::Drop)
}

/// The two ends of a container's link, each with a socket of its namespace and its index there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends<'a> {
    pub host: (&'a Socket, u32),
    pub inside: (&'a Socket, u32),
}

impl Ends<'_> {
    /// Has both ends send at a rate, or at another one than before.
    pub fn shape(&self, rate: NetworkRate) -> Result<(), NetworkError> {
        for (socket, index) in [self.host, self.inside] {
            let mut requests = Requests::default();
            token_bucket(&mut requests, index, rate.bits_per_second);
            socket.carry_out(&requests)?;
        }
        Ok(())
    }

    /// Returns whether the node's end, which other programs can change, sends at a rate.
    pub fn is_shaped(&self) -> io::Result<bool> {
        let (socket, index) = self.host;
        let mut is_shaped = false;
        let asked = socket.ask(GET_QUEUE, FLAG_ECHO, &queue_header(index), &[], |message| {
            let list = message.body.get(QUEUE_HEADER_BYTES..).unwrap_or_default();
            is_shaped |= attributes(list).any(|attribute| attribute == (QUEUE_KIND, TOKEN_BUCKET));
        });
        match asked {
            // A link of software has no queue of its own.
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(false),
            asked => asked.map(|()| is_shaped),
        }
    }

    /// Returns how many packets both ends dropped since too many waited, by reason.
    pub fn dropped(&self) -> io::Result<[(String, u64); 2]> {
        let [inwards, outwards] = [self.host, self.inside].map(|(socket, index)| queue_drops(socket, index));
        Ok([(BITS_IN.to_owned(), inwards?), (BITS_OUT.to_owned(), outwards?)])
    }
}

/// Has a device take datagrams apart that a program handed to the kernel as one (`tx-udp-segmentation` of `ethtool`).
/// Segments of TCP stay large: a byte there costs as much as here.
pub(super) fn take_datagrams_apart(socket: &Socket, index: u32) -> Result<(), NetworkError> {
    let mut family = None;
    let name: [(u16, &[u8]); 1] = [(FAMILY_NAME, b"ethtool\0")];
    let header = [GET_FAMILY, 1, 0, 0];
    let asked = socket.ask(CONTROL, 0, &header, &name, |message| {
        let list = message.body.get(header.len()..).unwrap_or_default();
        let number = attributes(list).find(|(kind, _)| *kind == FAMILY_ID);
        family = number.and_then(|(_, bytes)| bytes.first_chunk()).map(|bytes| u16::from_ne_bytes(*bytes));
    });
    let missing = || io::Error::from_raw_os_error(libc::ENOENT);
    let family = asked.and_then(|()| family.ok_or_else(missing));
    let family = family.map_err(NetworkError::kernel("ask for ethtool's number (ETHTOOL_NETLINK)"))?;
    let device = nested(&[(HEADER_DEVICE, &index.to_ne_bytes())]);
    // A bit that is named and has no value is to be off.
    let bit = nested(&[(NESTED | BITS_BIT, &nested(&[(BIT_NAME, b"tx-udp-segmentation\0")]))]);
    let wanted = nested(&[(NESTED | BITSET_BITS, &bit)]);
    let list: [(u16, &[u8]); 2] = [(NESTED | FEATURES_HEADER, &device), (NESTED | FEATURES_WANTED, &wanted)];
    let mut requests = Requests::default();
    requests.push(family, 0, &[FEATURES_SET, 1, 0, 0], &list, "have the link take datagrams apart (ethtool)");
    Ok(socket.carry_out(&requests)?)
}

fn token_bucket(requests: &mut Requests, index: u32, bits_per_second: u64) {
    let bytes = bits_per_second / 8;
    let rate = u32::try_from(bytes).unwrap_or(u32::MAX);
    let (burst, queue) = (bytes_at_once(bytes), bytes_that_wait(bytes));
    // `tc_tbf_qopt`: two rates of 12 bytes, of which the second one is none, then the queue, and what attributes say.
    let mut settings = [0; 36];
    settings[1] = LINK_LAYER_ETHERNET;
    settings[8..12].copy_from_slice(&rate.to_ne_bytes());
    settings[24..28].copy_from_slice(&queue.to_ne_bytes());
    let options: [(u16, &[u8]); 3] =
        [(TBF_SETTINGS, &settings), (TBF_RATE, &bytes.to_ne_bytes()), (TBF_BURST, &burst.to_ne_bytes())];
    let list: [(u16, &[u8]); 2] = [(QUEUE_KIND, TOKEN_BUCKET), (QUEUE_OPTIONS, &nested(&options))];
    let what = "bound how fast the container's link sends (sch_tbf)";
    requests.push(NEW_QUEUE, CREATE | REPLACE, &queue_header(index), &list, what);
}

fn queue_drops(socket: &Socket, index: u32) -> io::Result<u64> {
    let mut found = None;
    socket.ask(GET_QUEUE, FLAG_ECHO, &queue_header(index), &[], |message| {
        let of = |bytes: &[u8], wanted: u16| {
            attributes(bytes).find(|(kind, _)| *kind == wanted).map(|(_, content)| content.to_vec())
        };
        let Some(list) = message.body.get(QUEUE_HEADER_BYTES..) else { return };
        let counts = of(list, QUEUE_STATISTICS).and_then(|all| of(&all, STATISTICS_QUEUE));
        // `gnet_stats_queue`: how many wait, their bytes, then the dropped ones.
        let drops = counts.and_then(|counts| counts.get(8..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes)));
        found = drops.map(u64::from);
    })?;
    found.ok_or_else(|| io::Error::other("the kernel does not say how many packets a link dropped"))
}

/// Returns how many packets may come at once.
fn packets_at_once(packets_per_second: u64) -> u64 {
    per(packets_per_second, RATE_BURST_TIME).max(1)
}

/// Returns how many bytes may go at once, of so many in a second.
fn bytes_at_once(bytes_per_second: u64) -> u32 {
    let burst = per(bytes_per_second, RATE_BURST_BYTES_TIME).max(RATE_BURST_BYTES_MIN);
    u32::try_from(burst).expect("the highest rate gives megabytes in this time")
}

/// Returns how many bytes may wait, where so many go in a second.
fn bytes_that_wait(bytes_per_second: u64) -> u32 {
    let bytes = per(bytes_per_second, RATE_QUEUE_TIME).clamp(RATE_QUEUE_BYTES_MIN, RATE_QUEUE_BYTES_MAX);
    u32::try_from(bytes).expect("a queue is short")
}

fn per(count: u64, time: std::time::Duration) -> u64 {
    count / (1_000_000 / u64::try_from(time.as_micros()).expect("these times are short"))
}

fn queue_header(index: u32) -> [u8; QUEUE_HEADER_BYTES] {
    let mut header = [0; QUEUE_HEADER_BYTES];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header[12..16].copy_from_slice(&AT_ROOT.to_ne_bytes());
    header
}

/// `RTM_NEWQDISC`, `RTM_GETQDISC`, `struct tcmsg` and `TC_H_ROOT`.
const NEW_QUEUE: u16 = 36;
const GET_QUEUE: u16 = 38;
const QUEUE_HEADER_BYTES: usize = 20;
const AT_ROOT: u32 = u32::MAX;
/// `NLM_F_ECHO`: the answer comes to who asked, beside those who listen.
const FLAG_ECHO: u16 = 0x08;
/// `TCA_KIND`, `TCA_OPTIONS`, `TCA_STATS2` and in that `TCA_STATS_QUEUE`.
const QUEUE_KIND: u16 = 1;
const TOKEN_BUCKET: &[u8] = b"tbf\0";
const QUEUE_OPTIONS: u16 = 2;
const QUEUE_STATISTICS: u16 = 7;
const STATISTICS_QUEUE: u16 = 3;
/// `TCA_TBF_PARMS`, `TCA_TBF_RATE64` and `TCA_TBF_BURST`.
const TBF_SETTINGS: u16 = 1;
const TBF_RATE: u16 = 4;
const TBF_BURST: u16 = 6;
/// `TC_LINKLAYER_ETHERNET`.
const LINK_LAYER_ETHERNET: u8 = 1;

/// `NLA_F_NESTED`, which `ethtool` asks for.
const NESTED: u16 = 0x8000;
/// `ETHTOOL_MSG_FEATURES_SET` and the attributes of it.
const FEATURES_SET: u8 = 12;
const FEATURES_HEADER: u16 = 1;
const FEATURES_WANTED: u16 = 3;
const HEADER_DEVICE: u16 = 1;
const BITSET_BITS: u16 = 3;
const BITS_BIT: u16 = 1;
const BIT_NAME: u16 = 2;

#[cfg(test)]
mod tests {
    use netserv_model::limits::{NETWORK_BITS_PER_SECOND_MAX, NETWORK_BITS_PER_SECOND_MIN};

    use super::*;

    #[test]
    fn what_waits_and_what_goes_at_once_is_bounded_at_every_rate() {
        let of = |bits: u64| (u64::from(bytes_at_once(bits / 8)), u64::from(bytes_that_wait(bits / 8)));
        assert_eq!(of(NETWORK_BITS_PER_SECOND_MIN), (RATE_BURST_BYTES_MIN, RATE_QUEUE_BYTES_MIN));
        assert_eq!(of(40_000_000), (RATE_BURST_BYTES_MIN, 250_000));
        assert_eq!(of(1_000_000_000), (1_250_000, RATE_QUEUE_BYTES_MAX));
        assert_eq!(of(NETWORK_BITS_PER_SECOND_MAX), (125_000_000, RATE_QUEUE_BYTES_MAX));
        assert_eq!((packets_at_once(1), packets_at_once(1000)), (1, 100));
    }
}
