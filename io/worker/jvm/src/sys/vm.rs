// SPDX-License-Identifier: Apache-2.0
//! Starting a JVM, and what happens when it ends by itself.

use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::ptr::null_mut;
use std::sync::OnceLock;

use jni_sys::{JNI_OK, JNI_VERSION_10, JNIEnv, JavaVM, JavaVMInitArgs, JavaVMOption, jint};

use super::env::Env;

/// Bytes of the packet thread's stack, of which only what is used takes memory.
const PACKET_STACK_BYTES: usize = 1 << 20;

/// How a JVM ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Java code called `System.exit` or `Runtime.halt`, or the JVM itself gave up, with this code.
    Exit(i32),
    /// The JVM found itself broken, and is about to end by a signal.
    Abort,
}

/// Is told of the end, and returns the code to end with. It runs on any thread, while the others stand still.
pub type Handler = Box<dyn Fn(End) -> i32 + Send + Sync>;

static HANDLER: OnceLock<Handler> = OnceLock::new();

/// Runs `work` on a thread that a JVM can be started on.
///
/// # Panics
/// If `work` does, or no thread can be made.
pub fn packet_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    small_arenas();
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().name("packets".to_owned()).stack_size(PACKET_STACK_BYTES);
        let thread = builder.spawn_scoped(scope, || {
            without_signal_stack();
            work()
        });
        match thread.expect("a process can have a second thread").join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Runs this program anew in the place of this process. Returns only if that cannot be.
pub fn replace_program(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> std::io::Error {
    match std::env::current_exe() {
        Ok(program) => Command::new(program).args(arguments).exec(),
        Err(error) => error,
    }
}

/// Starts the JVM; once in a process, on the thread that goes on to use it.
pub(super) fn create(libjvm: &Path, options: &[String], handler: Handler) -> Result<Env, String> {
    assert!(HANDLER.set(handler).is_ok(), "a process has one JVM at most");
    let create = load(libjvm)?;
    let texts = options
        .iter()
        .map(|option| CString::new(option.as_str()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| "an option holds a zero byte".to_owned())?;
    let exit: extern "C" fn(jint) = on_exit;
    let abort: extern "C" fn() = on_abort;
    let hooks = [(c"exit", exit as *mut _), (c"abort", abort as *mut _)];
    let plain = texts.iter().map(|text| (text.as_c_str(), null_mut()));
    let mut options: Vec<JavaVMOption> = plain
        .chain(hooks)
        .map(|(text, extra)| JavaVMOption { optionString: text.as_ptr().cast_mut(), extraInfo: extra })
        .collect();
    let mut arguments = JavaVMInitArgs {
        version: JNI_VERSION_10,
        nOptions: jint::try_from(options.len()).expect("few options"),
        options: options.as_mut_ptr(),
        ignoreUnrecognized: false,
    };
    let (mut vm, mut env) = (null_mut(), null_mut());
    // SAFETY: the function is that of libjvm, and all that the arguments point to outlives the call.
    let result = unsafe { create(&mut vm, &mut env, (&raw mut arguments).cast()) };
    if result != JNI_OK || env.is_null() {
        return Err(format!("JNI_CreateJavaVM returned {result}"));
    }
    // SAFETY: it is this thread's, which is attached from here on until the process ends.
    Ok(unsafe { Env::new(env.cast::<JNIEnv>()) })
}

type CreateJavaVm =
    unsafe extern "system" fn(*mut *mut JavaVM, *mut *mut std::ffi::c_void, *mut std::ffi::c_void) -> jint;

fn load(libjvm: &Path) -> Result<CreateJavaVm, String> {
    let path = CString::new(libjvm.as_os_str().as_bytes()).map_err(|_| "a path holds a zero byte".to_owned())?;
    // SAFETY: the operator's own JVM is loaded for the rest of the process's life; what it does then is its own affair.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
    if library.is_null() {
        // SAFETY: after a failure this returns a string, which the next call on this thread may take away.
        let error = unsafe { std::ffi::CStr::from_ptr(libc::dlerror()) };
        return Err(error.to_string_lossy().into_owned());
    }
    // SAFETY: the library is loaded, and the name ends with a zero.
    let symbol = unsafe { libc::dlsym(library, c"JNI_CreateJavaVM".as_ptr()) };
    if symbol.is_null() {
        return Err(format!("{} has no JNI_CreateJavaVM", libjvm.display()));
    }
    // SAFETY: the JNI specification gives the function of this name this type.
    Ok(unsafe { std::mem::transmute::<*mut std::ffi::c_void, CreateJavaVm>(symbol) })
}

extern "C" fn on_exit(code: jint) {
    let code = HANDLER.get().map_or(code, |handler| handler(End::Exit(code)));
    // SAFETY: ends the process at once, without handlers that could wait for threads which stand still.
    unsafe { libc::_exit(code) };
}

/// Ends the process at once: the JVM's own threads still run, and must not meet what the C library's handlers take down.
pub fn leave(code: u8) -> ! {
    // What is left unwritten has nobody to read it.
    let _ = std::io::Write::flush(&mut std::io::stdout());
    // SAFETY: ends the process.
    unsafe { libc::_exit(code.into()) }
}

extern "C" fn on_abort() {
    if let Some(handler) = HANDLER.get() {
        handler(End::Abort);
    }
}

/// Has threads share a heap of the C library: each of its own would keep what it ever used.
fn small_arenas() {
    // SAFETY: sets a number in the C library.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
}

/// Takes away the small stack that Rust gave this thread for signals. The JVM has many signals, which need more.
fn without_signal_stack() {
    let none = libc::stack_t { ss_sp: null_mut(), ss_flags: libc::SS_DISABLE, ss_size: libc::SIGSTKSZ };
    // SAFETY: the thread is on its usual stack, and goes on to use that for signals.
    unsafe { libc::sigaltstack(&raw const none, null_mut()) };
}
