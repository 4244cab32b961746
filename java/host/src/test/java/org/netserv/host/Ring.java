// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** The memory that a worker shares with its node, and batches in it. */
final class Ring {
    static final int SLOTS = 1280;

    final ByteBuffer table = little(64 * 64);
    final ByteBuffer slots = ByteBuffer.allocateDirect(SLOTS * 2048);
    final ByteBuffer injects = little(64 * 2048);
    final ByteBuffer header = little(4096);

    Host.Buffers buffers() {
        return new Host.Buffers(table, slots, injects, header);
    }

    /** Puts packet {@code index} of a batch into ring slot {@code slot}. */
    void put(int index, int slot, byte[] packet, long modules) {
        int place = slot * 2048 + 64;
        slots.put(place, packet);
        int at = index * 64;
        table.putInt(at, place).putInt(at + 4, packet.length).putInt(at + 8, 1984).putInt(at + 12, 99);
        table.putLong(at + 16, 1000 + index).putInt(at + 24, 7).putInt(at + 28, 99).putLong(at + 32, modules);
    }

    int verdict(int index) {
        return table.getInt(index * 64 + 12);
    }

    int length(int index) {
        return table.getInt(index * 64 + 4);
    }

    int decider(int index) {
        return table.getInt(index * 64 + 28);
    }

    /** Returns the packet as it goes on. */
    byte[] packet(int index) {
        byte[] packet = new byte[length(index)];
        slots.get(table.getInt(index * 64), packet);
        return packet;
    }

    byte[] injected(int index) {
        byte[] packet = new byte[injects.getInt(index * 2048)];
        injects.get(index * 2048 + 64, packet);
        return packet;
    }

    int injectedBy(int index) {
        return injects.getInt(index * 2048 + 4);
    }

    long activity() {
        return header.getLong(7 * 128);
    }

    private static ByteBuffer little(int bytes) {
        return ByteBuffer.allocateDirect(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }
}
