// SPDX-License-Identifier: Apache-2.0
//! The end of a packet's path: to the driver, with a verdict or a counted reason.

use netserv_model::{DropReason, Verdict};
use netserv_plane::{DriverError, Final};

use super::traced;
use crate::cx::Cx;
use crate::in_flight::Held;

/// Passes a packet, as it came or changed.
pub(super) fn pass(cx: &mut Cx, held: &Held, changed: Option<&[u8]>) {
    let verdict = changed.map_or(Final::Pass, Final::Replace);
    match held.maker() {
        None => {
            cx.tally.finished(if changed.is_some() { Verdict::Modified } else { Verdict::Pass });
            traced::tell(cx, held, verdict, None);
            cx.driver.finish(held.packet, verdict);
        }
        Some(_) => {
            let bytes = changed.or(held.journey.as_deref().map(|journey| journey.bytes.as_slice()));
            match send_made(cx, bytes.unwrap_or_default()) {
                Ok(()) => traced::tell(cx, held, verdict, None),
                Err(reason) => drop(cx, held, reason),
            }
        }
    }
}

/// Drops a packet.
pub(super) fn drop(cx: &mut Cx, held: &Held, reason: DropReason) {
    traced::tell(cx, held, Final::Drop, Some(reason));
    match held.maker() {
        None => {
            cx.tally.dropped(reason);
            cx.driver.finish(held.packet, Final::Drop);
        }
        Some(_) => cx.tally.refused(reason),
    }
}

/// Sends a packet that a module made.
pub(super) fn send_made(cx: &mut Cx, bytes: &[u8]) -> Result<(), DropReason> {
    cx.driver.inject(bytes).map_err(|error| reason_of(&error))?;
    cx.tally.injected();
    Ok(())
}

fn reason_of(error: &DriverError) -> DropReason {
    if matches!(error, DriverError::NoMachine(_)) { DropReason::DestinationRefused } else { DropReason::SendFailed }
}
