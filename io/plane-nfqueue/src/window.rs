// SPDX-License-Identifier: Apache-2.0
//! Which packets of a queue are still owed a verdict, and how verdicts are grouped.
//!
//! The kernel numbers the packets of a queue one after the other. One short message can decide all packets up to a
//! number, but also decides older ones that wait for somebody else. So verdicts are kept by number: the run of decided
//! packets at the old end goes out in such messages, a decided packet behind an undecided one in a message of its own.

use std::net::IpAddr;
use std::ops::Range;

use super::message::Decision;

/// A verdict to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Send<'a> {
    /// For one packet.
    One(u32, Decision),
    /// For all packets up to this one.
    UpTo(u32, Decision),
    /// Accept one packet with other bytes.
    Replace(u32, &'a [u8]),
}

/// The verdict on one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// As the kernel has it.
    Decided(Decision),
    /// These bytes go on in its place.
    Replaced(&'a [u8]),
}

/// The packets from the oldest undecided one on.
pub(crate) struct Window {
    slots: Vec<Slot>,
    /// The number of the oldest packet kept.
    first: u32,
    /// One past the number of the youngest packet kept.
    end: u32,
    /// Decided packets that were not at the old end at that time.
    late: Vec<u32>,
    payloads: Vec<u8>,
}

#[derive(Clone)]
struct Slot {
    state: State,
    addresses: Option<(IpAddr, IpAddr)>,
}

#[derive(Clone)]
enum State {
    /// No packet of this number came, or its verdict was sent.
    Settled,
    Waiting,
    Decided(Decision),
    Replaced(Range<usize>),
}

impl Window {
    /// Returns a window over `packets` numbers, rounded up to a power of two.
    pub fn new(packets: usize) -> Window {
        let slot = Slot { state: State::Settled, addresses: None };
        let slots = vec![slot; packets.next_power_of_two()];
        Window { slots, first: 0, end: 0, late: Vec::new(), payloads: Vec::new() }
    }

    /// Returns whether a packet of this number can be noted without [`expire`](Window::expire).
    pub fn fits(&self, id: u32) -> bool {
        self.first == self.end
            || usize::try_from(id.wrapping_sub(self.first)).is_ok_and(|ahead| ahead < self.slots.len())
    }

    /// Forgets old packets until this number fits, after a flush; `overdue` is called for each that waits.
    pub fn expire(&mut self, id: u32, mut overdue: impl FnMut(u32)) {
        while !self.fits(id) {
            let first = self.first;
            if matches!(self.slot(first).state, State::Waiting) {
                overdue(first);
            }
            self.slot_mut(first).state = State::Settled;
            self.first = first.wrapping_add(1);
        }
    }

    /// Notes a received packet, whose number fits; false for a number that is older than others here.
    pub fn insert(&mut self, id: u32, addresses: Option<(IpAddr, IpAddr)>) -> bool {
        if self.first == self.end {
            (self.first, self.end) = (id, id);
        }
        if id.wrapping_sub(self.end) >= 1 << 31 || !self.fits(id) {
            return false;
        }
        while self.end != id {
            let gap = self.end;
            self.slot_mut(gap).state = State::Settled;
            self.end = gap.wrapping_add(1);
        }
        *self.slot_mut(id) = Slot { state: State::Waiting, addresses };
        self.end = id.wrapping_add(1);
        true
    }

    /// Returns the source and destination that a waiting packet had; `None` if no such packet waits.
    pub fn addresses(&self, id: u32) -> Option<Option<(IpAddr, IpAddr)>> {
        let slot = self.contains(id).then(|| self.slot(id))?;
        matches!(slot.state, State::Waiting).then_some(slot.addresses)
    }

    /// Notes a verdict; false if no such packet waits.
    pub fn decide(&mut self, id: u32, outcome: Outcome<'_>) -> bool {
        if self.addresses(id).is_none() {
            return false;
        }
        let state = match outcome {
            Outcome::Decided(decision) => State::Decided(decision),
            Outcome::Replaced(bytes) => {
                let start = self.payloads.len();
                self.payloads.extend_from_slice(bytes);
                State::Replaced(start..self.payloads.len())
            }
        };
        self.slot_mut(id).state = state;
        self.late.push(id);
        true
    }

    /// Returns the number that follows the youngest packet's.
    pub fn end(&self) -> u32 {
        self.end
    }

    /// Returns how many bytes of replaced packets are kept for the next flush.
    pub fn payload_bytes(&self) -> usize {
        self.payloads.len()
    }

    /// Hands out the verdicts noted since the last flush, the oldest packet's first.
    pub fn flush(&mut self, mut send: impl FnMut(Send<'_>)) {
        if self.late.is_empty() {
            return;
        }
        self.flush_old_end(&mut send);
        let mut late = std::mem::take(&mut self.late);
        let first = self.first;
        late.retain(|id| self.contains(*id));
        late.sort_unstable_by_key(|id| id.wrapping_sub(first));
        for id in late.drain(..) {
            match std::mem::replace(&mut self.slot_mut(id).state, State::Settled) {
                State::Decided(decision) => send(Send::One(id, decision)),
                State::Replaced(range) => send(Send::Replace(id, &self.payloads[range])),
                State::Settled | State::Waiting => {}
            }
        }
        self.late = late;
        self.payloads.clear();
    }

    /// Sends what is decided at the old end and moves it up to the oldest packet that waits.
    fn flush_old_end(&mut self, send: &mut impl FnMut(Send<'_>)) {
        let mut run: Option<(u32, u32, Decision)> = None;
        while self.first != self.end {
            let id = self.first;
            match &self.slot(id).state {
                State::Waiting => break,
                State::Settled => {}
                State::Decided(decision) => match &mut run {
                    Some((count, last, same)) if same == decision => (*count, *last) = (*count + 1, id),
                    Some(_) | None => {
                        if let Some(run) = run.replace((1, id, *decision)) {
                            send_run(run, send);
                        }
                    }
                },
                State::Replaced(range) => {
                    if let Some(run) = run.take() {
                        send_run(run, send);
                    }
                    send(Send::Replace(id, &self.payloads[range.clone()]));
                }
            }
            self.slot_mut(id).state = State::Settled;
            self.first = id.wrapping_add(1);
        }
        if let Some(run) = run {
            send_run(run, send);
        }
    }

    fn contains(&self, id: u32) -> bool {
        id.wrapping_sub(self.first) < self.end.wrapping_sub(self.first)
    }

    fn slot(&self, id: u32) -> &Slot {
        &self.slots[self.index(id)]
    }

    fn slot_mut(&mut self, id: u32) -> &mut Slot {
        let index = self.index(id);
        &mut self.slots[index]
    }

    fn index(&self, id: u32) -> usize {
        usize::try_from(id).expect("32 bits fit in usize") & (self.slots.len() - 1)
    }
}

/// Sends one verdict for all packets up to the last of the run; one packet is named by itself, so that it hurts nobody
/// if the kernel and this window ever disagree.
fn send_run((count, last, decision): (u32, u32, Decision), send: &mut impl FnMut(Send<'_>)) {
    send(if count == 1 { Send::One(last, decision) } else { Send::UpTo(last, decision) });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ACCEPT: Outcome<'_> = Outcome::Decided(Decision::Accept);
    const DROP: Outcome<'_> = Outcome::Decided(Decision::Drop);

    #[test]
    fn a_run_from_the_oldest_packet_goes_in_one_message() {
        let mut window = window(1..=6);
        for id in [3, 1, 2] {
            assert!(window.decide(id, ACCEPT));
        }
        check(&mut window, &["up to 3: Accept"]);
        assert!(window.decide(4, DROP));
        assert!(window.decide(6, ACCEPT));
        assert!(window.decide(5, DROP));
        check(&mut window, &["up to 5: Drop", "6: Accept"]);
    }

    #[test]
    fn a_packet_that_waits_is_never_decided_by_the_way() {
        let mut window = window(1..=5);
        for id in [5, 2, 1, 4] {
            assert!(window.decide(id, ACCEPT));
        }
        check(&mut window, &["up to 2: Accept", "4: Accept", "5: Accept"]);
        assert!(window.decide(3, DROP));
        check(&mut window, &["3: Drop"]);
        check(&mut window, &[]);
    }

    #[test]
    fn replaced_packets_keep_their_place() {
        let mut window = window(1..=4);
        for id in [1, 3, 4] {
            assert!(window.decide(id, ACCEPT));
        }
        assert!(window.decide(2, Outcome::Replaced(b"new")));
        assert_eq!(window.payload_bytes(), 3);
        check(&mut window, &["1: Accept", "2: [110, 101, 119]", "up to 4: Accept"]);
        assert_eq!(window.payload_bytes(), 0);
    }

    #[test]
    fn verdicts_are_taken_once_and_for_known_packets_only() {
        let mut window = window(10..=11);
        assert!(window.decide(10, ACCEPT));
        for id in [10, 9, 12, 0] {
            assert!(!window.decide(id, ACCEPT), "{id}");
        }
        check(&mut window, &["10: Accept"]);
        assert!(!window.decide(10, ACCEPT));
        assert!(!window.insert(10, None), "an old number must not come again");
        assert!(window.insert(14, None), "gaps are where the kernel could not reach us");
        assert!(!window.decide(13, ACCEPT));
    }

    #[test]
    fn a_full_window_hands_over_what_waits_longest() {
        let mut window = window(1..=8);
        assert!(window.decide(2, ACCEPT));
        check(&mut window, &["2: Accept"]);
        assert!(!window.fits(9) && !window.insert(9, None));
        let mut overdue = Vec::new();
        window.expire(11, |id| overdue.push(id));
        assert_eq!(overdue, [1, 3]);
        assert!(window.insert(11, None));
        overdue.clear();
        window.expire(1 << 30, |id| overdue.push(id));
        assert_eq!(overdue, [4, 5, 6, 7, 8, 11]);
        assert!(window.insert(1 << 30, None));
    }

    #[test]
    fn numbers_wrap_around() {
        let mut window = window(u32::MAX - 1..=u32::MAX);
        assert!(window.insert(0, None) && window.insert(1, None));
        for id in [1, 0, u32::MAX, u32::MAX - 1] {
            assert!(window.decide(id, ACCEPT));
        }
        check(&mut window, &["up to 1: Accept"]);
    }

    proptest! {
        /// What the kernel would do with the messages is what was asked for, packet by packet.
        #[test]
        fn the_kernel_ends_up_with_the_verdicts_given(
            start: u32, order in proptest::collection::vec((0_u32..16, any::<bool>(), any::<bool>()), 0..40)
        ) {
            let ids: Vec<u32> = (0..16).map(|offset| start.wrapping_add(offset)).collect();
            let mut window = Window::new(16);
            ids.iter().for_each(|id| assert!(window.insert(*id, None)));
            let mut kernel: Vec<(u32, Option<Decision>)> = ids.iter().map(|id| (*id, None)).collect();
            let mut wanted = kernel.clone();
            for (offset, accept, flush) in order {
                let decision = if accept { Decision::Accept } else { Decision::Drop };
                let slot = &mut wanted[usize::try_from(offset).unwrap()];
                prop_assert_eq!(window.decide(slot.0, Outcome::Decided(decision)), slot.1.is_none());
                slot.1.get_or_insert(decision);
                if flush {
                    window.flush(|send| carry_out(&mut kernel, start, send));
                    prop_assert_eq!(&kernel, &wanted);
                }
            }
        }
    }

    fn carry_out(kernel: &mut [(u32, Option<Decision>)], start: u32, send: Send<'_>) {
        match send {
            Send::One(id, decision) => {
                let packet = kernel.iter_mut().find(|packet| packet.0 == id).unwrap();
                assert_eq!(packet.1.replace(decision), None);
            }
            Send::UpTo(last, decision) => kernel
                .iter_mut()
                .filter(|packet| packet.0.wrapping_sub(start) <= last.wrapping_sub(start) && packet.1.is_none())
                .for_each(|packet| packet.1 = Some(decision)),
            Send::Replace(_, _) => panic!("nothing was replaced"),
        }
    }

    fn window(ids: std::ops::RangeInclusive<u32>) -> Window {
        let mut window = Window::new(8);
        ids.for_each(|id| assert!(window.insert(id, None)));
        window
    }

    fn check(window: &mut Window, expected: &[&str]) {
        let mut sent = Vec::new();
        window.flush(|send| {
            sent.push(match send {
                Send::One(id, decision) => format!("{id}: {decision:?}"),
                Send::UpTo(id, decision) => format!("up to {id}: {decision:?}"),
                Send::Replace(id, bytes) => format!("{id}: {bytes:?}"),
            });
        });
        assert_eq!(sent, expected);
    }
}
