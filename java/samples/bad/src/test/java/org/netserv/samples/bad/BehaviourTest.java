// SPDX-License-Identifier: Apache-2.0
package org.netserv.samples.bad;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.netserv.testing.FakeNode;
import org.netserv.testing.Packets;

class BehaviourTest {
    private final FakeNode node = new FakeNode(Map.of());
    private final Surroundings surroundings = new Surroundings(null, node);
    private final byte[] packet = Packets.udp("10.0.0.1:1", "10.0.0.2:2", 64, new byte[100]);

    @Test
    void whatIsThrownComesOut() throws Exception {
        assertThrows(Exception.class, () -> node.process(new Processor(Behaviour.THROW, surroundings), packet));
        assertThrows(AssertionError.class, () -> node.process(new Processor(Behaviour.ERROR, surroundings), packet));
        assertThrows(StackOverflowError.class, () -> node.process(new Processor(Behaviour.STACK, surroundings), packet));
    }

    @Test
    void aScribblerDoesNoHarmToWhatPasses() throws Exception {
        Processor processor = new Processor(Behaviour.SCRIBBLE, surroundings);
        for (int count = 0; count < 3; count++) {
            assertArrayEquals(packet, node.process(processor, packet));
        }
        // On this node a view is good for ever.
        String old = "ERROR: writing to an old view done";
        assertEquals(List.of(old, old), node.lines().stream().filter(line -> line.startsWith("ERROR")).toList());
    }

    @Test
    void onlyTheFirstPacketIsActedOn() throws Exception {
        Processor processor = new Processor(Behaviour.QUOTAS, surroundings);
        node.process(processor, packet);
        node.process(processor, packet);
        // This node has no quotas.
        assertEquals(4, node.counter("done"));
        assertEquals(2, node.counter("seen"));
    }
}
