// SPDX-License-Identifier: Apache-2.0
//! An account of a trial: where each packet went that did not arrive, or that was not seen by who had to see it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::null_driver::Passed;

/// What the kernel says that it dropped during a trial. Counts are of the whole machine or of a namespace, so packets of
/// others are in them, too: the lab's namespaces have none.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Drops {
    /// Packets of the generator for which the queue of the core that takes them for the router had no room.
    pub arrival_lost: u64,
    /// Packets of the generator for which the ring of the other end of the link that they were sent to had no room.
    pub first_link: u64,
    /// Packets that the router sent and that the next machine's interface, or its backlog, did not take.
    pub router_out: u64,
    /// Packets that the router's IP layer discarded.
    pub router_ip: u64,
    /// Packets that went into the router's netfilter queues.
    pub queued: u64,
    /// Packets for which a netfilter queue, or the socket behind it, had no room, and which did not pass for that.
    pub queue_full: u64,
    /// Packets for which the socket behind a netfilter queue had no room, and which passed for that.
    pub queue_bypassed: u64,
    /// Packets for which the backlog of each core had no room.
    pub backlog: Vec<u64>,
}

/// What a router has counted so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets seen by modules, or by a driver alone; those of two modules are counted twice.
    pub seen: u64,
    /// What became of others, by series.
    series: BTreeMap<String, u64>,
}

/// The metrics of a node that tell of packets which were lost or not seen: a name, or its beginning.
const SERIES: [&str; 4] = [
    "netserv_unseen_packets_total",
    "netserv_dropped_packets_total",
    "netserv_driver_",
    "netserv_refused_packets_total",
];

impl Counts {
    /// Returns what a node tells.
    pub fn of_node(seen: u64, metrics: &str) -> Counts {
        let of_loss = |line: &str| SERIES.iter().any(|name| line.starts_with(name)) || line.contains("bypass");
        let wanted = |line: &&str| !line.starts_with('#') && of_loss(line);
        let series = metrics.lines().filter(wanted).filter_map(|line| {
            let (name, value) = line.rsplit_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        });
        Counts { seen, series: series.collect() }
    }

    /// Returns what a driver alone tells.
    pub fn of_driver(passed: Passed) -> Counts {
        let series = [
            (driver("bypassed"), passed.bypassed),
            (driver("lost"), passed.lost),
            (driver("unseen"), passed.unseen),
            (driver("send-failed"), passed.send_failed),
        ];
        Counts { seen: passed.passed, series: series.into_iter().collect() }
    }

    /// Returns what was counted since an earlier look.
    pub fn since(&self, earlier: &Counts) -> Counts {
        let before = |name| earlier.series.get(name).copied().unwrap_or(0);
        let series = self.series.iter().map(|(name, count)| (name.clone(), count.saturating_sub(before(name))));
        Counts { seen: self.seen.saturating_sub(earlier.seen), series: series.collect() }
    }

    fn of(&self, name: &str) -> u64 {
        self.series.get(name).copied().unwrap_or(0)
    }

    /// Returns the counts of a family by their label's value.
    fn family<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a str, u64)> {
        let of = move |(series, count): (&'a String, &u64)| {
            let label = series.strip_prefix(name)?.split('"').nth(1)?;
            Some((label, *count))
        };
        self.series.iter().filter_map(of)
    }
}

/// A cause, and the packets of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    /// Where packets went.
    pub cause: String,
    /// How many.
    pub packets: u64,
}

/// Where the packets of one trial went.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Account {
    /// Packets that were sent.
    pub sent: u64,
    /// Packets that the generator was to send and did not, for it was late or could not do more. They are no loss.
    pub not_sent: u64,
    /// Packets that did not arrive.
    pub not_received: u64,
    /// Packets that were not seen by all who had to.
    pub not_seen: u64,
    /// Why packets did not arrive.
    pub lost: Vec<Part>,
    /// Why packets were not seen.
    pub passed_by: Vec<Part>,
    /// Packets that did not arrive, and of which nobody says why; less than none if more is explained than was lost.
    pub unaccounted: i64,
    /// The same of those that were not seen.
    pub unaccounted_unseen: i64,
    /// Times of a millisecond or more for which the generator did not come to run.
    pub gaps: u64,
    /// The longest of them.
    pub longest_gap_ms: f64,
}

/// The tester's own loss: what came out of the router and did not get into the sink.
const SINK: &str = "sink";

impl Account {
    /// Makes the account of a trial from what a router counted meanwhile.
    pub fn of(outcome: &Outcome, counted: &Counts, answers: bool) -> Account {
        let drops = &outcome.drops;
        // What the next machine's backlog does not take counts as dropped by the router's interface as well.
        let backlog = drops.backlog.iter().sum::<u64>().saturating_sub(drops.router_out);
        // What a queue loses the kernel counts, too.
        let rings = if drops.queued == 0 { counted.of(&driver("lost")) } else { 0 };
        let before = [
            ("arrival queue", drops.arrival_lost),
            ("veth ring", drops.first_link),
            ("backlog", backlog),
            ("AF_XDP rings", rings),
        ];
        let before = || before.into_iter().map(|(cause, packets)| part(cause, packets));

        let mut lost: Vec<Part> = before().collect();
        lost.push(part("IP layer", drops.router_ip));
        // Modules drop what they answer.
        let dropped = counted.family("netserv_dropped_packets_total").filter(|(why, _)| !(answers && *why == "module"));
        lost.extend(dropped.map(|(why, packets)| part(&format!("dropped, {why}"), packets)));
        if answers {
            let refused = counted.family("netserv_refused_packets_total");
            lost.extend(refused.map(|(why, packets)| part(&format!("answer refused, {why}"), packets)));
        }
        let of_driver = ["send-failed", "bad-verdict", "refused"];
        lost.extend(of_driver.map(|what| part(&format!("driver, {what}"), counted.of(&driver(what)))));
        lost.push(part("queue full", drops.queue_full));
        lost.push(part(SINK, drops.router_out));

        let mut passed_by: Vec<Part> = Vec::new();
        if outcome.seen.is_some() {
            passed_by.extend(before());
            passed_by.push(part("driver, unseen", counted.of(&driver("unseen"))));
            passed_by.push(part("queue bypassed", drops.queue_bypassed));
            passed_by.push(part("queue full", drops.queue_full));
            let unseen = counted.family("netserv_unseen_packets_total");
            passed_by.extend(unseen.map(|(why, packets)| part(&format!("container, {why}"), packets)));
        }
        let (not_received, not_seen) = (outcome.not_received(), outcome.not_seen());
        Account {
            sent: outcome.sent,
            not_sent: not_sent(outcome),
            not_received,
            not_seen,
            unaccounted: rest(not_received, &lost),
            unaccounted_unseen: if outcome.seen.is_some() { rest(not_seen, &passed_by) } else { 0 },
            lost: named(lost),
            passed_by: named(passed_by),
            gaps: outcome.gaps,
            longest_gap_ms: outcome.longest_gap_ms,
        }
    }

    /// Returns the account in one line.
    pub fn line(&self) -> String {
        let list = |parts: &[Part], rest: i64| {
            let mut words: Vec<String> = parts.iter().map(|part| format!("{} {}", part.cause, part.packets)).collect();
            if rest != 0 {
                words.push(format!("unaccounted {rest}"));
            }
            if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) }
        };
        let mut text = format!("{} sent, {} lost{}", self.sent, self.not_received, list(&self.lost, self.unaccounted));
        if self.not_seen > 0 || !self.passed_by.is_empty() {
            text += &format!(", {} unseen{}", self.not_seen, list(&self.passed_by, self.unaccounted_unseen));
        }
        if self.not_sent > 0 || self.gaps > 0 {
            text += &format!(
                "; generator: {} not sent, {} gaps of 1 ms or more, {:.1} ms at most",
                self.not_sent, self.gaps, self.longest_gap_ms
            );
        }
        text
    }
}

fn driver(fate: &str) -> String {
    format!("netserv_driver_packets_total{{fate=\"{fate}\"}}")
}

fn part(cause: &str, packets: u64) -> Part {
    Part { cause: cause.to_owned(), packets }
}

fn named(parts: Vec<Part>) -> Vec<Part> {
    parts.into_iter().filter(|part| part.packets > 0).collect()
}

fn rest(whole: u64, parts: &[Part]) -> i64 {
    let explained = parts.iter().map(|part| part.packets).sum::<u64>();
    whole.cast_signed() - explained.cast_signed()
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of packets")]
fn not_sent(outcome: &Outcome) -> u64 {
    (outcome.asked.max(0.0) as u64).saturating_sub(outcome.offered)
}

/// Who has to see each packet: one that they did not see is lost, also if it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeenBy {
    /// Nobody: the kernel forwards it.
    Nobody,
    /// So many modules of the node.
    Modules(u64),
    /// A driver alone.
    Driver,
    /// A program at a netfilter queue: what went into the queue.
    Queue,
}

/// What became of the packets.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Outcome {
    /// Packets that were sent, those before the full rate was reached, too.
    pub sent: u64,
    /// Different ones of them that arrived.
    pub received: u64,
    /// Packets that arrived more than once.
    pub duplicates: u64,
    /// Packets that arrived after a later one.
    pub reordered: u64,
    /// Packets that were to be sent at the full rate.
    pub asked: f64,
    /// Packets that were sent at the full rate.
    pub offered: u64,
    /// Packets per second that were sent.
    pub rate: f64,
    /// The share of the trial for which the generator had nothing to do.
    pub waited: f64,
    /// Times of a millisecond or more for which the generator did not come to run.
    pub gaps: u64,
    /// The longest of them.
    pub longest_gap_ms: f64,
    /// Processor time of the whole machine per packet.
    pub cpu_ns: f64,
    /// Latencies, where they were taken.
    pub latency_us: Latency,
    /// What the kernel says that it dropped.
    pub drops: Drops,
    /// Packets that all saw who had to, if somebody had to.
    #[serde(skip)]
    pub seen: Option<u64>,
    /// Where packets were lost, if that was wanted.
    #[serde(skip)]
    pub account: Option<Account>,
}

/// Percentiles of latency in µs.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Latency {
    /// Half of the packets were faster.
    pub p50: f64,
    /// Nine of ten.
    pub p90: f64,
    /// 99 of 100.
    pub p99: f64,
    /// 999 of 1000.
    pub p999: f64,
}

impl Outcome {
    /// Returns the share of packets that did not arrive, or that were not seen by who had to, whichever is more.
    pub fn loss(&self) -> f64 {
        share(self.not_received().max(self.not_seen()), self.sent)
    }

    /// Returns how many packets did not arrive.
    pub fn not_received(&self) -> u64 {
        self.sent.saturating_sub(self.received)
    }

    /// Returns how many packets were not seen by all who had to.
    pub fn not_seen(&self) -> u64 {
        self.seen.map_or(0, |seen| self.sent.saturating_sub(seen))
    }

    /// Returns whether the generator could not do more. One that was only late had time to wait before or after.
    pub fn is_saturated(&self) -> bool {
        self.waited < WAITED_MIN
    }

    /// Returns how many packets per second arrived.
    pub fn arrived(&self) -> f64 {
        self.rate * (1.0 - share(self.not_received(), self.sent))
    }

    /// Returns how many packets per second arrived and were seen.
    pub fn delivered(&self) -> f64 {
        self.rate * (1.0 - self.loss())
    }
}

/// A generator that waits for a smaller share of its time can do no more.
const WAITED_MIN: f64 = 0.01;

#[allow(clippy::cast_precision_loss, reason = "a share of packets")]
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const METRICS: &str = "# HELP netserv_unseen_packets_total x\n\
        netserv_unseen_packets_total{reason=\"ring-full\"} 41\n\
        netserv_dropped_packets_total{reason=\"module\"} 100\n\
        netserv_driver_packets_total{fate=\"send-failed\"} 2\n\
        netserv_driver_packets_total{fate=\"lost\"} 7\n\
        netserv_packets_total{fate=\"received\"} 5\n";

    fn outcome() -> Outcome {
        let drops = Drops { first_link: 10, router_out: 3, backlog: vec![3, 0], ..Drops::default() };
        Outcome {
            sent: 1000,
            received: 978,
            seen: Some(942),
            asked: 1010.0,
            offered: 1000,
            drops,
            ..Outcome::default()
        }
    }

    fn packets(parts: &[Part], cause: &str) -> u64 {
        parts.iter().filter(|part| part.cause == cause).map(|part| part.packets).sum()
    }

    #[test]
    fn every_packet_has_a_cause() {
        let counted = Counts::of_node(0, METRICS).since(&Counts::default());
        let account = Account::of(&outcome(), &counted, true);
        assert_eq!((account.not_received, account.not_seen, account.not_sent), (22, 58, 10));
        assert_eq!((packets(&account.lost, "veth ring"), packets(&account.lost, SINK)), (10, 3));
        assert_eq!((packets(&account.lost, "AF_XDP rings"), packets(&account.lost, "backlog")), (7, 0));
        // 22 lost: 10 + 7 + 3 + 2; 58 unseen: 10 + 7 + 41.
        assert_eq!((account.unaccounted, account.unaccounted_unseen), (0, 0));
        let line = account.line();
        assert!(line.contains("container, ring-full 41") && !line.contains("unaccounted"), "{line}");
    }

    #[test]
    fn what_nobody_explains_is_told() {
        let account = Account::of(&outcome(), &Counts::default(), false);
        assert_eq!((account.unaccounted, account.unaccounted_unseen), (9, 48));
        assert!(account.line().contains("unaccounted 9"));
    }

    #[test]
    fn what_goes_beside_a_queue_is_bypassed() {
        let drops = Drops { first_link: 100, queued: 900, queue_bypassed: 200, ..Drops::default() };
        let outcome = Outcome { sent: 1000, received: 900, seen: Some(700), drops, ..Outcome::default() };
        let account = Account::of(&outcome, &Counts::default(), false);
        assert_eq!(packets(&account.passed_by, "queue bypassed"), 200);
        assert_eq!((account.unaccounted, account.unaccounted_unseen), (0, 0));
    }

    #[test]
    fn only_what_was_counted_meanwhile_counts() {
        let before = Counts::of_node(5, METRICS);
        assert_eq!(before.since(&before), Counts { seen: 0, ..Counts::of_node(0, METRICS).since(&before) });
        assert_eq!(before.since(&before).of(&driver("lost")), 0);
    }
}
