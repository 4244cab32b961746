// SPDX-License-Identifier: Apache-2.0
package org.netserv.host.cache;

import java.io.IOException;
import org.netserv.block.BlockException;

/** The native side of the worker, which binds these methods. Numbers of nothing are of what is closed. */
final class CacheNative {
    private CacheNative() {
    }

    /** Opens a file, which is looked through. Returns its number. */
    static native long openFile(String path) throws IOException;

    static native void closeFile(long file);

    /** Joins a module to the cache. Returns the number of its share, 0 if the name is none. */
    static native long join(long file, String module);

    static native void leave(long share);

    /** Returns size, age and greatest age in seconds, media type and validator of an entry, or null. */
    static native String[] stat(long share, String key);

    /** Returns the number of an entry that is read, 0 if there is none. */
    static native long get(long share, String key) throws BlockException;

    /** Tells of an entry as {@link #stat} does. */
    static native String[] statOf(long entry);

    /** Reads some bytes of an entry's body, none at its end. */
    static native int read(long entry, long at, byte[] into, int start, int length) throws IOException;

    /** Returns the number of an entry that is written. */
    static native long begin(long share, String key, String contentType, String etag, long maxAgeSeconds)
            throws BlockException;

    static native void write(long entry, byte[] from, int start, int length) throws IOException;

    static native void finish(long entry) throws IOException;

    /** Forgets a number: of an entry that is read, or one that is written and not finished. */
    static native void release(long entry);

    static native boolean remove(long share, String key);
}
