// SPDX-License-Identifier: Apache-2.0
//! The packet thread's end of one worker's ring.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use ipnet::IpNet;
use netserv_container::{HostRing, WorkerThread};
use netserv_model::effect::ModuleSlot;
use netserv_model::{DropReason, WorkerId, limits};
use netserv_wire::container::ring::Ingress;

use super::seen::WorkerSeen;
use crate::event::{PacketEvent, Report};
use crate::limits::{GIVE_BACK_INTERVAL, PROCESSOR_WAIT_MAX, WATCH_INTERVAL};
use crate::meters::RingMeters;
use crate::module_filter::bit;
use crate::real_time::Standing;

/// The packet thread's end of one worker's ring, and what the thread knows of the worker.
pub(crate) struct RingEnd {
    /// The worker generation: tells workers of one name apart.
    pub(crate) generation: u64,
    pub(crate) ring: HostRing,
    pub(crate) prefixes: Vec<IpNet>,
    call_times: BTreeMap<ModuleSlot, Duration>,
    /// How long every module together may take, with a batch of each lane.
    answer_time: Duration,
    /// The bits of the modules that are loaded.
    pub(crate) loaded: u64,
    /// What the lanes know of the worker together.
    pub(crate) seen: WorkerSeen,
    /// The container broke the rules of the ring.
    pub(crate) broken: bool,
    /// Packets in its ring are not published yet.
    pub(crate) staged: bool,
    /// Since when it sleeps although it has published packets.
    pub(crate) unwoken_since: Option<Instant>,
    /// So many of them that it is woken before its time.
    pub(crate) is_ripe: bool,
    /// The thread of the worker that was looked at last, and its steps.
    at: (WorkerThread, u64),
    moved_at: Instant,
    /// Tells how long a packet thread of the worker was on a processor so far, if the system can tell.
    pub(crate) processor_time: ProcessorTime,
    /// What it told when the worker was first seen not to move.
    computed_before: Option<Duration>,
    answered_at: Instant,
    pub(crate) meters: RingMeters,
    /// Whether the worker is in the real-time class, if it may be.
    pub(crate) standing: Option<Standing>,
    /// It may look for packets again and again.
    pub(crate) spins: bool,
    gave_back_at: Instant,
}

/// What became of packets in a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// The container is at work, and takes them.
    Awake,
    /// It sleeps, and has to be woken.
    Asleep,
    /// It sleeps since then, and they are enough to wake it for.
    Ripe(Instant),
    /// It sleeps, as was said before.
    Known,
}

/// Tells how long a thread was on a processor so far.
pub(crate) type ProcessorTime = Box<dyn FnMut(WorkerThread) -> Option<Duration> + Send>;

impl RingEnd {
    pub(crate) fn new(
        generation: u64,
        (mut ring, seen): (HostRing, WorkerSeen),
        prefixes: Vec<IpNet>,
        now: Instant,
    ) -> RingEnd {
        let (thread, activity) = ring.activity();
        let mut clock = ring.take_clock();
        RingEnd {
            generation,
            ring,
            prefixes,
            call_times: BTreeMap::new(),
            answer_time: PROCESSOR_WAIT_MAX,
            loaded: 0,
            seen,
            broken: false,
            staged: false,
            unwoken_since: None,
            is_ripe: false,
            at: (thread, activity.steps),
            moved_at: now,
            processor_time: Box::new(move |thread| clock.as_mut()?.processor_time(thread)),
            computed_before: None,
            answered_at: now,
            meters: RingMeters::default(),
            standing: None,
            spins: false,
            gave_back_at: now,
        }
    }

    /// Says how long a call of a module may take.
    pub(crate) fn set_call_time(&mut self, slot: ModuleSlot, call: Duration) {
        self.call_times.insert(slot, call);
        self.answer_time = PROCESSOR_WAIT_MAX + self.seen.lanes() * self.call_times.values().sum::<Duration>();
    }

    /// Says whether a module is loaded.
    pub(crate) fn set_loaded(&mut self, slot: ModuleSlot, loaded: bool) {
        self.loaded = if loaded { self.loaded | bit(slot) } else { self.loaded & !bit(slot) };
    }

    /// Takes no more from the ring of a worker that broke its rules, and has the control loop told.
    pub(crate) fn report_broken(&mut self, worker: &WorkerId, detail: String, report: &Report) {
        self.broken = true;
        let (worker, generation) = (worker.clone(), self.generation);
        self.seen.report_once(|| report(PacketEvent::RingBroken { worker, generation, detail }));
    }

    /// Puts a packet into the ring.
    pub(crate) fn offer(
        &mut self,
        now: Instant,
        bytes: &[u8],
        ingress: Ingress,
        modules: u64,
        cookie: u64,
    ) -> Result<(), DropReason> {
        if bytes.len() > limits::PACKET_BYTES_MAX {
            return Err(DropReason::TooLong);
        }
        if self.ring.outstanding() == 0 {
            // The watchdog's time runs from the first packet that the container holds.
            self.give_time(now);
        }
        self.ring.push_from(bytes, ingress, modules, cookie).map_err(|error| match error.is_fatal() {
            true => DropReason::ContainerGone,
            false => DropReason::RingFull,
        })
    }

    /// Publishes the packets in the ring, and leaves the container asleep if it sleeps. It is ripe with so many packets.
    pub(crate) fn show(&mut self, now: Instant, ripe: usize) -> Shown {
        self.staged = false;
        if !self.ring.publish() {
            return Shown::Awake;
        }
        let known = self.unwoken_since.is_some();
        let since = *self.unwoken_since.get_or_insert(now);
        if !self.is_ripe && self.ring.outstanding() >= ripe {
            self.is_ripe = true;
            return Shown::Ripe(since);
        }
        if known { Shown::Known } else { Shown::Asleep }
    }

    /// Wakes the container if it sleeps; returns whether it did.
    pub(crate) fn wake(&mut self) -> bool {
        (self.unwoken_since, self.is_ripe) = (None, false);
        self.ring.wake()
    }

    /// Lets the container look for packets again and again, unless too many do; returns whether it may.
    pub(crate) fn let_spin(&mut self) -> bool {
        if !self.spins && self.seen.begin_spinning() {
            self.spins = true;
            self.ring.let_spin(true);
        }
        self.spins
    }

    /// Has the container sleep when it has no packets; returns whether it was let do otherwise.
    pub(crate) fn end_spinning(&mut self) -> bool {
        let spun = std::mem::take(&mut self.spins);
        if spun {
            self.seen.end_spinning();
            self.ring.let_spin(false);
        }
        spun
    }

    /// Returns whether the worker is in the real-time class.
    pub(crate) fn is_real_time(&self) -> bool {
        self.standing.as_ref().is_some_and(Standing::is_real_time)
    }

    /// Arms the eventfd; false if data is pending.
    pub(crate) fn listen(&mut self) -> bool {
        // A broken container is not listened to.
        self.broken || self.ring.prepare_sleep()
    }

    /// Arms the eventfd if the container holds no packets or sleeps; returns whether it did and no data is pending.
    pub(crate) fn rest(&mut self) -> bool {
        if self.broken {
            return self.seen.is_reported();
        }
        let done = !self.staged && !self.spins && (self.ring.outstanding() == 0 || self.unwoken_since.is_some());
        done && self.ring.prepare_sleep()
    }

    /// Notes that the container gave something back.
    pub(crate) fn answered(&mut self, now: Instant) {
        self.answered_at = now;
    }

    /// Starts the watchdog's time anew.
    pub(crate) fn give_time(&mut self, now: Instant) {
        (self.moved_at, self.computed_before, self.answered_at) = (now, None, now);
    }

    /// Gives back memory of the ring that was not used for a while, now and then; returns whether there was any.
    pub(crate) fn give_back(&mut self, now: Instant) -> bool {
        let is_time = now.duration_since(self.gave_back_at) >= GIVE_BACK_INTERVAL;
        if is_time {
            self.gave_back_at = now;
        }
        is_time && self.ring.give_back()
    }

    /// Returns whether the container hangs, and in which module.
    ///
    /// The steps that it counts are not enough: a worker that was taken over could count them up and keep its packets. So
    /// its answers have a time of their own, in which every module could have taken as long as it may.
    ///
    /// A module can also hang outside of packets, while it starts or in a timer: then it is in a call and nothing moves.
    pub(crate) fn stalled(&mut self, now: Instant) -> Option<Option<ModuleSlot>> {
        let (thread, activity) = self.ring.activity();
        let holds = self.ring.outstanding() > 0;
        if (thread, activity.steps) != self.at || (activity.module.is_none() && !holds) {
            (self.at, self.moved_at, self.computed_before) = ((thread, activity.steps), now, None);
        }
        // What all lanes see counts once.
        if let Some(slot) = activity.module
            && (thread == WorkerThread::OfLane || self.seen.counts(now, WATCH_INTERVAL))
        {
            self.meters.busy(slot);
        }
        let hangs = match activity.module {
            Some(slot) => self.overruns(slot, now),
            None => now.duration_since(self.moved_at) > PROCESSOR_WAIT_MAX,
        };
        let hoards = holds && now.duration_since(self.answered_at) > self.answer_time;
        (hangs || hoards).then_some(activity.module)
    }

    /// Returns whether a call takes too long: it has used up its time on a processor, or waits for more than a processor.
    /// An innocent module gets little of a processor that others use, and must not be blamed for that.
    fn overruns(&mut self, slot: ModuleSlot, now: Instant) -> bool {
        let passed = now.duration_since(self.moved_at);
        if passed.is_zero() {
            return false;
        }
        let allowed = self.call_times.get(&slot).copied().unwrap_or(CALL_TIME_UNKNOWN);
        // Nobody asks while a worker moves; so the time before the first look is the worker's gain.
        if self.computed_before.is_none() {
            self.computed_before = (self.processor_time)(self.at.0);
        }
        if passed <= allowed || passed > allowed + PROCESSOR_WAIT_MAX {
            return passed > allowed;
        }
        // Where the system does not tell, all time counts.
        let computed = (self.processor_time)(self.at.0)
            .zip(self.computed_before)
            .map(|(after, before)| after.saturating_sub(before));
        computed.is_none_or(|computed| computed > allowed)
    }
}

/// How long a call may take in a module that nobody announced.
const CALL_TIME_UNKNOWN: Duration = Duration::from_millis(500);
