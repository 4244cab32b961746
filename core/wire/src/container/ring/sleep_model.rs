// SPDX-License-Identifier: Apache-2.0
//! A model of sleeping and waking, in which every order of steps is tried: a worker with two rings, and a lane at each.
//!
//! A thread's stores wait in a buffer of its own before others see them, as processors have it, and leave it at any time or
//! at a fence. What is modelled is what `Consumer::prepare_sleep` and `Producer::publish` do, and the eventfd.

use std::collections::BTreeSet;

const LANES: usize = 2;
const TAIL: usize = 0;
const FLAG: usize = LANES;
const WORKER: usize = LANES;

/// What a model leaves out, to show that it finds what is wrong.
#[derive(Clone, Copy, PartialEq)]
enum Without {
    Nothing,
    /// The lanes' fences between tail and flag.
    LaneFence,
    /// The worker's fences between flag and tail.
    WorkerFence,
    /// Flags but that of lane 0.
    OtherFlags,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum At {
    /// A lane: store the tail, fence, take the flag, ring if it was up.
    Publish,
    Fence,
    TakeFlag,
    Ring,
    /// The worker: look at each ring, then raise each flag and look again, then wait.
    Look(usize),
    Raise(usize),
    RaiseFence(usize),
    LookAgain(usize),
    Wait,
    Lower(usize),
    Done,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    /// Tails and flags, by lane.
    words: [u8; 2 * LANES],
    eventfd: bool,
    /// By lane: whether the worker has the packet.
    taken: [bool; LANES],
    at: [At; LANES + 1],
    /// By thread.
    buffers: [Vec<(usize, u8)>; LANES + 1],
}

impl State {
    fn begin() -> State {
        State {
            words: [0; 2 * LANES],
            eventfd: false,
            taken: [false; LANES],
            at: [At::Publish, At::Publish, At::Look(0)],
            buffers: Default::default(),
        }
    }

    fn load(&self, thread: usize, word: usize) -> u8 {
        let own = self.buffers[thread].iter().rev().find(|(at, _)| *at == word);
        own.map_or(self.words[word], |(_, value)| *value)
    }

    /// Returns the states that a step of a thread leads to; none if it cannot go on.
    fn step(&self, thread: usize, without: Without) -> Option<State> {
        let mut next = self.clone();
        let is_flushed = self.buffers[thread].is_empty();
        next.at[thread] = match self.at[thread] {
            At::Publish => {
                next.buffers[thread].push((TAIL + thread, 1));
                At::Fence
            }
            At::Fence if is_flushed || without == Without::LaneFence => At::TakeFlag,
            At::TakeFlag if self.load(thread, FLAG + thread) == 0 => At::Done,
            // A swap goes to memory at once.
            At::TakeFlag if is_flushed => {
                next.words[FLAG + thread] = 0;
                At::Ring
            }
            At::Ring => {
                next.eventfd = true;
                At::Done
            }
            At::Look(LANES) if self.taken == [true; LANES] => At::Done,
            At::Look(LANES) => At::Raise(0),
            At::Look(lane) => {
                next.taken[lane] |= self.load(thread, TAIL + lane) == 1;
                At::Look(lane + 1)
            }
            At::Raise(LANES) => At::Wait,
            At::Raise(lane) => {
                if lane == 0 || without != Without::OtherFlags {
                    next.buffers[thread].push((FLAG + lane, 1));
                }
                At::RaiseFence(lane)
            }
            At::RaiseFence(lane) if is_flushed || without == Without::WorkerFence => At::LookAgain(lane),
            At::LookAgain(lane) if u8::from(self.taken[lane]) == self.load(thread, TAIL + lane) => At::Raise(lane + 1),
            At::LookAgain(_) => At::Lower(0),
            At::Wait if self.eventfd => {
                next.eventfd = false;
                At::Lower(0)
            }
            At::Lower(LANES) => At::Look(0),
            At::Lower(lane) => {
                next.buffers[thread].push((FLAG + lane, 0));
                At::Lower(lane + 1)
            }
            At::Fence | At::TakeFlag | At::RaiseFence(_) | At::Wait | At::Done => return None,
        };
        Some(next)
    }

    /// Returns the state after a thread's oldest store was seen by all.
    fn flush(&self, thread: usize) -> Option<State> {
        let mut next = self.clone();
        let (word, value) = *self.buffers[thread].first()?;
        next.buffers[thread].remove(0);
        next.words[word] = value;
        Some(next)
    }
}

/// Returns whether the worker has all packets in the end, whatever the order of steps, and how many states there are.
fn all_arrive(without: Without) -> (bool, usize) {
    let (mut known, mut open) = (BTreeSet::from([State::begin()]), vec![State::begin()]);
    let mut arrive = true;
    while let Some(state) = open.pop() {
        let steps = (0..=WORKER).flat_map(|thread| [state.step(thread, without), state.flush(thread)]);
        let steps: Vec<State> = steps.flatten().collect();
        arrive &= !steps.is_empty() || state.at[WORKER] == At::Done;
        open.extend(steps.into_iter().filter(|next| known.insert(next.clone())));
    }
    (arrive, known.len())
}

#[test]
fn no_wake_up_of_a_worker_with_several_rings_is_lost() {
    let (arrive, states) = all_arrive(Without::Nothing);
    assert!(arrive && states > 1000, "{states} states");
}

#[test]
fn what_is_left_out_is_missed() {
    for without in [Without::LaneFence, Without::WorkerFence, Without::OtherFlags] {
        assert!(!all_arrive(without).0);
    }
}
