// SPDX-License-Identifier: Apache-2.0
//! A worker process, with the test in the place of the node.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::process::{Child, Command};
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use netserv_model::Refusal;
use netserv_model::effect::ModuleSlot;
use netserv_model::manifest::ModuleLimits;
use netserv_wire::container::frames::{FRAME_BYTES_MAX, FromWorker, PartKind, ToWorker};
use netserv_wire::container::ring::{Answer, HostEnd, Ingress, Returned};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};

pub mod sys;

/// A worker that dies with the test.
pub struct Node {
    pub worker: Child,
    pub control: OwnedFd,
    pub wake_worker: OwnedFd,
    pub wake_host: OwnedFd,
    pub ring: HostEnd<&'static [AtomicU64]>,
    /// The whole ring as the node sees it.
    #[allow(dead_code, reason = "the tests of one of the workers look at it")]
    pub words: &'static [AtomicU64],
}

/// What became of a packet.
#[derive(Debug, PartialEq)]
pub struct Answered {
    pub cookie: u64,
    pub answer: Answer,
    pub module: Option<u8>,
    pub bytes: Vec<u8>,
}

impl Node {
    /// Starts a worker.
    pub fn start(command: Command) -> Node {
        let (control, theirs) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        let (memory, words) = sys::ring();
        let ring = HostEnd::new(words).unwrap();
        let wake_worker = rustix::event::eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        let wake_host = rustix::event::eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        let worker = sys::spawn(command, [&theirs, &memory, &wake_worker, &wake_host]);
        Node { worker, control, wake_worker, wake_host, ring, words }
    }

    pub fn send(&self, frame: &ToWorker, fd: Option<BorrowedFd<'_>>) {
        self.send_with(frame, fd.as_slice());
    }

    /// Sends a frame with descriptors.
    pub fn send_with(&self, frame: &ToWorker, fds: &[BorrowedFd<'_>]) {
        let bytes = frame.encode().unwrap();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            assert!(ancillary.push(SendAncillaryMessage::ScmRights(fds)));
        }
        rustix::net::sendmsg(&self.control, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::empty()).unwrap();
    }

    /// Waits for the next frame.
    pub fn frame(&mut self) -> FromWorker {
        assert!(wait_for(self.control.as_fd()), "the worker says nothing");
        let mut bytes = vec![0; FRAME_BYTES_MAX];
        let (length, _) = rustix::net::recv(&self.control, &mut bytes[..], RecvFlags::empty()).unwrap();
        FromWorker::decode(&bytes[..length]).unwrap()
    }

    /// Sends a load frame, and returns the answer to it.
    pub fn load_file(&mut self, slot: u8, name: &str, code: Option<&File>, limits: ModuleLimits) -> FromWorker {
        self.send_load(slot, name, code, limits, false);
        self.frame()
    }

    /// Sends a load frame.
    pub fn send_load(&mut self, slot: u8, name: &str, code: Option<&File>, limits: ModuleLimits, parallel: bool) {
        let load = ToWorker::Load {
            slot: ModuleSlot(slot),
            module: format!("example.org/{name}@1.0.0").parse().unwrap(),
            properties: BTreeMap::new(),
            limits,
            state_schema: 1,
            parts: vec![PartKind::Packet],
            server: None,
            blocks: ["match", "sip", "hash", "state"].map(str::to_owned).into(),
            parallel,
        };
        self.send(&load, code.map(|code| code.as_fd()));
    }

    /// Asks a module for its state.
    /// Returns the file that it is in, or why it is not; lines of logs are passed over.
    #[allow(dead_code, reason = "not all tests do")]
    pub fn export(&mut self, slot: u8) -> Result<File, Refusal> {
        let (mut reader, writer) = std::io::pipe().unwrap();
        self.send(&ToWorker::Export { slot: ModuleSlot(slot) }, Some(writer.as_fd()));
        drop(writer);
        let mut file = tempfile::tempfile().unwrap();
        std::io::copy(&mut reader, &mut file).unwrap();
        loop {
            let frame = self.frame();
            if let FromWorker::Exported { slot: ModuleSlot(of), refusal } = frame {
                assert_eq!(of, slot);
                return refusal.map_or(Ok(file), Err);
            }
            assert!(matches!(frame, FromWorker::Log { .. }), "{frame:?}");
        }
    }

    pub fn push(&mut self, modules: u64, packets: &[&[u8]]) {
        for (cookie, packet) in packets.iter().enumerate() {
            self.ring.push(packet, Ingress { interface: 1, timestamp_ns: 1 }, modules, cookie as u64).unwrap();
        }
        self.publish();
    }

    pub fn publish(&mut self) {
        if self.ring.publish() {
            rustix::io::write(&self.wake_worker, &1_u64.to_ne_bytes()).unwrap();
        }
    }

    /// Waits for as many answers; what is injected meanwhile is put aside.
    pub fn answers(&mut self, count: usize, injected: &mut Vec<Vec<u8>>) -> Vec<Answered> {
        let (mut answered, mut stray) = (Vec::new(), 0);
        while answered.len() < count {
            match self.ring.pop().unwrap() {
                Some(Returned::Answer { cookie, answer, bytes, module, .. }) => {
                    answered.push(Answered {
                        cookie,
                        answer,
                        module: module.map(|slot| slot.0),
                        bytes: bytes.to_vec(),
                    });
                }
                Some(Returned::Injected { bytes, .. }) => injected.push(bytes.to_vec()),
                None => {
                    self.publish();
                    if self.ring.prepare_sleep() {
                        assert!(wait_for(self.wake_host.as_fd()), "the worker does not answer");
                        rustix::io::read(&self.wake_host, &mut [0; 8]).unwrap();
                    }
                    stray += 1;
                    assert!(stray < 10_000, "woken without a reason");
                }
            }
        }
        self.publish();
        answered
    }

    pub fn round(&mut self, modules: u64, packet: &[u8]) -> Answered {
        self.push(modules, &[packet]);
        self.answers(1, &mut Vec::new()).remove(0)
    }

    /// Returns how long the worker's threads ran, in whole hundredths of a second.
    #[allow(dead_code, reason = "the tests of one of the workers look at it")]
    pub fn cpu_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.worker.id())).unwrap();
        let fields = stat.rsplit(')').next().unwrap().split_whitespace();
        let ticks: u64 = fields.skip(11).take(2).map(|field| field.parse::<u64>().unwrap()).sum();
        Duration::from_millis(ticks * 10)
    }

    /// Returns how often each thread of the worker went to sleep, by its name.
    #[allow(dead_code, reason = "the tests of one of the workers look at it")]
    pub fn switches(&self) -> BTreeMap<String, u64> {
        let mut switches = BTreeMap::new();
        for task in std::fs::read_dir(format!("/proc/{}/task", self.worker.id())).unwrap() {
            let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap();
            let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
            *switches.entry(field("Name:").to_owned()).or_default() +=
                field("voluntary_ctxt_switches:").parse::<u64>().unwrap();
        }
        switches
    }

    /// Returns the processor time that the worker has had.
    #[allow(dead_code, reason = "the tests of one of the workers look at it")]
    pub fn processor_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.worker.id())).unwrap();
        // proc(5): the name, which is in brackets, is the second field; `utime` and `stime` are the 14th and 15th.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
        Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second())
    }

    /// Returns a line of what the kernel says of the worker's memory.
    pub fn memory_kib(&self, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.worker.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }
}

/// A further lane of the node.
pub struct Lane {
    pub ring: HostEnd<&'static [AtomicU64]>,
    pub wake_worker: OwnedFd,
    pub wake_host: OwnedFd,
    pub words: &'static [AtomicU64],
}

impl Node {
    /// Adds a lane to the worker.
    pub fn add_lane(&self) -> Lane {
        let (memory, words) = sys::ring();
        let ring = HostEnd::new(words).unwrap();
        let wake = || rustix::event::eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        let (wake_worker, wake_host) = (wake(), wake());
        self.send_with(&ToWorker::Lane, &[memory.as_fd(), wake_worker.as_fd(), wake_host.as_fd()]);
        Lane { ring, wake_worker, wake_host, words }
    }

    /// Has a lane be the one that [`Node::push`] and [`Node::answers`] are about, in the place of the one that was.
    pub fn exchange(&mut self, lane: &mut Lane) {
        std::mem::swap(&mut self.ring, &mut lane.ring);
        std::mem::swap(&mut self.wake_worker, &mut lane.wake_worker);
        std::mem::swap(&mut self.wake_host, &mut lane.wake_host);
        std::mem::swap(&mut self.words, &mut lane.words);
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.worker.kill();
        let _ = self.worker.wait();
    }
}

/// Waits until a descriptor is readable. Returns whether it is within a minute.
pub fn wait_for(fd: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    rustix::event::poll(&mut fds, Some(&Timespec { tv_sec: 60, tv_nsec: 0 })).unwrap() == 1
}
