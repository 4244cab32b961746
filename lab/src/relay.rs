// SPDX-License-Identifier: Apache-2.0
//! A link that delays, loses, reorders, and carries so much a second: copies frames between two interfaces of its namespace.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rustix::event::{PollFd, PollFlags, poll};

use crate::sys::PacketSocket;
use crate::topology::Impairment;

/// Frames under way at a time; further ones are lost, as on a full link.
pub const FRAMES_MAX: usize = 16_384;
/// Bytes of the longest frame.
const FRAME_BYTES_MAX: usize = 9216;

/// When a frame is due, its number for those that are due together, the end that it goes to, its bytes.
type UnderWay = (Instant, u64, usize, Vec<u8>);

/// How long frames may wait for a link that carries less than comes; further ones are lost.
const QUEUE_TIME_MAX: Duration = Duration::from_millis(100);

/// Decides what becomes of frames; draws in a fixed order, so that a seed gives the same run.
pub struct Shaper {
    impairment: Impairment,
    random: StdRng,
    /// When each direction has carried what it was given.
    free: [Option<Instant>; 2],
}

impl Shaper {
    /// Returns a shaper that draws from the impairment's seed.
    pub fn new(impairment: Impairment) -> Shaper {
        Shaper { impairment, random: StdRng::seed_from_u64(impairment.seed), free: [None; 2] }
    }

    /// Returns when a frame that comes now, of so many bytes, is at the other end; `None` if it is lost.
    pub fn arrival(&mut self, now: Instant, direction: usize, bytes: usize) -> Option<Instant> {
        let delay = self.draw()?;
        if self.impairment.kbit_per_s == 0 {
            return Some(now + delay);
        }
        let begins = self.free[direction].map_or(now, |free| free.max(now));
        if begins.duration_since(now) > QUEUE_TIME_MAX {
            return None;
        }
        let took = Duration::from_secs_f64(bytes as f64 / (f64::from(self.impairment.kbit_per_s) * 125.0));
        self.free[direction] = Some(begins + took);
        Some(begins + took + delay)
    }

    /// Returns how long the next frame is under way, or `None` if it is lost.
    fn draw(&mut self) -> Option<Duration> {
        let lost = self.random.random_range(0..10_000) < self.impairment.loss_per_10000;
        let jitter = self.impairment.jitter;
        let shift = jitter.mul_f64(self.random.random_range(0.0..=2.0));
        (!lost).then(|| (self.impairment.delay + shift).saturating_sub(jitter))
    }
}

/// Copies frames between the interfaces `a` and `b` until the process is ended.
///
/// # Errors
/// The interfaces are not there, or packet sockets are not allowed.
pub fn relay(impairment: Impairment) -> Result<()> {
    let ends = [PacketSocket::open("a").context("interface a")?, PacketSocket::open("b").context("interface b")?];
    let mut shaper = Shaper::new(impairment);
    let mut under_way: BinaryHeap<Reverse<UnderWay>> = BinaryHeap::new();
    let mut number = 0;
    let mut frame = vec![0; FRAME_BYTES_MAX];
    loop {
        let now = Instant::now();
        while under_way.peek().is_some_and(|Reverse((due, ..))| *due <= now) {
            if let Some(Reverse((_, _, end, frame))) = under_way.pop() {
                // A full queue loses the frame, as a link does.
                let _ = ends[end].send(&frame);
            }
        }
        let wait = under_way.peek().map(|Reverse((due, ..))| due.saturating_duration_since(now));
        let timeout = wait.map(|wait| rustix::time::Timespec {
            tv_sec: i64::try_from(wait.as_secs()).unwrap_or(1),
            tv_nsec: i64::from(wait.subsec_nanos()),
        });
        let mut fds = [
            PollFd::from_borrowed_fd(ends[0].as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(ends[1].as_fd(), PollFlags::IN),
        ];
        poll(&mut fds, timeout.as_ref()).context("poll")?;
        for (index, end) in ends.iter().enumerate() {
            while let Some(length) = end.receive(&mut frame)? {
                let Some(due) = shaper.arrival(Instant::now(), index, length) else { continue };
                if under_way.len() < FRAMES_MAX {
                    under_way.push(Reverse((due, number, 1 - index, frame[..length].to_vec())));
                    number += 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_losses_and_about_the_asked_rate() {
        let impairment = Impairment {
            delay: Duration::from_millis(10),
            jitter: Duration::from_millis(2),
            loss_per_10000: 2000,
            kbit_per_s: 0,
            seed: 7,
        };
        let draw = || {
            let mut shaper = Shaper::new(impairment);
            (0..10_000).map(|_| shaper.draw()).collect::<Vec<_>>()
        };
        let fates = draw();
        assert_eq!(fates, draw());
        let lost = fates.iter().filter(|fate| fate.is_none()).count();
        assert!((1800..2200).contains(&lost), "{lost}");
        let (low, high) = (Duration::from_millis(8), Duration::from_millis(12));
        assert!(fates.iter().flatten().all(|delay| (low..=high).contains(delay)));
    }

    /// Twice of what a link carries comes for a second, in one direction and then in the other as well.
    #[test]
    fn a_link_carries_its_rate_in_each_direction_and_loses_the_rest() {
        let mut shaper = Shaper::new(Impairment { kbit_per_s: 10_000, ..Impairment::default() });
        let begun = Instant::now();
        let came = |shaper: &mut Shaper, direction, from: Duration| {
            let sent = (0..1666).map(|number| begun + from + Duration::from_micros(number * 600));
            sent.filter_map(|now| shaper.arrival(now, direction, 1500).map(|due| due - now)).collect::<Vec<_>>()
        };
        for (direction, from) in [(0, Duration::ZERO), (1, Duration::from_secs(1))] {
            let waits = came(&mut shaper, direction, from);
            // 833 frames of 1.2 ms, and those that wait in the end.
            assert!((833..=920).contains(&waits.len()), "{}", waits.len());
            assert!(*waits.iter().max().unwrap() <= QUEUE_TIME_MAX + Duration::from_millis(2));
            assert_eq!(waits[0], Duration::from_micros(1200));
        }
    }
}
