// SPDX-License-Identifier: Apache-2.0
//! What has an eye on tests that do not come back, or that end the JVM.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use netserv_model::{Refusal, RefusalKind};
use netserv_worker_jvm::outbox::{FromJava, Outbox};
use netserv_worker_jvm::{End, replace_program};

use crate::tools::test::case::{Finished, Report};
use crate::tools::test::jobs::Jobs;

/// The tests of a run, and which of them is at it.
pub(super) struct Watch {
    jobs: Jobs,
    data: PathBuf,
    state: Mutex<State>,
    news: Condvar,
}

#[derive(Default)]
struct State {
    job: usize,
    /// Whether a thread has taken it upon itself to report this job.
    is_reported: bool,
    /// When the call that runs must have come back.
    deadline: Option<Instant>,
}

impl Watch {
    /// Watches over tests, whose bundles are in `data`.
    pub(super) fn new(jobs: Jobs, data: PathBuf) -> Watch {
        Watch { jobs, data, state: Mutex::default(), news: Condvar::new() }
    }

    /// Returns the tests.
    pub(super) fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    /// Says which test begins.
    pub(super) fn begin(&self, job: usize) {
        let mut state = self.state();
        state.job = job;
        state.is_reported = false;
    }

    /// Reports the test that runs. Returns whether it passed. Does not return if the JVM ended meanwhile.
    ///
    /// # Errors
    /// The packets that came out cannot be kept.
    pub(super) fn finish(&self, report: Report) -> anyhow::Result<bool> {
        match self.take() {
            Some(number) => self.print(number, report),
            None => loop {
                // Another thread is about to put another program in the place of this one.
                std::thread::park();
            },
        }
    }

    /// Reports tests whose calls take too long. Does not return.
    pub(super) fn run(&self) {
        let mut state = self.state();
        loop {
            let left = state.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                drop(state);
                self.abandon(&Refusal::new(RefusalKind::Stalled, "a call of the module took longer than its limit"));
            }
            // Woken too often is as good as woken late: the deadline is looked at again.
            let waited = self.news.wait_timeout(state, left.unwrap_or(Duration::MAX));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Sees to it that `call` comes back within so long.
    pub(super) fn over<T>(&self, at_most: Duration, call: impl FnOnce() -> T) -> T {
        self.state().deadline = Some(Instant::now() + at_most);
        self.news.notify_one();
        let result = call();
        self.state().deadline = None;
        result
    }

    /// Reports the test that ended the JVM. Does not return.
    pub(super) fn jvm_ended(&self, end: End, outbox: &Outbox) -> i32 {
        // The host may have said already whose fault it is.
        let told = std::iter::from_fn(|| outbox.poll_event()).find_map(|event| match event {
            FromJava::Failed(_, refusal) => Some(refusal),
            FromJava::Ready(_) | FromJava::Loaded(_) | FromJava::Stats(..) | FromJava::StatsDone => None,
        });
        self.abandon(&told.unwrap_or_else(|| match end {
            End::Exit(code) => Refusal::new(RefusalKind::Trapped, format!("the module ended the JVM with code {code}")),
            End::Abort => Refusal::new(RefusalKind::Trapped, "the module broke the JVM"),
        }))
    }

    /// Reports the test that runs as failed, if that was not done, and runs those behind it in a new program.
    pub(super) fn abandon(&self, refusal: &Refusal) -> ! {
        if let Some(number) = self.take() {
            let failure = Some(refusal.clone());
            let job = self.jobs.iter().nth(number).expect("a job that runs is one of them");
            let report = Report::new(&job.case, Finished { failure, ..Finished::default() }, Vec::new());
            if let Err(error) = self.print(number, report) {
                eprintln!("test: {error:#}");
            }
        }
        self.go_on()
    }

    /// Runs the tests behind this one in a new program, in the place of this one.
    pub(super) fn go_on(&self) -> ! {
        let next = self.state().job + 1;
        let _ = std::fs::remove_dir_all(&self.data);
        let error = replace_program(with_skip(std::env::args_os().skip(1), next));
        eprintln!("test: cannot go on: {error}");
        std::process::exit(2)
    }

    /// Takes it upon the calling thread to report the test that runs, and returns its number.
    fn take(&self) -> Option<usize> {
        let mut state = self.state();
        (!std::mem::replace(&mut state.is_reported, true)).then_some(state.job)
    }

    fn print(&self, number: usize, report: Report) -> anyhow::Result<bool> {
        let job = self.jobs.iter().nth(number).expect("a job that runs is one of them");
        self.jobs.finish(job, report)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the arguments with another number of tests to skip.
fn with_skip(arguments: impl Iterator<Item = OsString>, skip: usize) -> Vec<OsString> {
    let mut kept: Vec<OsString> =
        arguments.filter(|argument| !argument.to_string_lossy().starts_with("--skip=")).collect();
    kept.push(format!("--skip={skip}").into());
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_run_is_skipped() {
        let arguments = |texts: &[&str]| texts.iter().map(OsString::from).collect::<Vec<_>>();
        let first = with_skip(arguments(&["test", "--wasm=x"]).into_iter(), 1);
        assert_eq!(first, arguments(&["test", "--wasm=x", "--skip=1"]));
        assert_eq!(with_skip(first.into_iter(), 3), arguments(&["test", "--wasm=x", "--skip=3"]));
    }
}
