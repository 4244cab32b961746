// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import org.netserv.block.BlockException;
import org.netserv.block.KeyValueStore;

/** What one module has of the state that its name and schema remember beyond its own replacement. */
final class KvState implements KeyValueStore {
    private final long number;

    KvState(long number) {
        this.number = number;
    }

    /** Is empty and changes nothing from here on: what is there may be the next version's. */
    void close() {
        KvNative.close(number);
    }

    @Override
    public byte[] get(byte[] key) {
        return KvNative.get(number, key);
    }

    @Override
    public int get(byte[] key, byte[] into) {
        return KvNative.copy(number, key, into);
    }

    @Override
    public void set(byte[] key, byte[] value) throws BlockException {
        KvNative.set(number, key, value);
    }

    @Override
    public boolean delete(byte[] key) {
        return KvNative.delete(number, key);
    }

    @Override
    public long increment(byte[] key, long delta) throws BlockException {
        return KvNative.increment(number, key, delta);
    }

    @Override
    public boolean compareAndSet(byte[] key, byte[] expected, byte[] value) throws BlockException {
        return KvNative.compareAndSet(number, key, expected, value);
    }

    @Override
    public byte[] next(byte[] key) {
        return KvNative.next(number, key);
    }

    @Override
    public int size() {
        return KvNative.size(number);
    }
}
