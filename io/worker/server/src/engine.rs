// SPDX-License-Identifier: Apache-2.0
//! The engine of server modules: settings, what components can import, and the thread that keeps the beat for those that
//! compute for long.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::thread;

use netserv_worker_base::compute::Budget;
use netserv_worker_base::limits::SMALL_STACK_BYTES;
use netserv_worker_wasm::limits::{MEMORY_BYTES_MAX, STACK_BYTES_MAX, TABLE_ELEMENTS_MAX};
use wasmtime::component::Linker;
use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store};

use super::blocks;
use super::state::ServerState;
use crate::limits;

/// The engine with all that components can import.
pub struct ServerEngine {
    engine: Engine,
    linkers: Mutex<BTreeMap<BTreeSet<String>, Linker<ServerState>>>,
    memory: Budget,
    beat: Arc<Beat>,
}

impl ServerEngine {
    /// Builds an engine that runs compiled components in a container of `memory_bytes`. Of it, all instances may take
    /// [`limits::INSTANCES_MEMORY_SHARE`] together, without the [`limits::INSTANCE_BYTES_FREE`] that each may have.
    ///
    /// # Errors
    /// The processor or the kernel lacks what Wasmtime needs.
    pub fn without_compiler(memory_bytes: u64) -> wasmtime::Result<ServerEngine> {
        let share = usize::try_from(memory_bytes / limits::INSTANCES_MEMORY_SHARE).unwrap_or(usize::MAX);
        ServerEngine::with(config(instances(memory_bytes)).enable_compiler(false), share)
    }

    /// Builds an engine that compiles components and runs them.
    ///
    /// # Errors
    /// As [`ServerEngine::without_compiler`].
    pub fn new() -> wasmtime::Result<ServerEngine> {
        ServerEngine::with(&config(instances(limits::CONTAINER_BYTES)), usize::MAX)
    }

    fn with(config: &Config, memory_bytes: usize) -> wasmtime::Result<ServerEngine> {
        let engine = Engine::new(config)?;
        let beat = Beat::start(&engine)?;
        Ok(ServerEngine { engine, linkers: Mutex::default(), memory: Budget::new(memory_bytes), beat })
    }

    /// Returns the store of an instance, with its bounds.
    pub fn store(&self, mut state: ServerState) -> Store<ServerState> {
        state.cap.share(&self.memory);
        state.into_store(&self.engine)
    }

    /// Returns Wasmtime's engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Returns what a component can import that may use `blocks`.
    ///
    /// # Errors
    /// An interface is defined twice.
    pub fn linker(&self, blocks: &BTreeSet<String>) -> wasmtime::Result<Linker<ServerState>> {
        let mut linkers = self.linkers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(linker) = linkers.get(blocks) {
            return Ok(linker.clone());
        }
        let mut linker = Linker::new(&self.engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
        wasmtime_wasi_http::p2::add_only_http_to_linker_async(&mut linker)?;
        blocks::add_to_linker(&mut linker, blocks)?;
        if linkers.len() >= limits::LINKERS_KEPT_MAX {
            linkers.clear();
        }
        linkers.insert(blocks.clone(), linker.clone());
        Ok(linker)
    }

    /// Has the beat go on while `future` is at work: to be put around whatever runs code of a component.
    pub fn pace<F: Future>(&self, future: F) -> Paced<F> {
        Paced { future: Box::pin(future), beat: Arc::clone(&self.beat) }
    }
}

/// Returns how many instances there may be at a time in a container of `memory_bytes`: as many as fit into their share if none
/// does anything.
pub fn instances(memory_bytes: u64) -> u32 {
    let fit = memory_bytes / limits::INSTANCES_MEMORY_SHARE / limits::INSTANCE_BYTES_LEAST;
    u32::try_from(fit).unwrap_or(u32::MAX).clamp(1, limits::INSTANCES_MAX)
}

/// Settings that change the code, but for the number of instances: `compile` and `serve` must agree in them, or Wasmtime
/// refuses the code.
fn config(instances: u32) -> Config {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(instances)
        .total_stacks(instances)
        .total_memories(2 * instances)
        .total_tables(4 * instances)
        .total_core_instances(8 * instances)
        .max_memory_size(usize::try_from(MEMORY_BYTES_MAX).unwrap_or(usize::MAX))
        .table_elements(TABLE_ELEMENTS_MAX)
        .max_core_instances_per_component(limits::CORE_INSTANCES_PER_COMPONENT_MAX)
        .max_memories_per_component(limits::MEMORIES_PER_COMPONENT_MAX)
        .max_tables_per_component(limits::TABLES_PER_COMPONENT_MAX)
        .max_unused_warm_slots(limits::WARM_SLOTS_MAX)
        // It asks /proc, which a container does not have.
        .pagemap_scan(Enabled::No);
    let mut config = Config::new();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config.memory_reservation(4 << 30).memory_guard_size(32 << 20).memory_may_move(false);
    config.max_wasm_stack(STACK_BYTES_MAX).async_stack_size(limits::FIBER_BYTES);
    config.wasm_relaxed_simd(false).wasm_memory64(false);
    config.wasm_component_model(true).epoch_interruption(true);
    config
}

/// A thread that moves the engine's epoch on while code of components runs, and sleeps otherwise.
struct Beat {
    /// Times that a component was entered and left.
    entered: AtomicU64,
    left: AtomicU64,
    asleep: AtomicBool,
    ended: AtomicBool,
    thread: Mutex<Option<thread::Thread>>,
}

impl Beat {
    fn start(engine: &Engine) -> wasmtime::Result<Arc<Beat>> {
        let beat = Arc::new(Beat {
            entered: AtomicU64::new(0),
            left: AtomicU64::new(0),
            asleep: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            thread: Mutex::new(None),
        });
        let (engine, own) = (engine.weak(), Arc::downgrade(&beat));
        let keep = move || {
            let mut idle = 0;
            let mut seen = 0;
            while let (Some(engine), Some(beat)) = (engine.upgrade(), own.upgrade()) {
                if beat.ended.load(Ordering::Relaxed) {
                    return;
                }
                engine.increment_epoch();
                drop(engine);
                idle = if beat.is_idle(&mut seen) { idle + 1 } else { 0 };
                if idle < limits::IDLE_BEATS {
                    drop(beat);
                    thread::sleep(limits::BEAT);
                } else {
                    idle = 0;
                    beat.sleep();
                }
            }
        };
        let builder = thread::Builder::new().name("beat".to_owned()).stack_size(SMALL_STACK_BYTES);
        let handle = builder.spawn(keep)?;
        *beat.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(handle.thread().clone());
        Ok(beat)
    }

    /// Returns whether nothing runs nor has run since it was asked last.
    fn is_idle(&self, seen: &mut u64) -> bool {
        let entered = self.entered.load(Ordering::SeqCst);
        let idle = entered == *seen && self.left.load(Ordering::SeqCst) == entered;
        *seen = entered;
        idle
    }

    fn sleep(&self) {
        self.asleep.store(true, Ordering::SeqCst);
        // Whoever entered before the flag was up did not see it.
        if self.entered.load(Ordering::SeqCst) == self.left.load(Ordering::SeqCst) {
            thread::park_timeout(limits::BEAT_SLEEP_MAX);
        }
        self.asleep.store(false, Ordering::SeqCst);
    }

    fn enter(&self) {
        self.entered.fetch_add(1, Ordering::SeqCst);
        if self.asleep.load(Ordering::SeqCst) {
            self.wake();
        }
    }

    fn leave(&self) {
        self.left.fetch_add(1, Ordering::SeqCst);
    }

    fn wake(&self) {
        if let Some(thread) = &*self.thread.lock().unwrap_or_else(PoisonError::into_inner) {
            thread.unpark();
        }
    }
}

impl Drop for ServerEngine {
    fn drop(&mut self) {
        self.beat.ended.store(true, Ordering::Relaxed);
        self.beat.wake();
    }
}

/// A future during whose work the beat goes on.
pub struct Paced<F> {
    future: Pin<Box<F>>,
    beat: Arc<Beat>,
}

impl<F: Future> Future for Paced<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.beat.enter();
        let polled = self.future.as_mut().poll(context);
        self.beat.leave();
        polled
    }
}

#[cfg(test)]
mod tests {
    use wasmtime::component::Component;

    use super::*;

    #[test]
    fn instances_are_as_many_as_their_memory_holds() {
        assert_eq!([96, 192, 16, 1 << 20].map(|mib| instances(mib << 20)), [512, 1024, 85, limits::INSTANCES_MAX]);
        assert_eq!(instances(0), 1);
    }

    #[test]
    fn components_have_only_so_many_parts() {
        let engine = ServerEngine::new().unwrap();
        for (part, most) in [
            ("", limits::CORE_INSTANCES_PER_COMPONENT_MAX),
            ("(memory 1)", limits::MEMORIES_PER_COMPONENT_MAX),
            ("(table 1 funcref)", limits::TABLES_PER_COMPONENT_MAX),
        ] {
            let component = |count: u32| {
                let instances = "(core instance (instantiate $m))".repeat(count as usize);
                let wasm = wat::parse_str(format!("(component (core module $m {part}) {instances})")).unwrap();
                Component::new(engine.engine(), wasm).map(drop)
            };
            component(most).unwrap();
            let error = format!("{:#}", component(most + 1).unwrap_err());
            assert!(error.contains(&format!("maximum of {most}")), "{part}: {error}");
        }
    }

    #[test]
    fn only_so_many_linkers_are_kept() {
        let engine = ServerEngine::new().unwrap();
        let names: Vec<String> = blocks::all().into_iter().collect();
        for bits in 0..=limits::LINKERS_KEPT_MAX {
            let chosen = names.iter().enumerate().filter(|(place, _)| bits >> place & 1 == 1);
            engine.linker(&chosen.map(|(_, name)| name.clone()).collect()).unwrap();
            assert!(engine.linkers.lock().unwrap().len() <= limits::LINKERS_KEPT_MAX);
        }
        assert_eq!(engine.linkers.lock().unwrap().len(), 1, "they went, and the last one came");
    }
}
