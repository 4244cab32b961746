// SPDX-License-Identifier: Apache-2.0
//! The steps of a turn, each by itself.

use super::*;

pub(super) fn poll_eventfds(PacketLoop { cx, workers, eventfds, .. }: &mut PacketLoop) -> bool {
    eventfds.poll(cx.now, Duration::ZERO, workers)
}

pub(super) fn take_returned(PacketLoop { cx, filters, workers, in_flight, .. }: &mut PacketLoop) -> usize {
    path::take_returned(cx, filters, workers, in_flight)
}

pub(super) fn admit(PacketLoop { cx, filters, workers, in_flight, .. }: &mut PacketLoop, packet: &Packet<'_>) {
    path::admit(cx, filters, workers, in_flight, packet);
}

pub(super) fn publish(PacketLoop { cx, workers, wakeups, .. }: &mut PacketLoop) {
    wakeups.publish(workers, cx.now);
}

pub(super) fn wake_sleepers(PacketLoop { cx, workers, wakeups, .. }: &mut PacketLoop, came: usize) {
    wakeups.wake(workers, cx.now, came, false);
}

pub(super) fn watch(PacketLoop { cx, workers, watchdog, .. }: &mut PacketLoop, now: Instant) {
    watchdog.look(workers, now, &cx.report);
}
