// SPDX-License-Identifier: Apache-2.0
package org.netserv.samples.keepalive;

/**
 * Reads the text forms of IP addresses (RFC 4291 §2.2): four decimal numbers without leading zeros; eight groups with
 * {@code ::} for some that are 0 and the last two as an IPv4 address if wanted.
 */
final class AddressParser {
    private static final int GROUPS = 8;

    private byte[] bytes;
    private int at;
    private int end;
    private long quad;
    private int number;
    private boolean endedInV4;
    private final int[] head = new int[GROUPS];
    private final int[] tail = new int[GROUPS];

    /** Returns whether a range is this IPv4 address. */
    boolean isV4(byte[] bytes, int from, int end, long address) {
        start(bytes, from, end);
        boolean is = readV4() && at == end && quad == address;
        this.bytes = null;
        return is;
    }

    /** Returns whether a range is this IPv6 address. */
    boolean isV6(byte[] bytes, int from, int end, long high, long low) {
        start(bytes, from, end);
        boolean is = readV6() && at == end && half(0) == high && half(4) == low;
        this.bytes = null;
        return is;
    }

    private void start(byte[] bytes, int from, int end) {
        this.bytes = bytes;
        this.at = from;
        this.end = end;
    }

    private long half(int first) {
        long half = 0;
        for (int at = first; at < first + 4; at++) {
            half = half << 16 | head[at];
        }
        return half;
    }

    private boolean readV6() {
        int before = readGroups(head, GROUPS);
        if (before == GROUPS) {
            return true;
        }
        if (endedInV4 || !read(':') || !read(':')) {
            return false;
        }
        int behind = readGroups(tail, GROUPS - 1 - before);
        for (int at = before; at < GROUPS; at++) {
            int fromEnd = GROUPS - at;
            head[at] = fromEnd <= behind ? tail[behind - fromEnd] : 0;
        }
        return true;
    }

    /** Reads as many groups as there are, and returns how many. */
    private int readGroups(int[] into, int max) {
        endedInV4 = false;
        for (int count = 0; count < max; count++) {
            int before = at;
            if (count < max - 1) {
                if ((count == 0 || read(':')) && readV4()) {
                    into[count] = (int) (quad >>> 16);
                    into[count + 1] = (int) quad & 0xffff;
                    endedInV4 = true;
                    return count + 2;
                }
                at = before;
            }
            if (count > 0 && !read(':') || !readNumber(16, 4, true)) {
                at = before;
                return count;
            }
            into[count] = number;
        }
        return max;
    }

    private boolean readV4() {
        quad = 0;
        for (int octet = 0; octet < 4; octet++) {
            if (octet > 0 && !read('.') || !readNumber(10, 3, false) || number > 255) {
                return false;
            }
            quad = quad << 8 | number;
        }
        return true;
    }

    private boolean readNumber(int radix, int digitsMax, boolean leadingZeros) {
        int first = at;
        number = 0;
        while (at < end) {
            int digit = digit(bytes[at], radix);
            if (digit < 0) {
                break;
            }
            if (at - first == digitsMax) {
                return false;
            }
            number = number * radix + digit;
            at++;
        }
        int digits = at - first;
        return digits > 0 && (leadingZeros || digits == 1 || bytes[first] != '0');
    }

    private static int digit(byte value, int radix) {
        if (Text.isDigit(value)) {
            return value - '0';
        }
        int letter = (value | 0x20) - 'a';
        return radix == 16 && letter >= 0 && letter < 6 ? letter + 10 : -1;
    }

    private boolean read(char wanted) {
        boolean is = at < end && bytes[at] == wanted;
        if (is) {
            at++;
        }
        return is;
    }
}
