// SPDX-License-Identifier: Apache-2.0
package org.netserv.packet;

/**
 * Makes UDP packets in the place of others, with fresh headers and right checksums. Allocates nothing. The packet goes
 * on like that only if it is {@link PacketView#modified()}.
 */
public final class UdpWriter {
    private static final int UDP_HEADER_BYTES = 8;
    private static final int FRESH_TTL = 64;

    private UdpWriter() {
    }

    /**
     * Returns how many bytes the headers of a UDP packet have.
     *
     * @param version 4 or 6
     * @return 28 or 48
     */
    public static int headerBytes(int version) {
        return UDP_HEADER_BYTES + (version == 4 ? 20 : 40);
    }

    /**
     * Makes a packet the answer to the UDP packet that it was: from its destination to its source address.
     *
     * @param packet the packet
     * @param was what it was
     * @param port where the answer goes
     * @param payload what the answer says
     * @param start index in {@code payload} of the first byte
     * @param count bytes of the payload
     * @return false, with nothing done, if it would be too long
     */
    public static boolean answer(
            PacketView packet, IpView was, int port, byte[] payload, int start, int count) {
        int from = was.destinationPort();
        return write(packet, was.version(), was.destinationHigh(), was.destinationLow(), from, was.sourceHigh(),
                was.sourceLow(), port, payload, start, count);
    }

    /**
     * Makes a packet a UDP packet.
     *
     * @param packet the packet
     * @param version 4 or 6
     * @param sourceHigh the first eight bytes of the source address; not looked at for IPv4
     * @param sourceLow the last eight bytes of the source address; for IPv4 the address in the lower 32 bits
     * @param sourcePort the source port
     * @param destinationHigh as for the source
     * @param destinationLow as for the source
     * @param destinationPort the destination port
     * @param payload what it carries
     * @param start index in {@code payload} of the first byte
     * @param count bytes of the payload
     * @return false, with nothing done, if it would be too long
     */
    public static boolean write(
            PacketView packet, int version, long sourceHigh, long sourceLow, int sourcePort, long destinationHigh,
            long destinationLow, int destinationPort, byte[] payload, int start, int count) {
        int at = headerBytes(version);
        if (at + count > packet.capacity()) {
            return false;
        }
        packet.setLength(at + count);
        packet.put(at, payload, start, count);
        writeHeaders(packet, version, sourceHigh, sourceLow, sourcePort, destinationHigh, destinationLow,
                destinationPort);
        return true;
    }

    /**
     * Gives the UDP packet that a packet is other addresses and ports, with the payload that it has.
     *
     * @param packet the packet
     * @param was what it was
     * @param sourceHigh the first eight bytes of the source address; not looked at for IPv4
     * @param sourceLow the last eight bytes of the source address; for IPv4 the address in the lower 32 bits
     * @param sourcePort the source port
     * @param destinationHigh as for the source
     * @param destinationLow as for the source
     * @param destinationPort the destination port
     */
    public static void redirect(
            PacketView packet, IpView was, long sourceHigh, long sourceLow, int sourcePort, long destinationHigh,
            long destinationLow, int destinationPort) {
        int at = headerBytes(was.version());
        packet.move(was.payloadOffset(), at, was.payloadLength());
        packet.setLength(at + was.payloadLength());
        writeHeaders(packet, was.version(), sourceHigh, sourceLow, sourcePort, destinationHigh, destinationLow,
                destinationPort);
    }

    private static void writeHeaders(
            PacketView packet, int version, long sourceHigh, long sourceLow, int sourcePort, long destinationHigh,
            long destinationLow, int destinationPort) {
        int total = packet.length();
        int at = headerBytes(version) - UDP_HEADER_BYTES;
        if (version == 4) {
            packet.setInt(0, 0x4500_0000 | total);
            // RFC 6864 §4.1: an identifier of 0 will do for a packet that must not be fragmented.
            packet.setInt(4, 0x4000);
            packet.setInt(8, FRESH_TTL << 24 | IpView.UDP << 16);
            packet.setInt(12, (int) sourceLow);
            packet.setInt(16, (int) destinationLow);
            packet.setU16(10, Checksum.of(packet, 0, at, 0));
        } else {
            packet.setInt(0, 0x6000_0000);
            packet.setInt(4, (total - at) << 16 | IpView.UDP << 8 | FRESH_TTL);
            packet.setLong(8, sourceHigh);
            packet.setLong(16, sourceLow);
            packet.setLong(24, destinationHigh);
            packet.setLong(32, destinationLow);
        }
        packet.setU16(at, sourcePort);
        packet.setU16(at + 2, destinationPort);
        packet.setU16(at + 4, total - at);
        packet.setU16(at + 6, 0);
        int sum = Checksum.of(packet, at, total - at, IpView.pseudoHeader(packet, version, IpView.UDP, total - at));
        // RFC 768: 0 would mean that there is none.
        packet.setU16(at + 6, sum == 0 ? 0xffff : sum);
    }
}
