// SPDX-License-Identifier: Apache-2.0
//! `netserv:kv/store`: the same entries as those of the packet part.

use netserv_worker_base::error::HostError;
use netserv_worker_base::storage::limits::KV_KEYS_MAX;
use wasmtime::component::{HasSelf, Linker};

use crate::state::ServerState;

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../../wit/deps/netserv-kv",
        inline: "package netserv:host-kv; world host { import netserv:kv/store@1.0.0; }",
        imports: { default: trappable },
    });
}

use bindings::netserv::kv::store::{self as wit, Error};

type Answer<T> = wasmtime::Result<Result<T, Error>>;

/// Adds the interface to a linker.
///
/// # Errors
/// It is there already.
pub fn add_to_linker(linker: &mut Linker<ServerState>) -> wasmtime::Result<()> {
    wit::add_to_linker::<_, HasSelf<ServerState>>(linker, |state| state)
}

impl wit::Host for ServerState {
    fn get(&mut self, key: Vec<u8>) -> Answer<Option<Vec<u8>>> {
        Ok(Ok(self.module.kv.lock().value(&key).map(<[u8]>::to_vec)))
    }

    fn set(&mut self, key: Vec<u8>, value: Vec<u8>) -> Answer<()> {
        Ok(self.module.kv.lock().set(&key, &value, &self.module.limits).map_err(Error::from))
    }

    fn delete(&mut self, key: Vec<u8>) -> Answer<bool> {
        Ok(Ok(self.module.kv.lock().delete(&key).is_ok()))
    }

    fn keys(&mut self, after: Option<Vec<u8>>, max: u32) -> Answer<Vec<Vec<u8>>> {
        let store = self.module.kv.lock();
        let max = usize::try_from(max.min(KV_KEYS_MAX))?;
        Ok(Ok(store.keys(&after.unwrap_or_default()).take(max).map(<[u8]>::to_vec).collect()))
    }

    fn increment(&mut self, key: Vec<u8>, delta: i64) -> Answer<i64> {
        Ok(self.module.kv.lock().increment(&key, delta, &self.module.limits).map_err(Error::from))
    }

    fn compare_and_set(&mut self, key: Vec<u8>, old: Option<Vec<u8>>, new: Option<Vec<u8>>) -> Answer<bool> {
        let mut store = self.module.kv.lock();
        Ok(store.compare_and_set(&key, old.as_deref(), new.as_deref(), &self.module.limits).map_err(Error::from))
    }
}

impl From<HostError> for Error {
    fn from(error: HostError) -> Error {
        match error {
            HostError::Quota => Error::Quota,
            HostError::TooLarge => Error::TooLarge,
            HostError::Invalid | HostError::NotFound | HostError::BadAddress => Error::Invalid,
        }
    }
}

#[cfg(test)]
mod tests {
    use wit::Host as _;

    use super::*;
    use crate::blocks::testing::state;
    use crate::module::Shared;

    #[test]
    fn entries_are_those_of_the_packet_part() {
        let mut state = state(Shared::for_tests);
        let limits = state.module.limits;
        state.module.kv.lock().set(b"packets", b"1", &limits).unwrap();
        assert_eq!(state.get(b"packets".to_vec()).unwrap().unwrap(), Some(b"1".to_vec()));
        state.set(b"server".to_vec(), b"2".to_vec()).unwrap().unwrap();
        assert_eq!(state.module.kv.lock().value(b"server"), Some(&b"2"[..]));
        assert_eq!(state.increment(b"n".to_vec(), 5).unwrap().unwrap(), 5);
        let swap = |state: &mut ServerState, old: &[u8]| {
            state.compare_and_set(b"server".to_vec(), Some(old.to_vec()), None).unwrap().unwrap()
        };
        assert_eq!((swap(&mut state, b"3"), swap(&mut state, b"2")), (false, true));
        assert!(!state.delete(b"server".to_vec()).unwrap().unwrap());
    }

    #[test]
    fn lists_and_entries_are_bounded() {
        let mut state = state(Shared::for_tests);
        for key in 0..KV_KEYS_MAX + 5 {
            state.set(key.to_be_bytes().to_vec(), vec![]).unwrap().unwrap();
        }
        let all = state.keys(None, u32::MAX).unwrap().unwrap();
        assert_eq!(all.len(), KV_KEYS_MAX as usize);
        let rest = state.keys(all.last().cloned(), u32::MAX).unwrap().unwrap();
        assert_eq!((rest.len(), &rest[0][..]), (5, &KV_KEYS_MAX.to_be_bytes()[..]));
        assert!(matches!(state.set(vec![], vec![]).unwrap(), Err(Error::Invalid)));
        assert!(matches!(state.set(vec![1; 257], vec![]).unwrap(), Err(Error::TooLarge)));
        assert!(matches!(state.increment(vec![1], 1).unwrap(), Ok(1)));
        state.set(vec![1], vec![1]).unwrap().unwrap();
        assert!(matches!(state.increment(vec![1], 1).unwrap(), Err(Error::Invalid)));
        let limits = state.module.limits;
        let value = vec![0; 65_536];
        let refused = (0..=limits.kv_bytes / 65_536)
            .find_map(|key| state.set(vec![9, u8::try_from(key).unwrap()], value.clone()).unwrap().err());
        assert!(matches!(refused, Some(Error::Quota)));
    }
}
