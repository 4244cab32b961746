// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.netserv.block.BlockException;
import org.netserv.packet.PacketBatch;
import org.netserv.packet.PacketProcessor;
import org.netserv.packet.PacketView;
import org.netserv.packet.Verdict;

class DispatcherTest {
    private static final ModuleLimits LIMITS = new ModuleLimits(1 << 22, 100, 1 << 20, 8, 8, 500);

    private final FakeNative node = new FakeNative();
    private final Ring ring = new Ring();
    private final List<String> failed = new ArrayList<>();
    private Dispatcher dispatcher;

    @BeforeEach
    void start() {
        dispatcher = new Dispatcher(node, ring.table, ring.slots, ring.injects, ring.header);
        dispatcher.onFailure((module, refusal) ->
                failed.add(module.slot() + " " + refusal.kind() + " " + refusal.getMessage()));
    }

    @Test
    void verdictsAndLengthsGetToTheTable() {
        load(0, packet -> {
            switch (packet.getU8(0)) {
                case 1 -> packet.drop();
                case 2 -> {
                    packet.setLength(30);
                    packet.setU8(29, 0xee);
                    packet.modified();
                }
                case 3 -> {
                    packet.setU8(1, 0xff);
                    packet.modified();
                    packet.pass();
                }
                default -> { }
            }
        });
        for (int index = 0; index < 4; index++) {
            ring.put(index, 10 - index, filled(20, index), 1);
        }
        assertEquals(0, dispatcher.process(4));
        check(0, SlotView.PASS, 20, 0);
        check(1, SlotView.DROP, 20, 1);
        check(2, SlotView.MODIFIED, 30, 1);
        check(3, SlotView.PASS, 20, 0);
        assertEquals((byte) 0xee, ring.packet(2)[29]);
        assertEquals(List.of(4L, 2L, 1L, 1L, 0L), counts(0));
    }

    @Test
    void modulesSeeWhatEarlierOnesLeftUnlessTheyPassed() {
        load(3, packet -> {
            packet.setU8(1, 0x11);
            packet.setLength(40);
            if (packet.getU8(0) == 1) {
                packet.modified();
            }
        });
        List<String> seen = new ArrayList<>();
        load(1, packet -> seen.add(packet.length() + " " + packet.getU8(1)));
        ring.put(0, 0, filled(24, 0), 0b1010);
        ring.put(1, 1, filled(24, 1), 0b1010);
        dispatcher.process(2);
        assertEquals(List.of("24 0", "40 17"), seen);
        check(0, SlotView.PASS, 24, 0);
        check(1, SlotView.MODIFIED, 40, 4);
        assertEquals(0, ring.packet(0)[1]);
    }

    @Test
    void aBufferIsTakenBackLikeOtherWrites() {
        load(0, packet -> {
            ByteBuffer buffer = packet.buffer();
            assertEquals(24, buffer.limit());
            assertEquals(ByteOrder.BIG_ENDIAN, buffer.order());
            buffer.order(ByteOrder.LITTLE_ENDIAN).putInt(4, -1).limit(3);
        });
        load(1, packet -> {
            assertEquals(0, packet.getInt(4));
            packet.put(4, new byte[] {9, 9}, 0, 2);
            packet.move(4, 6, 2);
            packet.modified();
        });
        ring.put(0, 5, filled(24, 0), 3);
        dispatcher.process(1);
        assertEquals(List.of(), failed);
        assertArrayEquals(new byte[] {9, 9, 9, 9}, Arrays.copyOfRange(ring.packet(0), 4, 8));
        check(0, SlotView.MODIFIED, 24, 2);
    }

    @Test
    void aModuleThatThrowsIsGoneAndItsBatchUnseen() {
        load(0, packet -> {
            packet.setU8(1, 0x11);
            packet.modified();
            if (packet.getU8(0) == 1) {
                throw new IllegalStateException("at the second");
            }
        });
        List<Integer> seen = new ArrayList<>();
        load(1, packet -> {
            seen.add(packet.getU8(1));
            switch (packet.getU8(0)) {
                case 0 -> packet.modified();
                case 1 -> packet.drop();
                default -> { }
            }
        });
        for (int index = 0; index < 3; index++) {
            ring.put(index, index, filled(20, index), 3);
        }
        dispatcher.process(3);
        assertEquals(List.of(0, 0, 0), seen);
        check(0, SlotView.FAILED, 20, 1);
        check(1, SlotView.DROP, 20, 2);
        check(2, SlotView.FAILED, 20, 1);
        assertEquals(1, failed.size());
        String expected = "0 trapped java.lang.IllegalStateException: at the second";
        assertTrue(failed.get(0).startsWith(expected), failed.get(0));
        ring.put(0, 0, filled(20, 9), 3);
        dispatcher.process(1);
        check(0, SlotView.FAILED, 20, 1);
        ring.put(0, 0, filled(20, 9), 2);
        dispatcher.process(1);
        check(0, SlotView.PASS, 20, 0);
    }

    @Test
    void errorsEndTheModuleToo() {
        load(0, packet -> {
            throw new OutOfMemoryError("Java heap space");
        });
        load(1, packet -> recurse(packet, 1));
        ring.put(0, 0, filled(20, 0), 3);
        dispatcher.process(1);
        assertTrue(failed.get(0).startsWith("0 memory-limit"), failed.get(0));
        assertTrue(failed.get(1).startsWith("1 trapped java.lang.StackOverflowError"), failed.get(1));
    }

    @Test
    void processorsOfOneModuleShareItsPacketInOrderOfRank() {
        Module module = load(0, null);
        List<String> calls = new ArrayList<>();
        module.processors().put("low", -5, packet -> calls.add("low"));
        module.processors().put("high", 5, packet -> {
            calls.add("high");
            packet.modified();
        });
        PacketProcessor middle = packet -> {
            calls.add("middle " + packet.verdict());
            packet.drop();
        };
        module.processors().addPktProcessor(middle);
        module.processors().addPktProcessor(middle);
        ring.put(0, 0, filled(20, 0), 1);
        dispatcher.process(1);
        assertEquals(List.of("high", "middle MODIFIED"), calls);
        check(0, SlotView.DROP, 20, 1);
        module.processors().removePktProcessor(middle);
        dispatcher.process(1);
        check(0, SlotView.MODIFIED, 20, 1);
        assertEquals(List.of("high", "middle MODIFIED", "high", "low"), calls);
        assertThrows(IllegalStateException.class, () -> {
            for (int count = 0; count <= Limits.PROCESSORS_MAX; count++) {
                module.processors().put(new Object(), 0, packet -> { });
            }
        });
    }

    @Test
    void batchesCanBeSeenWhole() {
        load(0, new PacketProcessor() {
            @Override
            public void process(PacketView packet) {
                throw new AssertionError("not called");
            }

            @Override
            public void processBatch(PacketBatch batch) {
                assertEquals(2, batch.size());
                assertThrows(IndexOutOfBoundsException.class, () -> batch.get(2));
                batch.get(0).setU16(2, batch.get(1).getU16(2));
                batch.get(0).modified();
                batch.get(1).drop();
            }
        });
        ring.put(0, 0, filled(20, 1), 1);
        ring.put(1, 1, filled(20, 2), 0);
        ring.put(2, 2, filled(20, 3), 1);
        ring.slots.putShort(2 * 2048 + 64 + 2, (short) 0x1234);
        dispatcher.process(3);
        assertEquals(List.of(), failed);
        assertEquals(0x12, ring.packet(0)[2]);
        check(1, SlotView.PASS, 20, 0);
        check(2, SlotView.DROP, 20, 1);
    }

    @Test
    void accessIsBoundedToThePacketAndTheCall() {
        PacketView[] kept = new PacketView[1];
        load(0, packet -> {
            kept[0] = packet;
            assertEquals(20, packet.length());
            assertEquals(1984, packet.capacity());
            assertEquals(1000, packet.timeNanos());
            assertEquals(7, packet.interfaceNumber());
            assertEquals(Verdict.PASS, packet.verdict());
            byte[] array = new byte[64];
            List<Runnable> beyond = List.of(
                    () -> packet.getU8(20), () -> packet.getU8(-1), () -> packet.getU16(19), () -> packet.getU32(17),
                    () -> packet.getInt(17), () -> packet.getLong(13), () -> packet.getLong(Integer.MAX_VALUE),
                    () -> packet.setU8(20, 0), () -> packet.setU16(-2, 0), () -> packet.setInt(17, 0),
                    () -> packet.setLong(13, 0), () -> packet.get(1, array, 0, 20), () -> packet.get(0, array, 60, 5),
                    () -> packet.put(19, array, 0, 2), () -> packet.put(0, array, 63, 2),
                    () -> packet.put(0, array, 0, -1), () -> packet.move(0, 1, 20), () -> packet.move(1, 0, 20),
                    () -> packet.setLength(19), () -> packet.setLength(1985));
            for (int index = 0; index < beyond.size(); index++) {
                Runnable one = beyond.get(index);
                assertThrows(IndexOutOfBoundsException.class, one::run, "access " + index);
            }
            packet.setLength(1984);
            packet.setLong(1976, -1);
            packet.setLength(20);
        });
        ring.put(0, 0, filled(20, 1), 1);
        dispatcher.process(1);
        assertEquals(List.of(), failed);
        assertEquals(0, kept[0].length());
        assertThrows(IndexOutOfBoundsException.class, () -> kept[0].getU8(0));
        assertThrows(IndexOutOfBoundsException.class, () -> kept[0].setLength(20));
        assertThrows(IllegalStateException.class, () -> kept[0].buffer());
    }

    @Test
    void tablesThatMeanNothingAreAnsweredFailed() {
        load(0, PacketView::drop);
        int[][] places = {{-1, 20}, {Ring.SLOTS * 2048 - 1983, 20}, {64, 0}, {64, 1985}, {64, -1}};
        for (int index = 0; index < places.length; index++) {
            ring.put(index, index, filled(20, 0), 1);
            ring.table.putInt(index * 64, places[index][0]).putInt(index * 64 + 4, places[index][1]);
        }
        dispatcher.process(places.length);
        for (int index = 0; index < places.length; index++) {
            assertEquals(SlotView.FAILED, ring.verdict(index), "entry " + index);
            assertEquals(0, ring.decider(index));
        }
        assertThrows(IllegalArgumentException.class, () -> dispatcher.process(65));
        assertThrows(IllegalArgumentException.class, () -> dispatcher.process(-1));
    }

    @Test
    void withoutAProcessorPacketsAreUnseen() {
        Module module = load(2, null);
        ring.put(0, 0, filled(20, 0), 4);
        dispatcher.process(1);
        check(0, SlotView.FAILED, 20, 3);
        dispatcher.process(1);
        assertEquals(1, node.lines.size());
        module.processors().addPktProcessor(PacketView::drop);
        dispatcher.process(1);
        check(0, SlotView.DROP, 20, 3);
    }

    @Test
    void injectedPacketsGoWithTheBatch() {
        Module module = load(5, null);
        module.processors().addPktProcessor(packet -> {
            module.injector().inject(filled(30, 3), 5, 25);
            module.injector().inject(ByteBuffer.wrap(filled(22, 4)));
            code(BlockException.Code.INVALID, () -> module.injector().inject(new byte[19], 0, 19));
            code(BlockException.Code.TOO_LARGE, () -> module.injector().inject(new byte[1985], 0, 1985));
        });
        ring.put(0, 0, filled(20, 0), 32);
        assertEquals(2, dispatcher.process(1));
        assertEquals(2, dispatcher.injected());
        assertEquals(25, ring.injected(0).length);
        assertArrayEquals(filled(22, 4), ring.injected(1));
        assertEquals(5, ring.injectedBy(1));
        assertEquals(List.of(), failed);
        assertEquals(2L, counts(5).get(4));
    }

    @Test
    void oneCallInjectsAtMost64AndTheRestOfABatchWaits() {
        for (int slot = 0; slot < 2; slot++) {
            Module module = load(slot, null);
            module.processors().addPktProcessor(packet -> {
                for (int count = 0; count < 64; count++) {
                    module.injector().inject(filled(20, count), 0, 20);
                }
                code(BlockException.Code.QUOTA, () -> module.injector().inject(filled(20, 0), 0, 20));
            });
        }
        ring.put(0, 0, filled(20, 0), 3);
        assertEquals(64, dispatcher.process(1));
        assertEquals(List.of(), failed);
        dispatcher.idle(node.now());
        assertEquals(64, dispatcher.injected());
        assertEquals(1, ring.injectedBy(63));
        dispatcher.idle(node.now());
        assertEquals(0, dispatcher.injected());
        assertEquals(64L, counts(1).get(4));
    }

    @Test
    void whatAFailedCallInjectsIsLost() {
        Module good = load(0, null);
        good.processors().addPktProcessor(packet -> good.injector().inject(filled(20, 1), 0, 20));
        Module bad = load(1, null);
        bad.processors().addPktProcessor(packet -> {
            bad.injector().inject(filled(20, 2), 0, 20);
            throw new IllegalStateException();
        });
        ring.put(0, 0, filled(20, 0), 3);
        assertEquals(1, dispatcher.process(1));
        assertEquals(0, ring.injectedBy(0));
    }

    @Test
    void otherThreadsInjectThroughThePacketThread() throws Exception {
        Module module = load(0, packet -> { });
        Thread thread = new Thread(() -> {
            for (int count = 0; count < Limits.INJECTS_PER_CALL_MAX; count++) {
                uncheckedInject(module);
            }
            code(BlockException.Code.QUOTA, () -> module.injector().inject(filled(20, 1), 0, 20));
        });
        List<Throwable> thrown = new ArrayList<>();
        thread.setUncaughtExceptionHandler((unused, any) -> thrown.add(any));
        thread.start();
        thread.join();
        assertEquals(List.of(), thrown);
        assertTrue(node.awaitWake(1000));
        assertEquals(Long.MAX_VALUE, dispatcher.idle(node.now()));
        assertEquals(64, dispatcher.injected());
    }

    @Test
    void timersRunOnThePacketThreadInOrder() throws Exception {
        Module module = load(0, packet -> { });
        List<String> calls = new ArrayList<>();
        long start = node.now();
        module.timers().every(Duration.ofMillis(10), () -> calls.add("each " + Thread.currentThread().getId()));
        module.timers().once(Duration.ofMillis(5), () -> {
            calls.add("once");
            module.timers().once(Duration.ZERO, () -> calls.add("again"));
        });
        assertTrue(node.awaitWake(0));
        assertEquals(start + 5_000_000, dispatcher.idle(start));
        node.nowNanos.set(start + 12_000_000);
        assertEquals(start + 13_000_000, dispatcher.idle(node.now()));
        assertEquals(List.of("once", "each " + Thread.currentThread().getId()), calls);
        node.nowNanos.set(start + 45_000_000);
        assertEquals(start + 50_000_000, dispatcher.idle(node.now()));
        assertEquals(4, calls.size());
    }

    @Test
    void timersThatInjectGetRoomOneAfterTheOther() throws Exception {
        for (int slot = 0; slot < 2; slot++) {
            Module module = load(slot, null);
            module.timers().once(Duration.ZERO, () -> {
                for (int count = 0; count < 64; count++) {
                    module.injector().inject(filled(20, count), 0, 20);
                }
            });
        }
        node.nowNanos.addAndGet(5_000_000);
        long now = node.now();
        assertEquals(now, dispatcher.idle(now));
        assertEquals(64, dispatcher.injected());
        assertEquals(Long.MAX_VALUE, dispatcher.idle(now));
        assertEquals(64, dispatcher.injected());
        assertEquals(1, ring.injectedBy(0));
    }

    @Test
    void aTimerThatThrowsEndsTheModule() throws Exception {
        Module module = load(4, PacketView::drop);
        module.timers().once(Duration.ZERO, () -> {
            throw new java.io.IOException("no");
        });
        node.nowNanos.addAndGet(5_000_000);
        dispatcher.idle(node.now());
        assertTrue(failed.get(0).startsWith("4 trapped java.io.IOException: no"), failed.get(0));
        ring.put(0, 0, filled(20, 0), 16);
        dispatcher.process(1);
        check(0, SlotView.FAILED, 20, 5);
    }

    @Test
    void theActivityWordNamesTheModuleWhileItRuns() {
        List<Long> words = new ArrayList<>();
        load(6, packet -> words.add(ring.activity()));
        ring.put(0, 0, filled(20, 0), 64);
        dispatcher.process(1);
        dispatcher.process(1);
        assertEquals(7, words.get(0) & 0xff);
        assertEquals(0, ring.activity() & 0xff);
        assertTrue(words.get(1) >>> 8 > words.get(0) >>> 8);
        assertTrue(ring.activity() >>> 8 > words.get(1) >>> 8);
        assertNull(Thread.currentThread().getContextClassLoader());
    }

    @Test
    void aModuleTakesThePlaceOfTheOneInItsSlot() {
        List<String> calls = new ArrayList<>();
        load(0, packet -> calls.add("old"));
        load(1, packet -> calls.add("other"));
        Module old = dispatcher.insert(module(0, packet -> calls.add("new")));
        assertEquals(0, old.slot());
        ring.put(0, 0, filled(20, 0), 3);
        dispatcher.process(1);
        assertEquals(List.of("new", "other"), calls);
        assertEquals(2, dispatcher.modules().length);
        assertNull(dispatcher.remove(7));
    }

    @Test
    void anInterruptStaysWithTheModuleThatAskedForIt() {
        load(0, packet -> Thread.currentThread().interrupt());
        load(1, packet -> {
            if (Thread.currentThread().isInterrupted()) {
                packet.drop();
            }
        });
        ring.put(0, 0, filled(20, 0), 3);
        dispatcher.process(1);
        check(0, SlotView.PASS, 20, 0);
        assertEquals(false, Thread.interrupted());
    }

    @Test
    void whatIsThrownMayThrowWhenItIsLookedAt() {
        List<Long> words = new ArrayList<>();
        load(0, packet -> {
            throw new RuntimeException() {
                private static final long serialVersionUID = 1L;

                @Override
                public synchronized Throwable getCause() {
                    words.add(ring.activity() & 0xff);
                    throw this;
                }

                @Override
                public StackTraceElement[] getStackTrace() {
                    return null;
                }
            };
        });
        load(1, packet -> packet.drop());
        ring.put(0, 0, filled(20, 0), 1);
        ring.put(1, 1, filled(20, 0), 2);
        dispatcher.process(2);
        check(0, SlotView.FAILED, 20, 1);
        check(1, SlotView.DROP, 20, 2);
        assertEquals(1, failed.size());
        assertTrue(failed.get(0).startsWith("0 trapped org.netserv.host.DispatcherTest"), failed.get(0));
        // The watchdog knows whom to blame if that does not come back.
        assertEquals(List.of(1L), words.stream().distinct().toList());
    }

    @Test
    void aModuleCannotLockThePacketThreadOut() throws Exception {
        Module module = load(0, packet -> { });
        CountDownLatch locked = new CountDownLatch(1);
        CountDownLatch done = new CountDownLatch(1);
        Thread holder = new Thread(() -> {
            synchronized (module.kv()) {
                synchronized (module.counters()) {
                    synchronized (module.timers()) {
                        synchronized (module.injector()) {
                            synchronized (module.log()) {
                                synchronized (module.processors()) {
                                    locked.countDown();
                                    await(done);
                                }
                            }
                        }
                    }
                }
            }
        });
        holder.start();
        locked.await();
        try {
            assertTimeoutPreemptively(Duration.ofSeconds(60), () -> {
                dispatcher.idle(node.now());
                dispatcher.stats();
                module.moduleLog().noteLeftOut();
                module.processors().clear();
                module.moduleTimers().close();
                module.moduleInjector().close();
            });
        } finally {
            done.countDown();
            holder.join();
        }
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private Module load(int slot, PacketProcessor processor) {
        Module module = module(slot, processor);
        dispatcher.insert(module);
        return module;
    }

    private Module module(int slot, PacketProcessor processor) {
        Module.Order order = new Module.Order(slot, "example.org/m" + slot, "1.0.0", new File("none"), Map.of(),
                LIMITS, 1, Set.of(), 0, NodeFacts.NONE);
        Module module = new Module(order, Natives.kv("example.org/m" + slot, 1, LIMITS), dispatcher, node, Entropy.ofSystem());
        if (processor != null) {
            module.processors().addPktProcessor(processor);
        }
        return module;
    }

    private List<Long> counts(int slot) {
        dispatcher.stats();
        return node.stats.get(slot).counts();
    }

    private void check(int index, int verdict, int length, int decider) {
        assertEquals(verdict, ring.verdict(index), "verdict of " + index);
        assertEquals(length, ring.length(index), "length of " + index);
        assertEquals(decider, ring.decider(index), "decider of " + index);
    }

    private static void uncheckedInject(Module module) {
        try {
            module.injector().inject(filled(20, 1), 0, 20);
        } catch (BlockException impossible) {
            throw new AssertionError(impossible);
        }
    }

    private static int recurse(PacketView packet, int depth) {
        return recurse(packet, depth + 1) + packet.getU8(0);
    }

    static void code(BlockException.Code expected, org.junit.jupiter.api.function.Executable call) {
        assertEquals(expected, assertThrows(BlockException.class, call).code());
    }

    static byte[] filled(int length, int first) {
        byte[] packet = new byte[length];
        packet[0] = (byte) first;
        return packet;
    }
}
