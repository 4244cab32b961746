// SPDX-License-Identifier: Apache-2.0
//! The cache of bundles: the natives of `org.netserv.host.cache.CacheNative`, which wait for the disk.

use std::path::Path;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, PoisonError};

use jni_sys::{JNIEnv, jboolean, jclass, jint, jlong, jobjectArray};
use netserv_model::limits::MODULE_NAME_CHARS_MAX;
use netserv_worker_base::clock;
use netserv_worker_base::storage::StoreFile;
use netserv_worker_base::storage::cache::{Cache, CacheError, Details, Entry, Share, Writer};
use netserv_worker_base::storage::limits::{CACHE_KEY_BYTES_MAX, CACHE_TEXT_BYTES_MAX};

use super::call::{Bytes, Failure, Text, call, natives};
use super::env::{Env, Thrown};
use super::natives::method;
use crate::handles::Handles;
use crate::limits::{JAVA_PATH_UNITS_MAX, JAVA_PIECE_BYTES_MAX};

/// Characters of a key that are looked at. No key has so many, so that cut ones are none either.
const KEY_UNITS_SEEN: usize = CACHE_KEY_BYTES_MAX + 1;
/// Characters of a media type or a validator that are looked at, of which the same is true.
const META_UNITS_SEEN: usize = CACHE_TEXT_BYTES_MAX + 1;

/// One, but for tests.
static FILES: Handles<Arc<Cache>> = Handles::new();
static SHARES: Handles<Arc<Share>> = Handles::new();
static READ: Handles<(Arc<Share>, Arc<Entry>)> = Handles::new();
/// Nothing once an entry is finished.
static WRITTEN: Handles<Mutex<Option<Writer>>> = Handles::new();

/// Returns how many times files could not be read or written, or were damaged.
pub fn failures() -> u64 {
    FILES.all().iter().map(|cache| cache.failures()).sum()
}

natives! { c"org/netserv/host/cache/CacheNative";
    open_file = c"openFile", c"(Ljava/lang/String;)J", (env, path: Text) -> jlong {
        let path = path.get(env, JAVA_PATH_UNITS_MAX);
        let opened = StoreFile::try_open(Path::new(&path)).map_err(CacheError::from).and_then(Cache::open);
        let cache = opened.map_err(|error| Failure::Io(format!("the node gives no room for a cache: {error}")))?;
        Ok(FILES.keep(cache).unwrap_or(0))
    }
    close_file = c"closeFile", c"(J)V", (env, file: jlong) -> () {
        drop(FILES.release(file));
        Ok(())
    }
    join = c"join", c"(JLjava/lang/String;)J", (env, file: jlong, module: Text) -> jlong {
        let module = module.get(env, MODULE_NAME_CHARS_MAX + 1).parse();
        let (Some(cache), Ok(module)) = (FILES.get(file), module) else { return Ok(0) };
        Ok(SHARES.keep(Arc::new(cache.share(&module))).unwrap_or(0))
    }
    leave = c"leave", c"(J)V", (env, share: jlong) -> () {
        drop(SHARES.release(share));
        Ok(())
    }
    stat = c"stat", c"(JLjava/lang/String;)[Ljava/lang/String;", (env, share: jlong, key: Text) -> jobjectArray {
        let key = key.get(env, KEY_UNITS_SEEN);
        told(env, SHARES.get(share).and_then(|share| share.stat(&key)))
    }
    get = c"get", c"(JLjava/lang/String;)J", (env, share: jlong, key: Text) -> jlong {
        let Some(share) = SHARES.get(share) else { return Ok(0) };
        let Some(entry) = share.get(&key.get(env, KEY_UNITS_SEEN)) else { return Ok(0) };
        Ok(READ.keep((Arc::clone(&share), entry)).ok_or(CacheError::Busy)?)
    }
    stat_of = c"statOf", c"(J)[Ljava/lang/String;", (env, entry: jlong) -> jobjectArray {
        told(env, READ.get(entry).map(|read| Arc::clone(&read.1)))
    }
    read = c"read", c"(JJ[BII)I", (env, entry: jlong, at: jlong, into: Bytes, start: jint, length: jint) -> jint {
        let most = usize::try_from(length).unwrap_or(0).min(JAVA_PIECE_BYTES_MAX);
        let read = READ.get(entry).ok_or_else(closed)?;
        let bytes = read.0.read(&read.1, at.cast_unsigned(), most).map_err(io)?.bytes;
        into.put(env, start, &bytes)?;
        Ok(jint::try_from(bytes.len()).unwrap_or(0))
    }
    begin = c"begin", c"(JLjava/lang/String;Ljava/lang/String;Ljava/lang/String;J)J",
        (env, share: jlong, key: Text, content_type: Text, etag: Text, max_age: jlong) -> jlong
    {
        let [content_type, etag] = [content_type, etag].map(|text| text.get(env, META_UNITS_SEEN));
        let max_age = u64::try_from(max_age).unwrap_or(0);
        let details = Details { content_type, etag, max_age, ..Details::default() };
        let none = || Failure::Block(c"UNAVAILABLE", "the node has no room for a cache".to_owned());
        let share = SHARES.get(share).ok_or_else(none)?;
        let writer = Writer::alone(&share, &key.get(env, KEY_UNITS_SEEN), details, seconds())?;
        Ok(WRITTEN.keep(Mutex::new(Some(writer))).ok_or(CacheError::Busy)?)
    }
    write = c"write", c"(J[BII)V", (env, entry: jlong, from: Bytes, start: jint, length: jint) -> () {
        let bytes = from.part(env, start, length, JAVA_PIECE_BYTES_MAX)?;
        with_writer(entry, |writer| writer.as_mut().ok_or_else(closed)?.write(&bytes).map_err(io))
    }
    finish = c"finish", c"(J)V", (env, entry: jlong) -> () {
        with_writer(entry, |writer| writer.take().ok_or_else(closed)?.finish().map_err(io))
    }
    release = c"release", c"(J)V", (env, entry: jlong) -> () {
        drop((READ.release(entry), WRITTEN.release(entry)));
        Ok(())
    }
    remove = c"remove", c"(JLjava/lang/String;)Z", (env, share: jlong, key: Text) -> jboolean {
        let key = key.get(env, KEY_UNITS_SEEN);
        Ok(SHARES.get(share).is_some_and(|share| share.remove(&key)))
    }
}

impl From<CacheError> for Failure {
    fn from(error: CacheError) -> Failure {
        let code = match error {
            CacheError::Invalid => c"INVALID",
            CacheError::Busy | CacheError::Crowded => c"QUOTA",
            CacheError::TooLarge
            | CacheError::Abandoned
            | CacheError::Stalled
            | CacheError::Cut
            | CacheError::Disk(_)
            | CacheError::Damaged => c"UNAVAILABLE",
        };
        Failure::Block(code, error.to_string())
    }
}

fn with_writer<T>(entry: jlong, work: impl FnOnce(&mut Option<Writer>) -> Result<T, Failure>) -> Result<T, Failure> {
    let writer = WRITTEN.get(entry).ok_or_else(closed)?;
    work(&mut writer.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Tells of an entry: its size, age and greatest age in seconds, media type and validator.
fn told(env: Env, entry: Option<Arc<Entry>>) -> Result<jobjectArray, Failure> {
    let Some(entry) = entry else { return Ok(null_mut()) };
    let [size, age, max_age] = [entry.size(), entry.age(seconds()), entry.max_age()].map(|number| number.to_string());
    Ok(env.strings([&*size, &*age, &*max_age, entry.content_type(), entry.etag()].into_iter())?)
}

fn seconds() -> u64 {
    clock::wall_ns() / 1_000_000_000
}

fn closed() -> Failure {
    Failure::Io("the entry is finished or closed".to_owned())
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` hands over")]
fn io(error: CacheError) -> Failure {
    Failure::Io(error.to_string())
}
