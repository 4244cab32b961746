// SPDX-License-Identifier: Apache-2.0
//! Hello identifier (object 10, RFC 5971 A.3.10): pairs an MA-Hello that wants a reply with the reply.

use super::error::ValueError;
use super::reader::Reader;

/// Reads the object's value; `reply_wanted` is the R flag of the message.
pub(super) fn parse(value: &[u8], reply_wanted: bool) -> Result<u32, ValueError> {
    let mut reader = Reader::new(value);
    let hello_id = reader.u32()?;
    reader.finish()?;
    // RFC 5971 §5.2.2: a request has a number, or its reply could not be told from others.
    if reply_wanted && hello_id == 0 {
        return Err(ValueError::unsupported(0, "an MA-Hello request without a number"));
    }
    Ok(hello_id)
}

/// Appends the object's value.
pub(super) fn emit(hello_id: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&hello_id.to_be_bytes());
}
