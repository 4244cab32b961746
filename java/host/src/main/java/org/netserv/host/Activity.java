// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Tells the node's watchdog which module runs on the packet thread. Used on that thread alone. */
final class Activity {
    private static final VarHandle WORD =
            MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

    private final ByteBuffer header;
    private long steps;

    Activity(ByteBuffer header) {
        this.header = header;
        // The native side counts in the same word while it has it.
        steps = (long) WORD.getAcquire(header, RingLayout.HEADER_ACTIVITY) >>> 8;
    }

    /** Says that a module runs from here on. */
    void enter(int slot) {
        step(slot + 1);
    }

    /** Says that no module runs. */
    void leave() {
        step(0);
    }

    private void step(long module) {
        steps++;
        WORD.setRelease(header, RingLayout.HEADER_ACTIVITY, steps << 8 | module);
    }
}
