// SPDX-License-Identifier: Apache-2.0
//! Natives as safe code: what fails in them becomes an exception, a panic too.

use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

use jni_sys::{jbyteArray, jint, jstring};
use netserv_worker_base::error::HostError;

use super::env::{Env, Thrown};

/// Defines the natives of a class, and `register`, which binds them if the class path has that class.
macro_rules! natives {
    ($class:literal; $($name:ident = $java:literal, $signature:literal,
        ($env:ident $(, $argument:ident: $kind:ty)*) -> $result:ty $body:block)*) => {
        pub(super) fn register(env: Env) -> Result<(), Thrown> {
            let Ok(class) = env.class($class) else { return Ok(()) };
            let natives = [$(method($java, $signature, $name as *mut std::ffi::c_void)),*];
            // SAFETY: each function has the parameters of its signature, behind the environment and the class.
            unsafe { env.register(class, &natives) }
        }

        $(unsafe extern "system" fn $name(env: *mut JNIEnv, _: jclass $(, $argument: $kind)*) -> $result {
            // SAFETY: the JVM passes this thread's environment. All results are numbers or references: 0 is one of each.
            let ($env, otherwise) = unsafe { (Env::new(env), std::mem::zeroed()) };
            call($env, otherwise, || $body)
        })*
    };
}
pub(super) use natives;

/// A `byte[]` or `null` that the JVM passed to a native.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Bytes(jbyteArray);

/// A `String` or `null` that the JVM passed to a native.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Text(jstring);

/// Why a native did nothing.
#[derive(Debug)]
pub(super) enum Failure {
    /// A `BlockException` with the code of this name.
    Block(&'static CStr, String),
    /// An `IOException`.
    Io(String),
    /// An argument was `null`, which a native says as Java code would.
    Null,
    /// What JNI itself found wrong.
    Thrown(Thrown),
    /// An exception is pending, such as that there is no memory.
    Pending,
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Failure {
        let (code, text) = match error {
            HostError::NotFound => (c"NOT_FOUND", "there is no such thing"),
            HostError::Quota => (c"QUOTA", "one of the module's limits is reached, or the node's own"),
            HostError::TooLarge => (c"TOO_LARGE", "an argument is longer than allowed"),
            HostError::BadAddress | HostError::Invalid => (c"INVALID", "an argument has no meaning here"),
        };
        Failure::Block(code, text.to_owned())
    }
}

impl From<Thrown> for Failure {
    fn from(thrown: Thrown) -> Failure {
        Failure::Thrown(thrown)
    }
}

impl Text {
    /// Returns at most so many UTF-16 units; nothing for `null`.
    pub(super) fn get(self, env: Env, units_max: usize) -> String {
        // SAFETY: the JVM gave it to this thread.
        unsafe { env.text(self.0, units_max) }
    }
}

impl Bytes {
    /// Returns all bytes, or that they are more than allowed.
    pub(super) fn whole(self, env: Env, most: usize) -> Result<Vec<u8>, Failure> {
        let bytes = self.first(env, most.saturating_add(1))?;
        if bytes.len() > most { Err(HostError::TooLarge.into()) } else { Ok(bytes) }
    }

    /// Returns at most so many of the first bytes.
    pub(super) fn first(self, env: Env, most: usize) -> Result<Vec<u8>, Failure> {
        let length = jint::try_from(self.length(env)?.min(most)).unwrap_or(jint::MAX);
        self.part(env, 0, length, most)
    }

    /// Returns a part, at most so many bytes.
    pub(super) fn part(self, env: Env, start: jint, length: jint, most: usize) -> Result<Vec<u8>, Failure> {
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(0).min(most)];
        // SAFETY: as in `Text::get`; the range is checked by the JVM.
        unsafe { env.bytes_from(self.0, start, &mut bytes) }?;
        Ok(bytes)
    }

    /// Copies bytes into the array.
    pub(super) fn put(self, env: Env, start: jint, bytes: &[u8]) -> Result<(), Failure> {
        // SAFETY: as in `Text::get`; the range is checked by the JVM.
        Ok(unsafe { env.bytes_into(self.0, start, bytes) }?)
    }

    /// Returns how many there are.
    pub(super) fn length(self, env: Env) -> Result<usize, Failure> {
        let Some(Bytes(array)) = self.optional() else { return Err(Failure::Null) };
        // SAFETY: as in `Text::get`, and it is not `null`.
        Ok(unsafe { env.array_length(array) })
    }

    /// Returns nothing for `null`.
    pub(super) fn optional(self) -> Option<Bytes> {
        if self.0.is_null() { None } else { Some(self) }
    }
}

/// Returns bytes to Java, or `null`.
pub(super) fn answer(env: Env, bytes: Option<&[u8]>) -> Result<jbyteArray, Failure> {
    bytes.map_or(Ok(null_mut()), |bytes| env.new_bytes(bytes).ok_or(Failure::Pending))
}

/// Runs a native's `work`. Without a result, throws, and returns `otherwise`, which nobody sees.
pub(super) fn call<T>(env: Env, otherwise: T, work: impl FnOnce() -> Result<T, Failure>) -> T {
    let failure = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(result)) => return result,
        Ok(Err(failure)) => failure,
        // The panic's own words are on standard error.
        Err(_) => Failure::Thrown(Thrown("the native side panicked".to_owned())),
    };
    match failure {
        // What is thrown instead, such as that there is no memory, is as good.
        Failure::Block(code, text) => drop(env.throw_block(code, &text)),
        Failure::Io(text) => env.throw(c"java/io/IOException", &text),
        Failure::Null => env.throw(c"java/lang/NullPointerException", "an argument is null"),
        Failure::Thrown(thrown) => env.throw(c"java/lang/IllegalStateException", &thrown.0),
        Failure::Pending => {}
    }
    otherwise
}
