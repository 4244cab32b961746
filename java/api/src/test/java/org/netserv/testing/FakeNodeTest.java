// SPDX-License-Identifier: Apache-2.0
package org.netserv.testing;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.netserv.block.BlockException;
import org.netserv.block.State;
import org.netserv.block.Timer;

class FakeNodeTest {
    private final FakeNode node = new FakeNode(Map.of("a", "1"));

    @Test
    void packetsPassAsTheyCame() throws Exception {
        byte[] packet = new byte[20];
        assertArrayEquals(packet, node.process(view -> view.setU8(0, 1), packet));
        assertNull(node.process(view -> view.drop(), packet));
        byte[] changed = node.process(view -> {
            view.setU8(0, 1);
            view.setLength(30);
            view.modified();
        }, packet);
        assertEquals(30, changed.length);
        assertEquals(1, changed[0]);
    }

    @Test
    void timersRunInOrder() throws Exception {
        Timer every = node.every(Duration.ofMillis(10), () -> node.info("every " + node.monotonicNanos()));
        node.once(Duration.ofMillis(15), () -> node.info("once"));
        node.advance(Duration.ofMillis(20));
        assertTrue(every.cancel());
        assertFalse(every.cancel());
        node.advance(Duration.ofMillis(20));
        assertEquals(List.of("INFO: every 10000000", "INFO: once", "INFO: every 20000000"), node.lines());
    }

    @Test
    void stateAndCountersAreKept() throws Exception {
        node.kv().set(new byte[] {2}, new byte[] {3});
        assertArrayEquals(new byte[] {2}, node.kv().next(new byte[] {1}));
        assertNull(node.kv().next(new byte[] {2}));
        node.open("x").add(3);
        node.open("x").add(-1);
        assertEquals(2, node.counter("x"));
        assertEquals(0, node.counter("y"));
        assertThrows(BlockException.class, () -> node.open(""));
        assertEquals("1", node.property("a"));
        assertEquals("2", node.property("b", "2"));
    }

    @Test
    void whatAModuleCarriesIsAskedForAndGiven() throws Exception {
        assertEquals(0, node.exportState().length);
        byte[][] taken = new byte[1][];
        State.Carrier carrier = new State.Carrier() {
            @Override
            public byte[] exportState() {
                return taken[0];
            }

            @Override
            public void importState(byte[] state) throws Exception {
                if (state.length > 2) {
                    throw new Exception("too long");
                }
                taken[0] = state;
            }
        };
        node.carry(carrier);
        assertEquals(0, node.exportState().length);
        node.beginWith(new byte[] {1, 2});
        node.carry(carrier);
        assertArrayEquals(new byte[] {1, 2}, node.exportState());
        node.beginWith(new byte[] {1, 2, 3});
        BlockException declined = assertThrows(BlockException.class, () -> node.carry(carrier));
        assertEquals(BlockException.Code.INVALID, declined.code());
        taken[0] = new byte[State.BYTES_MAX + 1];
        assertEquals(BlockException.Code.TOO_LARGE, assertThrows(BlockException.class, node::exportState).code());
    }
}
