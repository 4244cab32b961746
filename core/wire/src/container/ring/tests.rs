// SPDX-License-Identifier: Apache-2.0
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use proptest::prelude::*;

use super::*;

type Memory = Arc<[AtomicU64]>;

const MODULE: ModuleSlot = ModuleSlot(5);

#[test]
fn each_answer_comes_back_with_its_cookie() {
    let (mut host, mut worker) = pair();
    for cookie in 0..4 {
        host.push(&[0x45; 100], Ingress::default(), 1 << 5, cookie).unwrap();
    }
    host.publish();
    for answer in [Answer::Pass, Answer::Drop, Answer::Modified, Answer::Failed] {
        let mut arrival = worker.pop().unwrap().unwrap();
        assert_eq!((arrival.length(), arrival.modules), (100, 1 << 5));
        if answer == Answer::Modified {
            worker.write(&mut arrival, &[0x60; 41]).unwrap();
        }
        worker.answer(arrival, answer, Some(MODULE)).unwrap();
    }
    worker.publish();
    for (cookie, answer, bytes) in
        [(0, Answer::Pass, 0), (1, Answer::Drop, 0), (2, Answer::Modified, 41), (3, Answer::Failed, 0)]
    {
        let bytes = &[0x60; 41][..bytes];
        let expected = Returned::Answer { cookie, modules: 1 << 5, answer, bytes, module: Some(MODULE) };
        assert_eq!(host.pop(), Ok(Some(expected)));
    }
    assert_eq!(host.pop(), Ok(None));
    assert_eq!(host.outstanding(), 0);
}

#[test]
fn slots_that_rest_after_a_burst_are_told_once() {
    let (mut host, mut worker) = pair();
    let mut burst = |host: &mut HostEnd<Memory>, packets: usize| {
        for _ in 0..packets {
            host.push(&[0x45; 20], Ingress::default(), 1, 0).unwrap();
        }
        host.publish();
        while let Some(arrival) = worker.pop().unwrap() {
            worker.answer(arrival, Answer::Pass, None).unwrap();
        }
        worker.publish();
        while host.pop().unwrap().is_some() {}
    };
    let slots = |ranges: Vec<Range<usize>>| ranges.iter().map(|range| range.len() / SLOT_BYTES).sum::<usize>();
    assert_eq!(host.resting(), [], "nothing was ever used");
    burst(&mut host, HOST_SLOTS);
    assert_eq!(host.resting(), [], "all were used just now");
    burst(&mut host, 10);
    let resting = host.resting();
    assert!(
        resting.iter().all(|range| range.start >= SLOTS_OFFSET && range.end <= SLOTS_OFFSET + HOST_SLOTS * SLOT_BYTES)
    );
    assert_eq!(slots(resting), HOST_SLOTS - SLOTS_KEPT);
    burst(&mut host, 10);
    assert_eq!(host.resting(), [], "it is known");
    burst(&mut host, 200);
    burst(&mut host, 1);
    assert_eq!(host.resting(), [], "200 were used just now");
    burst(&mut host, 1);
    assert_eq!(slots(host.resting()), HOST_SLOTS - SLOTS_KEPT, "and rest again");
    // What is under way is not told of.
    for _ in 0..HOST_SLOTS - SLOTS_KEPT - 1 {
        host.push(&[0x45; 20], Ingress::default(), 1, 0).unwrap();
    }
    host.publish();
    assert_eq!((host.resting(), host.resting()), (vec![], vec![]));
}

#[test]
fn packets_of_every_length_arrive_unchanged() {
    let (mut host, mut worker) = pair();
    let ingress = Ingress { interface: 7, timestamp_ns: u64::MAX - 1 };
    for length in (1..=80).chain(PACKET_BYTES_MAX - 9..=PACKET_BYTES_MAX) {
        let packet: Vec<u8> = (0..length).map(|at| u8::try_from((at * 7 + length) % 256).unwrap()).collect();
        host.push(&packet, ingress, 1, 0).unwrap();
        host.publish();
        let mut arrival = worker.pop().unwrap().unwrap();
        let mut seen = vec![0; arrival.length()];
        worker.read(&arrival, &mut seen);
        assert_eq!((&seen, arrival.ingress), (&packet, ingress));
        seen.reverse();
        worker.write(&mut arrival, &seen).unwrap();
        worker.answer(arrival, Answer::Modified, None).unwrap();
        worker.publish();
        let Ok(Some(Returned::Answer { bytes, .. })) = host.pop() else { panic!("no answer") };
        assert_eq!(bytes, seen);
    }
}

#[test]
fn packets_that_fit_no_slot_are_refused_at_both_ends() {
    let (mut host, mut worker) = pair();
    host.push(&[1], Ingress::default(), 1, 0).unwrap();
    host.publish();
    let mut arrival = worker.pop().unwrap().unwrap();
    for length in [0, PACKET_BYTES_MAX + 1, 70_000] {
        let packet = vec![0; length];
        assert_eq!(host.push(&packet, Ingress::default(), 1, 0), Err(RingError::BadPacket(length)));
        assert_eq!(worker.inject(&packet, MODULE), Err(RingError::BadPacket(length)));
        assert_eq!(worker.write(&mut arrival, &packet), Err(RingError::BadPacket(length)));
        assert_eq!(worker.resize(&mut arrival, length), Err(RingError::BadPacket(length)));
    }
    assert_eq!(worker.inject(&[1], ModuleSlot(64)), Err(RingError::NoSuchModule(64)));
    worker.answer(arrival, Answer::Pass, None).unwrap();
}

#[test]
fn who_writes_over_all_slots_changes_only_bytes_of_packets() {
    let memory = memory();
    let (mut host, mut worker) = pair_in(&memory);
    let ingress = Ingress { interface: 7, timestamp_ns: 8 };
    for cookie in 0..2 {
        host.push(&[0x45; 100], ingress, 1, cookie).unwrap();
    }
    worker.inject(&[0x45; 40], MODULE).unwrap();
    host.publish();
    let scribble =
        || memory[SLOTS_OFFSET / WORD_BYTES..].iter().for_each(|word| word.store(u64::MAX, Ordering::Relaxed));
    scribble();
    for answer in [Answer::Pass, Answer::Modified] {
        let arrival = worker.pop().unwrap().unwrap();
        assert_eq!((arrival.length(), arrival.ingress, arrival.modules), (100, ingress, 1));
        worker.answer(arrival, answer, Some(MODULE)).unwrap();
    }
    worker.publish();
    scribble();
    assert_eq!(host.pop(), Ok(Some(Returned::Injected { bytes: &[0xff; 40], module: Some(MODULE) })));
    for (cookie, answer, bytes) in [(0, Answer::Pass, &[][..]), (1, Answer::Modified, &[0xff; 100][..])] {
        let expected = Returned::Answer { cookie, modules: 1, answer, bytes, module: Some(MODULE) };
        assert_eq!(host.pop(), Ok(Some(expected)));
    }
}

#[test]
fn every_slot_can_be_under_way_and_no_more() {
    let (mut host, mut worker) = pair();
    for round in 0..3 {
        for cookie in 0..HOST_SLOTS as u64 {
            host.push(&[1], Ingress::default(), 1, cookie).unwrap();
        }
        assert_eq!(host.push(&[1], Ingress::default(), 1, 0), Err(RingError::Full), "round {round}");
        host.publish();
        let arrivals: Vec<Arrival> = std::iter::from_fn(|| worker.pop().unwrap()).collect();
        assert_eq!((arrivals.len(), host.outstanding()), (HOST_SLOTS, HOST_SLOTS));
        for _ in 0..WORKER_SLOTS {
            worker.inject(&[9; 20], MODULE).unwrap();
        }
        assert_eq!(worker.inject(&[9; 20], MODULE), Err(RingError::Full));
        for arrival in arrivals.into_iter().rev() {
            worker.answer(arrival, Answer::Pass, None).unwrap();
        }
        worker.publish();
        let mut returned = 0;
        while host.pop().unwrap().is_some() {
            returned += 1;
        }
        assert_eq!(returned, HOST_SLOTS + WORKER_SLOTS);
        host.publish();
        assert_eq!(worker.pop(), Ok(None));
    }
}

#[test]
fn nothing_is_seen_before_it_is_published() {
    let (mut host, mut worker) = pair();
    host.push(&[1], Ingress::default(), 1, 0).unwrap();
    assert_eq!(worker.pop(), Ok(None));
    host.publish();
    let arrival = worker.pop().unwrap().unwrap();
    worker.answer(arrival, Answer::Pass, None).unwrap();
    assert_eq!(host.pop(), Ok(None));
    worker.publish();
    assert!(host.pop().unwrap().is_some());
}

#[test]
fn only_a_sleeper_is_woken_and_only_once() {
    let (mut host, mut worker) = pair();
    let send = |host: &mut HostEnd<Memory>| {
        host.push(&[1], Ingress::default(), 1, 0).unwrap();
        host.publish()
    };
    assert!(!send(&mut host), "nobody sleeps");
    assert!(!worker.prepare_sleep(), "there is something to pop");
    let _ = worker.pop().unwrap().unwrap();
    assert!(worker.prepare_sleep());
    assert!(!host.publish(), "nothing was staged");
    assert!(send(&mut host));
    assert!(!send(&mut host), "it was woken already");
    let _ = worker.pop().unwrap().unwrap();
    let _ = worker.pop().unwrap().unwrap();
    assert!(worker.prepare_sleep());
    worker.cancel_sleep();
    assert!(!send(&mut host));
}

#[test]
fn the_node_says_whether_the_worker_may_spin() {
    let (mut host, mut worker) = pair();
    assert!(!worker.may_spin() && !worker.has_more());
    host.let_spin(true);
    assert!(worker.may_spin());
    host.push(&[1], Ingress::default(), 1, 0).unwrap();
    assert!(!worker.has_more());
    host.publish();
    assert!(worker.has_more());
    let arrival = worker.pop().unwrap().unwrap();
    assert!(!worker.has_more());
    worker.answer(arrival, Answer::Pass, None).unwrap();
    host.let_spin(false);
    assert!(!worker.may_spin());
}

#[test]
fn the_watchdog_sees_which_module_runs() {
    let memory = memory();
    let (host, mut worker) = pair_in(&memory);
    assert_eq!(host.activity(), Activity { steps: 0, module: None });
    worker.enter(MODULE);
    assert_eq!(host.activity(), Activity { steps: 1, module: Some(MODULE) });
    worker.leave();
    assert_eq!(host.activity(), Activity { steps: 2, module: None });
    memory[ACTIVITY].store(u64::MAX, Ordering::Relaxed);
    assert_eq!(host.activity().module, None);
}

#[test]
fn what_a_dead_worker_held_is_handed_out_once() {
    let (mut host, mut worker) = pair();
    for cookie in 0..10 {
        host.push(&[1], Ingress::default(), 3, cookie).unwrap();
    }
    host.publish();
    let arrival = worker.pop().unwrap().unwrap();
    worker.answer(arrival, Answer::Drop, Some(MODULE)).unwrap();
    worker.publish();
    assert!(host.pop().unwrap().is_some());
    let mut cookies: Vec<u64> = host.take_outstanding().iter().map(|packet| packet.cookie).collect();
    cookies.sort_unstable();
    assert_eq!(cookies, (1..10).collect::<Vec<u64>>());
    assert!(host.take_outstanding().is_empty());
    assert_eq!(host.outstanding(), 0);
    assert!(host.push(&[1], Ingress::default(), 1, 0).is_err());
}

#[test]
fn a_mapping_of_another_size_or_layout_is_refused() {
    let short: Memory = (0..MAPPING_WORDS - 1).map(|_| AtomicU64::new(0)).collect();
    assert_eq!(HostEnd::new(short).err(), Some(RingError::BadMapping(MAPPING_WORDS - 1)));
    assert_eq!(WorkerEnd::new(memory()).err(), Some(RingError::BadMagic));
}

#[test]
fn each_broken_rule_is_named() {
    let full = RING_ENTRIES as u64;
    check_scribble(|memory| memory[TO_HOST.tail()].store(1 + full + 1, Ordering::Relaxed), RingError::BadIndex);
    check_scribble(|memory| memory[TO_HOST.tail()].store(u64::MAX, Ordering::Relaxed), RingError::BadIndex);
    check_descriptor(0, 0, code::PASS, 0, RingError::NotOutstanding(0));
    check_descriptor(HOST_SLOTS, 20, code::MODIFIED, 0, RingError::NotOutstanding(1024));
    check_descriptor(HOST_SLOTS + WORKER_SLOTS, 0, code::PASS, 0, RingError::NoSuchSlot(1280));
    check_descriptor(u32::MAX as usize, 0, code::PASS, 0, RingError::NoSuchSlot(u32::MAX));
    check_descriptor(0, 20, code::INJECTED, 6, RingError::NoSuchSlot(0));
    check_descriptor(HOST_SLOTS, 0, code::INJECTED, 6, RingError::BadLength(0));
    check_descriptor(HOST_SLOTS, 1985, code::INJECTED, 6, RingError::BadLength(1985));
    check_descriptor(HELD, 1985, code::MODIFIED, 6, RingError::BadLength(1985));
    check_descriptor(HELD, 0, 0, 0, RingError::BadCode(0));
    check_descriptor(HELD, 0, code::PACKET, 0, RingError::BadCode(code::PACKET));
    check_descriptor(HELD, 0, code::DROP, 65, RingError::BadModule(65));
    check_descriptor(HELD, 0, code::DROP, u64::MAX, RingError::BadModule(u64::MAX));
}

#[test]
fn a_worker_that_moves_its_head_backwards_or_ahead_is_found_out() {
    for head in [1, u64::MAX] {
        let memory = memory();
        let (mut host, _worker) = pair_in(&memory);
        memory[TO_WORKER.head()].store(head, Ordering::Relaxed);
        // The worker gives packets back without taking them, so that slots stay free while the ring fills up.
        let mut outcome = Ok(());
        for index in 0..=RING_ENTRIES as u64 {
            outcome = host.push(&[1], Ingress::default(), 1, 0);
            if outcome.is_err() {
                break;
            }
            scribble_descriptor(&memory, index, 0, 0, code::PASS, 0);
            host.pop().unwrap();
        }
        assert_eq!(outcome, Err(RingError::BadIndex));
        assert_eq!(host.pop(), Err(RingError::BadIndex), "the error stays");
    }
}

#[test]
fn an_answer_for_one_packet_is_taken_once() {
    let memory = memory();
    let (mut host, _worker) = pair_in(&memory);
    host.push(&[1], Ingress::default(), 1, 77).unwrap();
    scribble_descriptor(&memory, 0, 0, 0, code::PASS, 0);
    assert!(matches!(host.pop(), Ok(Some(Returned::Answer { cookie: 77, .. }))));
    scribble_descriptor(&memory, 1, 0, 0, code::PASS, 0);
    assert_eq!(host.pop(), Err(RingError::NotOutstanding(0)));
    assert_eq!(host.pop(), Err(RingError::NotOutstanding(0)), "the error stays");
    assert_eq!(host.push(&[1], Ingress::default(), 1, 0), Err(RingError::NotOutstanding(0)));
}

#[test]
fn a_worker_that_injects_one_slot_for_ever_runs_into_the_bound() {
    let memory = memory();
    let (mut host, _worker) = pair_in(&memory);
    let mut injected = 0;
    let error = loop {
        scribble_descriptor(&memory, injected, HOST_SLOTS as u64, 20, code::INJECTED, 1);
        match host.pop() {
            Ok(_) => injected += 1,
            Err(error) => break error,
        }
        host.publish();
    };
    assert_eq!((injected, error), (RING_ENTRIES as u64, RingError::BadIndex));
}

#[test]
fn two_threads_lose_nothing_and_no_wake_up() {
    const PACKETS: u64 = 300_000;
    let memory = memory();
    let (mut host, mut worker) = pair_in(&memory);
    let (wake_worker, wake_host) = (Bell::default(), Bell::default());
    let (mut answered, mut injected) = (BTreeMap::new(), 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut seen = 0;
            let mut buffer = [0; PACKET_BYTES_MAX];
            while seen < PACKETS {
                while let Some(mut arrival) = worker.pop().unwrap() {
                    worker.read(&arrival, &mut buffer);
                    let length = arrival.length();
                    let number = u64::from_le_bytes(buffer[..8].try_into().unwrap());
                    assert!(buffer[8..length].iter().all(|byte| *byte == buffer[0]), "a torn packet");
                    if number.is_multiple_of(16) {
                        // All slots may be under way; what matters here is that none gets lost.
                        let _ = worker.inject(&buffer[..length], MODULE);
                    }
                    if number.is_multiple_of(3) {
                        let flipped = !buffer[0];
                        buffer[8..length].fill(flipped);
                        worker.write(&mut arrival, &buffer[..length]).unwrap();
                        worker.answer(arrival, Answer::Modified, Some(MODULE)).unwrap();
                    } else {
                        worker.answer(arrival, Answer::Pass, None).unwrap();
                    }
                    seen += 1;
                }
                if worker.publish() {
                    wake_host.ring();
                }
                if seen < PACKETS && worker.prepare_sleep() {
                    wake_worker.wait();
                }
            }
        });
        let mut next = 0_u64;
        while answered.len() < usize::try_from(PACKETS).unwrap() {
            while next < PACKETS {
                let mut packet = vec![next.to_le_bytes()[0]; 16 + usize::try_from(next % 200).unwrap()];
                packet[..8].copy_from_slice(&next.to_le_bytes());
                match host.push(&packet, Ingress::default(), 1, next) {
                    Ok(()) => next += 1,
                    Err(error) => {
                        assert_eq!(error, RingError::Full);
                        break;
                    }
                }
            }
            while let Some(returned) = host.pop().unwrap() {
                match returned {
                    Returned::Answer { cookie, answer, bytes, .. } => {
                        let modified = cookie.is_multiple_of(3);
                        assert_eq!(answer == Answer::Modified, modified);
                        assert!(!modified || bytes[8..].iter().all(|byte| *byte == !cookie.to_le_bytes()[0]));
                        assert!(answered.insert(cookie, ()).is_none(), "two answers for one packet");
                    }
                    Returned::Injected { .. } => injected += 1,
                }
            }
            if host.publish() {
                wake_worker.ring();
            }
            // With slots free again, there may be something to push first.
            if host.outstanding() > 0 && host.prepare_sleep() {
                wake_host.wait();
            }
        }
    });
    assert_eq!(host.outstanding(), 0);
    assert!(injected > 0);
}

/// Lanes push as fast as they can, and leave the worker asleep for a moment now and then; it serves them in turn. Nothing
/// is lost, doubled or out of order, and no wake-up is lost.
#[test]
fn one_worker_serves_the_rings_of_several_lanes() {
    const LANES: usize = 4;
    const PACKETS: u64 = if cfg!(miri) { 50 } else { 20_000 };
    let (hosts, mut workers): (Vec<_>, Vec<_>) = (0..LANES).map(|_| pair()).unzip();
    let (wake_worker, wake_hosts) = (Bell::default(), [const { Bell::new() }; LANES]);
    std::thread::scope(|scope| {
        let (wake_worker, wake_hosts) = (&wake_worker, &wake_hosts);
        for (mut host, wake_host) in hosts.into_iter().zip(wake_hosts) {
            scope.spawn(move || {
                let (mut next, mut expected) = (0, 0);
                while expected < PACKETS {
                    while next < PACKETS && host.push(&[1; 20], Ingress::default(), 1, next).is_ok() {
                        next += 1;
                        if next.is_multiple_of(7) && host.publish() {
                            std::thread::yield_now();
                            wake_worker.ring();
                        }
                    }
                    if host.publish() {
                        wake_worker.ring();
                    }
                    while let Some(Returned::Answer { cookie, .. }) = host.pop().unwrap() {
                        assert_eq!(cookie, expected);
                        expected += 1;
                    }
                    if host.outstanding() > 0 && host.prepare_sleep() {
                        wake_host.wait();
                    }
                }
            });
        }
        let mut left = LANES as u64 * PACKETS;
        while left > 0 {
            for (worker, wake_host) in workers.iter_mut().zip(wake_hosts) {
                for _ in 0..64 {
                    let Some(arrival) = worker.pop().unwrap() else { break };
                    worker.answer(arrival, Answer::Pass, None).unwrap();
                    left -= 1;
                }
                if worker.publish() {
                    wake_host.ring();
                }
            }
            if left > 0 && workers.iter_mut().all(WorkerEnd::prepare_sleep) {
                wake_worker.wait();
            }
            workers.iter_mut().for_each(WorkerEnd::cancel_sleep);
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A worker that writes anything anywhere gets errors, and never an answer for a packet that it does not hold.
    #[test]
    fn arbitrary_scribbling_never_panics(
        words in proptest::collection::vec((0_usize..300, scribbled_word()), 1..60),
        descriptors in proptest::collection::vec((0_u64..1400, 0_u64..2100, 0_u64..9, 0_u64..70), 0..60),
    ) {
        let memory = memory();
        let (mut host, _worker) = pair_in(&memory);
        for cookie in 0..100 {
            host.push(&[1], Ingress::default(), 1, cookie).unwrap();
        }
        host.publish();
        let mut answers = 0;
        for (index, (slot, length, code, module)) in (0..).zip(descriptors) {
            scribble_descriptor(&memory, index, slot, length, u16::try_from(code).unwrap(), module);
            answers += drain(&mut host);
        }
        for (at, word) in words {
            let at = if at < 150 { at } else { TO_HOST.descriptors + at - 150 };
            memory[at].store(word, Ordering::Relaxed);
            answers += drain(&mut host);
            let _ = host.push(&[1; 64], Ingress::default(), 1, 0);
            host.publish();
            host.prepare_sleep();
            host.activity();
        }
        prop_assert!(answers <= 100 + 60);
        prop_assert!(host.take_outstanding().len() <= HOST_SLOTS);
    }
}

/// The only slot that the worker holds in [`check_descriptor`]; slot 0 was answered, the others were never used.
const HELD: usize = 1;

fn check_descriptor(slot: usize, length: u64, code: u16, modules: u64, expected: RingError) {
    check_scribble(
        |memory| scribble_descriptor(memory, 1, u64::try_from(slot).unwrap(), length, code, modules),
        expected,
    );
}

fn check_scribble(scribble: impl Fn(&Memory), expected: RingError) {
    let memory = memory();
    let (mut host, mut worker) = pair_in(&memory);
    host.push(&[1], Ingress::default(), 1, 0).unwrap();
    host.push(&[1], Ingress::default(), 1, 1).unwrap();
    host.publish();
    let first = worker.pop().unwrap().unwrap();
    worker.answer(first, Answer::Pass, None).unwrap();
    worker.publish();
    assert!(host.pop().unwrap().is_some());

    scribble(&memory);
    assert_eq!(host.pop(), Err(expected));
    assert!(expected.is_fatal());
    assert_eq!(host.pop(), Err(expected), "the error stays");
    assert_eq!(host.take_outstanding().len(), 1);
}

fn scribble_descriptor(memory: &Memory, index: u64, slot: u64, length: u64, code: u16, modules: u64) {
    let at = TO_HOST.descriptor(index);
    memory[at].store(slot & 0xffff_ffff | length << 32 | u64::from(code) << 48, Ordering::Relaxed);
    memory[at + 1].store(modules, Ordering::Relaxed);
    memory[TO_HOST.tail()].store(index + 1, Ordering::Release);
}

fn scribbled_word() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), 0_u64..3000, Just(u64::MAX), (0_u64..1300).prop_map(|slot| slot | 3 << 48)]
}

fn drain(host: &mut HostEnd<Memory>) -> usize {
    let mut answers = 0;
    while let Ok(Some(returned)) = host.pop() {
        answers += usize::from(matches!(returned, Returned::Answer { .. }));
    }
    answers
}

fn pair() -> (HostEnd<Memory>, WorkerEnd<Memory>) {
    pair_in(&memory())
}

fn pair_in(memory: &Memory) -> (HostEnd<Memory>, WorkerEnd<Memory>) {
    let host = HostEnd::new(Arc::clone(memory)).unwrap();
    (host, WorkerEnd::new(Arc::clone(memory)).unwrap())
}

fn memory() -> Memory {
    (0..MAPPING_WORDS).map(|_| AtomicU64::new(0)).collect()
}

/// Stands for an eventfd.
#[derive(Default)]
struct Bell {
    rung: Mutex<bool>,
    heard: Condvar,
}

impl Bell {
    const fn new() -> Bell {
        Bell { rung: Mutex::new(false), heard: Condvar::new() }
    }

    fn ring(&self) {
        *self.rung.lock().unwrap() = true;
        self.heard.notify_one();
    }

    fn wait(&self) {
        let wait = self.heard.wait_timeout_while(self.rung.lock().unwrap(), Duration::from_secs(10), |rung| !*rung);
        let (mut rung, timeout) = wait.unwrap();
        assert!(!timeout.timed_out(), "a wake-up got lost");
        *rung = false;
    }
}
