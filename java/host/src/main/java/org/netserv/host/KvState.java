// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.util.Arrays;
import java.util.TreeMap;
import org.netserv.block.BlockException;
import org.netserv.block.BlockException.Code;
import org.netserv.block.KeyValueStore;

/** What a module remembers beyond its own replacement, in byte order of the keys. */
final class KvState {
    private final TreeMap<byte[], byte[]> entries = new TreeMap<>(Arrays::compareUnsigned);
    private long bytes;

    /** Returns the state as a module with these limits uses it. */
    View within(ModuleLimits limits) {
        return new View(limits);
    }

    synchronized int size() {
        return entries.size();
    }

    private synchronized void set(byte[] key, byte[] value, ModuleLimits limits) throws BlockException {
        if (key.length == 0) {
            throw new BlockException(Code.INVALID, "a key has at least one byte");
        }
        if (key.length > Limits.KV_KEY_BYTES_MAX || value.length > Limits.KV_VALUE_BYTES_MAX) {
            throw new BlockException(Code.TOO_LARGE, "a key has at most 256 bytes, a value 65,536");
        }
        byte[] old = entries.get(key);
        long after = bytes - (old == null ? 0 : key.length + old.length) + key.length + value.length;
        boolean isFull = old == null && entries.size() >= limits.kvEntries();
        if (isFull || after > limits.kvBytes() && after > bytes) {
            throw new BlockException(Code.QUOTA, "the module's kv state is full");
        }
        if (old != null && old.length == value.length) {
            System.arraycopy(value, 0, old, 0, value.length);
        } else {
            entries.put(key.clone(), value.clone());
        }
        bytes = after;
    }

    private synchronized boolean delete(byte[] key) {
        byte[] value = entries.remove(key);
        if (value != null) {
            bytes -= key.length + value.length;
        }
        return value != null;
    }

    private synchronized int get(byte[] key, byte[] into) {
        byte[] value = entries.get(key);
        if (value == null) {
            return -1;
        }
        if (value.length <= into.length) {
            System.arraycopy(value, 0, into, 0, value.length);
        }
        return value.length;
    }

    private synchronized byte[] get(byte[] key) {
        byte[] value = entries.get(key);
        return value == null ? null : value.clone();
    }

    private synchronized byte[] next(byte[] key) {
        byte[] next = entries.higherKey(key);
        return next == null ? null : next.clone();
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
            if (isClosed) {
                throw new BlockException(Code.QUOTA, "the module is unloaded");
            }
            KvState.this.set(key, value, limits);
        }

        @Override
        public boolean delete(byte[] key) {
            return !isClosed && KvState.this.delete(key);
        }

        @Override
        public byte[] next(byte[] key) {
            return KvState.this.next(key);
        }

        @Override
        public int size() {
            return KvState.this.size();
        }
    }
}
