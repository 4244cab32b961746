// SPDX-License-Identifier: Apache-2.0
//! States of modules on their way out: a worker writes one into a pipe, and a thread reads it and puts it
//! where the module's user wants it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use netserv_model::effect::{EffectOutcome, ModuleExport, ModuleSlot};
use netserv_model::limits::STATE_BYTES_MAX;
use netserv_model::{Refusal, RefusalKind, WorkerId};
use netserv_repository::{FetchLimits, Repository};
use netserv_wire::container::frames::ToWorker;
use netserv_wire::state::ModuleState;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

use super::Workers;
use crate::effects::ticket::Ticket;
use crate::limits::STATE_SAY_TIME_MAX;

/// Bytes of a state that are read at once.
const PIECE_BYTES: usize = 64 * 1024;

/// Whether a worker has written a state, or why not.
type Verdict = Result<(), Refusal>;

/// The modules of one worker that were asked for their states and have not said them.
#[derive(Default)]
pub(super) struct Exports {
    asked: BTreeMap<ModuleSlot, SyncSender<Verdict>>,
}

impl Exports {
    /// Refuses those of one module, or of all.
    pub(super) fn end(&mut self, slot: Option<ModuleSlot>) {
        let is_meant = |place: &ModuleSlot| slot.is_none_or(|slot| *place == slot);
        self.asked.retain(|place, asked| {
            if is_meant(place) {
                tell(asked, Err(not_running()));
            }
            !is_meant(place)
        });
    }
}

impl Workers {
    /// Asks a module for its state.
    pub(super) fn export(&mut self, export: ModuleExport, ticket: Ticket) {
        let running = self.workers.get_mut(&export.worker).filter(|running| running.dying.is_none());
        let Some(running) = running.filter(|running| running.pinned.contains_key(&export.slot)) else {
            return ticket.refuse(not_running());
        };
        if running.exports.asked.contains_key(&export.slot) {
            let detail = "the module is asked for its state already";
            return ticket.refuse(Refusal::new(RefusalKind::QuotaExceeded, detail));
        }
        let (pipe, theirs) = match pipe_with(PipeFlags::CLOEXEC) {
            Ok(ends) => ends,
            Err(error) => return ticket.refuse(node_failed(&format!("there is no pipe for the state: {error}"))),
        };
        let (slot, (asked, verdict)) = (export.slot, sync_channel(1));
        let reading = Reading { pipe: File::from(pipe), verdict, until: Instant::now() + STATE_SAY_TIME_MAX };
        let repository = Arc::clone(&self.parts.repository);
        let put = move || match reading.take().and_then(|bytes| put(&bytes, &export, &repository)) {
            Ok(outcome) => ticket.answer(outcome, None),
            Err(refusal) => ticket.refuse(refusal),
        };
        // Without a thread, the ticket is dropped, which answers it.
        if let Err(error) = std::thread::Builder::new().name("export".to_owned()).spawn(put) {
            tracing::error!(%error, "the system gives no thread to write a state");
            return;
        }
        // The pipe ends with the worker, since the node keeps no other end of it.
        match running.control.send(&ToWorker::Export { slot }, &[OwnedFd::as_fd(&theirs)]) {
            Ok(()) => drop(running.exports.asked.insert(slot, asked)),
            Err(_) => tell(&asked, Err(node_failed("the worker of the user's modules is behind with its messages"))),
        }
    }

    /// Takes what a worker says of a state; of one that nobody asked about it may say anything.
    pub(super) fn exported(&mut self, worker: &WorkerId, slot: ModuleSlot, refusal: Option<Refusal>) {
        let asked = self.workers.get_mut(worker).and_then(|running| running.exports.asked.remove(&slot));
        let Some(asked) = asked else { return };
        let refusal = refusal.map(|refusal| {
            // Its kind and text are the worker's.
            let is_gone = refusal.kind == RefusalKind::NotRunning;
            let kind = if is_gone { RefusalKind::NotRunning } else { RefusalKind::StateRefused };
            Refusal { kind, ..refusal }.clean()
        });
        tell(&asked, refusal.map_or(Ok(()), Err));
    }
}

/// Tells the thread that reads a state; one that has ended needs to know nothing.
fn tell(asked: &SyncSender<Verdict>, verdict: Verdict) {
    let _ = asked.try_send(verdict);
}

/// A state that a worker was asked for.
struct Reading {
    pipe: File,
    verdict: Receiver<Verdict>,
    until: Instant,
}

impl Reading {
    /// Returns what the worker wrote, once it has written all of it and says so.
    fn take(mut self) -> Result<Vec<u8>, Refusal> {
        let read = self.read();
        // Why the worker has written none says more than what is missing.
        let verdict = match &read {
            Ok(_) => self.verdict.recv_timeout(self.left()),
            Err(_) => self.verdict.try_recv().map_err(|_| RecvTimeoutError::Timeout),
        };
        match (verdict, read) {
            (Ok(Err(refusal)), _) | (_, Err(refusal)) => Err(refusal),
            (Ok(Ok(())), Ok(bytes)) => Ok(bytes),
            (Err(RecvTimeoutError::Timeout), Ok(_)) => Err(too_slow()),
            (Err(RecvTimeoutError::Disconnected), Ok(_)) => Err(not_running()),
        }
    }

    /// Reads to the end of the pipe, which comes at the latest when the worker ends.
    fn read(&mut self) -> Result<Vec<u8>, Refusal> {
        let failed = |error: std::io::Error| node_failed(&format!("the state cannot be read: {error}"));
        let (mut bytes, mut piece) = (Vec::new(), vec![0; PIECE_BYTES]);
        loop {
            let left = Timespec::try_from(self.left()).ok();
            match poll(&mut [PollFd::new(&self.pipe, PollFlags::IN)], left.as_ref()) {
                Ok(0) => return Err(too_slow()),
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(failed(error.into())),
            }
            let length = self.pipe.read(&mut piece).map_err(failed)?;
            if length == 0 {
                return Ok(bytes);
            }
            bytes.extend_from_slice(&piece[..length]);
            if bytes.len() as u64 > STATE_BYTES_MAX {
                let detail = format!("the worker wrote more than the {STATE_BYTES_MAX} bytes that may move");
                return Err(Refusal::new(RefusalKind::StateRefused, detail));
            }
        }
    }

    fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }
}

/// Puts what a worker wrote where the module's user wants it, if it is the module's state.
fn put(bytes: &[u8], export: &ModuleExport, repository: &Repository) -> Result<EffectOutcome, Refusal> {
    let state = ModuleState::parse(bytes).and_then(|state| state.check(&export.module, export.state_schema));
    state.map_err(|error| {
        Refusal::new(RefusalKind::StateRefused, format!("the worker wrote something else: {error}"))
    })?;
    let digest =
        repository.put_state(&export.url, bytes, (&export.worker.user, &export.module), &FetchLimits::default())?;
    Ok(EffectOutcome::Exported { digest, bytes: bytes.len() as u64 })
}

fn not_running() -> Refusal {
    Refusal::new(RefusalKind::NotRunning, "the module does not run at the moment")
}

fn too_slow() -> Refusal {
    let detail = format!("the module's state was not written within {} s", STATE_SAY_TIME_MAX.as_secs());
    Refusal::new(RefusalKind::Timeout, detail)
}

fn node_failed(detail: &str) -> Refusal {
    Refusal::new(RefusalKind::NodeFailed, detail)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Write;
    use std::thread;

    use super::*;

    /// Goal: what a worker writes goes nowhere unless it is a state of its module.
    #[test]
    fn what_is_no_state_of_the_module_goes_nowhere() {
        let dir = tempfile::tempdir().unwrap();
        let repository = Repository::open(dir.path(), netserv_repository::Config::default()).unwrap();
        let export = ModuleExport {
            worker: WorkerId::new("jane".parse().unwrap(), netserv_model::Flavour::Wasm),
            slot: ModuleSlot(0),
            module: "example.org/m".parse().unwrap(),
            state_schema: 1,
            url: "https://r.example/s".to_owned(),
        };
        let refusal = |bytes: &[u8]| put(bytes, &export, &repository).unwrap_err();
        let whole = state(1);
        for none in [b"".as_slice(), &state(2), &whole[..whole.len() - 1]] {
            let told = refusal(none);
            assert_eq!(told.kind, RefusalKind::StateRefused);
            assert!(told.detail.contains("something else"), "{told}");
        }
        // The host is not one that the node writes to.
        let told = refusal(&whole);
        assert_eq!(told.kind, RefusalKind::BadUrl);
        assert!(told.detail.contains("fetch.put-hosts"), "{told}");
    }

    #[test]
    fn a_state_is_read_in_pieces_to_its_end() {
        let bytes: Vec<u8> = (0..PIECE_BYTES * 5 + 7).map(|at| at.to_le_bytes()[0]).collect();
        let written = bytes.clone();
        assert_eq!(read(SHORT * 100, move |pipe| (pipe.write_all(&written), Some(Ok(()))).1).unwrap(), bytes);
    }

    /// Goal: a worker that writes nothing, stalls in the middle, says nothing or ends is an error by name, soon.
    #[test]
    fn a_worker_that_does_not_write_a_state_is_refused_by_name() {
        let refused = |worker: fn(&mut File) -> Option<Verdict>| read(SHORT, worker).unwrap_err();
        let stalls = refused(|_| {
            thread::sleep(SHORT * 5);
            Some(Ok(()))
        });
        assert_eq!(stalls.kind, RefusalKind::Timeout);
        let stalls = refused(|pipe| {
            pipe.write_all(b"NSSTATE").unwrap();
            thread::sleep(SHORT * 5);
            None
        });
        assert_eq!(stalls.kind, RefusalKind::Timeout);
        // What it has is not taken before it says that this is all, and a worker that is gone says nothing.
        assert_eq!(refused(|pipe| pipe.write_all(b"NSSTATE").err().map(|_| Ok(()))).kind, RefusalKind::NotRunning);
        let ends = refused(|pipe| {
            pipe.write_all(b"NSSTATE").unwrap();
            Some(Err(not_running()))
        });
        assert_eq!(ends.kind, RefusalKind::NotRunning);
        let mut quiet = Reading { until: Instant::now() + SHORT, ..reading().0 };
        let (asked, verdict) = sync_channel(1);
        quiet.verdict = verdict;
        assert_eq!(quiet.take().unwrap_err().kind, RefusalKind::Timeout);
        drop(asked);
    }

    #[test]
    fn a_worker_that_writes_without_end_is_cut_off() {
        let refused = read(SHORT * 1000, |pipe| {
            let piece = vec![0; PIECE_BYTES];
            while pipe.write_all(&piece).is_ok() {}
            Some(Err(not_running()))
        });
        let refused = refused.unwrap_err();
        assert_eq!(refused.kind, RefusalKind::StateRefused);
        assert!(refused.detail.contains("67108864"), "{refused}");
    }

    const SHORT: Duration = Duration::from_millis(50);

    fn reading() -> (Reading, File, SyncSender<Verdict>) {
        let (pipe, theirs) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let (asked, verdict) = sync_channel(1);
        let until = Instant::now() + Duration::from_secs(60);
        (Reading { pipe: File::from(pipe), verdict, until }, File::from(theirs), asked)
    }

    /// Reads what a worker writes, which says at its end what it returns.
    fn read(
        time: Duration,
        worker: impl FnOnce(&mut File) -> Option<Verdict> + Send + 'static,
    ) -> Result<Vec<u8>, Refusal> {
        let (reading, mut theirs, asked) = reading();
        let reading = Reading { until: Instant::now() + time, ..reading };
        let writes = thread::spawn(move || {
            let verdict = worker(&mut theirs);
            drop(theirs);
            verdict.into_iter().for_each(|verdict| tell(&asked, verdict));
        });
        let read = reading.take();
        writes.join().unwrap();
        read
    }

    fn state(schema: u32) -> Vec<u8> {
        let (parts, entries) = (BTreeMap::new(), Vec::new());
        ModuleState { module: "example.org/m".parse().unwrap(), schema, parts, entries }.to_bytes().unwrap()
    }
}
