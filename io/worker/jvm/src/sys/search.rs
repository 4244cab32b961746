// SPDX-License-Identifier: Apache-2.0
//! Sets of patterns of bundles: the natives of `org.netserv.host.compute.SearchNative`.

use jni_sys::{JNIEnv, jboolean, jclass, jint, jlong};
use netserv_worker_base::compute::Reserved;
use netserv_worker_base::compute::search::Patterns;
use netserv_worker_base::error::HostError;
use netserv_worker_base::limits::{PATTERNS_BYTES_MAX, PATTERNS_MAX, SEARCH_BYTES_MAX};

use super::call::{Bytes, call, natives};
use super::compute::budget;
use super::env::{Env, Thrown};
use super::natives::method;
use crate::handles::Handles;

/// Bytes of patterns with their lengths.
const LIST_BYTES_MAX: usize = PATTERNS_BYTES_MAX + 2 * PATTERNS_MAX;

static SETS: Handles<(Patterns, Reserved)> = Handles::new();

natives! { c"org/netserv/host/compute/SearchNative";
    compile = c"compile", c"([BZ)J", (env, list: Bytes, ignore_case: jboolean) -> jlong {
        let patterns = Patterns::from_list(&list.whole(env, LIST_BYTES_MAX)?, ignore_case)?;
        let memory = budget().reserve(patterns.memory_bytes())?;
        Ok(SETS.keep((patterns, memory)).ok_or(HostError::Quota)?)
    }
    find = c"find", c"(J[BII)J", (env, set: jlong, bytes: Bytes, start: jint, end: jint) -> jlong {
        let set = SETS.get(set).ok_or_else(|| Thrown("the patterns are closed".to_owned()))?;
        let bytes = bytes.part(env, start, end.saturating_sub(start), SEARCH_BYTES_MAX)?;
        let hit = set.0.find(&bytes)?.next();
        let word = hit.map(|hit| [hit.pattern, hit.start, hit.end - hit.start].map(i64::from));
        Ok(word.map_or(-1, |[pattern, start, length]| pattern << 48 | start << 24 | length))
    }
    release = c"release", c"(J)V", (env, set: jlong) -> () {
        drop(SETS.release(set));
        Ok(())
    }
}
