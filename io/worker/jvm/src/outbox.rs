// SPDX-License-Identifier: Apache-2.0
//! What Java threads have to tell the node, until the packet thread takes it.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use netserv_model::effect::ModuleSlot;
use netserv_model::request::PacketCounts;
use netserv_model::{Instant, Refusal};
use netserv_wire::container::frames::LogLevel;
use netserv_worker_base::clock;
use netserv_worker_base::error::ServeError;
use netserv_worker_base::shared::log::{Line, LogBuffer};
use netserv_worker_base::wakeup::Wakeup;

use crate::limits;

/// What Java tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromJava {
    /// It takes modules; with what runs them, for people.
    Ready(String),
    /// A module runs.
    Loaded(ModuleSlot),
    /// A module could not be loaded, or failed; it is unloaded, the others go on.
    Failed(ModuleSlot, Refusal),
    /// What one module counted.
    Stats(ModuleSlot, PacketCounts, BTreeMap<String, u64>),
    /// There are no more counts in this answer.
    StatsDone,
}

/// A queue from all threads to one, that wakes this one.
#[derive(Debug)]
pub struct Outbox {
    waiting: Mutex<Waiting>,
    /// Whether there is something to look at.
    raised: AtomicBool,
    wakeup: Wakeup,
    /// A test's clock in nanoseconds; [`SYSTEM_CLOCK`] for the machine's.
    clock: AtomicU64,
}

/// The value of a test's clock where there is none.
const SYSTEM_CLOCK: u64 = u64::MAX;

#[derive(Debug, Default)]
struct Waiting {
    events: VecDeque<FromJava>,
    lost: u64,
    logs: BTreeMap<Option<ModuleSlot>, LogBuffer>,
}

impl Outbox {
    /// Makes an empty one.
    ///
    /// # Errors
    /// The kernel has no eventfd left.
    pub fn new() -> Result<Outbox, ServeError> {
        let wakeup = Wakeup::new().map_err(|error| ServeError::Io("eventfd", error))?;
        Ok(Outbox {
            waiting: Mutex::default(),
            raised: AtomicBool::new(false),
            wakeup,
            clock: AtomicU64::new(SYSTEM_CLOCK),
        })
    }

    /// Makes an empty one for the rest of the process's life.
    ///
    /// # Errors
    /// As [`Outbox::new`].
    pub fn leak() -> Result<&'static Outbox, ServeError> {
        Outbox::new().map(|outbox| &*Box::leak(Box::new(outbox)))
    }

    /// Queues an event, and wakes the packet thread. With [`limits::JAVA_EVENTS_WAITING_MAX`] waiting it is lost and
    /// counted.
    pub fn push(&self, event: FromJava) {
        let mut waiting = self.waiting();
        if waiting.events.len() < limits::JAVA_EVENTS_WAITING_MAX {
            waiting.events.push_back(event);
        } else {
            waiting.lost += 1;
        }
        drop(waiting);
        self.wake();
    }

    /// Counts an event that means nothing.
    pub fn lose(&self) {
        self.waiting().lost += 1;
        self.wake();
    }

    /// Queues a line for the log, cut and limited in rate like the lines of every module.
    pub fn log(&self, slot: Option<ModuleSlot>, level: LogLevel, text: &[u8]) {
        let now = clock::monotonic();
        let mut waiting = self.waiting();
        let log = waiting.logs.entry(slot).or_insert_with(|| LogBuffer::new(now));
        // A line over the rate is counted there.
        let pushed = log.push(now, level, text);
        drop(waiting);
        if pushed.is_ok() {
            self.wake();
        }
    }

    /// Wakes the packet thread.
    pub fn wake(&self) {
        if !self.raised.swap(true, Ordering::AcqRel) {
            self.wakeup.raise();
        }
    }

    /// Returns whether something happened since this was last asked. What did is there to be taken then.
    ///
    /// # Errors
    /// The eventfd cannot be read.
    pub fn poll_raised(&self) -> Result<bool, ServeError> {
        if !self.raised.load(Ordering::Acquire) {
            return Ok(false);
        }
        // In this order, so that whoever raises it in between either finds it raised, and is seen, or writes anew.
        self.wakeup.clear()?;
        Ok(self.raised.swap(false, Ordering::AcqRel))
    }

    /// Takes note that its descriptor was found readable: whoever raised it before it was last asked may have written
    /// only afterwards, and it would stay readable although there is nothing to look at.
    ///
    /// # Errors
    /// The eventfd cannot be read.
    pub fn handle_readable(&self) -> Result<(), ServeError> {
        // What was raised is seen without it.
        self.wakeup.clear()
    }

    /// Takes the next event.
    pub fn poll_event(&self) -> Option<FromJava> {
        self.waiting().events.pop_front()
    }

    /// Takes all log lines that wait.
    pub fn take_logs(&self) -> Vec<(Option<ModuleSlot>, Vec<Line>)> {
        let mut waiting = self.waiting();
        let logs = waiting.logs.iter_mut().filter(|(_, log)| !log.is_empty());
        logs.map(|(slot, log)| (*slot, log.take())).collect()
    }

    /// Returns a line that says how many events were lost, if some were, and forgets them.
    pub fn take_lost(&self) -> Option<Line> {
        let lost = std::mem::take(&mut self.waiting().lost);
        let text = format!("{lost} reports of the Java host lost: they meant nothing, or came too fast");
        (lost > 0).then_some(Line { level: LogLevel::Warn, text })
    }

    /// Forgets how much the module in a slot wrote, for the next one there. Returns its last lines.
    pub fn renew_log(&self, slot: ModuleSlot) -> Vec<Line> {
        let Some(mut log) = self.waiting().logs.remove(&Some(slot)) else { return Vec::new() };
        log.note_left_out();
        log.take()
    }

    /// Returns the clock that Java reads.
    pub fn now(&self) -> Instant {
        match self.clock.load(Ordering::Relaxed) {
            SYSTEM_CLOCK => clock::monotonic(),
            nanos => Instant::from_nanos(nanos),
        }
    }

    /// Puts a test's clock in the place of the machine's.
    pub fn set_now(&self, now: Instant) {
        self.clock.store(now.as_nanos(), Ordering::Relaxed);
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for Outbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wakeup.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use netserv_worker_base::limits::LOG_LINES_BURST;

    use super::*;

    #[test]
    fn events_come_out_in_order_and_are_bounded() {
        let outbox = Outbox::new().unwrap();
        assert!(!outbox.poll_raised().unwrap());
        for _ in 0..limits::JAVA_EVENTS_WAITING_MAX {
            outbox.push(FromJava::Loaded(ModuleSlot(1)));
        }
        outbox.push(FromJava::StatsDone);
        outbox.lose();
        assert!(outbox.poll_raised().unwrap());
        assert!(!outbox.poll_raised().unwrap());
        let taken: Vec<_> = std::iter::from_fn(|| outbox.poll_event()).collect();
        assert_eq!(taken, vec![FromJava::Loaded(ModuleSlot(1)); limits::JAVA_EVENTS_WAITING_MAX]);
        assert!(outbox.take_lost().unwrap().text.starts_with("2 reports"));
        assert_eq!(outbox.take_lost(), None);
        assert!(outbox.take_logs().is_empty());
    }

    #[test]
    fn lines_are_kept_by_slot_and_limited_in_rate() {
        let outbox = Outbox::new().unwrap();
        let flood = LOG_LINES_BURST + 1000;
        (0..flood).for_each(|_| outbox.log(Some(ModuleSlot(3)), LogLevel::Info, b"x"));
        outbox.log(None, LogLevel::Warn, b"of the host");
        let logs = outbox.take_logs();
        assert_eq!(logs[0].0, None);
        assert_eq!(logs[1].0, Some(ModuleSlot(3)));
        assert!(logs[1].1.len() < flood as usize);
        let last = outbox.renew_log(ModuleSlot(3));
        assert!(last.last().unwrap().text.contains("lines left out"), "{last:?}");
        outbox.log(Some(ModuleSlot(3)), LogLevel::Info, b"the next module");
        assert_eq!(outbox.take_logs()[0].1[0].text, "the next module");
    }

    fn is_readable(outbox: &Outbox) -> bool {
        let mut fds = [rustix::event::PollFd::new(outbox, rustix::event::PollFlags::IN)];
        rustix::event::poll(&mut fds, Some(&rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() == 1
    }

    #[test]
    fn a_wake_up_that_is_written_late_wakes_once() {
        let outbox = Outbox::new().unwrap();
        // Another thread raises it, and is interrupted before it writes; meanwhile the packet thread looks.
        assert!(!outbox.raised.swap(true, Ordering::AcqRel));
        assert!(outbox.poll_raised().unwrap());
        outbox.wakeup.raise();
        assert!(is_readable(&outbox));
        assert!(!outbox.poll_raised().unwrap());
        outbox.handle_readable().unwrap();
        assert!(!is_readable(&outbox));
        outbox.wake();
        assert!(is_readable(&outbox));
        outbox.handle_readable().unwrap();
        assert!(outbox.poll_raised().unwrap());
    }

    #[test]
    fn no_wake_up_is_lost() {
        let outbox = std::sync::Arc::new(Outbox::new().unwrap());
        let other = std::sync::Arc::clone(&outbox);
        let count = 20_000;
        let thread = std::thread::spawn(move || (0..count).for_each(|_| other.push(FromJava::StatsDone)));
        let (mut taken, mut lost) = (0, 0);
        while taken + lost < count {
            let mut fds = [rustix::event::PollFd::new(&*outbox, rustix::event::PollFlags::IN)];
            let wait = rustix::event::Timespec { tv_sec: 10, tv_nsec: 0 };
            assert_eq!(rustix::event::poll(&mut fds, Some(&wait)).unwrap(), 1, "{taken} events, {lost} lost");
            outbox.handle_readable().unwrap();
            let _ = outbox.poll_raised().unwrap();
            taken += std::iter::from_fn(|| outbox.poll_event()).count();
            lost += usize::try_from(std::mem::take(&mut outbox.waiting().lost)).unwrap();
        }
        thread.join().unwrap();
    }
}
