// SPDX-License-Identifier: Apache-2.0
//! States of bundles that move: the natives of `org.netserv.host.StateNative`. None waits.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jni_sys::{JNIEnv, jboolean, jbyteArray, jclass, jlong};
use netserv_model::limits::STATE_BYTES_MAX;
use netserv_model::{Refusal, RefusalKind};

use super::call::{Bytes, Text, answer, call, natives};
use super::env::{Env, Thrown};
use super::natives::{DETAIL_UNITS_MAX, KIND_UNITS_MAX, method, refusal};

/// What bundles begin with that are being loaded, by the numbers of their ports, which are bounded.
static GIVEN: Mutex<BTreeMap<i64, Vec<u8>>> = Mutex::new(BTreeMap::new());
/// What the bundle said that was asked last.
static SAID: Mutex<Option<Result<Vec<u8>, Refusal>>> = Mutex::new(None);

/// Keeps what a bundle is to begin with until it has started, or Java closes its port.
///
/// # Errors
/// [`RefusalKind::NodeFailed`]: the bundle has no port.
pub fn give(port: i64, said: Vec<u8>) -> Result<(), Refusal> {
    if port <= 0 {
        return Err(Refusal::new(RefusalKind::NodeFailed, "the worker has no room for a module with a state"));
    }
    lock(&GIVEN).insert(port, said);
    Ok(())
}

/// Takes what the bundle said that was asked, or why it did not; nothing if it has nothing to say.
pub(super) fn take_said() -> Result<Option<Vec<u8>>, Refusal> {
    lock(&SAID).take().transpose()
}

/// Forgets what a bundle was to begin with. Returns whether there was something.
pub(super) fn forget(port: i64) -> bool {
    lock(&GIVEN).remove(&port).is_some()
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

natives! { c"org/netserv/host/StateNative";
    given = c"given", c"(J)[B", (env, port: jlong) -> jbyteArray {
        answer(env, lock(&GIVEN).get(&port).map(Vec::as_slice))
    }
    forget_given = c"forget", c"(J)Z", (_env, port: jlong) -> jboolean {
        Ok(forget(port))
    }
    say = c"say", c"([B)V", (env, state: Bytes) -> () {
        let state = state.whole(env, usize::try_from(STATE_BYTES_MAX).unwrap_or(usize::MAX))?;
        *lock(&SAID) = Some(Ok(state));
        Ok(())
    }
    decline = c"decline", c"(Ljava/lang/String;Ljava/lang/String;)V", (env, kind: Text, detail: Text) -> () {
        let (kind, detail) = (kind.get(env, KIND_UNITS_MAX), detail.get(env, DETAIL_UNITS_MAX));
        *lock(&SAID) = Some(Err(refusal(&kind, &detail)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_given_to_one_port_and_forgotten_once() {
        assert_eq!(give(0, vec![1]).unwrap_err().kind, RefusalKind::NodeFailed);
        give(i64::MAX, vec![1]).unwrap();
        assert_eq!([i64::MAX - 1, i64::MAX, i64::MAX].map(forget), [false, true, false]);
    }
}
