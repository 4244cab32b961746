// SPDX-License-Identifier: Apache-2.0
package org.netserv.host.cache;

import java.io.Closeable;
import java.io.File;
import java.io.IOException;

/** All modules' entries in one file, which the native side keeps. */
public final class CacheFile implements Closeable {
    private final long number;

    /**
     * Opens a file.
     *
     * @param path the file, whose size is how much the cache may take
     * @throws IOException if there is no such file, or it cannot be written
     */
    public CacheFile(File path) throws IOException {
        number = CacheNative.openFile(path.getPath());
    }

    /** Returns the number of a module's share. */
    long join(String module) {
        return CacheNative.join(number, module);
    }

    @Override
    public void close() {
        CacheNative.closeFile(number);
    }
}
