// SPDX-License-Identifier: Apache-2.0
//! Metrics in the configuration.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use hyper::Uri;
use serde::{Deserialize, Deserializer};

use crate::limits::QUEUES_MAX;

/// A metric; no other one has or had its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct MetricId(pub u32);

/// A number that is read again and again.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Metric {
    /// By what it is told from all others that there were.
    #[serde(skip)]
    pub id: MetricId,
    /// Its name in rules.
    pub name: String,
    /// Seconds between two readings, 0.1 at least.
    #[serde(default = "every_s")]
    pub every_s: f64,
    /// Whether it counts up, and how much in a second is what matters.
    #[serde(default)]
    pub rate: bool,
    /// Where it comes from.
    #[serde(flatten)]
    pub source: MetricSource,
}

/// Where a metric comes from.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum MetricSource {
    /// A query of Prometheus.
    Prometheus {
        /// Its address, as `http://127.0.0.1:9090`.
        #[serde(rename = "prometheus", deserialize_with = "uri")]
        url: Uri,
        /// The query, which has one value.
        query: String,
    },
    /// A statistic of Kamailio.
    Kamailio {
        /// The datagram socket of its module `jsonrpcs`.
        #[serde(rename = "kamailio")]
        socket: PathBuf,
        /// The statistic's group and name, as `core:rcv_requests`.
        statistic: String,
    },
    /// Bytes that wait in UDP sockets of this machine.
    UdpQueue {
        /// Their addresses and ports.
        #[serde(rename = "udp-queue")]
        sockets: Vec<SocketAddr>,
    },
}

impl Metric {
    /// Returns the time between two readings.
    pub fn every(&self) -> Duration {
        Duration::from_secs_f64(self.every_s)
    }

    /// Checks what the shape of a file does not hold.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn check(&self) -> Result<()> {
        ensure!((0.1..=3600.0).contains(&self.every_s), "`every-s` is {}, not 0.1 to 3600", self.every_s);
        if let MetricSource::UdpQueue { sockets } = &self.source {
            let is_right = (1..=QUEUES_MAX).contains(&sockets.len());
            ensure!(is_right, "`udp-queue` has {} sockets, not 1 to {QUEUES_MAX}", sockets.len());
        }
        if let MetricSource::Prometheus { url, .. } = &self.source {
            let plain = url.scheme_str() == Some("http") && url.host().is_some();
            ensure!(plain, "`prometheus` is `{url}`, which does not begin with http:// and a host");
        }
        Ok(())
    }
}

fn uri<'de, D: Deserializer<'de>>(from: D) -> Result<Uri, D::Error> {
    String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
}

fn every_s() -> f64 {
    5.0
}
