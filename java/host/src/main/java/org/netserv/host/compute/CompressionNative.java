// SPDX-License-Identifier: Apache-2.0
package org.netserv.host.compute;

import java.io.IOException;
import org.netserv.block.BlockException;

/** The native side of the worker, which binds these methods. Numbers of nothing are of streams that are closed. */
final class CompressionNative {
    /** Bytes that cross at a time. */
    static final int PIECE_BYTES = 64 * 1024;

    private CompressionNative() {
    }

    /** Begins to compress. Returns the stream's number. */
    static native long compress(int encoding, int level) throws BlockException;

    /** Takes plain bytes, and returns compressed ones that are ready. */
    static native byte[] pack(long stream, byte[] from, int start, int length) throws IOException;

    /** Returns the compressed bytes of all that was taken; with {@code isLast}, of the whole stream. */
    static native byte[] flush(long stream, boolean isLast) throws IOException;

    /** Begins to decompress. Returns the stream's number. */
    static native long decompress(int encoding, long outputMax) throws BlockException;

    /** Takes compressed bytes, once all was read of those before. */
    static native void feed(long stream, byte[] from, int length) throws IOException;

    /** Returns how many plain bytes were read; 0 if more has to be fed. */
    static native int read(long stream, byte[] into, int start, int length) throws IOException;

    /** Says that nothing more is fed, which has to be the stream's end. */
    static native void finish(long stream) throws IOException;

    static native void release(long stream);
}
