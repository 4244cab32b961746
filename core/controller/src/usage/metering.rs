// SPDX-License-Identifier: Apache-2.0
//! When meters are read, and what was used is stored: at regular times while there is something to read, soon after
//! something began or ended, when somebody asks, and before the node stops.

use netserv_ledger::Ledger;
use netserv_model::UserId;
use netserv_model::api::UsageReport;
use netserv_model::effect::{Command, EffectId, Job, StoreJob};
use netserv_model::usage::{Meters, Usage, UsageChange, UsageKey, Used};

use crate::cx::Cx;
use crate::cx::effects::Purpose;
use crate::cx::timers::Timer;
use crate::limits::{METER_INTERVAL, METER_SOON};

/// How far reading and storing are.
#[derive(Debug, Default)]
pub(crate) struct Metering {
    /// The reading under way.
    reading: Option<EffectId>,
    /// It was asked for one more since that began.
    again: bool,
    /// What is being stored.
    storing: Option<UsageChange>,
    stop: Stop,
    ledger: Ledger,
}

/// How far the node's stop is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Nobody wants it.
    #[default]
    No,
    /// The last reading is not stored.
    Settling,
    /// It is, or cannot be.
    Settled,
}

impl Metering {
    /// Takes over sums of an earlier run.
    pub(crate) fn restore(&mut self, cx: &mut Cx, usage: Vec<(UsageKey, Used)>) {
        if !usage.is_empty() {
            self.ledger.restore(usage);
            self.read_soon(cx);
        }
    }

    /// Returns what was used, as it was last measured.
    pub(crate) fn usage(&self) -> UsageReport {
        self.ledger.report()
    }

    /// Returns what each user used, as it was last measured.
    pub(crate) fn usage_by_user(&self) -> impl Iterator<Item = (&UserId, &Usage)> {
        self.ledger.users()
    }

    /// Begins to read all meters, unless that is under way; returns whether it began.
    pub(crate) fn read(&mut self, cx: &mut Cx) -> Option<EffectId> {
        if self.reading.is_some() {
            return None;
        }
        cx.timers.cancel(&Timer::ReadMeters);
        self.again = false;
        let id = cx.start_node_effect(Job::ReadMeters, Purpose::Meters);
        self.reading = Some(id);
        Some(id)
    }

    /// Returns whether meters are being read.
    pub(crate) fn is_reading(&self) -> bool {
        self.reading.is_some()
    }

    /// Refuses requests from here on, and has what was used until here stored; ends with [`Command::Settled`].
    pub(crate) fn stop(&mut self, cx: &mut Cx) {
        if self.stop == Stop::No {
            self.stop = Stop::Settling;
            self.read_again(cx);
        }
    }

    /// Returns whether the node is about to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stop != Stop::No
    }

    /// Has meters read soon, as something began or ended.
    pub(crate) fn read_soon(&mut self, cx: &mut Cx) {
        self.read_by(cx, METER_SOON);
    }

    /// It is time to read meters.
    pub(crate) fn read_due(&mut self, cx: &mut Cx) {
        self.read_again(cx);
    }

    /// Takes a reading, or takes note that there is none.
    pub(crate) fn take(&mut self, cx: &mut Cx, meters: Option<Meters>) {
        self.reading = None;
        let goes_on = match meters {
            Some(mut meters) => {
                if let Some(operator) = &cx.policy.operator {
                    meters.leave_out(&operator.user);
                }
                let goes_on = meters.go_on();
                self.ledger.take(cx.now, meters, &|user| cx.may(user).is_some());
                goes_on
            }
            // A host has none.
            None if cx.policy.host_only => false,
            None => {
                cx.counters.meter_failures += 1;
                true
            }
        };
        if goes_on && !self.is_stopping() {
            self.read_by(cx, METER_INTERVAL);
        }
        if self.again {
            self.read_again(cx);
        }
        self.store(cx, false);
    }

    /// What was used is stored, or not.
    pub(crate) fn stored(&mut self, cx: &mut Cx, stored: bool) {
        let change = self.storing.take();
        if !stored {
            cx.counters.usage_store_failures += 1;
            change.into_iter().for_each(|change| self.ledger.not_stored(change));
            self.read_by(cx, METER_INTERVAL);
        }
        self.store(cx, !stored);
    }

    /// Stores what is not stored, one change at a time. After one that `failed`, the next waits for a reading.
    fn store(&mut self, cx: &mut Cx, failed: bool) {
        if self.storing.is_none()
            && !failed
            && let Some(change) = self.ledger.take_change()
        {
            self.storing = Some(change.clone());
            cx.start_node_effect(Job::Store(StoreJob::PutUsage(Box::new(change))), Purpose::Usage);
        }
        let done = self.reading.is_none() && self.storing.is_none();
        if self.stop == Stop::Settling && done {
            self.stop = Stop::Settled;
            cx.timers.cancel(&Timer::ReadMeters);
            cx.say(Command::Settled);
        }
    }

    fn read_again(&mut self, cx: &mut Cx) {
        if self.read(cx).is_none() {
            self.again = true;
        }
    }

    fn read_by(&mut self, cx: &mut Cx, wait: std::time::Duration) {
        if self.stop != Stop::Settled {
            cx.timers.set_not_after(Timer::ReadMeters, cx.now.instant + wait);
        }
    }
}
