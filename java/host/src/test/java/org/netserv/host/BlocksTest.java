// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.netserv.host.DispatcherTest.code;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.netserv.block.BlockException;
import org.netserv.block.BlockException.Code;
import org.netserv.block.Counter;
import org.netserv.block.KeyValueStore;
import org.netserv.block.Log.Level;
import org.netserv.block.Timer;

/** The building blocks that are always there, and the bounds of each. */
class BlocksTest {
    private static int states;
    private final FakeNative node = new FakeNative();

    @Test
    void entriesAndBytesAreBounded() throws Exception {
        KeyValueStore kv = kv(2, 10);
        kv.set(bytes("a"), bytes("1234"));
        code(Code.QUOTA, () -> kv.set(bytes("b"), bytes("12345")));
        kv.set(bytes("b"), bytes("1234"));
        code(Code.QUOTA, () -> kv.set(bytes("c"), bytes("")));
        kv.set(bytes("a"), bytes(""));
        kv.set(bytes("b"), bytes("12345678"));
        code(Code.QUOTA, () -> kv.set(bytes("b"), bytes("123456789")));
        assertArrayEquals(bytes("12345678"), kv.get(bytes("b")));
        assertEquals(2, kv.size());
    }

    @Test
    void aStoreOverANewQuotaMayShrinkButNotGrow() throws Exception {
        Natives.kv("example.org/over", 1, limits(9, 10)).set(bytes("a"), bytes("123456789"));
        KeyValueStore small = Natives.kv("example.org/over", 1, limits(9, 5));
        small.set(bytes("a"), bytes("12345678"));
        code(Code.QUOTA, () -> small.set(bytes("a"), bytes("123456789")));
    }

    @Test
    void keysAndValuesAreBoundedAndCopied() throws Exception {
        KeyValueStore kv = kv(100, 1 << 20);
        code(Code.INVALID, () -> kv.set(new byte[0], bytes("")));
        kv.set(new byte[KeyValueStore.KEY_BYTES_MAX], bytes(""));
        code(Code.TOO_LARGE, () -> kv.set(new byte[KeyValueStore.KEY_BYTES_MAX + 1], bytes("")));
        code(Code.TOO_LARGE, () -> kv.set(bytes("a"), new byte[KeyValueStore.VALUE_BYTES_MAX + 1]));
        kv.set(bytes("a"), new byte[KeyValueStore.VALUE_BYTES_MAX]);
        byte[] value = bytes("xy");
        kv.set(bytes("b"), value);
        value[0] = 0;
        kv.get(bytes("b"))[1] = 0;
        assertArrayEquals(bytes("xy"), kv.get(bytes("b")));
        byte[] into = new byte[2];
        assertEquals(2, kv.get(bytes("b"), into));
        assertArrayEquals(bytes("xy"), into);
        assertEquals(2, kv.get(bytes("b"), new byte[1]));
        assertEquals(-1, kv.get(bytes("c"), into));
    }

    @Test
    void iterationGoesByKeyWithoutSigns() throws Exception {
        KeyValueStore kv = kv(100, 100);
        byte[][] keys = {{(byte) 0xff}, {1}, {1, 0}, {0x7f}};
        for (byte[] key : keys) {
            kv.set(key, bytes(""));
        }
        List<Integer> seen = new ArrayList<>();
        for (byte[] key = kv.next(new byte[0]); key != null; key = kv.next(key)) {
            seen.add(key.length * 256 + (key[0] & 0xff));
        }
        assertEquals(List.of(257, 513, 256 + 0x7f, 256 + 0xff), seen);
        assertTrue(kv.delete(keys[1]));
        assertFalse(kv.delete(keys[1]));
        assertNull(kv.get(keys[1]));
    }

    @Test
    void stateBelongsToANameAndASchema() throws Exception {
        KvState first = Natives.kv("example.org/one", 1, limits(9, 99));
        first.set(bytes("a"), bytes("1"));
        assertEquals(0, Natives.kv("example.org/one", 2, limits(9, 99)).size());
        assertEquals(0, Natives.kv("example.org/other", 1, limits(9, 99)).size());
        KvState second = Natives.kv("example.org/one", 1, limits(9, 99));
        first.close();
        first.close();
        assertArrayEquals(bytes("1"), second.get(bytes("a")));
        second.close();
        assertArrayEquals(bytes("1"), Natives.kv("example.org/one", 1, limits(9, 99)).get(bytes("a")));
    }

    @Test
    void closedStateIsEmptyAndUnchanged() throws Exception {
        KvState closed = kv(9, 99);
        closed.set(bytes("a"), bytes("1"));
        closed.close();
        for (KvState kv : List.of(closed, new KvState(0), new KvState(Long.MIN_VALUE))) {
            assertNull(kv.get(bytes("a")));
            assertEquals(-1, kv.get(bytes("a"), new byte[9]));
            assertNull(kv.next(new byte[0]));
            assertEquals(0, kv.size());
            assertFalse(kv.delete(bytes("a")));
            code(Code.QUOTA, () -> kv.set(bytes("a"), bytes("2")));
            code(Code.QUOTA, () -> kv.increment(bytes("a"), 1));
            code(Code.QUOTA, () -> kv.compareAndSet(bytes("a"), null, bytes("2")));
            kv.close();
        }
    }

    @Test
    void entriesAreCountedAndCompared() throws Exception {
        KeyValueStore kv = kv(9, 1 << 20);
        assertEquals(-3, kv.increment(bytes("n"), -3));
        assertEquals(Long.MAX_VALUE, kv.increment(bytes("n"), Long.MIN_VALUE + 2));
        assertArrayEquals(new byte[] {-1, -1, -1, -1, -1, -1, -1, 127}, kv.get(bytes("n")));
        kv.set(bytes("short"), bytes("1"));
        code(Code.INVALID, () -> kv.increment(bytes("short"), 1));
        assertTrue(kv.compareAndSet(bytes("a"), null, bytes("1")));
        assertFalse(kv.compareAndSet(bytes("a"), null, bytes("2")));
        assertFalse(kv.compareAndSet(bytes("a"), bytes("2"), bytes("3")));
        assertFalse(kv.compareAndSet(bytes("a"), new byte[1 << 20], bytes("3")));
        assertTrue(kv.compareAndSet(bytes("a"), bytes("1"), bytes("2")));
        assertArrayEquals(bytes("2"), kv.get(bytes("a")));
        assertTrue(kv.compareAndSet(bytes("a"), bytes("2"), null));
        assertNull(kv.get(bytes("a")));
        byte[] tooLong = new byte[KeyValueStore.KEY_BYTES_MAX + 1];
        code(Code.TOO_LARGE, () -> kv.increment(tooLong, 1));
        code(Code.TOO_LARGE, () -> kv.compareAndSet(tooLong, null, null));
        assertNull(kv.get(tooLong));
        assertFalse(kv.delete(tooLong));
        assertArrayEquals(bytes("n"), kv.next(tooLong));
        assertThrows(NullPointerException.class, () -> kv.get(null));
        assertThrows(NullPointerException.class, () -> kv.get(bytes("n"), null));
        assertThrows(NullPointerException.class, () -> kv.set(null, bytes("")));
        assertThrows(NullPointerException.class, () -> kv.set(bytes("n"), null));
        assertThrows(NullPointerException.class, () -> kv.next(null));
    }

    @Test
    void countersAreOpenedByNameAndBounded() throws Exception {
        ModuleCounters counters = new ModuleCounters(2);
        Counter first = counters.open("first");
        Counter second = counters.open("zweiter Zähler");
        assertSame(first, counters.open("first"));
        code(Code.QUOTA, () -> counters.open("third"));
        first.add(3);
        first.add(-1);
        second.set(7);
        assertEquals(Map.of("first", 2L, "zweiter Zähler", 7L), counters.all());
        code(Code.INVALID, () -> counters.open(""));
        code(Code.INVALID, () -> counters.open("a\nb"));
        code(Code.TOO_LARGE, () -> counters.open("a".repeat(Limits.COUNTER_NAME_BYTES_MAX + 1)));
        code(Code.TOO_LARGE, () -> counters.open("ä".repeat(Limits.COUNTER_NAME_BYTES_MAX / 2 + 1)));
        assertEquals("x", new ModuleCounters(1).open("a".repeat(Limits.COUNTER_NAME_BYTES_MAX)) == null ? "" : "x");
    }

    @Test
    void timersAreBounded() throws Exception {
        List<Long> due = new ArrayList<>();
        ModuleTimers timers = new ModuleTimers(node, 1, due::add);
        Timer timer = timers.every(Duration.ZERO, () -> { });
        assertEquals(List.of(node.now() + 1_000_000), due);
        code(Code.QUOTA, () -> timers.once(Duration.ZERO, () -> { }));
        code(Code.INVALID, () -> timers.once(Duration.ofNanos(-1), () -> { }));
        code(Code.INVALID, () -> timers.once(Duration.ofNanos(Limits.TIMER_NANOS_MAX + 1), () -> { }));
        code(Code.INVALID, () -> timers.once(Duration.ZERO, null));
        assertTrue(timer.cancel());
        assertFalse(timer.cancel());
        assertEquals(Long.MAX_VALUE, timers.nextNanos());
        timers.once(Duration.ofNanos(Limits.TIMER_NANOS_MAX), () -> { });
        timers.close();
        code(Code.QUOTA, () -> timers.once(Duration.ZERO, () -> { }));
    }

    @Test
    void missedPeriodsAreSkipped() throws Exception {
        ModuleTimers timers = new ModuleTimers(node, 9, due -> { });
        long start = node.now();
        timers.every(Duration.ofMillis(10), () -> { });
        assertNull(timers.pollDue(start + 9_999_999));
        assertNotEquals(null, timers.pollDue(start + 45_000_000));
        assertNull(timers.pollDue(start + 49_999_999));
        assertEquals(start + 50_000_000, timers.nextNanos());
        assertNotEquals(null, timers.pollDue(Long.MAX_VALUE / 2));
        assertNull(timers.pollDue(Long.MAX_VALUE / 2));
    }

    @Test
    void aFloodOfLinesIsCutAndTold() {
        ModuleLog log = new ModuleLog(node, 3);
        for (int count = 0; count < Limits.LOG_LINES_BURST + 1000; count++) {
            assertEquals(count < Limits.LOG_LINES_BURST, log.write(Level.INFO, "x"));
        }
        assertEquals(Limits.LOG_LINES_BURST, node.lines.size());
        node.nowNanos.addAndGet(9_999_999);
        assertFalse(log.write(Level.INFO, "x"));
        node.nowNanos.addAndGet(1);
        node.lines.clear();
        assertTrue(log.write(Level.ERROR, "again"));
        assertEquals(List.of("3/1: 1001 lines left out: the module writes too many", "3/0: again"),
                List.copyOf(node.lines));
    }

    @Test
    void aLineIsOneLineAndBounded() {
        assertEquals("a b [31mc ", Text.oneLine("a\nb\u001b[31mc\0"));
        assertEquals("null", Text.oneLine(null));
        assertEquals(Limits.LOG_LINE_BYTES_MAX, Text.utf8Length(Text.oneLine("a".repeat(5000))));
        assertEquals(1023, Text.utf8Length(Text.oneLine("\u20ac".repeat(5000))));
        assertEquals("\ufffdx", Text.oneLine("\ud800x"));
        assertEquals("\ud83d\ude00", Text.oneLine("\ud83d\ude00"));
    }

    @Test
    void tracesAreShort() {
        Exception ring = new Exception("a");
        ring.initCause(new Exception("b", ring));
        assertTrue(Text.shortTrace(ring).length() < 1025);
        Throwable hostile = new Throwable() {
            private static final long serialVersionUID = 1L;

            @Override
            public String toString() {
                throw new IllegalStateException();
            }
        };
        assertTrue(Text.shortTrace(hostile).startsWith(hostile.getClass().getName()));
    }

    @Test
    void aTestsRandomBytesAreThoseOfOtherModules() {
        byte[] bytes = new byte[12];
        new Entropy.Seeded(1).fill(bytes);
        // SplitMix64 with seed 1: 910a2dec89025cc1, beeb8da1658eec67, each with its lowest byte first.
        assertArrayEquals(new byte[] {(byte) 0xc1, 0x5c, 0x02, (byte) 0x89, (byte) 0xec, 0x2d, 0x0a, (byte) 0x91,
            0x67, (byte) 0xec, (byte) 0x8e, 0x65}, bytes);
        new Entropy.System().fill(bytes);
        assertFalse(bytes[0] == 0 && bytes[5] == 0 && bytes[11] == 0);
    }

    @Test
    void limitsHaveSixFields() {
        assertThrows(IllegalArgumentException.class, () -> ModuleLimits.of(new long[5]));
        assertEquals(4, ModuleLimits.of(new long[] {1, 2, 3, 4, 5, 6}).timers());
    }

    @Test
    void errorsHaveTheNumbersOfThePacketAbi() {
        assertEquals(List.of(-1, -3, -4, -5, -6), java.util.Arrays.stream(Code.values()).map(Code::number).toList());
        assertEquals(0, new BlockException(Code.QUOTA, "x").getStackTrace().length);
    }

    /** Returns state that nobody else has. */
    private static KvState kv(long entries, long bytes) {
        return Natives.kv("example.org/own" + states++, 1, limits(entries, bytes));
    }

    private static ModuleLimits limits(long entries, long bytes) {
        return new ModuleLimits(0, entries, bytes, 0, 0, 0);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(java.nio.charset.StandardCharsets.UTF_8);
    }
}
