// SPDX-License-Identifier: Apache-2.0
package org.netserv.samples.keepalive;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/** Looking at bytes of text. A range is a first index and one behind the last. Nothing here allocates. */
final class Text {
    private static final VarHandle LONGS = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle INTS = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
    private static final long EACH = 0x0101_0101_0101_0101L;
    /** What upper and lower case differ in. */
    private static final int CASE = 'a' ^ 'A';
    private static final long LINE_END_BOUND = EACH * ('\r' + 1);

    private Text() {
    }

    /** Returns where the first CR, LF or NUL is at {@code from} or after it; {@code end} if there is none. */
    static int lineEnd(byte[] bytes, int from, int end) {
        int at = from;
        while (at + Long.BYTES <= end) {
            long word = (long) LONGS.get(bytes, at);
            // The lowest of these bits belongs to the first byte below 14.
            long low = (word - LINE_END_BOUND) & ~word & EACH << 7;
            if (low == 0) {
                at += Long.BYTES;
                continue;
            }
            at += Long.numberOfTrailingZeros(low) >>> 3;
            if (endsLine(bytes[at])) {
                return at;
            }
            at++;
        }
        while (at < end && !endsLine(bytes[at])) {
            at++;
        }
        return Math.min(at, end);
    }

    /** Returns where the first such byte is at {@code from} or after it; {@code end} if there is none. */
    static int find(byte[] bytes, int from, int end, char wanted) {
        int at = from;
        while (at < end && bytes[at] != wanted) {
            at++;
        }
        return Math.min(at, end);
    }

    /** Returns whether a range holds exactly this ASCII text. */
    static boolean is(byte[] bytes, int from, int end, byte[] expected) {
        if (end - from != expected.length) {
            return false;
        }
        for (int at = 0; at < expected.length; at++) {
            if (bytes[from + at] != expected[at]) {
                return false;
            }
        }
        return true;
    }

    /** Returns whether a range holds this ASCII text, which is in lower case, but for upper and lower case. */
    static boolean isIgnoringCase(byte[] bytes, int from, int end, byte[] lowerCase) {
        if (end - from != lowerCase.length) {
            return false;
        }
        for (int at = 0; at < lowerCase.length; at++) {
            int difference = bytes[from + at] ^ lowerCase[at];
            if (difference != 0 && (difference != CASE || lowerCase[at] < 'a' || lowerCase[at] > 'z')) {
                return false;
            }
        }
        return true;
    }

    /** Returns whether a range begins with this ASCII text. */
    static boolean startsWith(byte[] bytes, int from, int end, byte[] expected) {
        return end - from >= expected.length && is(bytes, from, from + expected.length, expected);
    }

    /** Returns the range's first index, or the next that holds no white space. */
    static int trimStart(byte[] bytes, int from, int end) {
        int at = from;
        while (at < end && isSpace(bytes[at])) {
            at++;
        }
        return at;
    }

    /** Returns the range's end, moved to the front until there is no white space before it. */
    static int trimEnd(byte[] bytes, int from, int end) {
        int at = end;
        while (at > from && isSpace(bytes[at - 1])) {
            at--;
        }
        return at;
    }

    /** Returns whether a byte is ASCII white space: a space, tab, LF, form feed or CR. */
    static boolean isSpace(byte value) {
        return value == ' ' || value == '\t' || value == '\n' || value == '\f' || value == '\r';
    }

    /** Returns whether a byte is a decimal digit. */
    static boolean isDigit(byte value) {
        return value >= '0' && value <= '9';
    }

    /** Returns up to eight bytes as a number whose lowest byte is the first. */
    static long littleEndian(byte[] bytes, int from, int length) {
        if (length >= Long.BYTES) {
            return (long) LONGS.get(bytes, from);
        }
        if (length >= Integer.BYTES) {
            long first = (int) INTS.get(bytes, from) & 0xffff_ffffL;
            long last = (int) INTS.get(bytes, from + length - Integer.BYTES) & 0xffff_ffffL;
            return first | last << 8 * (length - Integer.BYTES);
        }
        long word = 0;
        for (int at = length - 1; at >= 0; at--) {
            word = word << 8 | bytes[from + at] & 0xff;
        }
        return word;
    }

    private static boolean endsLine(byte value) {
        return value == '\r' || value == '\n' || value == 0;
    }
}
