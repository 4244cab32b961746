// SPDX-License-Identifier: Apache-2.0
package org.netserv.ip;

import org.netserv.packet.PacketView;

/**
 * What the headers of a UDP packet say. One object is meant to be used for packet after packet; it holds what the last
 * packet said.
 */
public final class UdpHeader {
    private static final int UDP_BYTES = 8;
    private static final int V4_BYTES = 20;
    private static final int V6_BYTES = 40;
    private static final int FRESH_TTL = 64;

    private final IpHeader ip = new IpHeader();
    private int sourcePort;
    private int destinationPort;
    private int payloadEnd;

    /** Builds a header that says nothing yet. */
    public UdpHeader() {
    }

    /**
     * Takes in what the headers of a whole UDP packet say. Checksums are not checked: packets that this machine sends
     * may still lack theirs.
     *
     * @param packet the packet
     * @return false for a fragment, another protocol or a damaged packet; nothing else may be asked then
     */
    public boolean parse(PacketView packet) {
        if (!ip.parse(packet) || ip.protocol() != IpHeader.UDP || ip.isFragment()) {
            return false;
        }
        int start = ip.payloadStart();
        int room = ip.payloadEnd() - start;
        if (room < UDP_BYTES) {
            return false;
        }
        int length = packet.getU16(start + 4);
        if (length < UDP_BYTES || length > room) {
            return false;
        }
        sourcePort = packet.getU16(start);
        destinationPort = packet.getU16(start + 2);
        payloadEnd = start + length;
        return true;
    }

    /**
     * Returns what the IP header says.
     *
     * @return the same object for each packet
     */
    public IpHeader ip() {
        return ip;
    }

    /**
     * Returns the source port.
     *
     * @return 0 to 65,535
     */
    public int sourcePort() {
        return sourcePort;
    }

    /**
     * Returns the destination port.
     *
     * @return 0 to 65,535
     */
    public int destinationPort() {
        return destinationPort;
    }

    /**
     * Returns where the payload begins.
     *
     * @return offset in the packet
     */
    public int payloadStart() {
        return ip.payloadStart() + UDP_BYTES;
    }

    /**
     * Returns where the payload ends.
     *
     * @return offset in the packet of the first byte behind it
     */
    public int payloadEnd() {
        return payloadEnd;
    }

    /**
     * Makes the packet, which these headers were read from, a UDP packet back to where it came from: from the address
     * and port that it was sent to, with fresh headers and right checksums. {@link PacketView#modified()} is still to be
     * called.
     *
     * @param packet the packet
     * @param port the port that it goes to, mostly {@link #sourcePort()}
     * @param from where the payload is
     * @param start index in {@code from} of the payload
     * @param count bytes of payload
     * @return false if the packet would be too long; it is as before then
     * @throws IndexOutOfBoundsException beyond the array
     */
    public boolean answer(PacketView packet, int port, byte[] from, int start, int count) {
        int udpAt = ip.isV6() ? V6_BYTES : V4_BYTES;
        int total = udpAt + UDP_BYTES + count;
        if (total > packet.capacity()) {
            return false;
        }
        int udpBytes = UDP_BYTES + count;
        packet.setLength(total);
        packet.put(udpAt + UDP_BYTES, from, start, count);
        if (ip.isV6()) {
            writeV6(packet, udpBytes);
        } else {
            writeV4(packet, total);
        }
        packet.setU16(udpAt, destinationPort);
        packet.setU16(udpAt + 2, port);
        packet.setU16(udpAt + 4, udpBytes);
        long sum = Checksum.sum(ip.sourceHigh()) + Checksum.sum(ip.sourceLow()) + Checksum.sum(ip.destinationHigh())
                + Checksum.sum(ip.destinationLow()) + IpHeader.UDP + 2L * udpBytes + destinationPort + port;
        int checksum = Checksum.finish(sum + Checksum.sum(from, start, count));
        // RFC 768: 0 would mean that there is none.
        packet.setU16(udpAt + 6, checksum == 0 ? 0xffff : checksum);
        return true;
    }

    private void writeV4(PacketView packet, int total) {
        // RFC 6864 §4.1: an identifier of 0 will do for a packet that must not be fragmented.
        long first = 0x4500_0000_0000_4000L | (long) total << 32;
        int second = FRESH_TTL << 24 | IpHeader.UDP << 16;
        long addresses = ip.destinationLow() << 32 | ip.sourceLow();
        packet.setLong(0, first);
        packet.setInt(8, second | Checksum.finish(Checksum.sum(first) + Checksum.sum(second) + Checksum.sum(addresses)));
        packet.setLong(12, addresses);
    }

    private void writeV6(PacketView packet, int udpBytes) {
        packet.setLong(0, 0x6000_0000_0000_0000L | (long) udpBytes << 16 | IpHeader.UDP << 8 | FRESH_TTL);
        packet.setLong(8, ip.destinationHigh());
        packet.setLong(16, ip.destinationLow());
        packet.setLong(24, ip.sourceHigh());
        packet.setLong(32, ip.sourceLow());
    }
}
