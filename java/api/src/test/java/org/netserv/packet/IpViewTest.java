// SPDX-License-Identifier: Apache-2.0
package org.netserv.packet;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.netserv.testing.FakePacket;
import org.netserv.testing.Packets;

class IpViewTest {
    private static final byte[] V4 = Packets.udp("10.1.0.2:1234", "10.2.0.1:5060", 61, new byte[] {1, 2, 3});
    private static final byte[] V6 = Packets.udp("[2001:db8::1]:1234", "[2001:db8:0:1::ff]:5060", 61,
            new byte[] {1, 2});

    private final IpView ip = new IpView();

    @Test
    void aUdpPacketOverIpv4IsRead() {
        assertTrue(ip.parse(new FakePacket(V4)));
        assertEquals("4 17 61 20 31 28 3 1234 5060 10.1.0.2 10.2.0.1", text());
        assertEquals(0x0a010002, ip.sourceV4());
        assertEquals(0x0a020001L, ip.destinationLow());
        assertTrue(ip.isUdp() && !ip.isTcp() && !ip.isFragment() && ip.hasRightChecksums());
    }

    @Test
    void aUdpPacketOverIpv6IsRead() {
        assertTrue(ip.parse(new FakePacket(V6)));
        assertEquals("6 17 61 40 50 48 2 1234 5060 2001:db8::1 2001:db8:0:1::ff", text());
        assertEquals(0x2001_0db8_0000_0000L, ip.sourceHigh());
        assertEquals(0xff, ip.destinationLow());
        assertTrue(ip.hasRightChecksums());
    }

    @Test
    void extensionHeadersAreSkipped() {
        // Hop-by-hop of 16 bytes, then an authentication header of 12, then UDP.
        byte[] extensions = new byte[28];
        extensions[0] = 51;
        extensions[1] = 1;
        extensions[16] = 17;
        extensions[17] = 1;
        FakePacket packet = new FakePacket(withExtensions(0, extensions));
        assertTrue(ip.parse(packet));
        assertEquals(68, ip.transportOffset());
        assertTrue(ip.isUdp());
        assertEquals(5060, ip.destinationPort());
        assertFalse(ip.parse(new FakePacket(Arrays.copyOf(withExtensions(0, extensions), 60))));
    }

    @Test
    void fragmentsHaveNoPorts() {
        FakePacket packet = new FakePacket(V4);
        packet.setU16(6, 0x2000);
        assertTrue(ip.parse(packet) && ip.isFragment() && !ip.isUdp());
        assertEquals(0, ip.sourcePort());
        assertEquals(0, ip.payloadLength());
        byte[] fragment = {17, 0, 0, 8, 0, 0, 0, 1};
        assertTrue(ip.parse(new FakePacket(withExtensions(44, fragment))) && ip.isFragment() && !ip.isUdp());
        fragment[3] = 0;
        assertTrue(ip.parse(new FakePacket(withExtensions(44, fragment))) && !ip.isFragment() && ip.isUdp());
        assertThrows(IllegalStateException.class, () -> {
            ip.parse(packet);
            ip.setSourcePort(1);
        });
    }

    @Test
    void aTcpSegmentIsRead() {
        FakePacket packet = new FakePacket(tcp());
        assertTrue(ip.parse(packet) && ip.isTcp() && !ip.isUdp());
        assertEquals(44, ip.payloadOffset());
        assertEquals(6, ip.payloadLength());
        ip.updateChecksums();
        assertTrue(ip.hasRightChecksums());
        packet.setU8(49, 9);
        assertFalse(ip.hasRightChecksums());
        packet.setU8(32, 0x40);
        assertTrue(ip.parse(packet) && !ip.isTcp());
    }

    @Test
    void damagedPacketsAreNot() {
        for (byte[] whole : new byte[][] {V4, V6, tcp()}) {
            for (int length = 1; length < whole.length; length++) {
                assertFalse(ip.parse(new FakePacket(Arrays.copyOf(whole, length))), length + " bytes");
                assertEquals(0, ip.version());
            }
        }
        check(0, 0x44);
        check(0, 0x4f);
        check(0, 0x55);
        check(3, 19);
        check(3, 200);
        FakePacket udp = new FakePacket(V4);
        for (int length : new int[] {0, 7, 12, 0xffff}) {
            udp.setU16(24, length);
            assertTrue(ip.parse(udp) && !ip.isUdp(), "UDP length " + length);
        }
    }

    @Test
    void anythingIsReadWithoutHarm() {
        Random random = new Random(7);
        for (int round = 0; round < 200_000; round++) {
            byte[] bytes = new byte[1 + random.nextInt(100)];
            random.nextBytes(bytes);
            bytes[0] = (byte) (random.nextBoolean() ? 0x40 | 5 + random.nextInt(4) : 0x60);
            if (bytes.length > 8) {
                bytes[6] = (byte) new int[] {0, 43, 44, 51, 60, 6, 17}[random.nextInt(7)];
                ByteBuffer.wrap(bytes).putShort(bytes[0] >>> 4 == 4 ? 2 : 4, (short) random.nextInt(bytes.length + 2));
            }
            FakePacket packet = new FakePacket(bytes);
            if (ip.parse(packet)) {
                assertTrue(ip.transportOffset() <= ip.endOffset() && ip.endOffset() <= bytes.length);
                assertTrue(ip.payloadOffset() + ip.payloadLength() <= ip.endOffset());
                ip.hasRightChecksums();
                ip.updateChecksums();
                assertTrue(ip.hasRightChecksums());
            }
        }
    }

    @Test
    void settersKeepChecksumsRight() {
        Random random = new Random(11);
        for (int round = 0; round < 20_000; round++) {
            byte[] bytes = new byte[][] {V4, V6, tcp()}[round % 3];
            FakePacket packet = new FakePacket(bytes);
            ip.parse(packet);
            ip.updateChecksums();
            ip.setTtl(random.nextInt(256));
            ip.setSourcePort(random.nextInt(65_536));
            ip.setDestinationPort(random.nextInt(65_536));
            if (ip.version() == 4) {
                ip.setSource(random.nextInt());
                ip.setDestination(random.nextInt());
                assertThrows(IllegalStateException.class, () -> ip.setSource(1L, 2L));
            } else {
                ip.setSource(random.nextLong(), random.nextLong());
                ip.setDestination(random.nextLong(), random.nextLong());
                assertThrows(IllegalStateException.class, () -> ip.setSource(1));
            }
            assertTrue(ip.hasRightChecksums(), "round " + round);
            String said = text();
            ip.parse(packet);
            assertEquals(text(), said);
        }
    }

    @Test
    void aUdpPacketWithoutChecksumStaysSo() {
        FakePacket packet = new FakePacket(V4);
        packet.setU16(26, 0);
        ip.parse(packet);
        ip.setSource(1);
        ip.setSourcePort(7);
        assertEquals(0, packet.getU16(26));
        assertTrue(ip.hasRightChecksums());
    }

    @Test
    void answersGoBack() {
        for (byte[] question : new byte[][] {V4, V6}) {
            boolean v4 = question == V4;
            FakePacket packet = new FakePacket(question);
            ip.parse(packet);
            assertTrue(UdpWriter.answer(packet, ip, 99, new byte[] {0, 7, 8, 9}, 1, 3));
            packet.modified();
            byte[] expected = v4 ? Packets.udp("10.2.0.1:5060", "10.1.0.2:99", 64, new byte[] {7, 8, 9})
                    : Packets.udp("[2001:db8:0:1::ff]:5060", "[2001:db8::1]:99", 64, new byte[] {7, 8, 9});
            assertArrayEquals(expected, packet.outcome());
            byte[] longest = new byte[PacketView.LENGTH_MAX];
            int room = PacketView.LENGTH_MAX - UdpWriter.headerBytes(v4 ? 4 : 6);
            assertFalse(UdpWriter.answer(packet, ip, 99, longest, 0, room + 1));
            assertArrayEquals(expected, packet.outcome());
            assertTrue(UdpWriter.answer(packet, ip, 99, longest, 0, room));
        }
    }

    @Test
    void packetsAreRedirectedWithTheirPayload() {
        FakePacket packet = new FakePacket(withExtensions(0, new byte[] {17, 0, 0, 0, 0, 0, 0, 0}));
        ip.parse(packet);
        UdpWriter.redirect(packet, ip, 1, 2, 3, 4, 5, 6);
        packet.modified();
        assertArrayEquals(Packets.udp("[0:0:0:1::2]:3", "[0:0:0:4::5]:6", 64, new byte[] {1, 2}), packet.outcome());
    }

    @Test
    void addressesAreWrittenAsRfc5952Says() {
        check("::", 0, 0);
        check("::1", 0, 1);
        check("1::", 1L << 48, 0);
        check("2001:db8::1:0:0:1", 0x2001_0db8_0000_0000L, 0x0001_0000_0000_0001L);
        check("2001:0:0:1::1", 0x2001_0000_0000_0001L, 1);
        check("2001:db8:0:1:1:1:1:1", 0x2001_0db8_0000_0001L, 0x0001_0001_0001_0001L);
        check("::ffff:192.0.2.1", 0, 0xffff_c000_0201L);
        check("::1:0", 0, 1L << 16);
        check("ffff:ffff:ffff:ffff:ffff:ffff:ffff:0", -1, -1L << 16);
        assertEquals("255.0.10.1", IpText.v4(0xff000a01));
    }

    private static void check(String text, long high, long low) {
        assertEquals(text, IpText.v6(high, low));
    }

    private void check(int at, int value) {
        FakePacket packet = new FakePacket(V4);
        packet.setU8(at, value);
        assertFalse(ip.parse(packet), "byte " + at + " is " + value);
    }

    private String text() {
        return ip.version() + " " + ip.protocol() + " " + ip.ttl() + " " + ip.transportOffset() + " " + ip.endOffset()
                + " "
                + ip.payloadOffset() + " " + ip.payloadLength() + " " + ip.sourcePort() + " " + ip.destinationPort()
                        + " "
                + ip.sourceText() + " " + ip.destinationText();
    }

    private static byte[] withExtensions(int first, byte[] extensions) {
        ByteBuffer packet = ByteBuffer.allocate(V6.length + extensions.length);
        packet.put(V6, 0, 40).put(extensions).put(V6, 40, V6.length - 40);
        packet.putShort(4, (short) (V6.length - 40 + extensions.length)).put(6, (byte) first);
        return packet.array();
    }

    private static byte[] tcp() {
        ByteBuffer packet = ByteBuffer.allocate(50);
        packet.putInt(0x4500_0032).putInt(0x4000).putInt(0x4006_0000).putInt(0x0a010002).putInt(0x0a020001);
        packet.putShort((short) 80).putShort((short) 8080).putInt(1).putInt(2).putInt(0x6010_0000);
        return packet.array();
    }
}
