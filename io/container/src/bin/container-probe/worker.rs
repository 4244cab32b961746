// SPDX-License-Identifier: Apache-2.0
//! The probe as a worker.

use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use netserv_model::effect::ModuleSlot;
use netserv_model::{Refusal, RefusalKind};
use netserv_wire::container::frames::{FRAME_BYTES_MAX, FromWorker, LogLevel, ToWorker};
use netserv_wire::container::ring::{Answer, WorkerEnd};
use netserv_wire::container::{CONTROL_FD, RING_FD, WAKE_HOST_FD, WAKE_WORKER_FD};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{RecvFlags, SendFlags};

use crate::{attempts, sys};

type Ring = WorkerEnd<&'static [AtomicU64]>;

/// Answers frames with attempts, and packets with themselves, their last byte changed.
pub(crate) fn serve() -> ExitCode {
    let control = sys::inherited(CONTROL_FD);
    let memory = sys::map_ring(&sys::inherited(RING_FD));
    let (wake_worker, wake_host) = (sys::inherited(WAKE_WORKER_FD), sys::inherited(WAKE_HOST_FD));
    let mut ring = WorkerEnd::new(memory).expect("the node laid the ring out");
    send(&control, &FromWorker::Ready { abi: 1, engine: "probe".to_owned() });
    loop {
        echo(&mut ring, &wake_host);
        if !ring.prepare_sleep() {
            continue;
        }
        let mut fds = [PollFd::new(&control, PollFlags::IN), PollFd::new(&wake_worker, PollFlags::IN)];
        poll(&mut fds, None).expect("poll is allowed");
        let [control_ready, _] = fds.map(|fd| !fd.revents().is_empty());
        ring.cancel_sleep();
        let _ = rustix::io::read(&wake_worker, &mut [0; 8][..]);
        if control_ready {
            let Some(frame) = receive(&control) else { return ExitCode::SUCCESS };
            if frame == ToWorker::Shutdown {
                return ExitCode::SUCCESS;
            }
            if let ToWorker::Load { slot, module, properties, .. } = frame {
                let name = module.name.as_str().trim_start_matches("probe.test/").to_owned();
                if name == "scribble" {
                    scribble(memory, &wake_host);
                } else if name == "flood" {
                    flood(&control);
                }
                let text = attempts::run(&name, &properties);
                send(&control, &FromWorker::Log { slot: Some(slot), level: LogLevel::Info, text });
            }
        }
    }
}

fn echo(ring: &mut Ring, wake_host: &OwnedFd) {
    let mut buffer = [0; 2048];
    while let Some(mut arrival) = ring.pop().expect("the node keeps the rules") {
        let length = arrival.length();
        ring.read(&arrival, &mut buffer[..length]);
        ring.enter(ModuleSlot(2));
        buffer[length - 1] ^= 0xff;
        ring.leave();
        if arrival.modules == 1 << 63 {
            let _ = ring.inject(&buffer[..length], ModuleSlot(2));
        }
        ring.write(&mut arrival, &buffer[..length]).expect("it fitted before");
        ring.answer(arrival, Answer::Modified, Some(ModuleSlot(2))).expect("the node keeps the rules");
    }
    if ring.publish() {
        let _ = rustix::io::write(wake_host, &1_u64.to_ne_bytes());
    }
}

/// Fills all but the slots with nonsense, again and again.
fn scribble(memory: &[AtomicU64], wake_host: &OwnedFd) -> ! {
    let mut word = 0x9e37_79b9_7f4a_7c15_u64;
    loop {
        for place in &memory[16..4096] {
            word ^= word << 13;
            word ^= word >> 7;
            word ^= word << 17;
            place.store(word >> (word % 64), Ordering::Relaxed);
        }
        let _ = rustix::io::write(wake_host, &1_u64.to_ne_bytes());
    }
}

/// Sends more than anybody reads, with descriptors beside it.
fn flood(control: &OwnedFd) -> ! {
    loop {
        send(control, &FromWorker::Log { slot: None, level: LogLevel::Error, text: "x".repeat(4096) });
    }
}

fn send(control: &OwnedFd, frame: &FromWorker) {
    let bytes = frame.encode().expect("the probe's frames are short");
    let _ = rustix::net::send(control, &bytes, SendFlags::NOSIGNAL);
}

fn receive(control: &OwnedFd) -> Option<ToWorker> {
    let mut bytes = vec![0; FRAME_BYTES_MAX];
    let (length, _) = rustix::net::recv(control, &mut bytes, RecvFlags::empty()).ok()?;
    (length > 0).then(|| ToWorker::decode(&bytes[..length]).expect("the node sends frames"))
}

/// Compiles as the inputs together say: copies them, refuses them, hangs, computes without end, crashes or takes all memory.
pub(crate) fn compile(inputs: &[&str], out: &str) -> ExitCode {
    let input = inputs.iter().map(|input| std::fs::read(input).expect("the input is readable"));
    let input = input.collect::<Vec<_>>().join(&b'+');
    match &input[..] {
        b"refuse" => {
            let refusal = Refusal::new(RefusalKind::AbiMismatch, "no netserv_process");
            eprintln!("{}", serde_json::to_string(&refusal).expect("a refusal is plain data"));
            return ExitCode::FAILURE;
        }
        b"hang" => loop {
            std::thread::sleep(std::time::Duration::from_secs(1));
        },
        b"burn" => attempts::burn_on_all(2),
        b"crash" => panic!("the compiler's own fault"),
        b"memory" => {
            attempts::run("memory", &Default::default());
        }
        b"symlink" => {
            let linked = std::os::unix::fs::symlink("/etc/passwd", out);
            return if linked.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
        b"nothing" => return ExitCode::SUCCESS,
        _ => {}
    }
    let mut copy = std::fs::File::create(out).expect("the output is writable");
    copy.write_all(b"compiled ").and_then(|()| copy.write_all(&input)).expect("the output is writable");
    ExitCode::SUCCESS
}
