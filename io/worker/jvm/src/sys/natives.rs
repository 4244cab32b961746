// SPDX-License-Identifier: Apache-2.0
//! The native methods of `Bridge`. They take whatever Java gives, on any of its threads, and never panic.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_void};
use std::sync::OnceLock;

use jni_sys::{JNIEnv, JNINativeMethod, jclass, jint, jlong, jlongArray, jobjectArray, jstring};
use netserv_model::effect::ModuleSlot;
use netserv_model::limits::{CONTEXT_LINE_BYTES_MAX, CONTEXT_LINES_MAX, MODULES_PER_CONTAINER_MAX};
use netserv_model::request::PacketCounts;
use netserv_model::{Refusal, RefusalKind};
use netserv_wire::container::frames::LogLevel;
use netserv_worker_base::limits::{COUNTER_NAME_BYTES_MAX, LOG_LINE_BYTES_MAX};
use netserv_worker_base::shared::log;

use super::env::{Env, Thrown};
use crate::limits;
use crate::outbox::{FromJava, Outbox};

/// Units of a refusal's detail, of which [`Refusal`] takes as many.
pub(super) const DETAIL_UNITS_MAX: usize = 400;
/// Units of an engine's name.
const ENGINE_UNITS_MAX: usize = 256;
/// Units of a refusal's kind.
pub(super) const KIND_UNITS_MAX: usize = 64;

static OUTBOX: OnceLock<&'static Outbox> = OnceLock::new();

/// Binds the native methods of `class`, which leave what they are told in `outbox`.
pub(super) fn register(env: Env, class: jclass, outbox: &'static Outbox) -> Result<(), Thrown> {
    OUTBOX.get_or_init(|| outbox);
    let natives = [
        method(c"ready", c"(Ljava/lang/String;)V", ready as *mut c_void),
        method(c"loaded", c"(I)V", loaded as *mut c_void),
        method(c"failed", c"(ILjava/lang/String;Ljava/lang/String;[Ljava/lang/String;)V", failed as *mut c_void),
        method(c"log", c"(IILjava/lang/String;)V", log_line as *mut c_void),
        method(c"stats", c"(I[J[Ljava/lang/String;[J)V", stats as *mut c_void),
        method(c"statsDone", c"()V", stats_done as *mut c_void),
        method(c"wake", c"()V", wake as *mut c_void),
        method(c"now", c"()J", now as *mut c_void),
    ];
    // SAFETY: each function below has the parameters of its signature, behind the environment and the class.
    unsafe { env.register(class, &natives) }
}

/// Returns what Java tells is left in; nothing in a JVM that this library did not start.
pub(super) fn outbox() -> Option<&'static Outbox> {
    OUTBOX.get().copied()
}

pub(super) fn method(name: &'static CStr, signature: &'static CStr, function: *mut c_void) -> JNINativeMethod {
    JNINativeMethod { name: name.as_ptr().cast_mut(), signature: signature.as_ptr().cast_mut(), fnPtr: function }
}

unsafe extern "system" fn ready(env: *mut JNIEnv, _: jclass, engine: jstring) {
    // SAFETY: the JVM passes this thread's environment, and a string or null, as in all functions below.
    let engine = unsafe { Env::new(env).text(engine, ENGINE_UNITS_MAX) };
    push(FromJava::Ready(engine));
}

unsafe extern "system" fn loaded(_: *mut JNIEnv, _: jclass, slot: jint) {
    with_slot(slot, FromJava::Loaded);
}

unsafe extern "system" fn failed(
    env: *mut JNIEnv,
    _: jclass,
    slot: jint,
    kind: jstring,
    detail: jstring,
    context: jobjectArray,
) {
    // SAFETY: the JVM passes this thread's environment, strings or null, and a `String[]` or null.
    let (kind, detail, context) = unsafe {
        let env = Env::new(env);
        let context = env.texts(context, CONTEXT_LINES_MAX, CONTEXT_LINE_BYTES_MAX);
        (env.text(kind, KIND_UNITS_MAX), env.text(detail, DETAIL_UNITS_MAX), context)
    };
    let context: Vec<String> = context.into_iter().filter(|line| !line.is_empty()).collect();
    with_slot(slot, |slot| FromJava::Failed(slot, refusal(&kind, &detail).with_context(context)));
}

unsafe extern "system" fn log_line(env: *mut JNIEnv, _: jclass, slot: jint, level: jint, text: jstring) {
    let level = log::level_from_number(level).unwrap_or(LogLevel::Info);
    // SAFETY: as in `ready`.
    let text = unsafe { Env::new(env).text(text, LOG_LINE_BYTES_MAX) };
    if let Some(outbox) = OUTBOX.get() {
        outbox.log(module_slot(slot), level, text.as_bytes());
    }
}

unsafe extern "system" fn stats(
    env: *mut JNIEnv,
    _: jclass,
    slot: jint,
    counts: jlongArray,
    names: jobjectArray,
    values: jlongArray,
) {
    // SAFETY: the JVM passes this thread's environment, and arrays of these types or null.
    let (counts, names, values) = unsafe {
        let env = Env::new(env);
        (
            env.long_values(counts, 5),
            // One unit more than bytes are allowed, so that no name is cut to one that is.
            env.texts(names, limits::JAVA_COUNTERS_MAX, COUNTER_NAME_BYTES_MAX + 1),
            env.long_values(values, limits::JAVA_COUNTERS_MAX),
        )
    };
    let [seen, passed, dropped, modified, injected] = counts[..] else { return lose() };
    let [seen, passed, dropped, modified, injected] =
        [seen, passed, dropped, modified, injected].map(i64::cast_unsigned);
    let packets = PacketCounts { seen, passed, dropped, modified, injected };
    let counters: BTreeMap<String, u64> = names
        .into_iter()
        .zip(values)
        .filter(|(name, _)| is_name(name))
        .map(|(name, value)| (name, value.cast_unsigned()))
        .collect();
    with_slot(slot, |slot| FromJava::Stats(slot, packets, counters));
}

unsafe extern "system" fn stats_done(_: *mut JNIEnv, _: jclass) {
    push(FromJava::StatsDone);
}

unsafe extern "system" fn wake(_: *mut JNIEnv, _: jclass) {
    if let Some(outbox) = OUTBOX.get() {
        outbox.wake();
    }
}

unsafe extern "system" fn now(_: *mut JNIEnv, _: jclass) -> jlong {
    OUTBOX.get().map_or(0, |outbox| jlong::try_from(outbox.now().as_nanos()).unwrap_or(jlong::MAX))
}

fn push(event: FromJava) {
    if let Some(outbox) = OUTBOX.get() {
        outbox.push(event);
    }
}

fn lose() {
    if let Some(outbox) = OUTBOX.get() {
        outbox.lose();
    }
}

fn with_slot(slot: jint, event: impl FnOnce(ModuleSlot) -> FromJava) {
    match module_slot(slot) {
        Some(slot) => push(event(slot)),
        None => lose(),
    }
}

fn module_slot(slot: jint) -> Option<ModuleSlot> {
    u8::try_from(slot).ok().filter(|slot| usize::from(*slot) < MODULES_PER_CONTAINER_MAX).map(ModuleSlot)
}

/// Returns a refusal that Java tells; of a kind that none has, as the node's own failure.
pub(super) fn refusal(kind: &str, detail: &str) -> Refusal {
    match RefusalKind::from_word(kind) {
        Some(kind) => Refusal::new(kind, detail),
        None => Refusal::new(RefusalKind::NodeFailed, format!("the Java host says `{kind}`: {detail}")),
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= COUNTER_NAME_BYTES_MAX && !name.chars().any(char::is_control)
}
