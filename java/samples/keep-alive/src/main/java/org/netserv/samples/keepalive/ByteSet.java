// SPDX-License-Identifier: Apache-2.0
package org.netserv.samples.keepalive;

/** Some of the 128 ASCII bytes, to be searched for. */
final class ByteSet {
    /** By a byte without its sign. */
    private final boolean[] members = new boolean[256];

    private ByteSet() {
    }

    /** Returns the set of these characters, which are ASCII. */
    static ByteSet of(String characters) {
        ByteSet set = new ByteSet();
        for (int at = 0; at < characters.length(); at++) {
            if (characters.charAt(at) > 127) {
                throw new IllegalArgumentException("only ASCII bytes can be in a set");
            }
            set.members[characters.charAt(at)] = true;
        }
        return set;
    }

    /** Returns whether a byte is in the set. */
    boolean has(byte value) {
        return members[value & 0xff];
    }

    /** Returns where the first byte of the set is, at {@code from} or after it; {@code end} if there is none. */
    int find(byte[] bytes, int from, int end) {
        boolean[] wanted = members;
        for (int at = from; at < end; at++) {
            if (wanted[bytes[at] & 0xff]) {
                return at;
            }
        }
        return end;
    }

    /** Returns where the first byte is that is not in the set; {@code end} if there is none. */
    int findOther(byte[] bytes, int from, int end) {
        boolean[] passed = members;
        for (int at = from; at < end; at++) {
            if (!passed[bytes[at] & 0xff]) {
                return at;
            }
        }
        return end;
    }
}
