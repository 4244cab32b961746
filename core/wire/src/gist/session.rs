// SPDX-License-Identifier: Apache-2.0
//! Session identifier (object 1, RFC 5971 A.3.2): 128 opaque bits.

use netserv_model::SessionId;

use super::error::ValueError;
use super::reader::Reader;

/// Reads the object's value.
pub(super) fn parse(value: &[u8]) -> Result<SessionId, ValueError> {
    let mut reader = Reader::new(value);
    let session = SessionId(reader.array()?);
    reader.finish()?;
    Ok(session)
}

/// Appends the object's value.
pub(super) fn emit(session: SessionId, out: &mut Vec<u8>) {
    out.extend_from_slice(&session.0);
}
