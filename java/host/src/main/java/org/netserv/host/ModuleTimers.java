// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.time.Duration;
import java.util.TreeSet;
import java.util.function.LongConsumer;
import org.netserv.block.BlockException;
import org.netserv.block.BlockException.Code;
import org.netserv.block.Timer;
import org.netserv.block.Timers;

/** The timers of one module. */
final class ModuleTimers implements Timers {
    private final Native node;
    private final long max;
    private final LongConsumer onEarlier;
    /** Also the lock: modules have this object, and must not be able to lock the host out. */
    private final TreeSet<Entry> queue = new TreeSet<>();
    private long numbers;
    private boolean closed;

    /** Makes an empty set. {@code onEarlier} is told when a timer is due that was set. */
    ModuleTimers(Native node, long max, LongConsumer onEarlier) {
        this.node = node;
        this.max = max;
        this.onEarlier = onEarlier;
    }

    @Override
    public Timer once(Duration delay, Callback callback) throws BlockException {
        return set(nanos(delay), 0, callback);
    }

    @Override
    public Timer every(Duration period, Callback callback) throws BlockException {
        long nanos = nanos(period);
        return set(nanos, nanos, callback);
    }

    /** Returns what a timer runs that is due, or null; a periodic one is set anew, without the periods missed. */
    Callback pollDue(long now) {
        synchronized (queue) {
            if (queue.isEmpty() || queue.first().due > now) {
                return null;
            }
            Entry entry = queue.pollFirst();
            if (entry.period > 0) {
                long missed = (now - entry.due) / entry.period;
                entry.due += (missed + 1) * entry.period;
                queue.add(entry);
            } else {
                entry.isSet = false;
            }
            return entry.callback;
        }
    }

    /** Returns when the next timer is due, {@link Long#MAX_VALUE} for never. */
    long nextNanos() {
        synchronized (queue) {
            return queue.isEmpty() ? Long.MAX_VALUE : queue.first().due;
        }
    }

    /** Forgets every timer, and takes none from here on. */
    void close() {
        synchronized (queue) {
            closed = true;
            queue.clear();
        }
    }

    private Timer set(long delay, long period, Callback callback) throws BlockException {
        if (callback == null) {
            throw new BlockException(Code.INVALID, "a timer runs something");
        }
        long due = node.now() + delay;
        Entry entry;
        synchronized (queue) {
            if (closed || queue.size() >= max) {
                throw new BlockException(Code.QUOTA, "the module has " + max + " timers");
            }
            entry = new Entry(due, numbers++, period, callback);
            queue.add(entry);
        }
        onEarlier.accept(due);
        return entry;
    }

    private static long nanos(Duration duration) throws BlockException {
        if (duration.isNegative() || duration.compareTo(Duration.ofNanos(Limits.TIMER_NANOS_MAX)) > 0) {
            throw new BlockException(Code.INVALID, "delays are from 0 to 2^62 ns");
        }
        return Math.max(duration.toNanos(), Limits.TIMER_NANOS_MIN);
    }

    private final class Entry implements Timer, Comparable<Entry> {
        private final long number;
        private final long period;
        private final Callback callback;
        private long due;
        private boolean isSet = true;

        Entry(long due, long number, long period, Callback callback) {
            this.due = due;
            this.number = number;
            this.period = period;
            this.callback = callback;
        }

        @Override
        public boolean cancel() {
            synchronized (queue) {
                boolean wasSet = isSet && queue.remove(this);
                isSet = false;
                return wasSet;
            }
        }

        @Override
        public int compareTo(Entry other) {
            int byDue = Long.compare(due, other.due);
            return byDue != 0 ? byDue : Long.compare(number, other.number);
        }
    }
}
