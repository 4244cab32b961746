// SPDX-License-Identifier: Apache-2.0
//! The packets that modules make.

use netserv_model::DropReason;
use netserv_plane::PacketId;

use super::judge::judge;
use super::output::Injected;
use super::{entering, leaving, traced};
use crate::cx::Cx;
use crate::filters::Filters;
use crate::in_flight::{Held, InFlight, Journey, length_of};
use crate::workers::Workers;

/// The interface by which packets come in that modules make.
const NO_INTERFACE: u32 = 0;

/// Sends a packet that a module made, if it may be sent, by way of the other users' modules that want it. These do not
/// know it from others: what they make of it is bounded by what their users may send, and no worker sees it twice.
pub(super) fn inject(
    cx: &mut Cx,
    filters: &mut Filters,
    workers: &mut Workers,
    in_flight: &mut InFlight,
    injected: &Injected<'_>,
) -> Result<(), DropReason> {
    let Injected { maker, bytes, .. } = *injected;
    let may = workers.may_make_packet(maker, bytes.len(), cx.now);
    // A packet that a module makes has no ends of its own: only the user's prefixes count.
    let judged = if may { judge(bytes, None, injected.prefixes) } else { Err(DropReason::TooMany) };
    if let Ok(flow) = judged {
        filters.find_stops(workers, &in_flight.buffered, &flow, NO_INTERFACE, Some(maker));
        if let Some(at) = filters.stops().first().copied() {
            let journey = Journey::of_made(maker, filters.stops().to_vec(), in_flight.buffered.changes(), bytes);
            let trace = traced::begin_made(cx, filters, workers, injected, &flow);
            let (packet, length, journey) = (PacketId(0), length_of(bytes), Some(Box::new(journey)));
            let held = Held { packet, length, flow, interface: NO_INTERFACE, at, journey, trace };
            entering::enter(cx, workers, in_flight, held, &[]);
            return Ok(());
        }
    }
    let sent = judged.and_then(|_| leaving::send_made(cx, bytes));
    if let Err(reason) = sent {
        cx.tally.refused(reason);
    }
    traced::tell_made(cx, workers, injected, sent);
    sent
}
