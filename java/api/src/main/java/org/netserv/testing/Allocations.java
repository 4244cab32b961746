// SPDX-License-Identifier: Apache-2.0
package org.netserv.testing;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.List;
import org.netserv.packet.PacketProcessor;

/** What a processor allocates. On the packet thread that is to be nothing: collecting it costs packets their time. */
public final class Allocations {
    private static final int ROUNDS = 5;
    private static final int TIMES = 1000;

    private Allocations() {
    }

    /**
     * Returns the bytes that a processor allocates for a thousand times the packets. They are shown to it five times
     * that often, and the best round counts: the first ones load classes, and the compiler's work shows now and then.
     *
     * @param processor the processor
     * @param packets what it is shown, in turn
     * @return bytes, 0 for a good one
     * @throws Exception what the processor throws
     */
    public static long bytesOf(PacketProcessor processor, List<byte[]> packets) throws Exception {
        FakePacket view = new FakePacket(packets.get(0));
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        long least = Long.MAX_VALUE;
        for (int round = 0; round < ROUNDS; round++) {
            long before = threads.getCurrentThreadAllocatedBytes();
            show(processor, packets, view);
            least = Math.min(least, threads.getCurrentThreadAllocatedBytes() - before);
        }
        return least;
    }

    private static void show(PacketProcessor processor, List<byte[]> packets, FakePacket view) throws Exception {
        for (int time = 0; time < TIMES; time++) {
            for (int at = 0; at < packets.size(); at++) {
                byte[] bytes = packets.get(at);
                view.setLength(bytes.length);
                view.put(0, bytes, 0, bytes.length);
                processor.process(view);
            }
        }
    }
}
