// SPDX-License-Identifier: Apache-2.0
//! The node's end of the packet ring against a worker that writes what it likes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use netserv_model::effect::ModuleSlot;
use netserv_model::limits::PACKET_BYTES_MAX;
use netserv_wire::container::ring::{
    Answer, HOST_SLOTS, HostEnd, Ingress, MAPPING_WORDS, Returned, RingError, SLOTS_OFFSET, WorkerEnd,
};

use crate::input::Input;

/// Plays a node's packet thread while the worker answers, injects and scribbles.
///
/// # Panics
/// If a packet comes back that was not under way, or one that is longer than a slot, or if work goes on after the worker
/// broke the rules.
pub fn packet_ring(data: &[u8]) {
    let memory: Arc<[AtomicU64]> = (0..MAPPING_WORDS).map(|_| AtomicU64::new(0)).collect();
    let mut host = HostEnd::new(Arc::clone(&memory)).expect("the memory has the right size");
    let mut worker = WorkerEnd::new(Arc::clone(&memory)).expect("the host laid the ring out");
    let mut input = Input::new(data);
    let (mut pushed, mut broken) = (0, None);
    while let Some(step) = input.next() {
        match step % 8 {
            0 | 1 => {
                let packet = vec![step; usize::from(input.word()) % (PACKET_BYTES_MAX + 2)];
                let result = host.push(&packet, Ingress::default(), u64::from(input.byte()), pushed);
                pushed += u64::from(result.is_ok());
                check(&mut broken, result.err());
            }
            2 => drop(host.publish()),
            3 => take_all(&mut host, pushed, &mut broken),
            4 => answer(&mut worker, &mut input),
            5 => {
                let _ = worker.inject(input.take(100), ModuleSlot(input.byte()));
                worker.publish();
            }
            // The header and both descriptor rings are what the host believes nothing of.
            6 => scribble(&memory, usize::from(input.word()) * 8 % (SLOTS_OFFSET / 8), &mut input),
            _ => scribble(&memory, usize::from(input.byte()), &mut input),
        }
        let activity = host.activity();
        assert!(activity.module.is_none_or(|module| module.0 < 64));
        assert!(host.outstanding() <= HOST_SLOTS);
    }
    take_all(&mut host, pushed, &mut broken);
    let left = host.take_outstanding();
    assert!(left.len() <= HOST_SLOTS && left.iter().all(|packet| packet.cookie < pushed));
}

fn take_all<M: AsRef<[AtomicU64]>>(host: &mut HostEnd<M>, pushed: u64, broken: &mut Option<RingError>) {
    for _ in 0..=HOST_SLOTS {
        let result = host.pop();
        match &result {
            Ok(Some(Returned::Answer { cookie, answer, bytes, .. })) => {
                assert!(*cookie < pushed && bytes.len() <= PACKET_BYTES_MAX);
                assert_eq!(*answer == Answer::Modified, !bytes.is_empty());
            }
            Ok(Some(Returned::Injected { bytes, .. })) => assert!((1..=PACKET_BYTES_MAX).contains(&bytes.len())),
            Ok(None) | Err(_) => {
                check(broken, result.err());
                return;
            }
        }
    }
}

/// Once the worker broke the rules, nothing else is ever said.
fn check(broken: &mut Option<RingError>, error: Option<RingError>) {
    if let Some(first) = broken {
        assert_eq!(error.as_ref(), Some(&*first));
    }
    if let Some(error) = error.filter(|error| error.is_fatal()) {
        *broken = Some(error);
    }
}

fn answer<M: AsRef<[AtomicU64]>>(worker: &mut WorkerEnd<M>, input: &mut Input<'_>) {
    if let Ok(Some(mut arrival)) = worker.pop() {
        let answers = [Answer::Pass, Answer::Drop, Answer::Modified, Answer::Failed];
        let answer = answers[input.index(answers.len())];
        if answer == Answer::Modified {
            let _ = worker.write(&mut arrival, input.take(60));
        }
        let _ = worker.answer(arrival, answer, Some(ModuleSlot(input.byte())));
    }
    worker.publish();
}

fn scribble(memory: &[AtomicU64], word: usize, input: &mut Input<'_>) {
    let mut value = [0; 8];
    let taken = input.take(8);
    value[..taken.len()].copy_from_slice(taken);
    memory[word % memory.len()].store(u64::from_le_bytes(value), Ordering::SeqCst);
}
