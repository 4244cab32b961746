// SPDX-License-Identifier: Apache-2.0
//! How much a server's edges may send it, worked out from what waits at the server and what it gets done (RFC 7415's rate, without
//! the server's help).
//!
//! Each edge is told the same rate. So the server gets what it can do, and no edge has less because another asks for more.

/// What waits at the server, and from where on that is too much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// More than this is too much.
    pub over: f64,
    /// This and less is little.
    pub until: f64,
}

/// Works out the rate of each edge.
#[derive(Clone, Debug)]
pub struct Regulator {
    bounds: Bounds,
    rate: Option<f64>,
    /// What waited when it was looked at last.
    backlog: f64,
    /// How often in a row too much waited, before there was a limit.
    overs: u32,
    /// The most that the server got done in a second since too much waited.
    most: f64,
}

/// What the edges are to be told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Said {
    /// Nothing: the server has time.
    Nothing,
    /// At most so many requests a second from each.
    Rate(f64),
    /// As many as come, from now on.
    Off,
}

impl Regulator {
    /// Returns one for a server that has time.
    pub fn new(bounds: Bounds) -> Regulator {
        Regulator { bounds, rate: None, backlog: 0.0, overs: 0, most: 0.0 }
    }

    /// Takes what waits at the server, how many requests it gets done in a second, and how many edges there are; returns what these are
    /// to be told. It is called some times a second.
    pub fn note(&mut self, backlog: f64, done: f64, edges: usize) -> Said {
        if !(backlog >= 0.0 && done >= 0.0 && backlog.is_finite() && done.is_finite()) {
            return self.rate.map_or(Said::Nothing, Said::Rate);
        }
        let falls = backlog < self.backlog * FALLS;
        self.backlog = backlog;
        #[allow(clippy::cast_precision_loss, reason = "there are few")]
        let share = |all: f64| (all / edges.max(1) as f64).max(RATE_MIN);
        let Some(rate) = self.rate else {
            self.overs = if backlog > self.bounds.over { self.overs + 1 } else { 0 };
            // What it gets done is known only after it had enough to do for a while.
            self.most = if self.overs > 0 { self.most.max(done) } else { 0.0 };
            // Of a server that gets nothing done it is not known what it can do.
            if self.overs < OVERS || self.most < RATE_MIN {
                return Said::Nothing;
            }
            // Below what it can do, so that it gets done what waits.
            let rate = share(FIRST * self.most);
            self.rate = Some(rate);
            return Said::Rate(rate);
        };
        self.most += if done > self.most { SMOOTHING * (done - self.most) } else { 0.0 };
        let next = if backlog > self.bounds.over {
            // What waits gets less already: it takes a while until it is gone.
            if falls { rate } else { rate * DOWN }
        } else if backlog > self.bounds.until {
            rate
        } else if rate < SURE * share(self.most) {
            rate * UP_SOON
        } else {
            rate * UP
        };
        if next > RELEASED * self.most.max(RATE_MIN) {
            *self = Regulator::new(self.bounds);
            return Said::Off;
        }
        self.rate = Some(next.max(RATE_MIN));
        Said::Rate(next.max(RATE_MIN))
    }
}

const SMOOTHING: f64 = 0.3;
const FALLS: f64 = 0.99;
/// The first rate, of what the server gets done.
const FIRST: f64 = 0.5;
const DOWN: f64 = 0.92;
const UP: f64 = 1.05;
/// Below so much of what the server is known to get done, the rate goes up sooner.
const SURE: f64 = 0.85;
const UP_SOON: f64 = 1.25;
/// So often in a row too much waits before it counts.
const OVERS: u32 = 3;
/// A rate of so many times what the server got done holds nobody back.
const RELEASED: f64 = 2.0;
/// Requests a second that each edge may send in any case: what the rate grows from again.
const RATE_MIN: f64 = 1.0;

#[cfg(test)]
mod tests {
    use super::*;

    const TICKS_A_SECOND: usize = 4;

    /// A server that gets so much done in a second, and so much waits at it; what is beyond is lost.
    struct Server {
        capacity: f64,
        waits: f64,
        done: f64,
    }

    impl Server {
        /// Lets so much come in a second; returns what it got done, by the second.
        fn tick(&mut self, comes: f64) -> f64 {
            let all = self.waits + comes / TICKS_A_SECOND as f64;
            let done = all.min(self.capacity / TICKS_A_SECOND as f64);
            self.waits = (all - done).min(160.0);
            self.done += done;
            done * TICKS_A_SECOND as f64
        }
    }

    /// Returns the mean of what is done in each second, after the first ones.
    fn run(offered: &[f64], seconds: usize, capacity: f64) -> (Vec<f64>, f64) {
        let mut regulator = Regulator::new(Bounds { over: 20.0, until: 4.0 });
        let (mut server, mut rate) = (Server { capacity, waits: 0.0, done: 0.0 }, f64::INFINITY);
        let mut means = Vec::new();
        for _ in 0..seconds {
            let before = server.done;
            for _ in 0..TICKS_A_SECOND {
                let done = server.tick(offered.iter().map(|edge| edge.min(rate)).sum());
                match regulator.note(server.waits, done, offered.len()) {
                    Said::Nothing => {}
                    Said::Rate(next) => rate = next,
                    Said::Off => rate = f64::INFINITY,
                }
            }
            means.push(server.done - before);
        }
        (means, server.waits)
    }

    #[test]
    fn a_server_gets_what_it_can_do_from_any_number_of_edges() {
        for offered in [&[2000.0][..], &[1000.0, 1000.0], &[20.0, 1900.0], &[200.0; 10]] {
            let (means, waits) = run(offered, 60, 180.0);
            let late: f64 = means[10..].iter().sum::<f64>() / 50.0;
            assert!(late >= 0.95 * 180.0, "{offered:?}: {late}, {means:?}");
            assert!(waits < 40.0, "{offered:?}: {waits} wait");
        }
    }

    #[test]
    fn a_server_with_time_is_left_alone() {
        let mut regulator = Regulator::new(Bounds { over: 20.0, until: 4.0 });
        assert!((0..100).all(|_| regulator.note(20.0, 1000.0, 1) == Said::Nothing));
    }

    #[test]
    fn after_a_burst_all_may_come_again() {
        let mut regulator = Regulator::new(Bounds { over: 20.0, until: 4.0 });
        (0..40).for_each(|_| _ = regulator.note(150.0, 180.0, 1));
        assert!(matches!(regulator.note(150.0, 180.0, 1), Said::Rate(rate) if rate < 100.0));
        let ticks = (0..).find(|_| regulator.note(0.0, 100.0, 1) == Said::Off);
        assert!(ticks.is_some_and(|ticks| ticks < 200), "{ticks:?}");
        assert_eq!(regulator.note(0.0, 100.0, 1), Said::Nothing);
    }

    #[test]
    fn what_is_no_number_changes_nothing() {
        let mut regulator = Regulator::new(Bounds { over: 20.0, until: 4.0 });
        assert_eq!(regulator.note(f64::NAN, 1.0, 1), Said::Nothing);
        (1..OVERS).for_each(|_| assert_eq!(regulator.note(30.0, 100.0, 1), Said::Nothing));
        let Said::Rate(rate) = regulator.note(30.0, 100.0, 1) else { panic!("too much waits") };
        for wrong in [(f64::INFINITY, 1.0), (1.0, f64::NAN), (-1.0, 1.0), (1.0, -1.0)] {
            assert_eq!(regulator.note(wrong.0, wrong.1, 1), Said::Rate(rate));
        }
        // One that gets nothing done any more still gets a little, by which it is known when it is back.
        let rates: Vec<Said> = (0..200).map(|_| regulator.note(160.0, 0.0, 1)).collect();
        assert_eq!(rates[199], Said::Rate(RATE_MIN));
        let mut dead = Regulator::new(Bounds { over: 20.0, until: 4.0 });
        assert!((0..200).all(|_| dead.note(160.0, 0.0, 1) == Said::Nothing));
    }
}
