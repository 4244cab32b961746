// SPDX-License-Identifier: Apache-2.0
//! When meters are read, and what was used is stored: at regular times while there is something to read, soon after
//! something began or ended, when somebody asks, and before the node stops.

use netserv_model::Now;
use netserv_model::effect::{Command, EffectId, Job, StoreJob};
use netserv_model::usage::{Meters, UsageChange};

use crate::Controller;
use crate::effects::Purpose;
use crate::expiry::Timer;
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
}

/// How far the node's stop is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stop {
    /// Nobody wants it.
    #[default]
    No,
    /// The last reading is not stored.
    Settling,
    /// It is, or cannot be.
    Settled,
}

impl Controller {
    /// Begins to read all meters, unless that is under way; returns whether it began.
    pub fn read_meters(&mut self, now: Now) -> Option<EffectId> {
        self.now = now;
        if self.metering.reading.is_some() {
            return None;
        }
        self.timers.cancel(&Timer::ReadMeters);
        self.metering.again = false;
        let id = self.start_node_effect(Job::ReadMeters, Purpose::Meters);
        self.metering.reading = Some(id);
        Some(id)
    }

    /// Returns whether meters are being read.
    pub fn reads_meters(&self) -> bool {
        self.metering.reading.is_some()
    }

    /// Refuses requests from here on, and has what was used until here stored; ends with [`Command::Settled`].
    pub fn handle_stop(&mut self, now: Now) {
        self.now = now;
        if self.metering.stop == Stop::No {
            self.metering.stop = Stop::Settling;
            self.read_again();
        }
    }

    /// Returns whether the node is about to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.metering.stop != Stop::No
    }

    /// Has meters read soon, as something began or ended.
    pub(crate) fn meter_soon(&mut self) {
        self.meter_by(METER_SOON);
    }

    /// It is time to read meters.
    pub(crate) fn meter_due(&mut self) {
        self.read_again();
    }

    /// Takes a reading, or takes note that there is none.
    pub(crate) fn metered(&mut self, meters: Option<Meters>) {
        self.metering.reading = None;
        let goes_on = match meters {
            Some(mut meters) => {
                if let Some(operator) = &self.policy.operator {
                    meters.leave_out(&operator.user);
                }
                let (goes_on, policy) = (meters.go_on(), &self.policy);
                self.ledger.take(self.now, meters, &|user| policy.users.contains_key(user));
                goes_on
            }
            // A host has none.
            None if self.policy.host_only => false,
            None => {
                self.counters.meter_failures += 1;
                true
            }
        };
        if goes_on && !self.is_stopping() {
            self.meter_by(METER_INTERVAL);
        }
        if self.metering.again {
            self.read_again();
        }
        self.store_usage(false);
    }

    /// What was used is stored, or not.
    pub(crate) fn usage_stored(&mut self, stored: bool) {
        let change = self.metering.storing.take();
        if !stored {
            self.counters.usage_store_failures += 1;
            change.into_iter().for_each(|change| self.ledger.not_stored(change));
            self.meter_by(METER_INTERVAL);
        }
        self.store_usage(!stored);
    }

    /// Stores what is not stored, one change at a time. After one that `failed`, the next waits for a reading.
    fn store_usage(&mut self, failed: bool) {
        if self.metering.storing.is_none()
            && !failed
            && let Some(change) = self.ledger.take_change()
        {
            self.metering.storing = Some(change.clone());
            self.start_node_effect(Job::Store(StoreJob::PutUsage(Box::new(change))), Purpose::Usage);
        }
        let done = self.metering.reading.is_none() && self.metering.storing.is_none();
        if self.metering.stop == Stop::Settling && done {
            self.metering.stop = Stop::Settled;
            self.timers.cancel(&Timer::ReadMeters);
            self.commands.push_back(Command::Settled);
        }
    }

    fn read_again(&mut self) {
        let now = self.now;
        if self.read_meters(now).is_none() {
            self.metering.again = true;
        }
    }

    fn meter_by(&mut self, wait: std::time::Duration) {
        if self.metering.stop != Stop::Settled {
            self.timers.set_not_after(Timer::ReadMeters, self.now.instant + wait);
        }
    }
}
