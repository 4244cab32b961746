// SPDX-License-Identifier: Apache-2.0
//! The time of objects, and how long they hold.

use std::time::{Duration, SystemTime};

use netserv_model::UnixTime;
use rpki::repository::x509::{Time, Validity};

use crate::error::Invalid;

/// When a check takes place, and from when until when everything that it looked at holds.
pub(crate) struct Clock {
    now: UnixTime,
    from: UnixTime,
    until: UnixTime,
}

impl Clock {
    pub(crate) fn new(now: UnixTime) -> Clock {
        Clock { now: now.min(UnixTime::LAST), from: UnixTime(0), until: UnixTime::LAST }
    }

    /// Returns now, as certificates count.
    pub(crate) fn now(&self) -> Time {
        (SystemTime::UNIX_EPOCH + Duration::from_millis(self.now.0)).into()
    }

    /// Returns the latest begin of all that was looked at.
    pub(crate) fn from(&self) -> UnixTime {
        self.from
    }

    /// Returns the earliest end of all that was looked at.
    pub(crate) fn until(&self) -> UnixTime {
        self.until
    }

    /// Returns a clock of the same time, for a part of what is looked at.
    pub(crate) fn afresh(&self) -> Clock {
        Clock::new(self.now)
    }

    /// Returns whether it is time for something that holds from then until then, both inclusive.
    pub(crate) fn is_within(&self, from: UnixTime, until: UnixTime) -> bool {
        from <= self.now && self.now <= until
    }

    /// Takes note of when a part holds for which it is time.
    pub(crate) fn narrow(&mut self, from: UnixTime, until: UnixTime) {
        self.from = self.from.max(from);
        self.until = self.until.min(until);
    }

    /// Checks that a certificate is in time.
    pub(crate) fn certificate(&mut self, of: &str, validity: Validity) -> Result<(), Invalid> {
        self.within(of, unix_time(validity.not_before()), unix_time(validity.not_after()))
    }

    /// Checks that it is time for an object that holds from then until then, both inclusive.
    pub(crate) fn within(&mut self, of: &str, from: UnixTime, until: UnixTime) -> Result<(), Invalid> {
        let now = self.now;
        if now < from {
            return Err(Invalid::NotYetValid { of: of.to_owned(), from, now });
        }
        if now > until {
            return Err(Invalid::Expired { of: of.to_owned(), until, now });
        }
        self.narrow(from, until);
        Ok(())
    }
}

/// Returns a time of a certificate or revocation list; one before 1970 is 0.
pub(crate) fn unix_time(time: Time) -> UnixTime {
    UnixTime(u64::try_from(time.timestamp_millis()).unwrap_or(0))
}
