// SPDX-License-Identifier: Apache-2.0
//! The parts that a request on this node meets.

use crate::exchanges::Exchanges;
use crate::off_path::OffPath;
use crate::round_trip::RoundTrips;
use crate::sessions::Sessions;

#[derive(Debug)]
pub(crate) struct Requests {
    pub(crate) exchanges: Exchanges,
    pub(crate) sessions: Sessions,
    pub(crate) off_path: OffPath,
    pub(crate) round_trips: RoundTrips,
}

impl Requests {
    /// Returns none, with room for so many leases.
    pub(crate) fn new(leases_max: usize) -> Requests {
        Requests {
            exchanges: Exchanges::default(),
            sessions: Sessions::new(leases_max),
            off_path: OffPath::default(),
            round_trips: RoundTrips::default(),
        }
    }
}
