// SPDX-License-Identifier: Apache-2.0
package org.netserv.host.cache;

import java.util.Arrays;

/** What is kept of one entry: its metadata, and where its body is. Changed under the cache's lock. */
final class Body {
    final String owner;
    final String key;
    final String contentType;
    final String etag;
    final long maxAgeSeconds;
    /** When it was finished, on the monotonic clock. */
    long putNanos;
    long size;
    /** Those that read or write it. */
    int users = 1;
    boolean isForgotten;
    private int[] pieces = {};
    private int pieceCount;

    Body(String owner, String key, String contentType, String etag, long maxAgeSeconds) {
        this.owner = owner;
        this.key = key;
        this.contentType = contentType;
        this.etag = etag;
        this.maxAgeSeconds = maxAgeSeconds;
    }

    int pieceCount() {
        return pieceCount;
    }

    int piece(int index) {
        return pieces[index];
    }

    void add(int piece) {
        if (pieceCount == pieces.length) {
            pieces = Arrays.copyOf(pieces, Math.max(4, 2 * pieceCount));
        }
        pieces[pieceCount++] = piece;
    }

    /** Gives all pieces back. */
    void release(Pieces to) {
        for (int index = 0; index < pieceCount; index++) {
            to.give(pieces[index]);
        }
        pieceCount = 0;
    }

    /** Returns roughly what it takes in the heap. */
    long indexBytes() {
        return Limits.ENTRY_BYTES + 2L * (key.length() + contentType.length() + etag.length())
                + (long) Integer.BYTES * pieces.length;
    }
}
