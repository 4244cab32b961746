// SPDX-License-Identifier: Apache-2.0
//! The calls into `org.netserv.host.Bridge`.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CStr;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use jni_sys::{JNI_OK, JNI_VERSION_10, JNIEnv, JavaVM, jclass, jmethodID, jvalue};
use netserv_model::effect::ModuleSlot;
use netserv_model::manifest::ModuleLimits;
use netserv_model::node_info::NodeInfo;
use netserv_model::{Instant, ModuleRef, Refusal};

use super::env::{Env, Thrown};
use super::vm::{self, Handler};
use super::{cache, compression, control, kv, media_natives, natives, search, state};
use crate::outbox::Outbox;

const CLASS: &CStr = c"org/netserv/host/Bridge";

/// The Java side. Every call is made by the thread that started it.
pub struct Bridge {
    env: Env,
    class: jclass,
    methods: Methods,
}

struct Methods {
    start: jmethodID,
    process: jmethodID,
    idle: jmethodID,
    injected: jmethodID,
    node: jmethodID,
    load: jmethodID,
    export: jmethodID,
    unload: jmethodID,
    stats: jmethodID,
    shutdown: jmethodID,
}

/// The memory that both sides see.
#[derive(Clone, Copy, Debug)]
pub struct Buffers {
    /// The table of a batch.
    pub table: &'static [AtomicU64],
    /// The slots of the ring.
    pub slots: &'static [AtomicU64],
    /// Packets that modules made.
    pub injects: &'static [AtomicU64],
    /// The first page of the ring, with the activity word.
    pub header: &'static [AtomicU64],
}

/// A module to be loaded.
#[derive(Clone, Copy, Debug)]
pub struct BundleLoad<'a> {
    /// Its place.
    pub slot: ModuleSlot,
    /// Its name and version.
    pub module: &'a ModuleRef,
    /// Its bundle.
    pub jar: &'a Path,
    /// What it can read.
    pub properties: &'a BTreeMap<String, String>,
    /// What it may use.
    pub limits: &'a ModuleLimits,
    /// The version of its kv state.
    pub state_schema: u32,
    /// The building blocks that it may use.
    pub blocks: &'a BTreeSet<String>,
    /// The number of its port for control messages.
    pub control: i64,
}

/// Binds the natives of building blocks in a JVM that runs already, for the tests of the Java host.
///
/// # Safety
/// `vm` is what a JVM called this library's `JNI_OnLoad` with, on this thread.
///
/// # Errors
/// What Java threw.
pub unsafe fn bind(vm: *mut JavaVM) -> Result<(), Thrown> {
    let mut env = std::ptr::null_mut();
    // SAFETY: the JVM's own table, and room for a pointer.
    let result = unsafe { ((**vm).v1_4.GetEnv)(vm, &raw mut env, JNI_VERSION_10) };
    if result != JNI_OK {
        return Err(Thrown(format!("GetEnv returned {result}")));
    }
    // SAFETY: it is this thread's, which the JVM attached.
    register_blocks(unsafe { Env::new(env.cast::<JNIEnv>()) })
}

fn register_blocks(env: Env) -> Result<(), Thrown> {
    media_natives::register(env)?;
    kv::register(env)?;
    cache::register(env)?;
    search::register(env)?;
    control::register(env)?;
    state::register(env)?;
    compression::register(env)
}

impl Bridge {
    /// Starts a JVM in this process, and finds the bridge in it.
    ///
    /// # Errors
    /// There is no JVM to be had, or its class path holds no bridge that fits.
    pub fn open(
        libjvm: &Path,
        options: &[String],
        outbox: &'static Outbox,
        handler: Handler,
    ) -> Result<Bridge, String> {
        let env = vm::create(libjvm, options, handler)?;
        Bridge::find(env, outbox).map_err(|thrown| thrown.to_string())
    }

    fn find(env: Env, outbox: &'static Outbox) -> Result<Bridge, Thrown> {
        let class = env.kept(env.class(CLASS)?)?;
        natives::register(env, class, outbox)?;
        register_blocks(env)?;
        let method = |name, signature| env.static_method(class, name, signature);
        let methods = Methods {
            start: method(
                c"start",
                c"(Ljava/nio/ByteBuffer;Ljava/nio/ByteBuffer;Ljava/nio/ByteBuffer;Ljava/nio/ByteBuffer;\
                    Ljava/lang/String;Ljava/lang/String;)V",
            )?,
            process: method(c"process", c"(I)I")?,
            idle: method(c"idle", c"(J)J")?,
            injected: method(c"injected", c"()I")?,
            node: method(c"node", c"(Ljava/lang/String;Ljava/lang/String;[Ljava/lang/String;[Ljava/lang/String;)V")?,
            load: method(
                c"load",
                c"(ILjava/lang/String;Ljava/lang/String;Ljava/lang/String;[Ljava/lang/String;[JI[Ljava/lang/String;J)V",
            )?,
            export: method(c"export", c"(I)V")?,
            unload: method(c"unload", c"(I)V")?,
            stats: method(c"stats", c"()V")?,
            shutdown: method(c"shutdown", c"(J)V")?,
        };
        Ok(Bridge { env, class, methods })
    }

    /// Starts the framework.
    ///
    /// # Errors
    /// What Java threw.
    pub fn start(&self, buffers: &Buffers, blocks: &Path, data: &Path) -> Result<(), Thrown> {
        let env = self.env;
        env.framed(|| {
            let arguments = [
                jvalue { l: env.buffer(buffers.table)? },
                jvalue { l: env.buffer(buffers.slots)? },
                jvalue { l: env.buffer(buffers.injects)? },
                jvalue { l: env.buffer(buffers.header)? },
                jvalue { l: env.string(&blocks.to_string_lossy())? },
                jvalue { l: env.string(&data.to_string_lossy())? },
            ];
            // SAFETY: these are the arguments of its signature.
            unsafe { env.call_void(self.class, self.methods.start, &arguments) }
        })
    }

    /// Shows the first `count` packets of the table to the modules. Returns how many packets they made.
    ///
    /// # Errors
    /// What Java threw; modules' own exceptions do not get here.
    #[inline]
    pub fn process(&self, count: usize) -> Result<i32, Thrown> {
        let count = i32::try_from(count).expect("a batch is short");
        // SAFETY: these are the arguments and the result of its signature.
        unsafe { self.env.call_int(self.class, self.methods.process, &[jvalue { i: count }]) }
    }

    /// Runs what is due. Returns when the next thing is.
    ///
    /// # Errors
    /// As [`Bridge::process`].
    pub fn idle(&self, now: Instant) -> Result<Option<Instant>, Thrown> {
        let now = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX);
        // SAFETY: these are the arguments and the result of its signature.
        let due = unsafe { self.env.call_long(self.class, self.methods.idle, &[jvalue { j: now }])? };
        Ok(if due == i64::MAX { None } else { Some(Instant::from_nanos(u64::try_from(due).unwrap_or(0))) })
    }

    /// Returns how many packets modules made in the last [`Bridge::idle`].
    ///
    /// # Errors
    /// As [`Bridge::process`].
    pub fn injected(&self) -> Result<i32, Thrown> {
        // SAFETY: these are the arguments and the result of its signature.
        unsafe { self.env.call_int(self.class, self.methods.injected, &[]) }
    }

    /// Says what modules are told of their node that are loaded from here on.
    ///
    /// # Errors
    /// What Java threw.
    pub fn node(&self, info: &NodeInfo) -> Result<(), Thrown> {
        let facts: Vec<&str> = info.facts.iter().flat_map(|(name, fact)| [name.as_str(), fact.as_str()]).collect();
        let addresses: Vec<String> = info.addresses.iter().map(ToString::to_string).collect();
        let env = self.env;
        env.framed(|| {
            let arguments = [
                jvalue { l: env.string(&info.id)? },
                jvalue { l: env.string(&info.place)? },
                jvalue { l: env.strings(facts.into_iter())? },
                jvalue { l: env.strings(addresses.iter().map(String::as_str))? },
            ];
            // SAFETY: these are the arguments of its signature.
            unsafe { env.call_void(self.class, self.methods.node, &arguments) }
        })
    }

    /// Has a module loaded, which is answered by an event.
    ///
    /// # Errors
    /// What Java threw.
    pub fn load(&self, load: &BundleLoad<'_>) -> Result<(), Thrown> {
        let ModuleLimits { memory_bytes, kv_entries, kv_bytes, timers, counters, call_ms, .. } = *load.limits;
        let long = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        let limits =
            [long(memory_bytes), kv_entries.into(), long(kv_bytes), timers.into(), counters.into(), call_ms.into()];
        let properties: Vec<&str> =
            load.properties.iter().flat_map(|(key, value)| [key.as_str(), value.as_str()]).collect();
        let env = self.env;
        env.framed(|| {
            let arguments = [
                jvalue { i: load.slot.0.into() },
                jvalue { l: env.string(load.module.name.as_str())? },
                jvalue { l: env.string(&load.module.version.to_string())? },
                jvalue { l: env.string(&load.jar.to_string_lossy())? },
                jvalue { l: env.strings(properties.into_iter())? },
                jvalue { l: env.longs(&limits)? },
                jvalue { i: i32::try_from(load.state_schema).unwrap_or(i32::MAX) },
                jvalue { l: env.strings(load.blocks.iter().map(String::as_str))? },
                jvalue { j: load.control },
            ];
            // SAFETY: these are the arguments of its signature.
            unsafe { env.call_void(self.class, self.methods.load, &arguments) }
        })
    }

    /// Asks a module for its state. Returns what it says, if it says something, or why not.
    ///
    /// # Errors
    /// What Java threw.
    pub fn export(&self, slot: ModuleSlot) -> Result<Result<Option<Vec<u8>>, Refusal>, Thrown> {
        // SAFETY: these are the arguments of its signature.
        unsafe { self.env.call_void(self.class, self.methods.export, &[jvalue { i: slot.0.into() }])? };
        Ok(state::take_said())
    }

    /// Has a module unloaded.
    ///
    /// # Errors
    /// What Java threw.
    pub fn unload(&self, slot: ModuleSlot) -> Result<(), Thrown> {
        // SAFETY: these are the arguments of its signature.
        unsafe { self.env.call_void(self.class, self.methods.unload, &[jvalue { i: slot.0.into() }]) }
    }

    /// Asks what modules counted, which is answered by events.
    ///
    /// # Errors
    /// What Java threw.
    pub fn stats(&self) -> Result<(), Thrown> {
        // SAFETY: these are the arguments of its signature.
        unsafe { self.env.call_void(self.class, self.methods.stats, &[]) }
    }

    /// Stops everything, and waits for it at most so long.
    ///
    /// # Errors
    /// What Java threw.
    pub fn shutdown(&self, at_most: Duration) -> Result<(), Thrown> {
        let millis = i64::try_from(at_most.as_millis()).unwrap_or(i64::MAX);
        // SAFETY: these are the arguments of its signature.
        unsafe { self.env.call_void(self.class, self.methods.shutdown, &[jvalue { j: millis }]) }
    }

    /// Ends the JVM in good order, and with it the process.
    ///
    /// # Errors
    /// What Java threw; otherwise this does not return.
    pub fn exit(&self) -> Result<(), Thrown> {
        let env = self.env;
        env.framed(|| {
            let system = env.class(c"java/lang/System")?;
            let exit = env.static_method(system, c"exit", c"(I)V")?;
            // SAFETY: these are the arguments of its signature.
            unsafe { env.call_void(system, exit, &[jvalue { i: 0 }]) }
        })
    }
}
