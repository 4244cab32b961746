// SPDX-License-Identifier: Apache-2.0
//! `netserv:kv/store`: the same entries as those of the packet part.

use wasmtime::component::{HasSelf, Linker};

use crate::error::HostError;
use crate::server::state::ServerState;
use crate::storage::limits::KV_KEYS_MAX;

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit",
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
