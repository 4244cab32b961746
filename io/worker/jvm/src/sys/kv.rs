// SPDX-License-Identifier: Apache-2.0
//! Kv state of bundles: the natives of `org.netserv.host.KvNative`. None waits for the disk but `closeFile`.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use jni_sys::{JNIEnv, jboolean, jbyteArray, jclass, jint, jlong};
use netserv_model::ModuleName;
use netserv_model::limits::MODULE_NAME_CHARS_MAX;
use netserv_model::manifest::ModuleLimits;
use netserv_worker_base::clock;
use netserv_worker_base::error::HostError;
use netserv_worker_base::limits::{KV_KEY_BYTES_MAX, KV_VALUE_BYTES_MAX};
use netserv_worker_base::shared::kv::{KvStore, KvStores, SharedKv};
use netserv_worker_base::storage::StoreFile;
use netserv_worker_base::storage::limits::KV_CLOSE_TIME_MAX;

use super::call::{Bytes, Failure, Text, answer, call, natives};
use super::env::{Env, Thrown};
use super::natives::method;
use crate::handles::Handles;
use crate::limits::JAVA_PATH_UNITS_MAX;

/// Bytes of a key that are looked at. No key has so many, so that cut ones are found as little as whole ones.
const KEY_BYTES_SEEN: usize = KV_KEY_BYTES_MAX + 1;

/// One, but for tests.
static FILES: Handles<Mutex<KvStores>> = Handles::new();
static STATES: Handles<KvState> = Handles::new();
static ROOM: OnceLock<u64> = OnceLock::new();

/// What one module has of its state.
struct KvState {
    store: SharedKv,
    quota: ModuleLimits,
    file: Arc<Mutex<KvStores>>,
}

/// Bounds what all modules together keep in files that are opened from here on.
pub fn set_room(bytes: u64) {
    let _ = ROOM.set(bytes);
}

/// Forgets state that nobody has used for a while, or whose room is needed. Returns what there is to say.
pub fn upkeep() -> Vec<String> {
    let tend = |file: &Arc<Mutex<KvStores>>| {
        let mut stores = lock(file);
        stores.handle_timeout(clock::monotonic());
        stores.take_reports()
    };
    FILES.all().iter().flat_map(tend).collect()
}

/// Returns the state of a module; nothing before Java opened the file.
pub fn store_of(name: &ModuleName, schema: u32) -> Option<SharedKv> {
    FILES.all().first().map(|file| lock(file).open(name, schema))
}

/// Returns how many times files could not be read or written.
pub fn failures() -> u64 {
    FILES.all().iter().map(|file| lock(file).failures()).sum()
}

natives! { c"org/netserv/host/KvNative";
    open_file = c"openFile", c"(Ljava/lang/String;)J", (env, path: Text) -> jlong {
        let file = StoreFile::open(Path::new(&path.get(env, JAVA_PATH_UNITS_MAX)));
        let stores = KvStores::in_file(file).within(ROOM.get().copied().unwrap_or(u64::MAX));
        Ok(FILES.keep(Mutex::new(stores)).unwrap_or(0))
    }
    close_file = c"closeFile", c"(J)V", (env, file: jlong) -> () {
        if let Some(file) = FILES.release(file) {
            lock(&file).close(KV_CLOSE_TIME_MAX);
        }
        Ok(())
    }
    open = c"open", c"(JLjava/lang/String;IJJ)J",
        (env, file: jlong, name: Text, schema: jint, entries: jlong, bytes: jlong) -> jlong
    {
        let kv_entries = u32::try_from(entries.max(0)).unwrap_or(u32::MAX);
        let quota = ModuleLimits { kv_entries, kv_bytes: u64::try_from(bytes).unwrap_or(0), ..ModuleLimits::default() };
        let name = name.get(env, MODULE_NAME_CHARS_MAX + 1).parse();
        let (Some(file), Ok(name)) = (FILES.get(file), name) else { return Ok(0) };
        let store = lock(&file).open(&name, schema.cast_unsigned());
        Ok(STATES.keep(KvState { store, quota, file }).unwrap_or(0))
    }
    close = c"close", c"(J)V", (env, state: jlong) -> () {
        if let Some(state) = STATES.release(state) {
            let file = Arc::clone(&state.file);
            drop(state);
            lock(&file).handle_timeout(clock::monotonic());
        }
        Ok(())
    }
    get = c"get", c"(J[B)[B", (env, state: jlong, key: Bytes) -> jbyteArray {
        let key = key.first(env, KEY_BYTES_SEEN)?;
        let value = look(state, |store| store.value(&key).map(<[u8]>::to_vec));
        answer(env, value.flatten().as_deref())
    }
    copy = c"copy", c"(J[B[B)I", (env, state: jlong, key: Bytes, into: Bytes) -> jint {
        let (key, room) = (key.first(env, KEY_BYTES_SEEN)?, into.length(env)?);
        look(state, |store| {
            let Some(value) = store.value(&key) else { return Ok(-1) };
            if value.len() <= room {
                into.put(env, 0, value)?;
            }
            Ok(jint::try_from(value.len()).unwrap_or(-1))
        })
        .unwrap_or(Ok(-1))
    }
    set = c"set", c"(J[B[B)V", (env, state: jlong, key: Bytes, value: Bytes) -> () {
        let (key, value) = (key.whole(env, KV_KEY_BYTES_MAX)?, value.whole(env, KV_VALUE_BYTES_MAX)?);
        change(state, |store, quota| store.set(&key, &value, quota))
    }
    delete = c"delete", c"(J[B)Z", (env, state: jlong, key: Bytes) -> jboolean {
        let key = key.first(env, KEY_BYTES_SEEN)?;
        Ok(change(state, |store, _| store.delete(&key)).is_ok())
    }
    increment = c"increment", c"(J[BJ)J", (env, state: jlong, key: Bytes, delta: jlong) -> jlong {
        let key = key.whole(env, KV_KEY_BYTES_MAX)?;
        change(state, |store, quota| store.increment(&key, delta, quota))
    }
    compare_and_set = c"compareAndSet", c"(J[B[B[B)Z",
        (env, state: jlong, key: Bytes, expected: Bytes, value: Bytes) -> jboolean
    {
        let key = key.whole(env, KV_KEY_BYTES_MAX)?;
        let value = value.optional().map(|value| value.whole(env, KV_VALUE_BYTES_MAX)).transpose()?;
        // One byte more is more than any value has.
        let old = expected.optional().map(|old| old.first(env, KV_VALUE_BYTES_MAX + 1)).transpose()?;
        change(state, |store, quota| store.compare_and_set(&key, old.as_deref(), value.as_deref(), quota))
    }
    next = c"next", c"(J[B)[B", (env, state: jlong, key: Bytes) -> jbyteArray {
        let key = key.first(env, KEY_BYTES_SEEN)?;
        let next = look(state, |store| store.next(&key).map(<[u8]>::to_vec));
        answer(env, next.flatten().as_deref())
    }
    size = c"size", c"(J)I", (env, state: jlong) -> jint {
        Ok(look(state, |store| jint::try_from(store.len()).unwrap_or(jint::MAX)).unwrap_or(0))
    }
}

fn look<T>(state: jlong, work: impl FnOnce(&KvStore) -> T) -> Option<T> {
    STATES.get(state).map(|state| work(&state.store.lock()))
}

/// Changes a state, which those of unloaded modules are not.
fn change<T>(
    state: jlong,
    work: impl FnOnce(&mut KvStore, &ModuleLimits) -> Result<T, HostError>,
) -> Result<T, Failure> {
    let state = STATES.get(state).ok_or(HostError::Quota)?;
    Ok(work(&mut state.store.lock(), &state.quota)?)
}

fn lock(file: &Mutex<KvStores>) -> MutexGuard<'_, KvStores> {
    file.lock().unwrap_or_else(PoisonError::into_inner)
}
