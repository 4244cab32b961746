// SPDX-License-Identifier: Apache-2.0
//! The processes that run, each in a place of its own; a place is a user id.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use netserv_model::{Flavour, UserId};

use super::report::last_words;
use crate::limits::PROCESSES_MAX;
use crate::protocol::{ExitReport, Reply};
use crate::sandbox::cgroup::Group;
use crate::sys;

/// A worker, compilation or media job that runs.
pub(super) struct Running {
    /// The user and flavour of a worker; nothing for a process that is none.
    pub(super) worker: Option<(UserId, Flavour)>,
    pub(super) pid: i32,
    pub(super) pidfd: OwnedFd,
    /// Seconds of processor time that it has; nothing for what runs as long as it is wanted.
    pub(super) cpu_seconds: Option<u64>,
    /// Shared with the user's other worker.
    pub(super) group: Rc<Group>,
    pub(super) stderr: OwnedFd,
    pub(super) exit: OwnedFd,
}

impl Running {
    /// Collects the process, which ended or is about to, and tells the node how. Returns its groups.
    pub(super) fn collect(self) -> Rc<Group> {
        let ended = sys::wait(self.pid).ok();
        let signal = ended.as_ref().and_then(|ended| ended.signal);
        // The limit counts by ticks of the clock and the sum by the scheduler's, which differ on a busy machine. Nobody else
        // kills a build before its time but for want of memory, so that half of it is enough to tell the reason.
        let is_over = |(ended, most): (&sys::Ended, u64)| ended.cpu_time * 2 >= Duration::from_secs(most);
        let over_time = ended.as_ref().zip(self.cpu_seconds).is_some_and(is_over);
        let out_of_memory = signal.is_some() && self.group.take_out_of_memory();
        let report = ExitReport {
            code: ended.as_ref().and_then(|ended| ended.code),
            signal,
            out_of_memory,
            out_of_cpu_time: signal == Some(libc::SIGKILL) && !out_of_memory && over_time,
            cpu_ns: ended.as_ref().map_or(0, |ended| u64::try_from(ended.cpu_time.as_nanos()).unwrap_or(u64::MAX)),
            stderr: last_words(self.stderr),
        };
        let bytes = serde_json::to_vec(&report).expect("a report is plain data");
        // The node may have forgotten the container already.
        let _ = File::from(self.exit).write_all(&bytes);
        self.group
    }
}

/// All places, free or taken.
pub(super) struct Places {
    places: Vec<Option<Running>>,
    /// The first user id; nothing if there is but one.
    uid_base: Option<u32>,
}

impl Places {
    pub(super) fn new(uid_base: Option<u32>) -> Places {
        Places { places: std::iter::repeat_with(|| None).take(PROCESSES_MAX).collect(), uid_base }
    }

    /// Returns the first free place, or the refusal if there is none.
    pub(super) fn free(&self) -> Result<usize, Reply> {
        self.places.iter().position(Option::is_none).ok_or_else(|| Reply::Failed {
            step: "find a free place".to_owned(),
            detail: format!("{PROCESSES_MAX} containers run"),
            quota: true,
        })
    }

    /// Returns the user id of a place.
    pub(super) fn uid(&self, place: usize) -> Option<u32> {
        let place = u32::try_from(place).expect("places are few");
        self.uid_base.map(|base| base + place)
    }

    pub(super) fn put(&mut self, place: usize, process: Running) {
        self.places[place] = Some(process);
    }

    pub(super) fn get(&self, place: usize) -> Option<&Running> {
        self.places[place].as_ref()
    }

    pub(super) fn take(&mut self, place: usize) -> Option<Running> {
        self.places[place].take()
    }

    /// Returns the processes that run, with their places.
    pub(super) fn running(&self) -> impl Iterator<Item = (usize, &Running)> {
        self.places.iter().enumerate().filter_map(|(place, one)| Some((place, one.as_ref()?)))
    }

    /// Returns the places of a user's workers of one flavour.
    pub(super) fn workers_of(&self, user: &UserId, flavour: Flavour) -> Vec<usize> {
        let is_theirs =
            |process: &Running| process.worker.as_ref().is_some_and(|one| one.0 == *user && one.1 == flavour);
        self.running().filter(|(_, process)| is_theirs(process)).map(|(place, _)| place).collect()
    }

    /// Returns the groups of a user's workers that run.
    pub(super) fn groups_of<'a>(&'a self, user: &'a UserId) -> impl Iterator<Item = &'a Group> {
        let is_theirs = move |process: &&Running| process.worker.as_ref().is_some_and(|(owner, _)| owner == user);
        self.running().map(|(_, process)| process).filter(is_theirs).map(|process| &*process.group)
    }

    /// Returns the groups of a build that runs.
    pub(super) fn build(&self, pid: i32) -> Option<&Group> {
        let is_it = |process: &Running| process.pid == pid && process.cpu_seconds.is_some();
        self.running().find(|(_, process)| is_it(process)).map(|(_, process)| &*process.group)
    }

    /// Returns the groups of one of a user's workers that run.
    pub(super) fn group_of(&self, user: &UserId, pid: i32) -> Option<Rc<Group>> {
        let is_theirs = |process: &Running| process.worker.as_ref().is_some_and(|(owner, _)| owner == user);
        let found = self.running().find(|(_, process)| process.pid == pid && is_theirs(process));
        found.map(|(_, process)| Rc::clone(&process.group))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::UID_BASE;
    use crate::sandbox::cgroup::Cgroups;

    #[test]
    fn every_place_has_its_user_and_there_are_no_more() {
        let cgroups = Cgroups::prepare("", "ns-container-none", None);
        let mut places = Places::new(Some(UID_BASE));
        let null = || OwnedFd::from(File::open("/dev/null").unwrap());
        for expected in 0..PROCESSES_MAX {
            assert_eq!(places.free().unwrap(), expected);
            let group = Rc::new(cgroups.create("c").unwrap());
            let (stderr, exit) = (null(), null());
            let (pidfd, cpu_seconds) = (null(), None);
            places.put(expected, Running { worker: None, pid: 1, pidfd, cpu_seconds, group, stderr, exit });
        }
        assert_eq!(places.uid(PROCESSES_MAX - 1), Some(UID_BASE + 1023));
        assert!(matches!(places.free(), Err(Reply::Failed { quota: true, .. })));
        places.take(7);
        assert_eq!(places.free().unwrap(), 7);
    }
}
