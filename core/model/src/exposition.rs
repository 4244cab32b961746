// SPDX-License-Identifier: Apache-2.0
//! Metrics in Prometheus text exposition format 0.0.4.

use std::fmt::{Display, Write as _};

use crate::text::one_line;

/// Collects metrics, one family after the other.
#[derive(Default)]
pub struct Exposition {
    text: String,
}

impl Exposition {
    /// Starts a family. `name` without the prefix `netserv_`; counters end in `_total`.
    pub fn family(&mut self, name: &'static str, kind: Kind, help: &str) -> Family<'_> {
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "# HELP netserv_{name} {help}\n# TYPE netserv_{name} {}", kind.as_str());
        Family { text: &mut self.text, name }
    }

    /// Returns the whole text.
    pub fn finish(self) -> String {
        self.text
    }
}

/// What a family counts.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Only ever grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts up to each of some bounds, a sum and a count.
    Histogram,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// One family being written.
pub struct Family<'a> {
    text: &'a mut String,
    name: &'static str,
}

impl Family<'_> {
    /// Writes one sample with its labels.
    pub fn sample(&mut self, labels: &[(&str, &str)], value: impl Display) {
        self.part("", labels, value);
    }

    /// Writes one sample of a part of the family, such as `_bucket`, with its labels.
    pub fn part(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}=\"{}\"", escape(value))).collect();
        let braces = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "netserv_{}{suffix}{braces} {value}", self.name);
    }
}

/// Escapes what ends a label, and what steers a terminal or cannot be seen: names come from others.
fn escape(value: &str) -> String {
    one_line(value).replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_follow_their_family() {
        let mut exposition = Exposition::default();
        let mut family = exposition.family("dropped_packets_total", Kind::Counter, "Packets dropped, by reason");
        family.sample(&[("reason", "ring-full"), ("user", "a\"b\\")], 3);
        family.sample(&[], 1);
        family.sample(&[("user", "a\u{202e}b\nc")], 2);
        assert_eq!(
            exposition.finish(),
            "# HELP netserv_dropped_packets_total Packets dropped, by reason\n\
             # TYPE netserv_dropped_packets_total counter\n\
             netserv_dropped_packets_total{reason=\"ring-full\",user=\"a\\\"b\\\\\"} 3\n\
             netserv_dropped_packets_total 1\n\
             netserv_dropped_packets_total{user=\"a\\\\u{202e}b c\"} 2\n"
        );
    }
}
