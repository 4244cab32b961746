// SPDX-License-Identifier: Apache-2.0
package org.netserv.testing;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Objects;
import org.netserv.packet.PacketView;
import org.netserv.packet.Verdict;

/** A packet in memory of its own. */
public final class FakePacket implements PacketView {
    private final ByteBuffer bytes = ByteBuffer.allocate(LENGTH_MAX);
    private final byte[] original;
    private final long timeNanos;
    private int length;
    private Verdict verdict = Verdict.PASS;

    /**
     * Makes a packet that came in at time 0.
     *
     * @param packet its bytes
     */
    public FakePacket(byte[] packet) {
        this(packet, 0);
    }

    /**
     * Makes a packet.
     *
     * @param packet its bytes
     * @param timeNanos when it came in
     */
    public FakePacket(byte[] packet, long timeNanos) {
        original = packet.clone();
        this.timeNanos = timeNanos;
        length = packet.length;
        bytes.put(0, packet);
    }

    /**
     * Returns what goes on.
     *
     * @return the packet as it came or as it was left, or null if it goes no further
     */
    public byte[] outcome() {
        return switch (verdict) {
            case PASS -> original.clone();
            case DROP -> null;
            case MODIFIED -> Arrays.copyOf(bytes.array(), length);
        };
    }

    @Override
    public int length() {
        return length;
    }

    @Override
    public void setLength(int length) {
        if (length < LENGTH_MIN || length > LENGTH_MAX) {
            throw new IndexOutOfBoundsException("a packet of " + length + " bytes");
        }
        this.length = length;
    }

    @Override
    public int capacity() {
        return LENGTH_MAX;
    }

    @Override
    public long timeNanos() {
        return timeNanos;
    }

    @Override
    public int interfaceNumber() {
        return 1;
    }

    @Override
    public int getU8(int at) {
        return bytes.get(check(at, 1)) & 0xff;
    }

    @Override
    public int getU16(int at) {
        return bytes.getShort(check(at, 2)) & 0xffff;
    }

    @Override
    public long getU32(int at) {
        return bytes.getInt(check(at, 4)) & 0xffff_ffffL;
    }

    @Override
    public int getInt(int at) {
        return bytes.getInt(check(at, 4));
    }

    @Override
    public long getLong(int at) {
        return bytes.getLong(check(at, 8));
    }

    @Override
    public void setU8(int at, int value) {
        bytes.put(check(at, 1), (byte) value);
    }

    @Override
    public void setU16(int at, int value) {
        bytes.putShort(check(at, 2), (short) value);
    }

    @Override
    public void setInt(int at, int value) {
        bytes.putInt(check(at, 4), value);
    }

    @Override
    public void setLong(int at, long value) {
        bytes.putLong(check(at, 8), value);
    }

    @Override
    public void get(int at, byte[] into, int start, int count) {
        bytes.get(check(at, count), into, start, count);
    }

    @Override
    public void put(int at, byte[] from, int start, int count) {
        bytes.put(check(at, count), from, start, count);
    }

    @Override
    public void move(int from, int to, int count) {
        System.arraycopy(bytes.array(), check(from, count), bytes.array(), check(to, count), count);
    }

    @Override
    public ByteBuffer buffer() {
        return bytes.clear().limit(length);
    }

    @Override
    public void pass() {
        verdict = Verdict.PASS;
    }

    @Override
    public void drop() {
        verdict = Verdict.DROP;
    }

    @Override
    public void modified() {
        verdict = Verdict.MODIFIED;
    }

    @Override
    public Verdict verdict() {
        return verdict;
    }

    private int check(int at, int count) {
        return Objects.checkFromIndexSize(at, count, length);
    }
}
