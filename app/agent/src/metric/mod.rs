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
use crate::event::Event;
use crate::limits::METRIC_TIME_MAX;
pub use threshold::{Presence, Threshold};

/// What was read of a metric; the text says why nothing was.
pub type Reading = Result<f64, String>;

/// Reads a metric for ever, and tells what it is.
pub async fn watch(metric: Metric, events: mpsc::Sender<Event>) {
    let mut last = None;
    let every = metric.every;
    let mut source = Source::new(metric.source);
    loop {
        let begun = Instant::now();
        let read = tokio::time::timeout(METRIC_TIME_MAX.min(every), source.read()).await;
        let read = read.unwrap_or_else(|_| Err(anyhow::anyhow!("it does not answer in time")));
        let reading = match read {
            Ok(count) if metric.rate => rate(&mut last, begun, count),
            Ok(value) => Some(Ok(value)),
            Err(error) => Some(Err(format!("{error:#}"))),
        };
        if let Some(reading) = reading
            && events.send(Event::Read(metric.id, reading)).await.is_err()
        {
            return;
        }
        tokio::time::sleep(every.saturating_sub(begun.elapsed())).await;
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

    async fn read(&mut self) -> Result<f64> {
        match self {
            Source::Prometheus(client) => client.read().await,
            Source::Kamailio { socket, statistic } => kamailio::read(socket, statistic).await,
            Source::UdpQueue { sockets } => queue::read(sockets),
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
