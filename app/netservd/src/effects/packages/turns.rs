// SPDX-License-Identifier: Apache-2.0
//! Who compiles at the moment.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use netserv_model::{Digest, Refusal, RefusalKind};

use crate::limits::COMPILES_MAX;

/// Lets each package, or composition of packages, be compiled by one at a time, and [`COMPILES_MAX`] of them in all.
#[derive(Default)]
pub struct Gate {
    state: Mutex<Compiling>,
    changed: Condvar,
}

#[derive(Default)]
struct Compiling {
    /// Those under way or waiting, each with what it ends with for everybody who waits for it.
    packages: BTreeMap<Vec<Digest>, Arc<OnceLock<Result<(), Refusal>>>>,
    running: usize,
}

impl Gate {
    /// Does the work, or waits until somebody else has done it for the same package and returns what came of that.
    ///
    /// # Errors
    /// Those of the work.
    pub fn once(&self, packages: &[Digest], work: impl FnOnce() -> Result<(), Refusal>) -> Result<(), Refusal> {
        let mut state = self.state();
        if let Some(result) = state.packages.get(packages).cloned() {
            let _state = self.wait_while(state, |_| result.get().is_none());
            return result.get().cloned().unwrap_or_else(|| Err(unfinished()));
        }
        let result = Arc::new(OnceLock::new());
        state.packages.insert(packages.to_vec(), result.clone());
        state = self.wait_while(state, |state| state.running >= COMPILES_MAX);
        state.running += 1;
        drop(state);
        // Leaves the gate also when the work panics.
        let turn = Turn { gate: self, packages, result };
        let done = work();
        // Nobody else sets it.
        let _ = turn.result.set(done.clone());
        done
    }

    fn wait_while<'a>(
        &self,
        state: MutexGuard<'a, Compiling>,
        condition: impl Fn(&Compiling) -> bool,
    ) -> MutexGuard<'a, Compiling> {
        self.changed.wait_while(state, |state| condition(state)).unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, Compiling> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Turn<'a> {
    gate: &'a Gate,
    packages: &'a [Digest],
    result: Arc<OnceLock<Result<(), Refusal>>>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.gate.state();
        let _ = self.result.set(Err(unfinished()));
        state.running -= 1;
        state.packages.remove(self.packages);
        self.gate.changed.notify_all();
    }
}

fn unfinished() -> Refusal {
    Refusal::new(RefusalKind::NodeFailed, "the compilation did not come to an end")
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_package_is_compiled_once_for_all_who_wait_for_it() {
        let refusal = Refusal::new(RefusalKind::BadCode, "no module");
        for result in [Ok(()), Err(refusal)] {
            let (gate, times, arrived) = (Gate::default(), AtomicUsize::new(0), Barrier::new(20));
            std::thread::scope(|scope| {
                for _ in 0..20 {
                    scope.spawn(|| {
                        arrived.wait();
                        let work = || {
                            times.fetch_add(1, Ordering::SeqCst);
                            // The gate holds it, and each of the twenty.
                            while Arc::strong_count(&gate.state().packages[&[Digest([1; 32])][..]]) < 21 {
                                std::thread::yield_now();
                            }
                            result.clone()
                        };
                        assert_eq!(gate.once(&[Digest([1; 32])], work), result);
                    });
                }
            });
            assert_eq!(times.into_inner(), 1);
            assert_eq!(gate.once(&[Digest([1; 32])], || Ok(())), Ok(()), "a later attempt is one of its own");
        }
    }

    #[test]
    fn compiles_max_packages_are_compiled_at_a_time() {
        let (gate, inside, most) = (Gate::default(), AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for digest in 0..8 {
                let (gate, inside, most) = (&gate, &inside, &most);
                let work = move || {
                    most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::sleep(Duration::from_millis(20));
                    inside.fetch_sub(1, Ordering::SeqCst);
                    Ok(())
                };
                scope.spawn(move || gate.once(&[Digest([digest; 32])], work).unwrap());
            }
        });
        assert_eq!(most.into_inner(), COMPILES_MAX);
    }

    #[test]
    fn a_compilation_that_panics_lets_others_through() {
        let gate = Gate::default();
        for _ in 0..=COMPILES_MAX {
            let work = || gate.once(&[Digest([1; 32])], || panic!("as it must be here"));
            assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err());
        }
        assert_eq!(gate.once(&[Digest([1; 32])], || Ok(())), Ok(()));
    }
}
