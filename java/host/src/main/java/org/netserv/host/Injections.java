// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** The packets that go to the node when the packet thread comes back. Used on that thread alone. */
final class Injections {
    private final ByteBuffer area;
    private int count;

    Injections(ByteBuffer area) {
        this.area = area.duplicate().order(ByteOrder.LITTLE_ENDIAN);
    }

    int count() {
        return count;
    }

    boolean isFull() {
        return count == Limits.INJECTS_MAX;
    }

    /** Forgets the packets behind the first {@code count}. */
    void cutTo(int count) {
        this.count = count;
    }

    /** Takes a packet, if there is room; the caller checked the length. */
    boolean add(int slot, byte[] from, int start, int length) {
        if (isFull()) {
            return false;
        }
        area.put(begin(slot, length), from, start, length);
        return true;
    }

    /** Takes a packet, if there is room; the caller checked the length. */
    boolean add(int slot, ByteBuffer from, int start, int length) {
        if (isFull()) {
            return false;
        }
        area.put(begin(slot, length), from, start, length);
        return true;
    }

    private int begin(int slot, int length) {
        int at = count * RingLayout.SLOT_BYTES;
        area.putInt(at + RingLayout.INJECT_LENGTH, length);
        area.putInt(at + RingLayout.INJECT_MODULE, slot);
        count++;
        return at + RingLayout.PACKET_OFFSET;
    }
}
