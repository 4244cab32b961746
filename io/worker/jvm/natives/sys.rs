// SPDX-License-Identifier: Apache-2.0
//! The natives of building blocks as a library, so that the tests of the Java host have them on any JVM.
#![allow(unsafe_code, reason = "a JVM finds the function by its name")]

use std::ffi::c_void;

use jni_sys::{JNI_ERR, JNI_VERSION_10, JavaVM, jint};

/// Binds the natives.
///
/// # Safety
/// Only a JVM that loads this library calls it.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn JNI_OnLoad(vm: *mut JavaVM, _: *mut c_void) -> jint {
    // SAFETY: as this function's caller has it.
    match unsafe { netserv_worker_jvm::bind(vm) } {
        Ok(()) => JNI_VERSION_10,
        Err(_) => JNI_ERR,
    }
}
