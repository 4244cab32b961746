// SPDX-License-Identifier: Apache-2.0
package org.netserv.samples.keepalive;

/**
 * Some of the 128 ASCII bytes, to be searched for. A record, because the compiler takes what is in a constant one for
 * constant.
 *
 * @param low a bit for each of the bytes below 64
 * @param high a bit for each of the others
 */
record ByteSet(long low, long high) {
    /** Returns the set of these characters, which are ASCII. */
    static ByteSet of(String characters) {
        long low = 0;
        long high = 0;
        for (int at = 0; at < characters.length(); at++) {
            char wanted = characters.charAt(at);
            if (wanted > 127) {
                throw new IllegalArgumentException("only ASCII bytes can be in a set");
            }
            if (wanted < 64) {
                low |= 1L << wanted;
            } else {
                high |= 1L << wanted - 64;
            }
        }
        return new ByteSet(low, high);
    }

    /** Returns whether a byte is in the set. */
    boolean has(byte value) {
        // Shift distances count by their lowest six bits.
        return value >= 0 && (((value & 64) == 0 ? low : high) >>> value & 1) != 0;
    }

    /** Returns where the first byte of the set is, at {@code from} or after it; {@code end} if there is none. */
    int find(byte[] bytes, int from, int end) {
        int at = from;
        while (at < end && !has(bytes[at])) {
            at++;
        }
        return Math.min(at, end);
    }

    /** Returns where the first byte is that is not in the set; {@code end} if there is none. */
    int findOther(byte[] bytes, int from, int end) {
        int at = from;
        while (at < end && has(bytes[at])) {
            at++;
        }
        return Math.min(at, end);
    }
}
