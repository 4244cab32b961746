// SPDX-License-Identifier: Apache-2.0
//! The native methods of `org.netserv.host.media.MediaNative`, which modules' threads call and which may wait.

use std::ffi::{CStr, c_void};

use jni_sys::{JNIEnv, jboolean, jbyteArray, jclass, jint, jlong, jstring};
use netserv_model::effect::ModuleSlot;
use netserv_model::limits::MODULES_PER_CONTAINER_MAX;
use netserv_worker_base::limits::MEDIA_PIECE_BYTES_MAX;

use super::env::{Env, Thrown};
use super::natives::method;
use crate::media::{Into, describe, java_jobs, line};

const CLASS: &CStr = c"org/netserv/host/media/MediaNative";
/// Characters of a task: four outputs with texts of which each character is written as six.
const TASK_UNITS_MAX: usize = 16 * 1024;
/// What a native returns that could not do it.
const BROKEN: jint = -2;

/// Binds the native methods, if the class path has their class.
pub(super) fn register(env: Env) -> Result<(), Thrown> {
    let Ok(class) = env.class(CLASS) else { return Ok(()) };
    let natives = [
        method(c"start", c"(ILjava/lang/String;)Ljava/lang/String;", start as *mut c_void),
        method(c"write", c"(JZ[BII)I", write as *mut c_void),
        method(c"closeInput", c"(JZ)V", close_input as *mut c_void),
        method(c"read", c"(JI[BII)I", read as *mut c_void),
        method(c"cancel", c"(J)V", cancel as *mut c_void),
        method(c"ended", c"(J)Ljava/lang/String;", ended as *mut c_void),
        method(c"release", c"(J)V", release as *mut c_void),
        method(c"describe", c"([BI)Ljava/lang/String;", description as *mut c_void),
    ];
    // SAFETY: each function below has the parameters of its signature, behind the environment and the class.
    unsafe { env.register(class, &natives) }
}

/// Returns the job's number, or a word and the reason why there is none.
unsafe extern "system" fn start(env: *mut JNIEnv, _: jclass, slot: jint, task: jstring) -> jstring {
    // SAFETY: the JVM passes this thread's environment, and a string or null, as in all functions below.
    let (env, task) = unsafe { (Env::new(env), Env::new(env).text(task, TASK_UNITS_MAX)) };
    let slot = u8::try_from(slot).ok().filter(|slot| usize::from(*slot) < MODULES_PER_CONTAINER_MAX);
    let text = match slot.map(|slot| java_jobs().start(ModuleSlot(slot), &task)) {
        Some(Ok(number)) => number.to_string(),
        Some(Err(ending)) => line(&ending),
        None => "invalid no such module".to_owned(),
    };
    string(env, &text)
}

unsafe extern "system" fn write(
    env: *mut JNIEnv,
    _: jclass,
    job: jlong,
    picture: jboolean,
    from: jbyteArray,
    start: jint,
    length: jint,
) -> jint {
    // SAFETY: as in `start`, with a `byte[]` or null.
    let env = unsafe { Env::new(env) };
    let mut bytes = vec![0; piece(length)];
    // SAFETY: as above; the range is checked by the JVM.
    if unsafe { env.bytes_from(from, start, &mut bytes) }.is_err() {
        return BROKEN;
    }
    let written = java_jobs().write(job, into(picture), &bytes);
    if written.is_ok() { jint::try_from(bytes.len()).unwrap_or(BROKEN) } else { BROKEN }
}

unsafe extern "system" fn close_input(_: *mut JNIEnv, _: jclass, job: jlong, picture: jboolean) {
    java_jobs().close_input(job, into(picture));
}

/// Returns how many bytes were read, -1 at the end.
unsafe extern "system" fn read(
    env: *mut JNIEnv,
    _: jclass,
    job: jlong,
    place: jint,
    to: jbyteArray,
    start: jint,
    length: jint,
) -> jint {
    // SAFETY: as in `start`.
    let env = unsafe { Env::new(env) };
    let mut bytes = vec![0; piece(length)];
    let Ok(length) = java_jobs().read(job, usize::try_from(place).unwrap_or(usize::MAX), &mut bytes) else {
        return BROKEN;
    };
    // SAFETY: as in `write`.
    if unsafe { env.bytes_into(to, start, &bytes[..length]) }.is_err() {
        return BROKEN;
    }
    if length == 0 { -1 } else { jint::try_from(length).unwrap_or(BROKEN) }
}

unsafe extern "system" fn cancel(_: *mut JNIEnv, _: jclass, job: jlong) {
    java_jobs().cancel(job);
}

unsafe extern "system" fn ended(env: *mut JNIEnv, _: jclass, job: jlong) -> jstring {
    let ending = java_jobs().wait_ended(job);
    // SAFETY: as in `start`.
    string(unsafe { Env::new(env) }, &line(&ending))
}

unsafe extern "system" fn release(_: *mut JNIEnv, _: jclass, job: jlong) {
    java_jobs().release(job);
}

/// Returns null if the bytes are not what `ffprobe` writes.
unsafe extern "system" fn description(env: *mut JNIEnv, _: jclass, json: jbyteArray, length: jint) -> jstring {
    // SAFETY: as in `start`.
    let env = unsafe { Env::new(env) };
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    // SAFETY: as in `write`.
    let read = unsafe { env.bytes_from(json, 0, &mut bytes) };
    match read.map_err(|thrown| thrown.to_string()).and_then(|()| describe(&bytes)) {
        Ok(text) => string(env, &text),
        Err(_) => std::ptr::null_mut(),
    }
}

/// Without memory for a string there is none, which Java takes for a failure.
fn string(env: Env, text: &str) -> jstring {
    env.string(text).unwrap_or(std::ptr::null_mut())
}

fn piece(length: jint) -> usize {
    usize::try_from(length).unwrap_or(0).min(MEDIA_PIECE_BYTES_MAX)
}

fn into(picture: jboolean) -> Into {
    if picture { Into::Picture } else { Into::Input }
}
