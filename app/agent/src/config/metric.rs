// SPDX-License-Identifier: Apache-2.0
//! Metrics in the configuration.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use hyper::Uri;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::limits::QUEUES_MAX;

/// A metric; no other one has or had its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct MetricId(pub u32);

/// A number that is read again and again.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "WrittenMetric")]
pub struct Metric {
    /// By what it is told from all others that there were.
    pub id: MetricId,
    /// Its name in rules.
    pub name: String,
    /// How long it is between two readings.
    pub every: Duration,
    /// Whether it counts up, and how much in a second is what matters.
    pub rate: bool,
    /// Where it comes from.
    pub source: MetricSource,
}

/// Where a metric comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum MetricSource {
    /// A query of Prometheus.
    Prometheus(Prometheus),
    /// A statistic of Kamailio.
    Kamailio {
        /// The datagram socket of its module `jsonrpcs`.
        socket: PathBuf,
        /// The statistic's group and name, as `core:rcv_requests`.
        statistic: String,
    },
    /// Bytes that wait in UDP sockets of this machine.
    UdpQueue {
        /// Their addresses and ports.
        sockets: Vec<SocketAddr>,
    },
}

/// A query of Prometheus.
#[derive(Clone, Debug, PartialEq)]
pub struct Prometheus {
    /// Its address.
    pub url: Uri,
    /// The query.
    pub query: String,
    /// The file with the authorities that vouch for it; without it, those of this machine do.
    pub ca: Option<PathBuf>,
    /// What it is shown.
    pub credentials: Option<Credentials>,
}

/// What shows that the agent may ask. Files are read again for each question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// A file with a token.
    Bearer(PathBuf),
    /// A user, and a file with the password.
    Basic(String, PathBuf),
}

/// A number that rules look at: of a Prometheus, of a Kamailio, or of this machine's sockets.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WrittenMetric {
    /// Its name in rules.
    name: String,
    /// Seconds between two readings, 0.1 at least.
    #[serde(default = "every_s")]
    every_s: f64,
    /// Whether it counts up, and how much in a second is what matters.
    #[serde(default)]
    rate: bool,
    /// The address of a Prometheus, as `https://metrics.example.org` or `http://127.0.0.1:9090`.
    #[serde(default)]
    prometheus: Option<String>,
    /// Its query, which has one value.
    #[serde(default)]
    query: Option<String>,
    /// A file with the authorities that vouch for it, in PEM; without it, those of this machine do.
    #[serde(default)]
    ca: Option<PathBuf>,
    /// A file with a token that it is shown.
    #[serde(default)]
    bearer_file: Option<PathBuf>,
    /// Or the name of a user, with `password-file`.
    #[serde(default)]
    user: Option<String>,
    /// A file with the user's password.
    #[serde(default)]
    password_file: Option<PathBuf>,
    /// The datagram socket of Kamailio's module `jsonrpcs`.
    #[serde(default)]
    kamailio: Option<PathBuf>,
    /// A statistic of it, as `core:rcv_requests`; of several with `+` between, the sum counts.
    #[serde(default)]
    statistic: Option<String>,
    /// UDP sockets of this machine, of whose waiting bytes the sum counts.
    #[serde(default)]
    udp_queue: Option<Vec<SocketAddr>>,
}

impl TryFrom<WrittenMetric> for Metric {
    type Error = anyhow::Error;

    fn try_from(written: WrittenMetric) -> Result<Metric> {
        let name = written.name.clone();
        Metric::of(written).with_context(|| format!("metric `{name}`")).map_err(|error| anyhow!("{error:#}"))
    }
}

impl Metric {
    fn of(written: WrittenMetric) -> Result<Metric> {
        let every_s = written.every_s;
        ensure!((0.1..=3600.0).contains(&every_s), "`every-s` is {every_s}, not 0.1 to 3600");
        let w = &written;
        let statistic = ("statistic", w.statistic.is_some());
        let of_prometheus = [
            ("query", w.query.is_some()),
            ("ca", w.ca.is_some()),
            ("bearer-file", w.bearer_file.is_some()),
            ("user", w.user.is_some()),
            ("password-file", w.password_file.is_some()),
        ];
        let source = match (&w.prometheus, &w.kamailio, &w.udp_queue) {
            (Some(url), None, None) => {
                check_none("prometheus", &[statistic])?;
                MetricSource::Prometheus(w.prometheus(url)?)
            }
            (None, Some(socket), None) => {
                check_none("kamailio", &of_prometheus)?;
                let statistic = w.statistic.clone().context("`kamailio` needs a `statistic`")?;
                MetricSource::Kamailio { socket: socket.clone(), statistic }
            }
            (None, None, Some(sockets)) => {
                check_none("udp-queue", &[&of_prometheus[..], &[statistic]].concat())?;
                let is_right = (1..=QUEUES_MAX).contains(&sockets.len());
                ensure!(is_right, "`udp-queue` has {} sockets, not 1 to {QUEUES_MAX}", sockets.len());
                MetricSource::UdpQueue { sockets: sockets.clone() }
            }
            _ => bail!("it needs one of `prometheus`, `kamailio` and `udp-queue`"),
        };
        let (id, every) = (MetricId::default(), Duration::from_secs_f64(every_s));
        Ok(Metric { id, name: written.name, every, rate: written.rate, source })
    }
}

/// Checks that a metric has no keys of another kind.
fn check_none(key: &str, others: &[(&str, bool)]) -> Result<()> {
    let wrong = others.iter().find(|(_, is_there)| *is_there);
    ensure!(wrong.is_none(), "`{}` is not for `{key}`", wrong.map_or("", |(name, _)| name));
    Ok(())
}

impl WrittenMetric {
    fn prometheus(&self, url: &str) -> Result<Prometheus> {
        let url: Uri = url.parse().with_context(|| format!("`prometheus` is `{url}`"))?;
        let scheme = url.scheme_str().filter(|_| url.host().is_some());
        let is_web = matches!(scheme, Some("http" | "https"));
        ensure!(is_web, "`prometheus` is `{url}`, which does not begin with http:// or https:// and a host");
        let is_plain =
            url.authority().is_some_and(|authority| !authority.as_str().contains('@')) && url.query().is_none();
        ensure!(
            is_plain,
            "`prometheus` has a user or a query in its URL; write `user` and `password-file`, and `query`"
        );
        let query = self.query.clone().context("`prometheus` needs a `query`")?;
        let credentials = match (&self.bearer_file, &self.user, &self.password_file) {
            (None, None, None) => None,
            (Some(token), None, None) => Some(Credentials::Bearer(token.clone())),
            (None, Some(user), Some(password)) => Some(Credentials::Basic(user.clone(), password.clone())),
            _ => bail!("it needs `bearer-file`, or `user` and `password-file`, or none of them"),
        };
        ensure!(self.ca.is_none() || scheme == Some("https"), "`ca` is for https://");
        let is_private = scheme == Some("https") || url.host().is_some_and(is_loopback);
        ensure!(credentials.is_none() || is_private, "what `{url}` is shown would be read by others; use https://");
        Ok(Prometheus { url, query, ca: self.ca.clone(), credentials })
    }
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

fn every_s() -> f64 {
    5.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(text: &str) -> Result<Metric, String> {
        toml::from_str(&format!("name = \"load\"\n{text}")).map_err(|error| error.to_string())
    }

    #[test]
    fn a_prometheus_is_asked_as_it_is_written() {
        let text = "prometheus = \"https://m.example.org/p\"\nquery = \"up\"\n";
        let source = |more: &str| match metric(&format!("{text}{more}")).unwrap().source {
            MetricSource::Prometheus(prometheus) => prometheus,
            other @ (MetricSource::Kamailio { .. } | MetricSource::UdpQueue { .. }) => panic!("{other:?}"),
        };
        assert_eq!((source("").ca, source("").credentials), (None, None));
        assert_eq!(source("ca = \"/c\"").ca, Some("/c".into()));
        assert_eq!(source("bearer-file = \"/t\"").credentials, Some(Credentials::Bearer("/t".into())));
        let basic = source("user = \"u\"\npassword-file = \"/p\"").credentials;
        assert_eq!(basic, Some(Credentials::Basic("u".to_owned(), "/p".into())));
        let local = "prometheus = \"http://[::1]:9090\"\nquery = \"up\"\nbearer-file = \"/t\"";
        assert!(metric(local).is_ok() && metric(&local.replace("[::1]", "localhost")).is_ok());
    }

    #[test]
    fn what_is_wrong_with_a_metric_is_named() {
        for (text, expected) in [
            ("", "one of `prometheus`"),
            ("udp-queue = []", "not 1 to 16"),
            ("udp-queue = [\"192.0.2.1:1\"]\nkamailio = \"/k\"", "one of `prometheus`"),
            ("udp-queue = [\"192.0.2.1:1\"]\nstatistic = \"a\"", "`statistic` is not for `udp-queue`"),
            ("kamailio = \"/k\"", "needs a `statistic`"),
            ("kamailio = \"/k\"\nstatistic = \"a\"\nca = \"/c\"", "`ca` is not for `kamailio`"),
            ("prometheus = \"https://p\"", "needs a `query`"),
            ("prometheus = \"ftp://p\"\nquery = \"1\"", "does not begin with http://"),
            ("prometheus = \"https://p\"\nquery = \"1\"\nuser = \"u\"", "`user` and `password-file`"),
            ("prometheus = \"https://p\"\nquery = \"1\"\nbearer-fle = \"/t\"", "unknown field"),
            ("prometheus = \"http://p\"\nquery = \"1\"\nca = \"/c\"", "is for https://"),
            ("prometheus = \"http://192.0.2.1\"\nquery = \"1\"\nbearer-file = \"/t\"", "read by others"),
            ("prometheus = \"http://u:p@192.0.2.1\"\nquery = \"1\"", "has a user or a query"),
            ("prometheus = \"http://192.0.2.1/?a\"\nquery = \"1\"", "has a user or a query"),
            ("kamailio = \"/k\"\nstatistic = \"a\"\nevery-s = 0", "`every-s` is 0"),
        ] {
            let error = metric(text).unwrap_err();
            assert!(error.contains(expected), "{error} has no {expected}");
        }
    }
}
