// SPDX-License-Identifier: Apache-2.0
//! Numbers that are read again and again, by which rules open and shut.

pub(crate) mod kamailio;
mod prometheus;
mod queue;
mod threshold;
mod tls;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use tokio::sync::mpsc;

use crate::config::{Metric, MetricSource};
use crate::event::{Event, Reading};
use crate::limits::METRIC_TIME_MAX;
pub use queue::at_ports as sockets_at;
pub use threshold::{Presence, Threshold};

/// A value, and what tells the program that it is of from one that takes its place, if that is known.
type Sourced = (f64, Option<String>);

/// Reads a metric for ever, and tells what it is, and when the program behind it began: at the first reading that succeeds, and whenever another
/// one has taken its place since.
pub async fn watch(metric: Metric, events: mpsc::Sender<Event>) {
    let (mut last, mut served) = (None, Served::default());
    let every = metric.every;
    let mut source = Source::new(metric.source);
    loop {
        let begun = Instant::now();
        let read = tokio::time::timeout(METRIC_TIME_MAX.min(every), source.read()).await;
        let read = read.unwrap_or_else(|_| Err(anyhow::anyhow!("it does not answer in time")));
        let mut began = false;
        let reading = match read {
            Ok((count, by)) => {
                began = served.is_by_another(metric.rate.then_some(count), by);
                if metric.rate { rate(&mut last, begun, count) } else { Some(Ok(count)) }
            }
            Err(error) => Some(Err(format!("{error:#}"))),
        };
        if began && events.send(Event::Began(metric.id)).await.is_err() {
            return;
        }
        if let Some(reading) = reading
            && events.send(Event::Read(metric.id, reading)).await.is_err()
        {
            return;
        }
        tokio::time::sleep(every.saturating_sub(begun.elapsed())).await;
    }
}

/// Reads a metric once.
///
/// # Errors
/// Says why it cannot be read.
pub async fn read_once(metric: &Metric) -> Result<f64> {
    let mut source = Source::new(metric.source.clone());
    let read = tokio::time::timeout(METRIC_TIME_MAX, source.read()).await;
    read.unwrap_or_else(|_| Err(anyhow::anyhow!("it does not answer in time"))).map(|(value, _)| value)
}

/// By which program a metric was served last.
#[derive(Debug, Default)]
struct Served {
    count: Option<f64>,
    by: Option<String>,
    is_known: bool,
}

impl Served {
    /// Takes what was read: a counter, if it is one, and the program if that is known. Returns whether it is another program than before.
    fn is_by_another(&mut self, count: Option<f64>, by: Option<String>) -> bool {
        let went_back = self.count.zip(count).is_some_and(|(before, now)| now < before);
        let is_other = by.is_some() && self.by.is_some() && by != self.by;
        let is_first = !std::mem::replace(&mut self.is_known, true);
        self.count = count;
        self.by = by.or(self.by.take());
        is_first || went_back || is_other
    }
}

/// What is asked.
enum Source {
    Prometheus(prometheus::Client),
    Kamailio { socket: PathBuf, statistic: String },
    UdpQueue { sockets: Vec<SocketAddr> },
}

impl Source {
    fn new(source: MetricSource) -> Source {
        match source {
            MetricSource::Prometheus(prometheus) => Source::Prometheus(prometheus::Client::new(prometheus)),
            MetricSource::Kamailio { socket, statistic } => Source::Kamailio { socket, statistic },
            MetricSource::UdpQueue { sockets } => Source::UdpQueue { sockets },
        }
    }

    async fn read(&mut self) -> Result<Sourced> {
        match self {
            Source::Prometheus(client) => Ok((client.read().await?, None)),
            Source::Kamailio { socket, statistic } => {
                // A restart in between is seen the next time.
                let since = kamailio::up_since(socket).await.ok();
                Ok((kamailio::read(socket, statistic).await?, since))
            }
            Source::UdpQueue { sockets } => queue::read(sockets).map(|(waits, inodes)| (waits, Some(inodes))),
        }
    }
}

/// Returns how much a counter grew in a second since it was read last; nothing at first, and when it began anew.
fn rate(last: &mut Option<(Instant, f64)>, now: Instant, count: f64) -> Option<Reading> {
    let (before, value) = last.replace((now, count))?;
    let seconds = now.saturating_duration_since(before).as_secs_f64();
    (count >= value && seconds > 0.0).then(|| Ok((count - value) / seconds))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Goal: a program that takes another's place is seen, by what it says of itself, and by a counter that goes back.
    #[test]
    fn a_program_that_takes_anothers_place_is_seen() {
        let mut served = Served::default();
        let mut reads =
            |count: f64, by: &str| served.is_by_another(Some(count), (!by.is_empty()).then(|| by.to_owned()));
        assert!(reads(5.0, "monday"), "whoever it is");
        assert!(!reads(5.0, "monday") && !reads(9.0, "") && !reads(9.0, "monday"));
        assert!(reads(9.0, "tuesday") && !reads(10.0, "tuesday"));
        assert!(reads(2.0, "") && !reads(2.0, ""));
        let mut gauge = Served::default();
        assert!(gauge.is_by_another(None, None) && !gauge.is_by_another(None, None));
    }

    #[test]
    fn a_rate_is_how_much_a_counter_grew() {
        let (start, mut last) = (Instant::now(), None);
        let mut at = |seconds: u64, count: f64| rate(&mut last, start + Duration::from_secs(seconds), count);
        assert_eq!(at(0, 100.0), None);
        assert_eq!(at(2, 300.0), Some(Ok(100.0)));
        assert_eq!(at(3, 5.0), None, "it began anew");
        assert_eq!(at(4, 5.0), Some(Ok(0.0)));
        assert_eq!(at(4, 9.0), None, "no time has passed");
    }
}
