// SPDX-License-Identifier: Apache-2.0
package org.netserv.host.cache;

import java.io.Closeable;
import java.io.IOException;
import java.io.InputStream;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.netserv.block.BlockException;
import org.netserv.block.BlockException.Code;
import org.netserv.block.Cache;

/** What one module has of the cache. */
public final class ModuleCache implements Cache, Closeable {
    /** Bytes that cross to the native side at a time, at most. */
    private static final int PIECE_BYTES = 64 * 1024;

    private final long share;
    /** Numbers of what is read or written. */
    private final Set<Long> open = new HashSet<>();
    private boolean isClosed;

    /**
     * Makes a module's cache.
     *
     * @param file the file, or null if there is no room for one
     * @param owner the module's name, whose versions share their entries
     */
    public ModuleCache(CacheFile file, String owner) {
        share = file == null ? 0 : file.join(owner);
    }

    @Override
    public Stat stat(String key) {
        return statOf(CacheNative.stat(share, key));
    }

    @Override
    public Entry get(String key, long start, long length) throws BlockException {
        if (start < 0 || length < 0) {
            throw new BlockException(Code.INVALID, "a part of a body begins at 0 and has no negative length");
        }
        synchronized (open) {
            checkRoom();
            long number = CacheNative.get(share, key);
            if (number == 0) {
                return null;
            }
            open.add(number);
            return new Reader(number, start, length);
        }
    }

    @Override
    public Cache.Writer put(String key, String contentType, String etag, Duration maxAge) throws BlockException {
        if (maxAge.isNegative()) {
            throw new BlockException(Code.INVALID, "an age is not negative");
        }
        synchronized (open) {
            checkRoom();
            long number = CacheNative.begin(share, key, contentType, etag, maxAge.toSeconds());
            open.add(number);
            return new Writing(number);
        }
    }

    @Override
    public boolean remove(String key) {
        return CacheNative.remove(share, key);
    }

    /** Ends whatever the module has left open; nothing can be opened any more. */
    @Override
    public void close() {
        List<Long> left;
        synchronized (open) {
            isClosed = true;
            left = List.copyOf(open);
        }
        left.forEach(this::release);
        CacheNative.leave(share);
    }

    private static Stat statOf(String[] told) {
        return told == null ? null : new Stat(Long.parseLong(told[0]), told[3], told[4],
                Duration.ofSeconds(Long.parseLong(told[1])), Duration.ofSeconds(Long.parseLong(told[2])));
    }

    private void checkRoom() throws BlockException {
        if (isClosed || open.size() >= OPEN_MAX) {
            throw new BlockException(Code.QUOTA, "a module may have 64 bodies open at a time");
        }
    }

    private void release(long number) {
        synchronized (open) {
            open.remove(number);
        }
        CacheNative.release(number);
    }

    private final class Reader extends InputStream implements Entry {
        private final long number;
        private final Stat stat;
        private final long end;
        private long at;

        Reader(long number, long start, long length) {
            this.number = number;
            stat = statOf(CacheNative.statOf(number));
            at = Math.min(start, stat.size());
            end = at + Math.min(length, stat.size() - at);
        }

        @Override
        public Stat stat() {
            return stat;
        }

        @Override
        public InputStream body() {
            return this;
        }

        @Override
        public int read() throws IOException {
            byte[] one = new byte[1];
            return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
        }

        @Override
        public synchronized int read(byte[] into, int start, int length) throws IOException {
            Objects.checkFromIndexSize(start, length, into.length);
            int wanted = (int) Math.min(Math.min(length, PIECE_BYTES), end - at);
            int count = CacheNative.read(number, at, into, start, wanted);
            at += count;
            return count == 0 && length > 0 ? -1 : count;
        }

        @Override
        public int available() {
            return (int) Math.min(end - at, Integer.MAX_VALUE);
        }

        @Override
        public void close() {
            release(number);
        }
    }

    private final class Writing extends Cache.Writer {
        private final long number;

        Writing(long number) {
            this.number = number;
        }

        @Override
        public void write(int value) throws IOException {
            write(new byte[] {(byte) value}, 0, 1);
        }

        @Override
        public void write(byte[] from, int start, int length) throws IOException {
            Objects.checkFromIndexSize(start, length, from.length);
            for (int done = 0; done < length || done == 0; done += PIECE_BYTES) {
                CacheNative.write(number, from, start + done, Math.min(PIECE_BYTES, length - done));
            }
        }

        @Override
        public void finish() throws IOException {
            CacheNative.finish(number);
            close();
        }

        @Override
        public void close() {
            release(number);
        }
    }
}
