// SPDX-License-Identifier: Apache-2.0
package org.netserv.ip;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/** The Internet checksum (RFC 1071), in parts: sums of 16-bit words, which may be added up, and what they come to. */
public final class Checksum {
    private static final VarHandle LONGS = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.BIG_ENDIAN);

    private Checksum() {
    }

    /**
     * Returns a sum of the words of a range, which counts as followed by a 0 if its length is odd.
     *
     * @param bytes where the range is
     * @param start index of its first byte
     * @param count how many bytes, below 2³¹
     * @return the sum, not folded, below 2⁶⁰
     * @throws IndexOutOfBoundsException beyond the array
     */
    public static long sum(byte[] bytes, int start, int count) {
        java.util.Objects.checkFromIndexSize(start, count, bytes.length);
        long sum = 0;
        int at = start;
        int end = start + count;
        for (; at + Long.BYTES <= end; at += Long.BYTES) {
            long word = (long) LONGS.get(bytes, at);
            sum += (word >>> 32) + (word & 0xffff_ffffL);
        }
        for (; at < end; at++) {
            int shift = (at - start & 1) == 0 ? 8 : 0;
            sum += (long) (bytes[at] & 0xff) << shift;
        }
        return sum;
    }

    /**
     * Returns a sum of the four words of a number.
     *
     * @param words the words
     * @return the sum, not folded
     */
    public static long sum(long words) {
        return (words >>> 32) + (words & 0xffff_ffffL);
    }

    /**
     * Returns a sum of the two words of a number.
     *
     * @param words the words
     * @return the sum, not folded
     */
    public static long sum(int words) {
        return words & 0xffff_ffffL;
    }

    /**
     * Returns the checksum that a sum comes to.
     *
     * @param sum the sum, not negative
     * @return 0 to 65,535
     */
    public static int finish(long sum) {
        long folded = sum;
        while (folded > 0xffff) {
            folded = (folded & 0xffff) + (folded >>> 16);
        }
        return (int) ~folded & 0xffff;
    }
}
