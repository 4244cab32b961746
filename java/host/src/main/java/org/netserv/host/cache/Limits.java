// SPDX-License-Identifier: Apache-2.0
package org.netserv.host.cache;

/** Named bounds of the cache. Those that modules see are in {@link org.netserv.block.Cache}. */
final class Limits {
    /** Bytes of a piece of the file at least; a body takes whole pieces. */
    static final int PIECE_BYTES_MIN = 16 * 1024;
    /** Pieces that a file is cut into at most; they are larger in a larger file. */
    static final int PIECES_MAX = 32_768;
    /** The part of the cache that one body may take: one of so many. */
    static final int BODY_PARTS = 2;
    /** Bytes of the heap that keys, metadata and places may take, roughly. */
    static final int INDEX_BYTES_MAX = 2 << 20;
    /** Bytes that an entry takes in the heap beside its texts and places. */
    static final int ENTRY_BYTES = 200;
    /** Bytes that are written at a time. */
    static final int BUFFER_BYTES = 8 * 1024;

    private Limits() {
    }
}
