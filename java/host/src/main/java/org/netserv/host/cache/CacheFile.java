// SPDX-License-Identifier: Apache-2.0
package org.netserv.host.cache;

import java.io.Closeable;
import java.io.File;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.LongSupplier;

/** All modules' entries in one file, the least recently used first. What is in the file at the start is not looked at. */
public final class CacheFile implements Closeable {
    private final Pieces pieces;
    private final LongSupplier clock;
    private final Map<Key, Body> bodies = new LinkedHashMap<>(16, 0.75f, true);
    private long indexBytes;

    private record Key(String owner, String key) {
    }

    /**
     * Opens a file.
     *
     * @param path the file, whose size is how much the cache may take
     * @param clock nanoseconds of a clock that never steps
     * @throws IOException if there is no such file, or it cannot be written
     */
    public CacheFile(File path, LongSupplier clock) throws IOException {
        if (!path.isFile()) {
            throw new IOException("the node gives no room for a cache");
        }
        pieces = new Pieces(path);
        this.clock = clock;
    }

    /** Returns how many bytes a body may have. */
    long bodyBytesMax() {
        return (long) (pieces.count() / Limits.BODY_PARTS) * pieces.bytes();
    }

    long now() {
        return clock.getAsLong();
    }

    /** Returns the body of a key, which is used from here on, or null. */
    synchronized Body use(String owner, String key) {
        Body body = bodies.get(new Key(owner, key));
        if (body != null) {
            body.users++;
        }
        return body;
    }

    /** Returns the body of a key to look at its metadata, or null. */
    synchronized Body look(String owner, String key) {
        return bodies.get(new Key(owner, key));
    }

    /** Says that a body is not used any more by one that did. */
    synchronized void leave(Body body) {
        body.users--;
        if (body.users == 0 && body.isForgotten) {
            body.release(pieces);
        }
    }

    /** Gives a body that is written one more piece. Returns false if there is none to be had. */
    synchronized boolean grow(Body body) {
        int piece = pieces.take();
        while (piece < 0) {
            if (bodies.isEmpty()) {
                return false;
            }
            forget(bodies.values().iterator().next());
            piece = pieces.take();
        }
        body.add(piece);
        return true;
    }

    /** Makes a body visible that is written, in the place of an older one. */
    synchronized void publish(Body body) {
        Body old = bodies.get(new Key(body.owner, body.key));
        if (old != null) {
            forget(old);
        }
        body.putNanos = now();
        indexBytes += body.indexBytes();
        while (indexBytes > Limits.INDEX_BYTES_MAX && !bodies.isEmpty()) {
            forget(bodies.values().iterator().next());
        }
        bodies.put(new Key(body.owner, body.key), body);
    }

    /** Has a body that was never visible go with its last user. */
    synchronized void discard(Body body) {
        body.isForgotten = true;
    }

    synchronized boolean remove(String owner, String key) {
        Body body = bodies.get(new Key(owner, key));
        if (body != null) {
            forget(body);
        }
        return body != null;
    }

    private void forget(Body body) {
        bodies.remove(new Key(body.owner, body.key));
        indexBytes -= body.indexBytes();
        body.isForgotten = true;
        if (body.users == 0) {
            body.release(pieces);
        }
    }

    /** Reads some of a body that is used. Returns how many bytes, at least one of those that are wanted. */
    int read(Body body, long at, byte[] into, int start, int length) throws IOException {
        int offset = (int) (at % pieces.bytes());
        int count = Math.min(length, pieces.bytes() - offset);
        pieces.read(body.piece((int) (at / pieces.bytes())), offset, into, start, count);
        return count;
    }

    /** Writes behind what a body has. */
    void append(Body body, byte[] from, int start, int length) throws IOException {
        int done = 0;
        while (done < length) {
            if (body.size == (long) body.pieceCount() * pieces.bytes() && !grow(body)) {
                throw new IOException("the cache is full of what is being read or written");
            }
            int offset = (int) (body.size % pieces.bytes());
            int count = Math.min(length - done, pieces.bytes() - offset);
            pieces.write(body.piece(body.pieceCount() - 1), offset, from, start + done, count);
            body.size += count;
            done += count;
        }
    }

    /** Returns how many pieces nobody has. */
    synchronized int freePieces() {
        return pieces.freeCount();
    }

    int pieceCount() {
        return pieces.count();
    }

    @Override
    public void close() throws IOException {
        pieces.close();
    }
}
