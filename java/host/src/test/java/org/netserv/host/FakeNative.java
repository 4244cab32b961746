// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;

/** The native side, in memory. Its clock stands until a test moves it. */
final class FakeNative implements Native {
    final ConcurrentLinkedQueue<Event> events = new ConcurrentLinkedQueue<>();
    final ConcurrentLinkedQueue<String> lines = new ConcurrentLinkedQueue<>();
    final Map<Integer, Stats> stats = new TreeMap<>();
    final AtomicLong nowNanos = new AtomicLong(1_000_000_000);
    private final Semaphore woken = new Semaphore(0);

    /** What is told about a module: {@code ready}, {@code loaded}, or the word of a refusal. */
    record Event(int slot, String kind, String detail, List<String> context) {
        Event(int slot, String kind, String detail) {
            this(slot, kind, detail, List.of());
        }
    }

    /** Counts of one module. */
    record Stats(List<Long> counts, Map<String, Long> counters) {
    }

    /** Waits until the packet thread is to look; false if nothing happens for a long time. */
    boolean awaitWake(long millis) throws InterruptedException {
        boolean wasWoken = woken.tryAcquire(millis, java.util.concurrent.TimeUnit.MILLISECONDS);
        woken.drainPermits();
        return wasWoken;
    }

    @Override
    public void ready(String engine) {
        tell(new Event(-1, "ready", engine));
    }

    @Override
    public void loaded(int slot) {
        tell(new Event(slot, "loaded", ""));
    }

    @Override
    public void failed(int slot, String refusalKind, String detail, String[] context) {
        tell(new Event(slot, refusalKind, detail, List.of(context)));
    }

    @Override
    public void log(int slot, int level, String text) {
        lines.add(slot + "/" + level + ": " + text);
        wake();
    }

    @Override
    public void stats(int slot, long[] counts, String[] names, long[] values) {
        Map<String, Long> counters = new TreeMap<>();
        for (int at = 0; at < names.length; at++) {
            counters.put(names[at], values[at]);
        }
        stats.put(slot, new Stats(java.util.Arrays.stream(counts).boxed().toList(), counters));
    }

    @Override
    public void statsDone() {
        tell(new Event(-1, "stats-done", ""));
    }

    @Override
    public void wake() {
        woken.release();
    }

    @Override
    public long now() {
        return nowNanos.get();
    }

    private void tell(Event event) {
        events.add(event);
        wake();
    }
}
