// SPDX-License-Identifier: Apache-2.0
package org.netserv.samples.netmonitor;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.netserv.block.BlockException;
import org.netserv.testing.Allocations;
import org.netserv.testing.FakeNode;
import org.netserv.testing.Packets;

class NetMonitorTest {
    private FakeNode node = new FakeNode(Map.of());

    @Test
    void packetsAreCountedBySourceDestinationAndTtl() throws Exception {
        NetMonitor module = new NetMonitor(node);
        for (int[] packet : new int[][] {{1, 61}, {1, 61}, {2, 61}, {1, 60}, {1, 61}}) {
            byte[] bytes = packet(packet[0], packet[1]);
            assertArrayEquals(bytes, node.process(module, bytes));
        }
        assertEquals(0, node.counter("packets"));
        node.advance(Duration.ofSeconds(1));
        assertEquals(5, node.counter("packets"));
        assertEquals(3, node.counter("10.1.0.1 10.2.0.1 61"));
        assertEquals(1, node.counter("10.1.0.2 10.2.0.1 61"));
        assertEquals(1, node.counter("10.1.0.1 10.2.0.1 60"));
        assertEquals("3 3 87", kept("10.1.0.1 10.2.0.1 61"));
        assertEquals("5 5 145 0 0 0 1", kept("total").stripTrailing());
        assertEquals(146, kept("total").length());
    }

    @Test
    void countsOutliveAnUpgradeThatOverlaps() throws Exception {
        NetMonitor first = new NetMonitor(node);
        node.process(first, packet(1, 61));
        first.flush();
        NetMonitor old = new NetMonitor(node);
        NetMonitor young = new NetMonitor(node);
        assertEquals(1, node.counter("10.1.0.1 10.2.0.1 61"));
        node.process(old, packet(1, 61));
        node.process(young, packet(1, 61));
        old.flush();
        young.flush();
        assertEquals(3, node.counter("10.1.0.1 10.2.0.1 61"));
    }

    @Test
    void countsOfVersionsWithoutBytesGoOn() throws Exception {
        node.kv().set("10.1.0.1 10.2.0.1 61".getBytes(StandardCharsets.UTF_8), "40".getBytes(StandardCharsets.UTF_8));
        NetMonitor module = new NetMonitor(node);
        assertEquals(40, node.counter("10.1.0.1 10.2.0.1 61"));
        node.process(module, packet(1, 61));
        module.flush();
        assertEquals("41 41 29", kept("10.1.0.1 10.2.0.1 61"));
        assertEquals(41, node.counter("10.1.0.1 10.2.0.1 61"));
    }

    @Test
    void aSampleCountsForAll() throws Exception {
        node = new FakeNode(Map.of("sample", "10"));
        NetMonitor module = new NetMonitor(node);
        for (int count = 0; count < 25; count++) {
            node.process(module, packet(1, 61));
        }
        module.flush();
        assertEquals(25, node.counter("packets"));
        assertEquals(20, node.counter("10.1.0.1 10.2.0.1 61"));
        assertDoesNotThrow(() -> new NetMonitor(new FakeNode(Map.of("sample", "+18446744073709551615"))));
    }

    @ParameterizedTest
    @ValueSource(strings = {"0", "", "+", "-1", "1.5", " 1", "18446744073709551616", "\u0661"})
    void aSampleIsANumber(String sample) {
        FakeNode wrong = new FakeNode(Map.of("sample", sample));
        String message = assertThrows(IllegalArgumentException.class, () -> new NetMonitor(wrong)).getMessage();
        assertTrue(message.startsWith("property `sample` "), message);
    }

    @Test
    void itsUserChangesTheSampleAndSwitchesItOffAndOn() throws Exception {
        NetMonitor module = new NetMonitor(node);
        node.listen(message -> module.told(node, node, message));
        String[][] messages = {{"sample", "10"}, {"sample", "0"}, {"sample", "many"}, {"other", "1"}, {"sample", "1\n"}};
        long[] counted = {20, 20, 20, 20, 40};
        for (int index = 0; index < messages.length; index++) {
            node.tell(messages[index][0], messages[index][1]);
            for (int count = 0; count < 20; count++) {
                node.process(module, packet(1, 61));
            }
            module.flush();
            assertEquals(counted[index], node.counter("10.1.0.1 10.2.0.1 61"), messages[index][1]);
        }
        assertEquals(List.of("sample: sample is 10", "sample: sample is 0", "sample: sample is a number",
                "other: nothing is known of other", "sample: sample is 1"), node.notified());
        assertEquals(100, node.counter("packets"));
    }

    @Test
    void itSaysWhereItIs() throws Exception {
        NetMonitor module = new NetMonitor(node);
        node.listen(message -> module.told(node, node, message));
        node.tell("where", "");
        node.isAt("berlin", Map.of("uplink", "10G"));
        node.tell("where", "");
        assertEquals(List.of("where: n1 in , uplink ", "where: n1 in berlin, uplink 10G"), node.notified());
    }

    @Test
    void itsCountsAndItsNumberMove() throws Exception {
        NetMonitor module = new NetMonitor(node);
        node.carry(module);
        node.listen(message -> module.told(node, node, message));
        node.tell("sample", "258");
        for (int count = 0; count < 258; count++) {
            node.process(module, packet(1, 61));
        }
        byte[] state = node.exportState();
        // What modules/apps/net-monitor says, too.
        assertArrayEquals(new byte[] {0, 0, 0, 0, 0, 0, 1, 2}, state);
        assertEquals("258 1 29", kept("10.1.0.1 10.2.0.1 61"));
        assertEquals("258 1 29 0 0 0 258", kept("total").stripTrailing());
        FakeNode other = new FakeNode(Map.of());
        NetMonitor moved = new NetMonitor(other);
        other.beginWith(state);
        other.carry(moved);
        assertArrayEquals(state, other.exportState());
        other.beginWith(new byte[7]);
        assertThrows(BlockException.class, () -> other.carry(moved));
    }

    @Test
    void keysAreBounded() throws Exception {
        NetMonitor module = new NetMonitor(node);
        for (int host = 0; host <= Counts.KEYS_MAX + 1; host++) {
            String source = "10.1." + host / 256 + "." + host % 256 + ":1";
            node.process(module, Packets.udp(source, "10.2.0.1:5060", 61, new byte[0]));
        }
        assertEquals(Counts.KEYS_MAX, node.kv().size());
        module.flush();
        assertEquals(Counts.KEYS_MAX + 3, node.kv().size());
    }

    @Test
    void damagedPacketsPass() throws Exception {
        NetMonitor module = new NetMonitor(node);
        byte[] damaged = new byte[19];
        damaged[0] = 0x45;
        assertArrayEquals(damaged, node.process(module, damaged));
        module.flush();
        assertEquals(1, node.kv().size());
        assertEquals("1 0 0 1 0 0 1", kept("total").stripTrailing());
        assertEquals(1, node.counter("packets"));
    }

    @Test
    void countsComeInOrder() {
        Counts counts = new Counts();
        long[][] keys = {{0, -1, 9}, {0, 1, 7}, {0, 1, 200}, {-1, 0, 1}, {1, 0, 1}, {0, 1, 8}};
        for (long[] key : keys) {
            assertTrue(counts.add(Counts.kind(true, (int) key[2]), key[0], key[1], 0, 0, 1, 1, 20));
            assertTrue(counts.add(Counts.kind(false, (int) key[2]), 0, key[1] & 0xffff_ffffL, 0, 0, 1, 1, 20));
        }
        List<String> names = new ArrayList<>();
        counts.drain((name, sum) -> names.add(name + (sum.equals(new Sum(1, 1, 20)) ? "" : " twice")));
        assertEquals(List.of("0.0.0.0 0.0.0.0 1 twice", "0.0.0.1 0.0.0.0 7", "0.0.0.1 0.0.0.0 8",
                "0.0.0.1 0.0.0.0 200", "255.255.255.255 0.0.0.0 9", "::1 :: 7", "::1 :: 8", "::1 :: 200",
                "::ffff:ffff:ffff:ffff :: 9", "0:0:0:1:: :: 1", "ffff:ffff:ffff:ffff:: :: 1"), names);
        assertEquals(0, counts.size());
    }

    @Test
    void nothingIsAllocatedPerPacket() throws Exception {
        NetMonitor module = new NetMonitor(node);
        List<byte[]> packets = new ArrayList<>();
        for (int host = 0; host < 100; host++) {
            packets.add(packet(host, 61));
            packets.add(Packets.udp("[2001:db8::" + host + "]:5060", "[2001:db8::7]:5060", 61, new byte[100]));
        }
        assertEquals(0, Allocations.bytesOf(module, packets), "bytes for 200,000 packets");
    }

    private String kept(String key) {
        return new String(node.kv().get(key.getBytes(StandardCharsets.UTF_8)), StandardCharsets.UTF_8);
    }

    private static byte[] packet(int host, int ttl) {
        return Packets.udp("10.1.0." + host + ":1", "10.2.0.1:5060", ttl, new byte[] {'x'});
    }
}
