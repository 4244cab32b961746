// SPDX-License-Identifier: Apache-2.0
package org.netserv.host.cache;

import java.io.Closeable;
import java.io.EOFException;
import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;

/**
 * The cache's file as pieces of one size. Reading and writing cannot be interrupted: a channel would be closed for all by
 * one thread that is.
 */
final class Pieces implements Closeable {
    private final RandomAccessFile file;
    private final int bytes;
    private final int[] free;
    private int freeCount;

    /** Opens a file that is there; its size stays what it is. */
    Pieces(File path) throws IOException {
        file = new RandomAccessFile(path, "rw");
        long size = file.length();
        // A piece has to have an int as its length, so what is beyond that of a huge file is not used.
        long wanted = Math.max(Limits.PIECE_BYTES_MIN, -Math.floorDiv(-size, (long) Limits.PIECES_MAX));
        bytes = (int) Math.min(wanted, Integer.MAX_VALUE);
        free = new int[(int) Math.min(size / bytes, Limits.PIECES_MAX)];
        for (int piece = free.length; piece > 0; piece--) {
            free[freeCount++] = piece - 1;
        }
    }

    int count() {
        return free.length;
    }

    int bytes() {
        return bytes;
    }

    /** Returns a piece that nobody has, or -1. The cache's lock is held. */
    int take() {
        return freeCount == 0 ? -1 : free[--freeCount];
    }

    /** Takes a piece back. The cache's lock is held. */
    void give(int piece) {
        free[freeCount++] = piece;
    }

    int freeCount() {
        return freeCount;
    }

    void read(int piece, int offset, byte[] into, int start, int length) throws IOException {
        synchronized (file) {
            file.seek((long) piece * bytes + offset);
            int done = 0;
            while (done < length) {
                int count = file.read(into, start + done, length - done);
                if (count < 0) {
                    throw new EOFException("the cache's file is cut off");
                }
                done += count;
            }
        }
    }

    void write(int piece, int offset, byte[] from, int start, int length) throws IOException {
        synchronized (file) {
            file.seek((long) piece * bytes + offset);
            file.write(from, start, length);
        }
    }

    @Override
    public void close() throws IOException {
        file.close();
    }
}
