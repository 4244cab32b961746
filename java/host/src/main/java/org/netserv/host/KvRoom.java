// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

/** Bytes that the kv state of all of a user's modules may take together. Any thread. */
final class KvRoom {
    private final long bytesMax;
    private long bytes;
    private boolean isShort;

    KvRoom(long bytesMax) {
        this.bytesMax = bytesMax;
    }

    /** Takes some bytes if there are so many. Returns whether there were. */
    synchronized boolean take(long count) {
        if (count > 0 && count > bytesMax - bytes) {
            isShort = true;
            return false;
        }
        bytes += count;
        return true;
    }

    /** Takes some bytes, of what is there already; fewer than none gives some back. */
    synchronized void force(long count) {
        bytes += count;
    }

    /** Returns whether there was too little since the last time. */
    synchronized boolean wasShort() {
        boolean was = isShort;
        isShort = false;
        return was;
    }

    /** Returns whether no more is taken than there is. */
    synchronized boolean fits() {
        return bytes <= bytesMax;
    }
}
