// SPDX-License-Identifier: Apache-2.0
//! A daemon's histograms, from the text of its metrics.

use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

/// How often something took how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// Upper bounds, the last of which is without end, and how many there were up to each.
    buckets: Vec<(Duration, u64)>,
}

impl Histogram {
    /// Reads a histogram of times, by its name without the prefix of all.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn read(metrics: &str, name: &str) -> Result<Histogram> {
        let head = format!("netserv_{name}_bucket{{le=\"");
        let mut buckets = Vec::new();
        for line in metrics.lines().filter_map(|line| line.strip_prefix(&head)) {
            let (bound, count) = line.split_once("\"} ").context("a bucket has a bound and a count")?;
            let bound = match bound {
                "+Inf" => Duration::MAX,
                seconds => Duration::from_secs_f64(seconds.parse()?),
            };
            buckets.push((bound, count.parse()?));
        }
        ensure!(buckets.last().is_some_and(|(bound, _)| *bound == Duration::MAX), "no histogram `{name}`");
        Ok(Histogram { buckets })
    }

    /// Returns what came after an earlier reading of the same histogram.
    pub fn since(&self, earlier: &Histogram) -> Histogram {
        let both = self.buckets.iter().zip(&earlier.buckets);
        Histogram { buckets: both.map(|((bound, now), (_, before))| (*bound, now.saturating_sub(*before))).collect() }
    }

    /// Returns how many there were.
    pub fn count(&self) -> u64 {
        self.buckets.last().map_or(0, |(_, count)| *count)
    }

    /// Returns how many were above a bound.
    ///
    /// # Panics
    /// If it is none of the histogram's bounds.
    pub fn above(&self, bound: Duration) -> u64 {
        let bucket = self.buckets.iter().find(|bucket| bucket.0 == bound);
        self.count() - bucket.expect("it is a bound of the histogram").1
    }

    /// Returns a time that this part of all keeps, between the bounds around it in proportion; the last bound if it is above
    /// all of them. Nothing if there were none.
    pub fn quantile(&self, part: f64) -> Option<Duration> {
        let mut below = (Duration::ZERO, 0);
        #[allow(clippy::cast_precision_loss, reason = "fewer than 2^52 are counted")]
        let (wanted, number) = (part * self.count() as f64, |count: u64| count as f64);
        for &(bound, count) in self.buckets.iter().filter(|_| self.count() > 0) {
            if number(count) >= wanted {
                let (from, before) = below;
                let share = (wanted - number(before)) / number(count - before).max(1.0);
                return Some(if bound == Duration::MAX { from } else { from + (bound - from).mul_f64(share.max(0.0)) });
            }
            below = (bound, count);
        }
        None
    }
}

impl fmt::Display for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = 0;
        write!(f, "{} in all", self.count())?;
        for (bound, count) in &self.buckets {
            let here = count.saturating_sub(before);
            before = *count;
            match (here, *bound) {
                (0, _) => {}
                (_, Duration::MAX) => write!(f, ", {here} above")?,
                (_, bound) => write!(f, ", {here} up to {bound:?}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# TYPE netserv_x_seconds histogram\n\
        netserv_x_seconds_bucket{le=\"0.001\"} 90\nnetserv_x_seconds_bucket{le=\"0.02\"} 98\n\
        netserv_x_seconds_bucket{le=\"+Inf\"} 100\nnetserv_x_seconds_sum 1.5\nnetserv_x_seconds_count 100\n";

    #[test]
    fn histograms_are_read_and_compared() {
        let whole = Histogram::read(TEXT, "x_seconds").unwrap();
        assert_eq!((whole.count(), whole.above(Duration::from_millis(1))), (100, 10));
        assert_eq!(whole.to_string(), "100 in all, 90 up to 1ms, 8 up to 20ms, 2 above");
        let earlier = Histogram::read(&TEXT.replace("90", "80").replace("98", "80").replace("100", "80"), "x_seconds");
        assert_eq!(whole.since(&earlier.unwrap()).to_string(), "20 in all, 10 up to 1ms, 8 up to 20ms, 2 above");
        assert!(Histogram::read(TEXT, "y_seconds").is_err());
    }

    #[test]
    fn quantiles_lie_between_bounds() {
        let whole = Histogram::read(TEXT, "x_seconds").unwrap();
        let quantile = |part| whole.quantile(part).unwrap().as_micros();
        assert_eq!([quantile(0.45), quantile(0.9), quantile(0.94), quantile(0.99)], [500, 1000, 10_500, 20_000]);
        assert_eq!(whole.since(&whole).quantile(0.5), None);
    }
}
