// SPDX-License-Identifier: Apache-2.0
//! The state of a module in the descriptors by which it comes from the node and goes to it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write as _};
use std::os::unix::fs::FileExt as _;

use netserv_model::limits::STATE_BYTES_MAX;
use netserv_model::manifest::ModuleLimits;
use netserv_model::{ModuleName, Refusal, RefusalKind};
use netserv_wire::state::{ModuleState, StateError, StatePart};

use super::kv::SharedKv;
use crate::storage::journal::Entries;

/// Bytes that are written at once.
const PIECE_BYTES: usize = 64 * 1024;

/// What parts of a module say of its state.
#[derive(Debug, Default)]
pub struct Said {
    /// The part that sees packets, or the bundle.
    pub packet: Option<Vec<u8>>,
    /// The part that takes connections.
    pub server: Option<Vec<u8>>,
}

/// Reads the state that a module is to begin with: its entries, and what its parts are told.
///
/// # Errors
/// [`RefusalKind::StateRefused`]: it is damaged, too large, another module's or of another schema.
pub fn read(file: &File, module: &ModuleName, schema: u32) -> Result<(Entries, Said), Refusal> {
    let mut bytes = Vec::new();
    let io = |error: io::Error| Refusal::new(RefusalKind::NodeFailed, format!("cannot read the state: {error}"));
    FromStart { file, at: 0 }.take(STATE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(io)?;
    let state = ModuleState::parse(&bytes).and_then(|state| state.check(module, schema).map(|()| state));
    let ModuleState { parts, entries, .. } = state.map_err(|error| refused(&error.to_string()))?;
    let said = |part| parts.get(&part).map(|said| said.to_vec());
    let said = Said { packet: said(StatePart::Packet), server: said(StatePart::Server) };
    Ok((entries.into_iter().map(|(key, value)| (key.into(), value.into())).collect(), said))
}

/// Reads a file from its beginning, wherever others with the same descriptor are.
struct FromStart<'a> {
    file: &'a File,
    at: u64,
}

impl Read for FromStart<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(into, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// Writes a module's state into a pipe, whose reader bounds how long this takes: its entries as they are now, and what its
/// parts said.
///
/// # Errors
/// [`RefusalKind::StateRefused`] if it is too large, [`RefusalKind::NodeFailed`] if it cannot be written.
pub fn write(pipe: File, module: &ModuleName, schema: u32, kv: &SharedKv, said: &Said) -> Result<(), Refusal> {
    let parts = [(StatePart::Packet, &said.packet), (StatePart::Server, &said.server)];
    let parts: BTreeMap<StatePart, &[u8]> =
        parts.into_iter().filter_map(|(part, said)| Some((part, said.as_deref()?))).collect();
    let mut out = BufWriter::with_capacity(PIECE_BYTES, pipe);
    let kv = kv.lock();
    let state = ModuleState { module: module.clone(), schema, parts, entries: kv.entries().collect() };
    let written = state.emit(|piece| out.write_all(piece).map_err(WriteError::Io));
    written.and_then(|()| out.flush().map_err(WriteError::Io)).map_err(|error| match error {
        WriteError::State(error) => refused(&error.to_string()),
        WriteError::Io(error) => Refusal::new(RefusalKind::NodeFailed, format!("cannot write the state: {error}")),
    })
}

/// Gives a module the entries of a state in the place of its own, which are returned.
///
/// # Errors
/// [`RefusalKind::StateRefused`]: the module may not have as many or as long ones; it keeps its own then.
pub fn give(kv: &SharedKv, entries: Entries, limits: &ModuleLimits) -> Result<Entries, Refusal> {
    let (count, bytes) = (entries.len(), entries.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>());
    kv.lock().replace(entries, limits).map_err(|error| {
        let (entries_max, bytes_max) = (limits.kv_entries, limits.kv_bytes);
        refused(&format!(
            "{error}: {count} entries of {bytes} bytes do not fit the module's {entries_max} of {bytes_max} bytes, or its user's room"
        ))
    })
}

fn refused(detail: &str) -> Refusal {
    Refusal::new(RefusalKind::StateRefused, detail)
}

enum WriteError {
    State(StateError),
    Io(io::Error),
}

impl From<StateError> for WriteError {
    fn from(error: StateError) -> WriteError {
        WriteError::State(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_as_it_was_written() {
        let (kv, limits) = (SharedKv::default(), ModuleLimits::default());
        kv.lock().set(b"b", b"2", &limits).unwrap();
        kv.lock().set(b"a", b"1", &limits).unwrap();
        let said = Said { packet: Some(b"said".to_vec()), server: None };
        let (file, module) = (tempfile::tempfile().unwrap(), name());
        write(file.try_clone().unwrap(), &module, 3, &kv, &said).unwrap();
        let (entries, said) = read(&file, &module, 3).unwrap();
        assert_eq!((said.packet.as_deref(), said.server), (Some(b"said".as_slice()), None));
        kv.lock().set(b"c", b"3", &limits).unwrap();
        let before = give(&kv, entries, &limits).unwrap();
        assert_eq!((before.len(), kv.lock().len()), (3, 2));
        assert_eq!(kv.lock().value(b"b"), Some(b"2".as_slice()));
        kv.lock().put_back(before).unwrap();
        assert_eq!(kv.lock().value(b"c"), Some(b"3".as_slice()));
        let refused = read(&file, &module, 4).unwrap_err();
        assert_eq!(refused.kind, RefusalKind::StateRefused);
        assert!(refused.detail.contains("schema 3"), "{refused}");
    }

    #[test]
    fn a_state_that_does_not_fit_leaves_the_module_what_it_has() {
        let (kv, limits) = (SharedKv::default(), ModuleLimits::default());
        kv.lock().set(b"own", b"1", &limits).unwrap();
        let few = ModuleLimits { kv_entries: 1, ..limits };
        let entries = |count: u8| (0..count).map(|key| ([key].into(), [].into())).collect::<Entries>();
        let refused = give(&kv, entries(2), &few).unwrap_err();
        assert!(refused.detail.contains("2 entries of 2 bytes"), "{refused}");
        let long: Entries = [(b"a".as_slice().into(), vec![0; 65_537].into())].into();
        assert!(give(&kv, long, &limits).is_err());
        assert_eq!(kv.lock().len(), 1);
        assert_eq!(kv.lock().value(b"own"), Some(b"1".as_slice()));
        assert!(give(&kv, entries(1), &few).is_ok());
    }

    #[test]
    fn what_is_no_state_is_refused() {
        for bytes in [b"".as_slice(), b"NSSTATE\x01", b"no state at all"] {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(bytes).unwrap();
            assert_eq!(read(&file, &name(), 1).unwrap_err().kind, RefusalKind::StateRefused);
        }
        let long = tempfile::tempfile().unwrap();
        long.set_len(STATE_BYTES_MAX + 1).unwrap();
        let refused = read(&long, &name(), 1).unwrap_err();
        assert!(refused.detail.contains("at most 67108864"), "{refused}");
    }

    fn name() -> ModuleName {
        "example.org/m".parse().unwrap()
    }
}
