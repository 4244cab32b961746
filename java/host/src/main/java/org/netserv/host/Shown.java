// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import org.netserv.packet.PacketBatch;
import org.netserv.packet.PacketView;
import org.netserv.packet.Verdict;

/** The packets of a batch that a module is shown. */
final class Shown implements PacketBatch {
    private final SlotView[] all = new SlotView[Limits.BATCH_PACKETS_MAX];
    private final SlotView[] left = new SlotView[Limits.BATCH_PACKETS_MAX];
    /** What the module is shown: all packets, or those that are left. */
    private SlotView[] views = all;
    private int count;
    private int size;

    /** Forgets every packet. */
    void clear() {
        views = all;
        count = 0;
        size = 0;
    }

    /** Adds a packet. */
    void add(SlotView view) {
        all[count++] = view;
        size = count;
    }

    /** Takes those out that were dropped, before the next processor of the same module. Returns how many are left. */
    int leaveOutDropped() {
        int kept = 0;
        for (int index = 0; index < size; index++) {
            if (views[index].verdict() != Verdict.DROP) {
                left[kept++] = views[index];
            }
        }
        views = left;
        size = kept;
        return kept;
    }

    /** Returns the number of packets with those that were left out. */
    int count() {
        return count;
    }

    /** Returns a packet, counting those that were left out. */
    SlotView any(int index) {
        return all[index];
    }

    @Override
    public int size() {
        return size;
    }

    @Override
    public PacketView get(int index) {
        if (index < 0 || index >= size) {
            throw new IndexOutOfBoundsException("packet " + index + " of " + size);
        }
        return views[index];
    }
}
