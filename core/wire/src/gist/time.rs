// SPDX-License-Identifier: Apache-2.0
//! Times in messages: 32 bits of milliseconds, never zero.

use std::time::Duration;

use super::error::ValueError;
use super::reader::Reader;

/// Reads a time.
pub(super) fn duration_field(reader: &mut Reader<'_>) -> Result<Duration, ValueError> {
    let offset = reader.position();
    match reader.u32()? {
        0 => Err(ValueError::unsupported(offset, "a time of zero")),
        milliseconds => Ok(Duration::from_millis(milliseconds.into())),
    }
}

/// Returns the field for a time, the nearest that the field can hold.
pub(super) fn milliseconds(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX).max(1)
}
