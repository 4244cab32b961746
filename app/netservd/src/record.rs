// SPDX-License-Identifier: Apache-2.0
//! Records what the signaling engines were given: raw bytes and time, one JSON line per input.
//!
//! With the node's seed, which is the first line, a run can be given to the engines again.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use netserv_model::Now;
use serde_json::{Value, json};

use crate::event::SignalInput;

/// Bytes of a recording; it ends there, and says so.
pub const RECORD_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// A recording, or none.
pub struct Record {
    out: Option<BufWriter<File>>,
    written: u64,
}

impl Record {
    /// Starts a recording; an empty path starts none.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(path: &Path, seed: u64) -> Result<Record> {
        if path.as_os_str().is_empty() {
            return Ok(Record { out: None, written: 0 });
        }
        let file = File::options().create(true).append(true).open(path);
        let file = file.with_context(|| format!("cannot open {}", path.display()))?;
        let mut record = Record { out: Some(BufWriter::new(file)), written: 0 };
        record.line(&json!({ "seed": seed, "version": env!("CARGO_PKG_VERSION") }));
        Ok(record)
    }

    /// Appends one input.
    pub fn write(&mut self, now: Now, input: &SignalInput) {
        if self.out.is_some() {
            let mut line = describe(input);
            line["at_ns"] = json!(now.instant.as_nanos());
            line["wall_ms"] = json!(now.wall.0);
            self.line(&line);
        }
    }

    fn line(&mut self, line: &Value) {
        let Some(out) = &mut self.out else { return };
        let text = line.to_string();
        self.written += text.len() as u64 + 1;
        let result = writeln!(out, "{text}").and_then(|()| out.flush());
        if let Err(error) = result {
            tracing::warn!(%error, "the recording ends: it cannot be written");
            self.out = None;
        } else if self.written > RECORD_BYTES_MAX {
            tracing::warn!(bytes = self.written, "the recording ends: it is as long as it may be");
            self.out = None;
        }
    }
}

fn describe(input: &SignalInput) -> Value {
    match input {
        SignalInput::Intercepted(packet) => json!({
            "input": "intercepted", "interface": packet.interface.0, "source": packet.source.to_string(),
            "destination": packet.destination.to_string(), "ttl": packet.ttl, "payload": hex::encode(packet.payload()),
        }),
        SignalInput::Datagram(datagram) => json!({
            "input": "datagram", "interface": datagram.interface.0, "source": datagram.source.to_string(),
            "local": datagram.local.to_string(), "ttl": datagram.ttl, "payload": hex::encode(&datagram.payload),
        }),
        SignalInput::Unreachable { destination } => {
            json!({ "input": "unreachable", "destination": destination.to_string() })
        }
        SignalInput::Accepted { local, peer, .. } => {
            json!({ "input": "accepted", "local": local.to_string(), "peer": peer.to_string() })
        }
        SignalInput::Connected { association } => json!({ "input": "connected", "association": association.0 }),
        SignalInput::Bytes { association, bytes } => {
            json!({ "input": "bytes", "association": association.0, "payload": hex::encode(bytes) })
        }
        SignalInput::Closed { association, error } => {
            json!({ "input": "closed", "association": association.0, "error": error })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_become_lines_that_can_be_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("record.jsonl");
        let mut record = Record::open(&path, 7).unwrap();
        let bytes = vec![0x4e, 0x04];
        record.write(Now::default(), &SignalInput::Bytes { association: netserv_gist::AssociationId(3), bytes });
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines[0]["seed"], 7);
        assert_eq!((lines[1]["input"].as_str(), lines[1]["payload"].as_str()), (Some("bytes"), Some("4e04")));
    }

    #[test]
    fn a_recording_ends_at_its_bound() {
        let dir = tempfile::tempdir().unwrap();
        let mut record = Record::open(&dir.path().join("record.jsonl"), 7).unwrap();
        record.written = RECORD_BYTES_MAX;
        record.write(Now::default(), &SignalInput::Connected { association: netserv_gist::AssociationId(3) });
        assert!(record.out.is_none());
    }
}
