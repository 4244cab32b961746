// SPDX-License-Identifier: Apache-2.0
package org.netserv.host.cache;

import java.io.Closeable;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.netserv.block.BlockException;
import org.netserv.block.BlockException.Code;
import org.netserv.block.Cache;

/** What one module has of the cache. */
public final class ModuleCache implements Cache, Closeable {
    private final CacheFile file;
    private final String owner;
    private final Set<Closeable> open = new HashSet<>();
    private boolean isClosed;

    /**
     * Makes a module's cache.
     *
     * @param file the file, or null if there is no room for one
     * @param owner the module's name, whose versions share their entries
     */
    public ModuleCache(CacheFile file, String owner) {
        this.file = file;
        this.owner = owner;
    }

    @Override
    public Stat stat(String key) {
        Body body = file == null ? null : file.look(owner, key);
        return body == null ? null : statOf(body);
    }

    @Override
    public Entry get(String key, long start, long length) throws BlockException {
        if (start < 0 || length < 0) {
            throw new BlockException(Code.INVALID, "a part of a body begins at 0 and has no negative length");
        }
        Body body = file == null ? null : file.use(owner, key);
        if (body == null) {
            return null;
        }
        long end = Math.min(body.size, start + Math.min(length, Long.MAX_VALUE - start));
        Reader reader = new Reader(body, Math.min(start, body.size), end);
        try {
            keep(reader);
        } catch (BlockException tooMany) {
            file.leave(body);
            throw tooMany;
        }
        return reader;
    }

    @Override
    public Cache.Writer put(String key, String contentType, String etag, Duration maxAge) throws BlockException {
        boolean fits = !key.isEmpty() && fits(key, KEY_BYTES_MAX) && fits(contentType, METADATA_BYTES_MAX)
                && fits(etag, METADATA_BYTES_MAX);
        if (!fits || maxAge.isNegative()) {
            throw new BlockException(Code.INVALID, "a key has 1 to 1,024 bytes, metadata 256, an age is not negative");
        }
        if (file == null) {
            throw new BlockException(Code.UNAVAILABLE, "the node has no room for a cache");
        }
        Writing writing = new Writing(new Body(owner, key, contentType, etag, maxAge.toSeconds()));
        keep(writing);
        return writing;
    }

    private static boolean fits(String text, int bytesMax) {
        return text.length() <= bytesMax && text.getBytes(StandardCharsets.UTF_8).length <= bytesMax;
    }

    @Override
    public boolean remove(String key) {
        return file != null && file.remove(owner, key);
    }

    /** Ends whatever the module has left open; nothing can be opened any more. */
    @Override
    public void close() throws IOException {
        List<Closeable> left;
        synchronized (open) {
            isClosed = true;
            left = new ArrayList<>(open);
        }
        for (Closeable one : left) {
            one.close();
        }
    }

    private Stat statOf(Body body) {
        Duration age = Duration.ofSeconds(Math.max(file.now() - body.putNanos, 0) / 1_000_000_000L);
        return new Stat(body.size, body.contentType, body.etag, age, Duration.ofSeconds(body.maxAgeSeconds));
    }

    private void keep(Closeable one) throws BlockException {
        synchronized (open) {
            if (isClosed || open.size() >= OPEN_MAX) {
                throw new BlockException(Code.QUOTA, "a module may have 64 bodies open at a time");
            }
            open.add(one);
        }
    }

    /** Returns whether this was open until here. */
    private boolean forget(Closeable one) {
        synchronized (open) {
            return open.remove(one);
        }
    }

    private final class Reader implements Entry, Closeable {
        private final Body body;
        private final Stat stat;
        private final InputStream stream;

        Reader(Body body, long start, long end) {
            this.body = body;
            stat = statOf(body);
            stream = new Part(start, end);
        }

        @Override
        public Stat stat() {
            return stat;
        }

        @Override
        public InputStream body() {
            return stream;
        }

        @Override
        public void close() {
            synchronized (stream) {
                if (forget(this)) {
                    file.leave(body);
                }
            }
        }

        private final class Part extends InputStream {
            private final long end;
            private long at;

            Part(long start, long end) {
                at = start;
                this.end = end;
            }

            @Override
            public int read() throws IOException {
                byte[] one = new byte[1];
                return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
            }

            @Override
            public synchronized int read(byte[] into, int start, int length) throws IOException {
                Objects.checkFromIndexSize(start, length, into.length);
                synchronized (open) {
                    if (!open.contains(Reader.this)) {
                        throw new IOException("the entry is closed");
                    }
                }
                if (length == 0) {
                    return 0;
                }
                if (at >= end) {
                    return -1;
                }
                int count = file.read(body, at, into, start, (int) Math.min(length, end - at));
                at += count;
                return count;
            }

            @Override
            public int available() {
                return (int) Math.min(end - at, Integer.MAX_VALUE);
            }

            @Override
            public void close() {
                Reader.this.close();
            }
        }
    }

    private final class Writing extends Cache.Writer {
        private final Body body;
        private final byte[] buffer = new byte[Limits.BUFFER_BYTES];
        private int count;

        Writing(Body body) {
            this.body = body;
        }

        @Override
        public void write(int value) throws IOException {
            write(new byte[] {(byte) value}, 0, 1);
        }

        @Override
        public synchronized void write(byte[] from, int start, int length) throws IOException {
            Objects.checkFromIndexSize(start, length, from.length);
            check();
            if (length > file.bodyBytesMax() - body.size - count) {
                throw new IOException("a body may have " + file.bodyBytesMax() + " bytes at most");
            }
            if (count + length > buffer.length) {
                flush();
            }
            if (length > buffer.length) {
                file.append(body, from, start, length);
            } else {
                System.arraycopy(from, start, buffer, count, length);
                count += length;
            }
        }

        @Override
        public synchronized void flush() throws IOException {
            check();
            file.append(body, buffer, 0, count);
            count = 0;
        }

        @Override
        public synchronized void finish() throws IOException {
            flush();
            file.publish(body);
            if (forget(this)) {
                file.leave(body);
            }
        }

        @Override
        public synchronized void close() {
            if (forget(this)) {
                file.discard(body);
                file.leave(body);
            }
        }

        private void check() throws IOException {
            synchronized (open) {
                if (!open.contains(this)) {
                    throw new IOException("the entry is finished or closed");
                }
            }
        }
    }
}
