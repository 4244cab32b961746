// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Objects;
import org.netserv.packet.PacketView;
import org.netserv.packet.Verdict;

/**
 * One packet of a batch where it lies in the ring.
 *
 * <p>While several modules are loaded, the packet is saved before the first write of a module, so that what it wrote
 * can be taken back if it passes the packet or fails.
 */
final class SlotView implements PacketView {
    /** What is answered for a packet, as in the table. */
    static final int PASS = 0;
    /** The packet goes no further. */
    static final int DROP = 1;
    /** The packet goes on as it was left. */
    static final int MODIFIED = 2;
    /** A module that should have seen the packet did not. */
    static final int FAILED = 3;

    private final ByteBuffer slots;
    private final Buffers buffers;
    private final Saved saved;
    private final int index;

    private int base;
    private long timeNanos;
    private int interfaceNumber;
    /** The packet's length, whoever looks. */
    private int length;
    /** The length as far as the module may look; 0 while no module does. */
    private int limit;
    private boolean isOpen;
    private boolean isWritable;
    private boolean isSaved;
    private Verdict verdict = Verdict.PASS;

    private long modules;
    private int answer;
    private int decider;

    /** Makes a view of the packet of that index in its batch. */
    SlotView(ByteBuffer slots, Buffers buffers, Saved saved, int index) {
        this.slots = slots;
        this.buffers = buffers;
        this.saved = saved;
        this.index = index;
    }

    /** Takes a packet from the ring, whose place and length were checked. */
    void take(int base, int length, long timeNanos, int interfaceNumber, long modules) {
        this.base = base;
        this.length = length;
        this.timeNanos = timeNanos;
        this.interfaceNumber = interfaceNumber;
        this.modules = modules;
        limit = 0;
        answer = PASS;
        decider = 0;
    }

    /** Lets a module look. */
    void open(boolean isAlone) {
        limit = length;
        isOpen = true;
        isWritable = isAlone;
        isSaved = false;
        verdict = Verdict.PASS;
    }

    /** Ends a module's look, and takes what it said. Returns its verdict. */
    Verdict close(int slot) {
        switch (verdict) {
            case PASS -> takeBack();
            case DROP -> then(DROP, slot);
            case MODIFIED -> {
                length = limit;
                then(MODIFIED, slot);
            }
        }
        shut();
        return verdict;
    }

    /** Ends the look of a module that failed. */
    void fail(int slot) {
        if (isOpen) {
            takeBack();
            shut();
        }
        then(FAILED, slot);
    }

    /** Answers a packet that is not shown to anybody. */
    void refuse() {
        base = 0;
        length = 0;
        limit = 0;
        modules = 0;
        answer = FAILED;
        decider = 0;
    }

    boolean isFor(long module) {
        return (modules & module) != 0 && answer != DROP;
    }

    long modules() {
        return modules;
    }

    int answer() {
        return answer;
    }

    int decider() {
        return decider;
    }

    /** Returns the packet's length between two modules' looks. */
    int lengthLeft() {
        return length;
    }

    @Override
    public int length() {
        return limit;
    }

    @Override
    public void setLength(int length) {
        if (!isOpen || length < Limits.PACKET_BYTES_MIN || length > Limits.PACKET_BYTES_MAX) {
            throw new IndexOutOfBoundsException("a packet of " + length + " bytes");
        }
        if (!isWritable) {
            save();
        }
        limit = length;
    }

    @Override
    public int capacity() {
        return Limits.PACKET_BYTES_MAX;
    }

    @Override
    public long timeNanos() {
        return timeNanos;
    }

    @Override
    public int interfaceNumber() {
        return interfaceNumber;
    }

    @Override
    public int getU8(int at) {
        return slots.get(place(at, 1)) & 0xff;
    }

    @Override
    public int getU16(int at) {
        return slots.getShort(place(at, 2)) & 0xffff;
    }

    @Override
    public long getU32(int at) {
        return slots.getInt(place(at, 4)) & 0xffff_ffffL;
    }

    @Override
    public int getInt(int at) {
        return slots.getInt(place(at, 4));
    }

    @Override
    public long getLong(int at) {
        return slots.getLong(place(at, 8));
    }

    @Override
    public void setU8(int at, int value) {
        slots.put(writePlace(at, 1), (byte) value);
    }

    @Override
    public void setU16(int at, int value) {
        slots.putShort(writePlace(at, 2), (short) value);
    }

    @Override
    public void setInt(int at, int value) {
        slots.putInt(writePlace(at, 4), value);
    }

    @Override
    public void setLong(int at, long value) {
        slots.putLong(writePlace(at, 8), value);
    }

    @Override
    public void get(int at, byte[] into, int start, int count) {
        Objects.checkFromIndexSize(at, count, limit);
        slots.get(base + at, into, start, count);
    }

    @Override
    public void put(int at, byte[] from, int start, int count) {
        Objects.checkFromIndexSize(at, count, limit);
        Objects.checkFromIndexSize(start, count, from.length);
        slots.put(writePlace(at, count), from, start, count);
    }

    @Override
    public void move(int from, int to, int count) {
        Objects.checkFromIndexSize(from, count, limit);
        Objects.checkFromIndexSize(to, count, limit);
        slots.put(writePlace(to, count), slots, base + from, count);
    }

    @Override
    public ByteBuffer buffer() {
        if (!isOpen) {
            throw new IllegalStateException("the packet is not shown any more");
        }
        if (!isWritable) {
            save();
        }
        return buffers.at(base).clear().limit(limit).order(ByteOrder.BIG_ENDIAN);
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

    private int place(int at, int count) {
        if (at < 0 || at > limit - count) {
            throw beyond(at, count);
        }
        return base + at;
    }

    private int writePlace(int at, int count) {
        int place = place(at, count);
        if (!isWritable) {
            save();
        }
        return place;
    }

    private IndexOutOfBoundsException beyond(int at, int count) {
        return new IndexOutOfBoundsException(count + " bytes at " + at + " of a packet of " + limit);
    }

    private void save() {
        saved.save(index, slots, base, length);
        isSaved = true;
        isWritable = true;
    }

    private void takeBack() {
        if (isSaved) {
            saved.restore(index, slots, base, length);
        }
    }

    private void shut() {
        isOpen = false;
        isSaved = false;
        limit = 0;
    }

    /**
     * A packet that a module failed on stays so unless a later one drops it, so that a module that fails open opens no
     * way around the ones behind it.
     */
    private void then(int answer, int slot) {
        if (this.answer != FAILED || answer == DROP) {
            this.answer = answer;
            decider = slot + 1;
        }
    }

    /** Packets as they were before a module wrote to them; memory is taken when it is needed first. */
    static final class Saved {
        private ByteBuffer bytes;

        private void save(int index, ByteBuffer slots, int base, int length) {
            if (bytes == null) {
                bytes = ByteBuffer.allocateDirect(Limits.BATCH_PACKETS_MAX * RingLayout.SLOT_BYTES);
            }
            bytes.put(index * RingLayout.SLOT_BYTES, slots, base, length);
        }

        private void restore(int index, ByteBuffer slots, int base, int length) {
            slots.put(base, bytes, index * RingLayout.SLOT_BYTES, length);
        }
    }

    /** One buffer per place in the ring, made when it is asked for first. */
    static final class Buffers {
        private final ByteBuffer slots;
        private final ByteBuffer[] made;

        Buffers(ByteBuffer slots) {
            this.slots = slots;
            made = new ByteBuffer[slots.capacity() / RingLayout.SLOT_BYTES];
        }

        private ByteBuffer at(int base) {
            int slot = base / RingLayout.SLOT_BYTES;
            if (base % RingLayout.SLOT_BYTES != RingLayout.PACKET_OFFSET) {
                return slots.slice(base, Limits.PACKET_BYTES_MAX);
            }
            ByteBuffer known = made[slot];
            if (known == null) {
                known = slots.slice(base, Limits.PACKET_BYTES_MAX);
                made[slot] = known;
            }
            return known;
        }
    }
}
