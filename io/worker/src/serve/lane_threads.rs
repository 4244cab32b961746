// SPDX-License-Identifier: Apache-2.0
//! Packet threads for lanes beyond the first, while all modules of the container are parallel.
//!
//! A thread has nothing of its own: it is lent the ring and the module instances of its lane, and gives them back when the
//! worker's first thread recalls them. What changes modules is done by the first thread alone, which has everything then, as
//! in a worker with one thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::Builder;
use std::time::Duration;

use netserv_model::effect::ModuleSlot;
use netserv_worker_base::error::ServeError;
use netserv_worker_base::shared::log::Line;
use netserv_worker_base::wakeup::Wakeup;
use netserv_worker_packet::host::Host;

use super::rounds::Rounds;

/// The packet threads of lanes beyond the first.
pub struct LaneThreads {
    /// By lane, without lane 0; none before they are needed.
    threads: Vec<LaneThread>,
    /// They have what is theirs.
    are_lent: bool,
    /// The system gave no thread; there is no further attempt.
    are_refused: bool,
    alarm: Alarm,
    lines: (Sender<Lines>, Receiver<Lines>),
}

/// How often the first thread says that it lives while it waits for a lane.
const RECALL_STEP: Duration = Duration::from_millis(500);

/// What a module wrote to its log.
type Lines = (ModuleSlot, Vec<Line>);

struct LaneThread {
    is_recalled: Arc<AtomicBool>,
    give: Sender<Box<Rounds>>,
    back: Receiver<Returned>,
}

struct Returned {
    rounds: Box<Rounds>,
    ended: Result<(), ServeError>,
}

/// Has the first thread recall everything: a module failed, or a thread ends.
#[derive(Clone)]
struct Alarm {
    is_raised: Arc<AtomicBool>,
    wake: Arc<Wakeup>,
}

impl LaneThreads {
    /// Returns no threads. Once there are some, they raise `wake` when they have something to tell the first thread.
    pub fn new(wake: Arc<Wakeup>) -> LaneThreads {
        let alarm = Alarm { is_raised: Arc::default(), wake };
        LaneThreads { threads: Vec::new(), are_lent: false, are_refused: false, alarm, lines: channel() }
    }

    /// Lends all lanes but the first to threads of their own, with the modules' instances, if all modules are parallel and the
    /// threads do not have them yet.
    ///
    /// # Errors
    /// Why the system gives no threads; told once, and the first thread goes on alone.
    #[inline]
    pub fn lend(&mut self, rounds: &mut Rounds) -> Result<(), std::io::Error> {
        if self.are_lent || self.are_refused || !rounds.chain.is_parallel(rounds.around.lanes.len()) {
            return Ok(());
        }
        self.lend_all(rounds)
    }

    #[cold]
    fn lend_all(&mut self, rounds: &mut Rounds) -> Result<(), std::io::Error> {
        let count = rounds.around.lanes.len();
        while self.threads.len() + 1 < count {
            let started = LaneThread::start(self.threads.len() + 1, self.alarm.clone(), self.lines.0.clone());
            match started {
                Ok(thread) => self.threads.push(thread),
                Err(error) => {
                    self.are_refused = true;
                    self.threads.clear();
                    return Err(error);
                }
            }
        }
        rounds.chain.turn_to(0);
        let chains = rounds.chain.split(count);
        let lanes = rounds.around.lanes.split();
        for (thread, (lanes, chain)) in self.threads.iter().zip(lanes.into_iter().zip(chains)) {
            thread.is_recalled.store(false, Ordering::Release);
            // A thread that is gone is noticed when its lane is recalled.
            let _ = thread.give.send(Box::new(Rounds::new(lanes, chain)));
        }
        self.are_lent = true;
        Ok(())
    }

    /// Takes everything back, if it is lent, and returns what is left of modules that failed meanwhile. A thread ends the
    /// batch that it is at first; the node's watchdog sees to it that there is an end.
    ///
    /// # Errors
    /// A thread ended.
    pub fn recall(
        &mut self,
        rounds: &mut Rounds,
        wakeups: &[Arc<Wakeup>],
    ) -> Result<Vec<(ModuleSlot, Vec<Host>)>, ServeError> {
        if !self.are_lent {
            return Ok(Vec::new());
        }
        self.are_lent = false;
        for (thread, wakeup) in self.threads.iter().zip(wakeups) {
            thread.is_recalled.store(true, Ordering::Release);
            wakeup.raise();
        }
        let mut chains = Vec::new();
        for thread in &self.threads {
            let Returned { rounds: back, ended } = loop {
                match thread.back.recv_timeout(RECALL_STEP) {
                    Ok(returned) => break returned,
                    // The watchdog of that lane sees whether it hangs; this thread does not.
                    Err(RecvTimeoutError::Timeout) => rounds.around.lanes.leave(),
                    Err(RecvTimeoutError::Disconnected) => {
                        return Err(ServeError::Broken("the thread of a lane is gone".to_owned()));
                    }
                }
            };
            ended?;
            let Rounds { around, chain, .. } = *back;
            rounds.around.lanes.join(around.lanes);
            rounds.around.failed.extend(around.failed);
            chains.push(chain);
        }
        Ok(rounds.chain.join(chains))
    }

    /// Returns whether a thread wants everything recalled, since this was last asked.
    pub fn take_alarm(&self) -> bool {
        self.alarm.is_raised.swap(false, Ordering::AcqRel)
    }

    /// Returns what modules wrote to their logs on these threads.
    pub fn lines(&self) -> impl Iterator<Item = Lines> {
        self.lines.1.try_iter()
    }
}

impl LaneThread {
    fn start(lane: usize, alarm: Alarm, lines: Sender<Lines>) -> std::io::Result<LaneThread> {
        let ((give, given), (back_sender, back)) = (channel::<Box<Rounds>>(), channel());
        let is_recalled = Arc::new(AtomicBool::new(false));
        let recalled = Arc::clone(&is_recalled);
        Builder::new().name(netserv_wire::container::lane_thread_name(lane)).spawn(move || {
            let at_end = AtEnd(alarm);
            while let Ok(mut rounds) = given.recv() {
                let ended = serve(&mut rounds, &recalled, &at_end.0, &lines);
                let goes_on = ended.is_ok();
                if back_sender.send(Returned { rounds, ended }).is_err() || !goes_on {
                    break;
                }
            }
        })?;
        Ok(LaneThread { is_recalled, give, back })
    }
}

/// Serves a lane until it is recalled.
fn serve(
    rounds: &mut Rounds,
    is_recalled: &AtomicBool,
    alarm: &Alarm,
    lines: &Sender<Lines>,
) -> Result<(), ServeError> {
    while !is_recalled.load(Ordering::Acquire) {
        let busy = rounds.packets()? > 0;
        if busy && rounds.around.lanes.may_spin() && rounds.around.failed.is_empty() {
            // The node waits for these answers, and has the next packets.
            rustix::thread::sched_yield();
            continue;
        }
        rounds.timers();
        tell(rounds, alarm, lines);
        rounds.around.lanes.publish(busy)?;
        if busy || rounds.spin() {
            continue;
        }
        let due = rounds.chain.poll_timeout();
        rounds.wait(false, [], due)?;
    }
    tell(rounds, alarm, lines);
    rounds.around.lanes.publish(false)
}

/// Tells the first thread what it has to know.
fn tell(rounds: &mut Rounds, alarm: &Alarm, lines: &Sender<Lines>) {
    let mut any = false;
    for (slot, instances) in rounds.chain.iter_mut() {
        for instance in instances {
            let log = &mut instance.host_mut().log;
            if !log.is_empty() {
                // It fails only when the process ends.
                let _ = lines.send((slot, log.take()));
                any = true;
            }
        }
    }
    if !rounds.around.failed.is_empty() {
        alarm.raise();
    } else if any {
        alarm.wake.raise();
    }
}

impl Alarm {
    fn raise(&self) {
        self.is_raised.store(true, Ordering::Release);
        self.wake.raise();
    }
}

/// Raises the alarm when a thread ends, in whatever way.
struct AtEnd(Alarm);

impl Drop for AtEnd {
    fn drop(&mut self) {
        self.0.raise();
    }
}
