// SPDX-License-Identifier: Apache-2.0
//! A module's state on its way from one node to another: its kv entries, and what its parts say
//! themselves.
//!
//! Numbers are big-endian and of a fixed width, so that nodes of any processor read what any other wrote:
//!
//! ```text
//! 8   "NSSTATE", then 1, the version of this form
//! 4   version of the module's state (`state-schema`)
//! 2   length of the module's name, and the name
//! 4   number of parts; of each 1 byte for its kind, 4 for its length, and its bytes; kinds ascend
//! 4   number of entries; of each 2 bytes for its key's length, the key, 4 for its value's length, the value; keys ascend
//! 32  SHA-256 of all before
//! ```
//!
//! One state has one form, so that two exports of the same state have the same digest.

use std::collections::BTreeMap;

use netserv_model::limits::STATE_BYTES_MAX;
use netserv_model::{Digest, ModuleName};
use sha2::{Digest as _, Sha256};

const MAGIC: [u8; 8] = *b"NSSTATE\x01";
const DIGEST_BYTES: usize = 32;

/// A part of a module that says something of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StatePart {
    /// What sees packets: a core module, or an OSGi bundle whatever it does.
    Packet,
    /// What takes connections: a component.
    Server,
}

impl StatePart {
    /// Returns the part in a word.
    pub fn as_str(self) -> &'static str {
        match self {
            StatePart::Packet => "packet",
            StatePart::Server => "server",
        }
    }

    fn kind(self) -> u8 {
        match self {
            StatePart::Packet => 0x01,
            StatePart::Server => 0x02,
        }
    }

    fn of_kind(kind: u8) -> Option<StatePart> {
        [StatePart::Packet, StatePart::Server].into_iter().find(|part| part.kind() == kind)
    }
}

/// A module's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleState<'a> {
    /// Whose it is.
    pub module: ModuleName,
    /// The version of its form, from the manifest's `state-schema`.
    pub schema: u32,
    /// What parts of the module say themselves.
    pub parts: BTreeMap<StatePart, &'a [u8]>,
    /// Keys with their values, in byte order of the keys.
    pub entries: Vec<(&'a [u8], &'a [u8])>,
}

/// Why bytes are no state, or not the one that is wanted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// There are more than [`STATE_BYTES_MAX`].
    #[error("a state of {0} bytes, at most {STATE_BYTES_MAX} may move")]
    TooLarge(u64),
    /// They do not begin as a state does.
    #[error("no state of a module")]
    NoState,
    /// They end too early, or not where they should.
    #[error("the state is cut off, or longer than it says")]
    Length,
    /// The digest in them is not theirs.
    #[error("the state is damaged: its digest is another one")]
    Digest,
    /// Something in them has no meaning.
    #[error("the state has {0}")]
    Malformed(&'static str),
    /// It is another module's.
    #[error("the state is of {found}, not of {wanted}")]
    OtherModule {
        /// Whose it is.
        found: ModuleName,
        /// Whose it should be.
        wanted: ModuleName,
    },
    /// It is of another version.
    #[error("the state is of schema {found}, the module's `state-schema` is {wanted}")]
    OtherSchema {
        /// Its version.
        found: u32,
        /// The version that is understood.
        wanted: u32,
    },
}

impl<'a> ModuleState<'a> {
    /// Hands the bytes of the state to `sink`, piece by piece.
    ///
    /// # Errors
    /// The first error of `sink`, or, before anything is handed to it, a state that is too large to be read.
    pub fn emit<E: From<StateError>>(&self, mut sink: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let bytes = self.length();
        if bytes > STATE_BYTES_MAX {
            return Err(StateError::TooLarge(bytes).into());
        }
        let mut digest = Sha256::new();
        let mut put = |bytes: &[u8]| {
            digest.update(bytes);
            sink(bytes)
        };
        let name = self.module.as_str().as_bytes();
        put(&MAGIC)?;
        put(&self.schema.to_be_bytes())?;
        put(&length::<2>(name))?;
        put(name)?;
        put(&count(self.parts.len()))?;
        for (part, said) in &self.parts {
            put(&[part.kind()])?;
            put(&length::<4>(said))?;
            put(said)?;
        }
        put(&count(self.entries.len()))?;
        for (key, value) in &self.entries {
            put(&length::<2>(key))?;
            put(key)?;
            put(&length::<4>(value))?;
            put(value)?;
        }
        let digest = digest.finalize();
        sink(&digest)
    }

    /// Returns the bytes of the state.
    ///
    /// # Errors
    /// [`StateError::TooLarge`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, StateError> {
        let mut bytes = Vec::new();
        self.emit(|piece| {
            bytes.extend_from_slice(piece);
            Ok::<(), StateError>(())
        })?;
        Ok(bytes)
    }

    /// Reads a state.
    ///
    /// # Errors
    /// [`StateError`] if the bytes are none.
    pub fn parse(bytes: &'a [u8]) -> Result<ModuleState<'a>, StateError> {
        if bytes.len() as u64 > STATE_BYTES_MAX {
            return Err(StateError::TooLarge(bytes.len() as u64));
        }
        if !bytes.starts_with(&MAGIC) {
            return Err(StateError::NoState);
        }
        let (said, digest) = bytes.split_last_chunk::<DIGEST_BYTES>().ok_or(StateError::Length)?;
        let mut rest = Reader(said.get(MAGIC.len()..).ok_or(StateError::Length)?);
        let schema = rest.u32()?;
        let name = rest.u16()?;
        let name = std::str::from_utf8(rest.take(name.into())?).ok().and_then(|name| name.parse().ok());
        let module = name.ok_or(StateError::Malformed("no module's name"))?;
        let mut parts = BTreeMap::new();
        for _ in 0..rest.u32()? {
            let part = StatePart::of_kind(rest.u8()?).ok_or(StateError::Malformed("a part that is not known"))?;
            if parts.last_key_value().is_some_and(|(last, _)| *last >= part) {
                return Err(StateError::Malformed("parts out of order"));
            }
            parts.insert(part, rest.long()?);
        }
        let mut entries: Vec<(&[u8], &[u8])> = Vec::new();
        for _ in 0..rest.u32()? {
            let length = rest.u16()?;
            let key = rest.take(length.into())?;
            if key.is_empty() || entries.last().is_some_and(|(last, _)| *last >= key) {
                return Err(StateError::Malformed("keys out of order"));
            }
            entries.push((key, rest.long()?));
        }
        if !rest.0.is_empty() {
            return Err(StateError::Length);
        }
        if Sha256::digest(said).as_slice() != digest {
            return Err(StateError::Digest);
        }
        Ok(ModuleState { module, schema, parts, entries })
    }

    /// Checks whose state it is, and of which version.
    ///
    /// # Errors
    /// [`StateError::OtherModule`] or [`StateError::OtherSchema`].
    pub fn check(&self, module: &ModuleName, schema: u32) -> Result<(), StateError> {
        if self.module != *module {
            return Err(StateError::OtherModule { found: self.module.clone(), wanted: module.clone() });
        }
        if self.schema != schema {
            return Err(StateError::OtherSchema { found: self.schema, wanted: schema });
        }
        Ok(())
    }

    /// Returns how many bytes the state has.
    pub fn length(&self) -> u64 {
        let parts: u64 = self.parts.values().map(|said| 5 + said.len() as u64).sum();
        let entries: u64 = self.entries.iter().map(|(key, value)| 6 + (key.len() + value.len()) as u64).sum();
        let frame = MAGIC.len() + 4 + 2 + self.module.as_str().len() + 4 + 4 + DIGEST_BYTES;
        frame as u64 + parts + entries
    }
}

/// Returns the digest of a whole state, by which requests name it.
pub fn digest_of(bytes: &[u8]) -> Digest {
    Digest(Sha256::digest(bytes).into())
}

/// Returns a length in `N` bytes.
/// All of a state that is not too large fit, as keys and names do in theirs.
fn length<const N: usize>(of: &[u8]) -> [u8; N] {
    let bytes = (of.len() as u64).to_be_bytes();
    *bytes.last_chunk().expect("a length has eight bytes")
}

fn count(of: usize) -> [u8; 4] {
    u32::try_from(of).expect("each entry takes some of a state's bytes").to_be_bytes()
}

/// What is left to read.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], StateError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(StateError::Length)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], StateError> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or(StateError::Length)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn u8(&mut self) -> Result<u8, StateError> {
        Ok(u8::from_be_bytes(self.array()?))
    }

    fn u16(&mut self) -> Result<u16, StateError> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    fn u32(&mut self) -> Result<u32, StateError> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    fn long(&mut self) -> Result<&'a [u8], StateError> {
        let length = self.u32()?;
        self.take(usize::try_from(length).map_err(|_| StateError::Length)?)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_state_has_one_form() {
        let state = example();
        let bytes = state.to_bytes().unwrap();
        assert_eq!(bytes.len() as u64, state.length());
        let expected = "4e535354415445010000000700055f2f6d6f64".replace("5f", "6e");
        assert_eq!(hex::encode(&bytes[..19]), expected);
        let rest = "00000002010000000370616302000000000000000200016100000001310002ff00000000027a7a";
        assert_eq!(hex::encode(&bytes[19..bytes.len() - 32]), rest);
        assert_eq!(ModuleState::parse(&bytes), Ok(state));
    }

    #[test]
    fn a_state_that_is_cut_off_or_damaged_is_none() {
        let whole = example().to_bytes().unwrap();
        for length in 0..whole.len() {
            assert!(ModuleState::parse(&whole[..length]).is_err(), "{length}");
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x40;
            assert!(ModuleState::parse(&damaged).is_err(), "{at}");
        }
        let longer = [whole.as_slice(), b"x"].concat();
        assert!(ModuleState::parse(&longer).is_err());
        assert_eq!(ModuleState::parse(b""), Err(StateError::NoState));
    }

    /// Method: the digest is right, what it is of is not.
    #[test]
    fn what_means_nothing_is_refused_whatever_its_digest() {
        let head = |more: &[u8]| {
            let mut bytes = [MAGIC.as_slice(), &7_u32.to_be_bytes(), b"\0\x05n/mod", more].concat();
            let digest = Sha256::digest(&bytes);
            bytes.extend_from_slice(&digest);
            bytes
        };
        let refused = |more: &[u8]| ModuleState::parse(&head(more)).unwrap_err();
        assert!(ModuleState::parse(&head(b"\0\0\0\0\0\0\0\0")).is_ok());
        assert_eq!(refused(b"\0\0\0\x01\x03\0\0\0\0\0\0\0\0"), StateError::Malformed("a part that is not known"));
        let twice = b"\0\0\0\x02\x01\0\0\0\0\x01\0\0\0\0\0\0\0\0";
        assert_eq!(refused(twice), StateError::Malformed("parts out of order"));
        let twice = b"\0\0\0\0\0\0\0\x02\0\x01a\0\0\0\0\0\x01a\0\0\0\0";
        assert_eq!(refused(twice), StateError::Malformed("keys out of order"));
        assert_eq!(refused(b"\0\0\0\0\0\0\0\x01\0\0\0\0\0\0"), StateError::Malformed("keys out of order"));
        assert_eq!(refused(b"\0\0\0\0\xff\xff\xff\xff"), StateError::Length);
        assert_eq!(refused(b"\0\0\0\x01\x01\xff\xff\xff\xff"), StateError::Length);
        assert_eq!(refused(b"\0\0\0\0\0\0\0\0more"), StateError::Length);
    }

    #[test]
    fn a_state_is_for_its_module_and_schema() {
        let state = example();
        assert_eq!(state.check(&state.module, 7), Ok(()));
        assert_eq!(state.check(&state.module, 8), Err(StateError::OtherSchema { found: 7, wanted: 8 }));
        let wanted: ModuleName = "n/other".parse().unwrap();
        let refused = state.check(&wanted, 7).unwrap_err();
        assert_eq!(refused.to_string(), "the state is of n/mod, not of n/other");
    }

    #[test]
    fn a_state_has_at_most_64_mib() {
        let most = usize::try_from(STATE_BYTES_MAX).unwrap();
        let empty = ModuleState { parts: BTreeMap::new(), entries: Vec::new(), ..example() };
        let room = most - usize::try_from(empty.length()).unwrap() - 5;
        let said = vec![0; room + 1];
        let with = |said| ModuleState { parts: BTreeMap::from([(StatePart::Packet, said)]), ..empty.clone() };
        let bytes = with(&said[..room]).to_bytes().unwrap();
        assert_eq!(bytes.len(), most);
        assert!(ModuleState::parse(&bytes).is_ok());
        assert_eq!(with(&said).to_bytes(), Err(StateError::TooLarge(STATE_BYTES_MAX + 1)));
        let longer = [bytes.as_slice(), b"x"].concat();
        assert_eq!(ModuleState::parse(&longer), Err(StateError::TooLarge(STATE_BYTES_MAX + 1)));
    }

    proptest! {
        #[test]
        fn states_round_trip(
            entries in proptest::collection::btree_map(
                proptest::collection::vec(any::<u8>(), 1..20), proptest::collection::vec(any::<u8>(), 0..50), 0..20),
            packet in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..100)),
            schema in any::<u32>(),
        ) {
            let parts = packet.as_deref().map(|said| (StatePart::Packet, said)).into_iter().collect();
            let entries = entries.iter().map(|(key, value)| (key.as_slice(), value.as_slice())).collect();
            let state = ModuleState { module: "n/mod".parse().unwrap(), schema, parts, entries };
            let bytes = state.to_bytes().unwrap();
            prop_assert_eq!(ModuleState::parse(&bytes), Ok(state));
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let bytes = [MAGIC.as_slice(), &bytes].concat();
            prop_assert!(ModuleState::parse(&bytes).is_err());
        }
    }

    fn example() -> ModuleState<'static> {
        ModuleState {
            module: "n/mod".parse().unwrap(),
            schema: 7,
            parts: BTreeMap::from([(StatePart::Packet, b"pac".as_slice()), (StatePart::Server, b"")]),
            entries: vec![(b"a", b"1"), (b"\xff\0", b"zz")],
        }
    }
}
