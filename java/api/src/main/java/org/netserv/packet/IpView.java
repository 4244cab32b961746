// SPDX-License-Identifier: Apache-2.0
package org.netserv.packet;

/**
 * What the headers of a packet say: IP, and the ports of UDP and TCP. Make one and use it for all packets; nothing here
 * allocates memory but {@link #sourceText()} and {@link #destinationText()}.
 *
 * <p>What it says about the headers is what they said at {@link #parse}, but for what its own setters changed. Setters
 * write to the packet and keep the checksums right that were right before; say {@link PacketView#modified()} in the
 * end.
 */
public final class IpView {
    /** The protocol number of TCP. */
    public static final int TCP = 6;
    /** The protocol number of UDP. */
    public static final int UDP = 17;

    private static final int IPV4_HEADER_BYTES = 20;
    private static final int IPV6_HEADER_BYTES = 40;
    private static final int UDP_HEADER_BYTES = 8;
    private static final int TCP_HEADER_BYTES = 20;
    private static final int TCP_CHECKSUM_AT = 16;
    private static final int UDP_CHECKSUM_AT = 6;
    /** RFC 8200 sets no bound; more than this nobody sends. */
    private static final int EXTENSION_HEADERS_MAX = 8;

    private PacketView packet;
    private int version;
    private int protocol;
    private boolean fragment;
    private int ttl;
    private int transportAt;
    private int end;
    private int payloadAt;
    private int payloadEnd;
    private long sourceHigh;
    private long sourceLow;
    private long destinationHigh;
    private long destinationLow;

    /** Makes a view of no packet. */
    public IpView() {
        // Everything is 0 until there is a packet.
    }

    /**
     * Reads the headers of a packet.
     *
     * @param packet the packet
     * @return whether the IP header is whole and fits the packet; if not, nothing else may be asked
     */
    public boolean parse(PacketView packet) {
        this.packet = packet;
        int length = packet.length();
        int first = length == 0 ? 0 : packet.getU8(0) >>> 4;
        boolean parsed = first == 4 ? parseV4(length) : first == 6 && parseV6(length);
        version = parsed ? first : 0;
        payloadAt = -1;
        payloadEnd = -1;
        if (parsed && !fragment) {
            parseTransport();
        }
        return parsed;
    }

    /**
     * Returns the IP version.
     *
     * @return 4 or 6; 0 if there is no header that is whole
     */
    public int version() {
        return version;
    }

    /**
     * Returns the upper-layer protocol, after IPv6 extension headers.
     *
     * @return its number
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
     * Returns the time to live, or hop limit.
     *
     * @return 0 to 255
     */
    public int ttl() {
        return ttl;
    }

    /**
     * Returns where the upper layer's header starts.
     *
     * @return its offset
     */
    public int transportOffset() {
        return transportAt;
    }

    /**
     * Returns where the IP packet ends, which may be before the end of the bytes.
     *
     * @return the offset behind the last byte
     */
    public int endOffset() {
        return end;
    }

    /**
     * Returns whether this is a whole UDP packet: not a fragment, with a length that fits.
     *
     * @return whether ports and payload of UDP are there
     */
    public boolean isUdp() {
        return protocol == UDP && payloadAt >= 0;
    }

    /**
     * Returns whether this is a whole TCP segment: not a fragment, with a header that fits.
     *
     * @return whether ports and payload of TCP are there
     */
    public boolean isTcp() {
        return protocol == TCP && payloadAt >= 0;
    }

    /**
     * Returns where the payload of UDP or TCP starts.
     *
     * @return its offset, -1 if it is neither
     */
    public int payloadOffset() {
        return payloadAt;
    }

    /**
     * Returns the length of the payload of UDP or TCP.
     *
     * @return bytes, 0 if it is neither
     */
    public int payloadLength() {
        return payloadEnd - payloadAt;
    }

    /**
     * Returns the source port of UDP or TCP.
     *
     * @return the port, 0 if it is neither
     */
    public int sourcePort() {
        return payloadAt < 0 ? 0 : packet.getU16(transportAt);
    }

    /**
     * Returns the destination port of UDP or TCP.
     *
     * @return the port, 0 if it is neither
     */
    public int destinationPort() {
        return payloadAt < 0 ? 0 : packet.getU16(transportAt + 2);
    }

    /**
     * Returns the source address of an IPv4 packet.
     *
     * @return the four bytes, the first in the highest bits; the last four of an IPv6 address
     */
    public int sourceV4() {
        return (int) sourceLow;
    }

    /**
     * Returns the destination address of an IPv4 packet.
     *
     * @return the four bytes, the first in the highest bits; the last four of an IPv6 address
     */
    public int destinationV4() {
        return (int) destinationLow;
    }

    /**
     * Returns the first eight bytes of the source address of an IPv6 packet.
     *
     * @return the bytes, 0 for IPv4
     */
    public long sourceHigh() {
        return sourceHigh;
    }

    /**
     * Returns the last eight bytes of the source address of an IPv6 packet.
     *
     * @return the bytes; for IPv4 the address without sign
     */
    public long sourceLow() {
        return sourceLow;
    }

    /**
     * Returns the first eight bytes of the destination address of an IPv6 packet.
     *
     * @return the bytes, 0 for IPv4
     */
    public long destinationHigh() {
        return destinationHigh;
    }

    /**
     * Returns the last eight bytes of the destination address of an IPv6 packet.
     *
     * @return the bytes; for IPv4 the address without sign
     */
    public long destinationLow() {
        return destinationLow;
    }

    /**
     * Returns the source address as text.
     *
     * @return for instance {@code 192.0.2.1} or {@code 2001:db8::1}
     */
    public String sourceText() {
        return version == 4 ? IpText.v4((int) sourceLow) : IpText.v6(sourceHigh, sourceLow);
    }

    /**
     * Returns the destination address as text.
     *
     * @return for instance {@code 192.0.2.1} or {@code 2001:db8::1}
     */
    public String destinationText() {
        return version == 4 ? IpText.v4((int) destinationLow) : IpText.v6(destinationHigh, destinationLow);
    }

    /**
     * Sets the time to live, or hop limit.
     *
     * @param value 0 to 255
     */
    public void setTtl(int value) {
        if (version == 4) {
            int before = packet.getU16(8);
            packet.setU8(8, value);
            changeChecksum(10, before, packet.getU16(8));
        } else {
            packet.setU8(7, value);
        }
        ttl = value & 0xff;
    }

    /**
     * Sets the source address of an IPv4 packet.
     *
     * @param address the four bytes, the first in the highest bits
     * @throws IllegalStateException if it is not an IPv4 packet
     */
    public void setSource(int address) {
        setV4(12, address);
        sourceLow = address & 0xffff_ffffL;
    }

    /**
     * Sets the destination address of an IPv4 packet.
     *
     * @param address the four bytes, the first in the highest bits
     * @throws IllegalStateException if it is not an IPv4 packet
     */
    public void setDestination(int address) {
        setV4(16, address);
        destinationLow = address & 0xffff_ffffL;
    }

    /**
     * Sets the source address of an IPv6 packet.
     *
     * @param high the first eight bytes
     * @param low the last eight bytes
     * @throws IllegalStateException if it is not an IPv6 packet
     */
    public void setSource(long high, long low) {
        setV6(8, high, low);
        sourceHigh = high;
        sourceLow = low;
    }

    /**
     * Sets the destination address of an IPv6 packet.
     *
     * @param high the first eight bytes
     * @param low the last eight bytes
     * @throws IllegalStateException if it is not an IPv6 packet
     */
    public void setDestination(long high, long low) {
        setV6(24, high, low);
        destinationHigh = high;
        destinationLow = low;
    }

    /**
     * Sets the source port of UDP or TCP.
     *
     * @param port 0 to 65,535
     * @throws IllegalStateException if it is neither
     */
    public void setSourcePort(int port) {
        setPort(0, port);
    }

    /**
     * Sets the destination port of UDP or TCP.
     *
     * @param port 0 to 65,535
     * @throws IllegalStateException if it is neither
     */
    public void setDestinationPort(int port) {
        setPort(2, port);
    }

    /**
     * Makes every checksum right again: of the IPv4 header, and of UDP or TCP. To be called after other changes than
     * by this view's setters, with lengths that are right; the headers are where they were at {@link #parse}.
     */
    public void updateChecksums() {
        if (version == 4) {
            packet.setU16(10, 0);
            packet.setU16(10, Checksum.of(packet, 0, (packet.getU8(0) & 0xf) * 4, 0));
        }
        if (payloadAt < 0) {
            return;
        }
        int at = transportAt + (protocol == UDP ? UDP_CHECKSUM_AT : TCP_CHECKSUM_AT);
        packet.setU16(at, 0);
        int length = payloadEnd - transportAt;
        int sum = Checksum.of(packet, transportAt, length, pseudoHeader(packet, version, protocol, length));
        // RFC 768: 0 would mean that there is none.
        packet.setU16(at, sum == 0 && protocol == UDP ? 0xffff : sum);
    }

    /**
     * Returns whether every checksum is right. A UDP checksum of 0 over IPv4 is. Packets that the node's own machine
     * sends may lack theirs.
     *
     * @return whether they are right
     */
    public boolean hasRightChecksums() {
        if (version == 4 && Checksum.of(packet, 0, (packet.getU8(0) & 0xf) * 4, 0) != 0) {
            return false;
        }
        if (payloadAt < 0 || version == 4 && protocol == UDP && packet.getU16(transportAt + UDP_CHECKSUM_AT) == 0) {
            return true;
        }
        int length = payloadEnd - transportAt;
        return Checksum.of(packet, transportAt, length, pseudoHeader(packet, version, protocol, length)) == 0;
    }

    static long pseudoHeader(PacketView packet, int version, int protocol, int length) {
        long sum = protocol + length;
        int start = version == 4 ? 12 : 8;
        for (int at = start, last = version == 4 ? 20 : 40; at < last; at += 4) {
            sum += packet.getU32(at);
        }
        return sum;
    }

    private boolean parseV4(int length) {
        if (length < IPV4_HEADER_BYTES) {
            return false;
        }
        int headerBytes = (packet.getU8(0) & 0xf) * 4;
        int total = packet.getU16(2);
        if (headerBytes < IPV4_HEADER_BYTES || headerBytes > length || total < headerBytes || total > length) {
            return false;
        }
        ttl = packet.getU8(8);
        protocol = packet.getU8(9);
        // RFC 791: more fragments, or an offset.
        fragment = (packet.getU16(6) & 0x3fff) != 0;
        transportAt = headerBytes;
        end = total;
        sourceHigh = 0;
        sourceLow = packet.getU32(12);
        destinationHigh = 0;
        destinationLow = packet.getU32(16);
        return true;
    }

    private boolean parseV6(int length) {
        if (length < IPV6_HEADER_BYTES) {
            return false;
        }
        int packetEnd = IPV6_HEADER_BYTES + packet.getU16(4);
        int next = packet.getU8(6);
        int at = IPV6_HEADER_BYTES;
        fragment = false;
        for (int count = 0; count < EXTENSION_HEADERS_MAX && isExtension(next) && at + 2 <= length; count++) {
            if (next == 44) {
                if (at + 4 > length) {
                    return false;
                }
                fragment |= (packet.getU16(at + 2) & 0xfff9) != 0;
            }
            int bytes = extensionBytes(next, packet.getU8(at + 1));
            next = packet.getU8(at);
            at += bytes;
            if (at > length) {
                return false;
            }
        }
        if (packetEnd > length || at > packetEnd) {
            return false;
        }
        ttl = packet.getU8(7);
        protocol = next;
        transportAt = at;
        end = packetEnd;
        sourceHigh = packet.getLong(8);
        sourceLow = packet.getLong(16);
        destinationHigh = packet.getLong(24);
        destinationLow = packet.getLong(32);
        return true;
    }

    private static boolean isExtension(int number) {
        return number == 0 || number == 43 || number == 60 || number == 44 || number == 51;
    }

    private static int extensionBytes(int number, int length) {
        return number == 44 ? 8 : number == 51 ? (length + 2) * 4 : (length + 1) * 8;
    }

    private void parseTransport() {
        if (protocol == UDP && end - transportAt >= UDP_HEADER_BYTES) {
            int length = packet.getU16(transportAt + 4);
            if (length >= UDP_HEADER_BYTES && length <= end - transportAt) {
                payloadAt = transportAt + UDP_HEADER_BYTES;
                payloadEnd = transportAt + length;
            }
        } else if (protocol == TCP && end - transportAt >= TCP_HEADER_BYTES) {
            int headerBytes = (packet.getU8(transportAt + 12) >>> 4) * 4;
            if (headerBytes >= TCP_HEADER_BYTES && headerBytes <= end - transportAt) {
                payloadAt = transportAt + headerBytes;
                payloadEnd = end;
            }
        }
    }

    private void setV4(int at, int address) {
        if (version != 4) {
            throw new IllegalStateException("not an IPv4 packet");
        }
        change(at, address, true);
    }

    private void setV6(int at, long high, long low) {
        if (version != 6) {
            throw new IllegalStateException("not an IPv6 packet");
        }
        change(at, (int) (high >>> 32), false);
        change(at + 4, (int) high, false);
        change(at + 8, (int) (low >>> 32), false);
        change(at + 12, (int) low, false);
    }

    private void setPort(int at, int port) {
        if (payloadAt < 0) {
            throw new IllegalStateException("neither UDP nor TCP");
        }
        int before = packet.getU16(transportAt + at);
        packet.setU16(transportAt + at, port);
        changeTransportChecksum(before, port & 0xffff);
    }

    private void change(int at, int word, boolean inHeaderChecksum) {
        int before = packet.getInt(at);
        packet.setInt(at, word);
        if (inHeaderChecksum) {
            changeChecksum(10, before >>> 16, word >>> 16);
            changeChecksum(10, before & 0xffff, word & 0xffff);
        }
        changeTransportChecksum(before >>> 16, word >>> 16);
        changeTransportChecksum(before & 0xffff, word & 0xffff);
    }

    private void changeTransportChecksum(int before, int after) {
        if (payloadAt < 0) {
            return;
        }
        int at = transportAt + (protocol == UDP ? UDP_CHECKSUM_AT : TCP_CHECKSUM_AT);
        if (protocol == UDP && packet.getU16(at) == 0) {
            return;
        }
        changeChecksum(at, before, after);
        if (protocol == UDP && packet.getU16(at) == 0) {
            packet.setU16(at, 0xffff);
        }
    }

    private void changeChecksum(int at, int before, int after) {
        packet.setU16(at, Checksum.updated(packet.getU16(at), before, after));
    }
}
