// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.sun.management.ThreadMXBean;
import java.io.File;
import java.lang.management.ManagementFactory;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.netserv.block.Counter;
import org.netserv.packet.IpView;
import org.netserv.packet.PacketProcessor;

/** Packets cost no garbage: bytes allocated on the packet thread over a million packets, after warming up. */
class AllocationTest {
    private static final int BATCHES = 1_000_000 / Limits.BATCH_PACKETS_MAX;
    private static final int TIMES_MAX = 8;
    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

    private final FakeNative node = new FakeNative();
    private final Ring ring = new Ring();
    private final Dispatcher dispatcher =
            new Dispatcher(node, ring.table, ring.slots, ring.injects, ring.header);

    @Test
    void oneModuleThatReadsAllocatesNothing() throws Exception {
        load(0);
        check(1);
    }

    @Test
    void severalModulesThatWriteAllocateNothing() throws Exception {
        for (int slot = 0; slot < 4; slot++) {
            load(slot);
        }
        check(0xf);
    }

    private void check(long modules) {
        dispatcher.idle(node.now());
        for (int round = 0; round < 20_000; round++) {
            batch(modules, round);
        }
        // The JVM itself allocates now and then, when it compiles; a module or the host would do so each time.
        long allocated = Long.MAX_VALUE;
        for (int time = 0; time < TIMES_MAX && allocated > 0; time++) {
            allocated = Math.min(allocated, measure(modules));
        }
        assertEquals(0, allocated, "bytes in " + BATCHES * Limits.BATCH_PACKETS_MAX + " packets");
    }

    private long measure(long modules) {
        long thread = Thread.currentThread().getId();
        long before = THREADS.getThreadAllocatedBytes(thread);
        long cost = THREADS.getThreadAllocatedBytes(thread) - before;
        before = THREADS.getThreadAllocatedBytes(thread);
        for (int round = 0; round < BATCHES; round++) {
            batch(modules, round);
        }
        return THREADS.getThreadAllocatedBytes(thread) - before - cost;
    }

    private void batch(long modules, int round) {
        for (int index = 0; index < Limits.BATCH_PACKETS_MAX; index++) {
            int at = index * RingLayout.ENTRY_BYTES;
            int place = (round + index) % Ring.SLOTS * 2048 + 64;
            ring.slots.putInt(place, 0x45000030).putInt(place + 8, 64 << 24 | 17 << 16)
                    .putShort(place + 24, (short) 28);
            ring.table.putInt(at, place).putInt(at + 4, 48).putLong(at + 32, modules);
        }
        dispatcher.process(Limits.BATCH_PACKETS_MAX);
    }

    /** A module that reads headers, counts, writes in three ways and injects now and then. */
    private void load(int slot) throws Exception {
        ModuleLimits limits = new ModuleLimits(1 << 22, 100, 1 << 20, 8, 8, 500);
        Module.Order order = new Module.Order(slot, "example.org/m" + slot, "1.0.0", new File("none"), Map.of(),
                limits, 1, Set.of(), 0, NodeFacts.NONE);
        Module module = new Module(order, Natives.kv("example.org/m" + slot, 1, limits), dispatcher, node, Entropy.ofSystem());
        Counter counter = module.counters().open("packets");
        IpView ip = new IpView();
        byte[] copy = new byte[64];
        byte[] key = {1};
        module.kv().set(key, new byte[8]);
        PacketProcessor processor = packet -> {
            if (!ip.parse(packet)) {
                throw new IllegalStateException("not IP");
            }
            counter.add(ip.payloadLength());
            packet.get(0, copy, 0, 40);
            module.kv().get(key, copy);
            switch ((int) counter.value() / 20 & 7) {
                case 0 -> packet.drop();
                case 1 -> {
                    ip.setTtl(ip.ttl() - 1);
                    packet.modified();
                }
                case 2 -> packet.buffer().putInt(28, 7);
                case 3 -> packet.move(0, 8, 20);
                case 4 -> {
                    packet.setLength(64);
                    packet.put(40, copy, 0, 24);
                    packet.pass();
                }
                default -> { }
            }
            if ((counter.value() & 0x3ff) == 0) {
                module.injector().inject(copy, 0, 48);
            }
        };
        module.processors().addPktProcessor(processor);
        dispatcher.insert(module);
    }
}
