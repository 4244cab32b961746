// SPDX-License-Identifier: Apache-2.0
package org.netserv.host.compute;

import org.netserv.block.BlockException;

/** The native side of the worker, which binds these methods. */
final class SearchNative {
    /** Bytes that are searched in one call. */
    static final int BYTES_MAX = 1 << 20;

    private SearchNative() {
    }

    /** Prepares patterns: of each, its length as two little-endian bytes, then itself. Returns the set's number. */
    static native long compile(byte[] patterns, boolean ignoreAsciiCase) throws BlockException;

    /** Returns the first hit: its pattern, then its start and its length in 24 bits each; below 0 if there is none. */
    static native long find(long set, byte[] in, int start, int end);

    static native void release(long set);
}
