// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import org.netserv.block.BlockException;

/** The native side of the worker, which binds these methods. Numbers of nothing hold nothing. */
final class KvNative {
    private KvNative() {
    }

    /** Opens a file; without one, state lasts as long as the process. Returns its number, 0 if there are too many. */
    static native long openFile(String path);

    /** Writes what is not on the disk, waits for that for a second at most, and closes the file. */
    static native void closeFile(long file);

    /** Opens the state of a module, as these limits allow. Returns its number, or 0. */
    static native long open(long file, String name, int schema, long entries, long bytes);

    static native void close(long state);

    static native byte[] get(long state, byte[] key);

    static native int copy(long state, byte[] key, byte[] into);

    static native void set(long state, byte[] key, byte[] value) throws BlockException;

    static native boolean delete(long state, byte[] key);

    static native long increment(long state, byte[] key, long delta) throws BlockException;

    static native boolean compareAndSet(long state, byte[] key, byte[] expected, byte[] value) throws BlockException;

    static native byte[] next(long state, byte[] key);

    static native int size(long state);
}
