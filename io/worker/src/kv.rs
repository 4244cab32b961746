// SPDX-License-Identifier: Apache-2.0
//! Kv state: what a module remembers beyond its own replacement.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use netserv_model::manifest::ModuleLimits;
use netserv_model::{Instant, ModuleName};

use crate::error::HostError;
use crate::limits;

/// One module's state. Iteration is in byte order of the keys.
#[derive(Debug, Default)]
pub struct KvStore {
    entries: BTreeMap<Box<[u8]>, Box<[u8]>>,
    bytes: u64,
}

impl KvStore {
    /// Returns the value of a key.
    pub fn value(&self, key: &[u8]) -> Option<&[u8]> {
        self.entries.get(key).map(|value| &**value)
    }

    /// Stores a value.
    ///
    /// # Errors
    /// An empty or long key, a long value, or more entries or bytes than `quota` allows; the store is as before then.
    pub fn set(&mut self, key: &[u8], value: &[u8], quota: &ModuleLimits) -> Result<(), HostError> {
        check_key(key)?;
        if value.len() > limits::KV_VALUE_BYTES_MAX {
            return Err(HostError::TooLarge);
        }
        let before = self.entries.get(key).map(|old| size(key, old));
        let after = self.bytes - before.unwrap_or(0) + size(key, value);
        let entries_full = before.is_none() && self.entries.len() >= quota.kv_entries as usize;
        if entries_full || (after > quota.kv_bytes && after > self.bytes) {
            return Err(HostError::Quota);
        }
        match self.entries.get_mut(key) {
            Some(old) if old.len() == value.len() => old.copy_from_slice(value),
            Some(old) => *old = value.into(),
            None => {
                self.entries.insert(key.into(), value.into());
            }
        }
        self.bytes = after;
        Ok(())
    }

    /// Forgets a key.
    ///
    /// # Errors
    /// There is no such key.
    pub fn delete(&mut self, key: &[u8]) -> Result<(), HostError> {
        let value = self.entries.remove(key).ok_or(HostError::NotFound)?;
        self.bytes -= size(key, &value);
        Ok(())
    }

    /// Returns the first key after `key`; the first of all after the empty key.
    pub fn next(&self, key: &[u8]) -> Option<&[u8]> {
        let range = (Bound::Excluded(key), Bound::Unbounded);
        self.entries.range::<[u8], _>(range).next().map(|(key, _)| &**key)
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// One module's state, as its packet part and its server part share it.
#[derive(Clone, Debug, Default)]
pub struct SharedKv(Arc<Mutex<KvStore>>);

impl SharedKv {
    /// Returns the state, which nobody else uses meanwhile: let go of it before anything that waits.
    pub fn lock(&self) -> MutexGuard<'_, KvStore> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether nobody else has the state.
    fn is_left(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

/// The state of all modules of the container, by name and schema version.
#[derive(Debug, Default)]
pub struct KvStores {
    stores: BTreeMap<(ModuleName, u32), Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    store: SharedKv,
    left: Option<Instant>,
}

impl KvStores {
    /// Returns the state of a module, which all versions of the same schema share.
    pub fn open(&mut self, name: &ModuleName, schema: u32) -> SharedKv {
        let kept = self.stores.entry((name.clone(), schema)).or_default();
        kept.left = None;
        kept.store.clone()
    }

    /// Forgets state that no module has used for a while. To be called after modules were unloaded, and at
    /// [`KvStores::poll_timeout`].
    pub fn handle_timeout(&mut self, now: Instant) {
        for kept in self.stores.values_mut().filter(|kept| kept.store.is_left()) {
            kept.left.get_or_insert(now);
        }
        self.stores.retain(|_, kept| kept.left.is_none_or(|left| now.since(left) < limits::KV_KEPT));
        let mut left: Vec<_> =
            self.stores.iter().filter_map(|(key, kept)| kept.left.map(|left| (left, key.clone()))).collect();
        left.sort();
        for (_, key) in left.iter().take(left.len().saturating_sub(limits::KV_KEPT_MAX)) {
            self.stores.remove(key);
        }
    }

    /// Returns when state is next to be forgotten.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.stores.values().filter_map(|kept| kept.left).min().map(|left| left + limits::KV_KEPT)
    }
}

fn check_key(key: &[u8]) -> Result<(), HostError> {
    match key.len() {
        0 => Err(HostError::Invalid),
        1..=limits::KV_KEY_BYTES_MAX => Ok(()),
        _ => Err(HostError::TooLarge),
    }
}

fn size(key: &[u8], value: &[u8]) -> u64 {
    (key.len() + value.len()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota(entries: u32, bytes: u64) -> ModuleLimits {
        ModuleLimits { kv_entries: entries, kv_bytes: bytes, ..ModuleLimits::default() }
    }

    #[test]
    fn entries_and_bytes_are_bounded() {
        let mut store = KvStore::default();
        let quota = quota(2, 10);
        assert_eq!(store.set(b"a", b"1234", &quota), Ok(()));
        assert_eq!(store.set(b"b", b"12345", &quota), Err(HostError::Quota));
        assert_eq!(store.set(b"b", b"1234", &quota), Ok(()));
        assert_eq!(store.set(b"c", b"", &quota), Err(HostError::Quota));
        assert_eq!(store.set(b"a", b"", &quota), Ok(()));
        assert_eq!(store.set(b"b", b"12345678", &quota), Ok(()));
        assert_eq!(store.set(b"b", b"123456789", &quota), Err(HostError::Quota));
        assert_eq!(store.value(b"b"), Some(&b"12345678"[..]));
    }

    #[test]
    fn a_store_over_a_new_quota_may_shrink_but_not_grow() {
        let mut store = KvStore::default();
        store.set(b"a", b"123456789", &quota(9, 10)).unwrap();
        assert_eq!(store.set(b"a", b"12345678", &quota(9, 5)), Ok(()));
        assert_eq!(store.set(b"a", b"123456789", &quota(9, 5)), Err(HostError::Quota));
    }

    #[test]
    fn keys_and_values_are_bounded() {
        let mut store = KvStore::default();
        let quota = ModuleLimits::default();
        assert_eq!(store.set(b"", b"", &quota), Err(HostError::Invalid));
        assert_eq!(store.set(&[0; limits::KV_KEY_BYTES_MAX], b"", &quota), Ok(()));
        assert_eq!(store.set(&[0; limits::KV_KEY_BYTES_MAX + 1], b"", &quota), Err(HostError::TooLarge));
        assert_eq!(store.set(b"a", &[0; limits::KV_VALUE_BYTES_MAX], &quota), Ok(()));
        assert_eq!(store.set(b"a", &[0; limits::KV_VALUE_BYTES_MAX + 1], &quota), Err(HostError::TooLarge));
    }

    #[test]
    fn iteration_goes_by_key() {
        let mut store = KvStore::default();
        for key in [&b"b"[..], b"a", b"ab"] {
            store.set(key, b"", &ModuleLimits::default()).unwrap();
        }
        let mut keys = vec![store.next(b"").unwrap()];
        while let Some(key) = store.next(keys[keys.len() - 1]) {
            keys.push(key);
        }
        assert_eq!(keys, [&b"a"[..], b"ab", b"b"]);
        assert_eq!(store.delete(b"ab"), Ok(()));
        assert_eq!(store.delete(b"ab"), Err(HostError::NotFound));
        assert_eq!(store.next(b"a"), Some(&b"b"[..]));
    }

    #[test]
    fn state_outlives_its_module_by_a_minute() {
        let name: ModuleName = "example.org/a".parse().unwrap();
        let mut stores = KvStores::default();
        let store = stores.open(&name, 1);
        store.lock().set(b"a", b"1", &ModuleLimits::default()).unwrap();
        stores.handle_timeout(Instant::from_millis(0));
        assert_eq!(stores.poll_timeout(), None);
        drop(store);
        stores.handle_timeout(Instant::from_millis(1000));
        assert_eq!(stores.poll_timeout(), Some(Instant::from_millis(61_000)));
        assert_eq!(stores.open(&name, 1).lock().len(), 1);
        assert!(stores.open(&name, 2).lock().is_empty());
        stores.handle_timeout(Instant::from_millis(2000));
        stores.handle_timeout(Instant::from_millis(62_000));
        assert!(stores.open(&name, 1).lock().is_empty());
    }

    #[test]
    fn state_without_a_module_is_bounded() {
        let mut stores = KvStores::default();
        for n in 0..=limits::KV_KEPT_MAX {
            let store = stores.open(&format!("example.org/{n}").parse().unwrap(), 1);
            store.lock().set(b"a", b"1", &ModuleLimits::default()).unwrap();
            drop(store);
            stores.handle_timeout(Instant::from_millis(n as u64));
        }
        assert!(stores.open(&"example.org/0".parse().unwrap(), 1).lock().is_empty());
        assert!(!stores.open(&"example.org/1".parse().unwrap(), 1).lock().is_empty());
    }
}
