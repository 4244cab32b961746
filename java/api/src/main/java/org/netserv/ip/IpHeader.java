// SPDX-License-Identifier: Apache-2.0
package org.netserv.ip;

import org.netserv.packet.PacketView;

/**
 * What the IP header of a packet says, version 4 or 6. One object is meant to be used for packet after packet; it holds
 * what the last packet said.
 *
 * <p>Addresses are numbers: the two halves of an IPv6 address, or an IPv4 address as the lowest 32 bits of the low half.
 */
public final class IpHeader {
    /** The protocol number of UDP. */
    public static final int UDP = 17;

    private static final int V4_BYTES = 20;
    private static final int V6_BYTES = 40;
    private static final int FRAGMENT = 44;
    /** RFC 8200 sets no bound; more than this nobody sends. */
    private static final int EXTENSION_HEADERS_MAX = 8;

    private boolean v6;
    private long sourceHigh;
    private long sourceLow;
    private long destinationHigh;
    private long destinationLow;
    private int ttl;
    private int protocol;
    private boolean fragment;
    private int payloadStart;
    private int payloadEnd;

    /** Builds a header that says nothing yet. */
    public IpHeader() {
    }

    /**
     * Takes in what a packet's header says, as far as its payload.
     *
     * @param packet the packet
     * @return false if the header is damaged; nothing else may be asked then
     */
    public boolean parse(PacketView packet) {
        if (packet.length() == 0) {
            return false;
        }
        int version = packet.getU8(0) >> 4;
        return version == 4 ? parseV4(packet) : version == 6 && parseV6(packet);
    }

    /**
     * Returns whether this is version 6.
     *
     * @return false for version 4
     */
    public boolean isV6() {
        return v6;
    }

    /**
     * Returns the upper half of the source address.
     *
     * @return 64 bits; 0 for IPv4
     */
    public long sourceHigh() {
        return sourceHigh;
    }

    /**
     * Returns the lower half of the source address.
     *
     * @return 64 bits; the lowest 32 for IPv4
     */
    public long sourceLow() {
        return sourceLow;
    }

    /**
     * Returns the upper half of the destination address.
     *
     * @return 64 bits; 0 for IPv4
     */
    public long destinationHigh() {
        return destinationHigh;
    }

    /**
     * Returns the lower half of the destination address.
     *
     * @return 64 bits; the lowest 32 for IPv4
     */
    public long destinationLow() {
        return destinationLow;
    }

    /**
     * Returns the time to live, or hop limit.
     *
     * @return 0 to 255
     */
    public int ttl() {
        return ttl;
    }

    /**
     * Returns the number of the upper-layer protocol, after IPv6 extension headers.
     *
     * @return 0 to 255, for instance {@link #UDP}
     */
    public int protocol() {
        return protocol;
    }

    /**
     * Returns whether this is only a part of a packet.
     *
     * @return whether it is a fragment
     */
    public boolean isFragment() {
        return fragment;
    }

    /**
     * Returns where the upper layer's bytes begin.
     *
     * @return offset in the packet
     */
    public int payloadStart() {
        return payloadStart;
    }

    /**
     * Returns where the upper layer's bytes end.
     *
     * @return offset in the packet of the first byte behind them
     */
    public int payloadEnd() {
        return payloadEnd;
    }

    private boolean parseV4(PacketView packet) {
        int length = packet.length();
        int headerBytes = (packet.getU8(0) & 0xf) * 4;
        if (headerBytes < V4_BYTES || headerBytes > length) {
            return false;
        }
        int total = packet.getU16(2);
        if (total < headerBytes || total > length) {
            return false;
        }
        v6 = false;
        sourceHigh = 0;
        sourceLow = packet.getU32(12);
        destinationHigh = 0;
        destinationLow = packet.getU32(16);
        ttl = packet.getU8(8);
        protocol = packet.getU8(9);
        // RFC 791: more fragments, or an offset.
        fragment = (packet.getU16(6) & 0x3fff) != 0;
        payloadStart = headerBytes;
        payloadEnd = total;
        return true;
    }

    private boolean parseV6(PacketView packet) {
        int length = packet.length();
        if (length < V6_BYTES) {
            return false;
        }
        payloadEnd = V6_BYTES + packet.getU16(4);
        fragment = false;
        if (!skipExtensions(packet, length) || payloadEnd > length || payloadStart > payloadEnd) {
            return false;
        }
        v6 = true;
        sourceHigh = packet.getLong(8);
        sourceLow = packet.getLong(16);
        destinationHigh = packet.getLong(24);
        destinationLow = packet.getLong(32);
        ttl = packet.getU8(7);
        return true;
    }

    private boolean skipExtensions(PacketView packet, int length) {
        protocol = packet.getU8(6);
        payloadStart = V6_BYTES;
        for (int count = 0; count < EXTENSION_HEADERS_MAX && isExtension(protocol); count++) {
            if (payloadStart > length) {
                return false;
            }
            if (payloadStart + 2 > length) {
                return true;
            }
            int bytes = extensionBytes(protocol, packet.getU8(payloadStart + 1));
            if (protocol == FRAGMENT) {
                if (payloadStart + 4 > length) {
                    return false;
                }
                fragment |= (packet.getU16(payloadStart + 2) & 0xfff9) != 0;
            }
            protocol = packet.getU8(payloadStart);
            payloadStart += bytes;
        }
        return true;
    }

    private static boolean isExtension(int number) {
        return number == 0 || number == 43 || number == FRAGMENT || number == 51 || number == 60;
    }

    private static int extensionBytes(int number, int length) {
        return number == FRAGMENT ? 8 : number == 51 ? (length + 2) * 4 : (length + 1) * 8;
    }
}
