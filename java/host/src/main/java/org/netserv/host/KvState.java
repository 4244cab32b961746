// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Map;
import java.util.TreeMap;
import org.netserv.block.BlockException;
import org.netserv.block.BlockException.Code;
import org.netserv.block.KeyValueStore;

/** What a module remembers beyond its own replacement, in byte order of the keys. */
final class KvState {
    private final TreeMap<byte[], Entry> entries = new TreeMap<>(Arrays::compareUnsigned);
    private final KvRoom room;
    private final Runnable changed;
    private long bytes;
    /** Entries that are not on the disk as they are, the oldest change first. */
    private Entry firstChanged;
    private Entry lastChanged;

    /** State that is nowhere else, and bounded by its module's limits alone. */
    KvState() {
        this(new KvRoom(Long.MAX_VALUE), () -> { });
    }

    /**
     * State that is written to the disk.
     *
     * @param room what is left for it
     * @param changed called when there is something to be written where there was nothing, or no room; under the
     *     state's lock
     */
    KvState(KvRoom room, Runnable changed) {
        this.room = room;
        this.changed = changed;
    }

    /** Returns the state as a module with these limits uses it. */
    View within(ModuleLimits limits) {
        return new View(limits);
    }

    synchronized int size() {
        return entries.size();
    }

    /** Puts an entry there that was read from the disk; a value of null takes it away. */
    synchronized void restore(byte[] key, byte[] value) {
        Entry old = value == null ? entries.remove(key) : entries.put(key, new Entry(key, value));
        long change = (value == null ? 0 : sizeOf(key, value)) - (old == null ? 0 : sizeOf(key, old.value));
        bytes += change;
        room.force(change + overhead(value) - overhead(old));
    }

    /** Gives back the room of a state that is forgotten. */
    synchronized void release() {
        room.force(-bytes - (long) Limits.KV_ENTRY_COST_BYTES * entries.size());
    }

    /** Returns whether something is not on the disk. */
    synchronized boolean isChanged() {
        return firstChanged != null;
    }

    /** Writes what changed since the last time. Other threads may change more meanwhile. */
    void writeChanges(KvFile.Output out) throws KvFile.FullException, java.io.IOException {
        boolean isDone = false;
        while (!isDone) {
            synchronized (this) {
                while (firstChanged != null && out.put(firstChanged.key, firstChanged.value)) {
                    takeChanged();
                }
                isDone = firstChanged == null;
            }
            if (!isDone) {
                out.flush();
            }
        }
    }

    /** Writes all there is. What other threads change meanwhile counts as a change since. */
    void writeAll(KvFile.Output out) throws KvFile.FullException, java.io.IOException {
        byte[] last = {};
        synchronized (this) {
            while (firstChanged != null) {
                takeChanged();
            }
        }
        boolean isDone = false;
        while (!isDone) {
            synchronized (this) {
                Map.Entry<byte[], Entry> next = entries.higherEntry(last);
                while (next != null && out.put(next.getKey(), next.getValue().value)) {
                    last = next.getKey();
                    next = entries.higherEntry(last);
                }
                isDone = next == null;
            }
            if (!isDone) {
                out.flush();
            }
        }
    }

    private void takeChanged() {
        Entry taken = firstChanged;
        firstChanged = taken.nextChanged;
        lastChanged = firstChanged == null ? null : lastChanged;
        taken.nextChanged = null;
        taken.isChanged = false;
    }

    private void markChanged(Entry entry) {
        if (entry.isChanged) {
            return;
        }
        entry.isChanged = true;
        if (lastChanged == null) {
            firstChanged = entry;
            changed.run();
        } else {
            lastChanged.nextChanged = entry;
        }
        lastChanged = entry;
    }

    private synchronized void set(byte[] key, byte[] value, ModuleLimits limits) throws BlockException {
        check(key, value.length);
        Entry old = entries.get(key);
        long change = sizeOf(key, value) - (old == null ? 0 : sizeOf(key, old.value));
        boolean isFull = old == null && entries.size() >= limits.kvEntries();
        if (isFull || bytes + change > limits.kvBytes() && change > 0) {
            throw new BlockException(Code.QUOTA, "the module's kv state is full");
        }
        if (!room.take(change + (old == null ? Limits.KV_ENTRY_COST_BYTES : 0))) {
            // What is left behind by other modules may go, so that there is room the next time.
            changed.run();
            throw new BlockException(Code.QUOTA, "the kv state of the user's modules is full");
        }
        bytes += change;
        if (old == null) {
            Entry made = new Entry(key.clone(), value.clone());
            entries.put(made.key, made);
            markChanged(made);
        } else {
            if (old.value.length == value.length) {
                System.arraycopy(value, 0, old.value, 0, value.length);
            } else {
                old.value = value.clone();
            }
            markChanged(old);
        }
    }

    private static void check(byte[] key, int valueBytes) throws BlockException {
        if (key.length == 0) {
            throw new BlockException(Code.INVALID, "a key has at least one byte");
        }
        if (key.length > Limits.KV_KEY_BYTES_MAX || valueBytes > Limits.KV_VALUE_BYTES_MAX) {
            throw new BlockException(Code.TOO_LARGE, "a key has at most 256 bytes, a value 65,536");
        }
    }

    private synchronized boolean delete(byte[] key) {
        Entry old = entries.remove(key);
        if (old == null) {
            return false;
        }
        long size = sizeOf(key, old.value);
        bytes -= size;
        room.force(-size - Limits.KV_ENTRY_COST_BYTES);
        old.value = null;
        markChanged(old);
        return true;
    }

    private synchronized long increment(byte[] key, long delta, ModuleLimits limits) throws BlockException {
        Entry old = entries.get(key);
        if (old != null && old.value.length != Long.BYTES) {
            throw new BlockException(Code.INVALID, "the entry is no number of eight bytes");
        }
        long sum = delta + (old == null ? 0 : ByteBuffer.wrap(old.value).order(ByteOrder.LITTLE_ENDIAN).getLong());
        set(key, ByteBuffer.allocate(Long.BYTES).order(ByteOrder.LITTLE_ENDIAN).putLong(0, sum).array(), limits);
        return sum;
    }

    private synchronized boolean compareAndSet(byte[] key, byte[] expected, byte[] value, ModuleLimits limits)
            throws BlockException {
        check(key, value == null ? 0 : value.length);
        Entry old = entries.get(key);
        if (old == null ? expected != null : expected == null || !Arrays.equals(old.value, expected)) {
            return false;
        }
        if (value == null) {
            delete(key);
        } else {
            set(key, value, limits);
        }
        return true;
    }

    private synchronized int get(byte[] key, byte[] into) {
        Entry entry = entries.get(key);
        if (entry == null) {
            return -1;
        }
        if (entry.value.length <= into.length) {
            System.arraycopy(entry.value, 0, into, 0, entry.value.length);
        }
        return entry.value.length;
    }

    private synchronized byte[] get(byte[] key) {
        Entry entry = entries.get(key);
        return entry == null ? null : entry.value.clone();
    }

    private synchronized byte[] next(byte[] key) {
        byte[] next = entries.higherKey(key);
        return next == null ? null : next.clone();
    }

    private static long sizeOf(byte[] key, byte[] value) {
        return (long) key.length + value.length;
    }

    private static int overhead(Object entry) {
        return entry == null ? 0 : Limits.KV_ENTRY_COST_BYTES;
    }

    private static final class Entry {
        private final byte[] key;
        /** Null once the entry is taken away. */
        private byte[] value;
        private boolean isChanged;
        private Entry nextChanged;

        Entry(byte[] key, byte[] value) {
            this.key = key;
            this.value = value;
        }
    }

    /** What one module has of the state. */
    final class View implements KeyValueStore {
        private final ModuleLimits limits;
        private volatile boolean isClosed;

        private View(ModuleLimits limits) {
            this.limits = limits;
        }

        /** Changes nothing from here on: what is there may be the next version's. */
        void close() {
            isClosed = true;
        }

        @Override
        public byte[] get(byte[] key) {
            return KvState.this.get(key);
        }

        @Override
        public int get(byte[] key, byte[] into) {
            return KvState.this.get(key, into);
        }

        @Override
        public void set(byte[] key, byte[] value) throws BlockException {
            checkOpen();
            KvState.this.set(key, value, limits);
        }

        @Override
        public boolean delete(byte[] key) {
            return !isClosed && KvState.this.delete(key);
        }

        @Override
        public long increment(byte[] key, long delta) throws BlockException {
            checkOpen();
            return KvState.this.increment(key, delta, limits);
        }

        @Override
        public boolean compareAndSet(byte[] key, byte[] expected, byte[] value) throws BlockException {
            checkOpen();
            return KvState.this.compareAndSet(key, expected, value, limits);
        }

        @Override
        public byte[] next(byte[] key) {
            return KvState.this.next(key);
        }

        @Override
        public int size() {
            return KvState.this.size();
        }

        private void checkOpen() throws BlockException {
            if (isClosed) {
                throw new BlockException(Code.QUOTA, "the module is unloaded");
            }
        }
    }
}
