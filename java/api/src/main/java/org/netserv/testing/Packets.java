// SPDX-License-Identifier: Apache-2.0
package org.netserv.testing;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.ByteBuffer;

/** Packets for tests. */
public final class Packets {
    private static final int UDP = 17;

    private Packets() {
    }

    /**
     * Returns a UDP packet with right checksums.
     *
     * @param source an address and a port such as {@code 10.0.0.1:5060} or {@code [2001:db8::1]:5060}
     * @param destination another one of the same IP version
     * @param ttl time to live, or hop limit
     * @param payload the payload
     * @return the packet's bytes, from its IP header on
     */
    public static byte[] udp(String source, String destination, int ttl, byte[] payload) {
        byte[] from = address(source);
        byte[] to = address(destination);
        boolean v6 = from.length == 16;
        int udpBytes = 8 + payload.length;
        ByteBuffer packet = ByteBuffer.allocate((v6 ? 40 : 20) + udpBytes);
        if (v6) {
            packet.putInt(0x6000_0000).putShort((short) udpBytes).put((byte) UDP).put((byte) ttl).put(from).put(to);
        } else {
            packet.putShort((short) 0x4500).putShort((short) packet.capacity()).putInt(0x4000);
            packet.put((byte) ttl).put((byte) UDP).putShort((short) 0).put(from).put(to);
            packet.putShort(10, (short) checksum(packet.array(), 0, 20, 0));
        }
        int udpAt = packet.position();
        packet.putShort((short) port(source)).putShort((short) port(destination)).putShort((short) udpBytes);
        packet.putShort((short) 0).put(payload);
        int addressesAt = v6 ? 8 : 12;
        int sum = checksum(packet.array(), addressesAt, packet.capacity() - addressesAt, UDP + udpBytes);
        packet.putShort(udpAt + 6, (short) (sum == 0 ? 0xffff : sum));
        return packet.array();
    }

    /** The pseudo header's addresses stand right in front of the UDP header, at an even place. */
    private static int checksum(byte[] bytes, int start, int count, int more) {
        int sum = more;
        for (int at = 0; at < count; at++) {
            sum += (bytes[start + at] & 0xff) << (at % 2 == 0 ? 8 : 0);
        }
        // One's complement addition is addition modulo 65,535.
        int folded = sum > 0 && sum % 0xffff == 0 ? 0xffff : sum % 0xffff;
        return ~folded & 0xffff;
    }

    private static byte[] address(String text) {
        try {
            return InetAddress.getByName(text.substring(0, text.lastIndexOf(':'))).getAddress();
        } catch (UnknownHostException e) {
            throw new IllegalArgumentException(text + " is no address and port", e);
        }
    }

    private static int port(String text) {
        return Integer.parseInt(text.substring(text.lastIndexOf(':') + 1));
    }
}
