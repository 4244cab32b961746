// SPDX-License-Identifier: Apache-2.0
package org.netserv.packet;

/** The Internet checksum (RFC 1071). Allocates nothing. */
public final class Checksum {
    private Checksum() {
    }

    /**
     * Returns the checksum of bytes of a packet on top of a partial sum.
     *
     * @param packet the packet
     * @param at offset of the first byte
     * @param count how many bytes
     * @param sum a sum of 16-bit words that are counted in, not negative
     * @return the checksum, 16 bits
     * @throws IndexOutOfBoundsException beyond the packet
     */
    public static int of(PacketView packet, int at, int count, long sum) {
        long total = sum;
        int end = at + count;
        int place = at;
        for (; place + 8 <= end; place += 8) {
            long word = packet.getLong(place);
            total += (word >>> 32) + (word & 0xffff_ffffL);
        }
        for (; place + 2 <= end; place += 2) {
            total += packet.getU16(place);
        }
        if (place < end) {
            total += (long) packet.getU8(place) << 8;
        }
        return ~fold(total) & 0xffff;
    }

    /**
     * Returns what a checksum becomes when a 16-bit word that it covers changes (RFC 1624).
     *
     * @param checksum the checksum as it is, 16 bits
     * @param before the word as it is, 16 bits
     * @param after the word as it will be, 16 bits
     * @return the checksum, 16 bits
     */
    public static int updated(int checksum, int before, int after) {
        // RFC 1624 §3, equation 3.
        return ~fold((~checksum & 0xffffL) + (~before & 0xffffL) + (after & 0xffffL)) & 0xffff;
    }

    static int fold(long sum) {
        long rest = sum;
        while (rest >>> 16 != 0) {
            rest = (rest & 0xffff) + (rest >>> 16);
        }
        return (int) rest;
    }
}
