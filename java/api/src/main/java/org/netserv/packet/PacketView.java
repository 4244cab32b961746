// SPDX-License-Identifier: Apache-2.0
package org.netserv.packet;

import java.nio.ByteBuffer;
import org.osgi.annotation.versioning.ProviderType;

/**
 * One IP packet in memory that is shared with the node. It starts with its IP header; there is no link header.
 *
 * <p>Offsets count bytes from the start of the packet; numbers are in network byte order. Every access is checked
 * against the packet's length. Nothing here allocates memory.
 *
 * <p>A view is only valid during the call that got it, and on that call's thread. Afterwards its length is 0.
 */
@ProviderType
public interface PacketView {
    /** Bytes of the shortest packet that may be left: an IPv4 header. */
    int LENGTH_MIN = 20;
    /** Bytes that a packet may have at most. */
    int LENGTH_MAX = 1984;

    /**
     * Returns the packet's length.
     *
     * @return bytes
     */
    int length();

    /**
     * Makes the packet longer or shorter at its end. What is new has no certain value. The packet goes on with that
     * length only if it is {@link #modified()}.
     *
     * @param length bytes, {@link #LENGTH_MIN} to {@link #capacity()}
     * @throws IndexOutOfBoundsException for another length; the packet is as before
     */
    void setLength(int length);

    /**
     * Returns how long the packet may become.
     *
     * @return bytes, {@link #LENGTH_MAX}
     */
    int capacity();

    /**
     * Returns when the packet came in, on the clock of {@code ModuleContext.monotonicNanos()}.
     *
     * @return nanoseconds
     */
    long timeNanos();

    /**
     * Returns the number of the interface that the packet came in by.
     *
     * @return the number, 0 if unknown
     */
    int interfaceNumber();

    /**
     * Reads one byte as a number from 0 to 255.
     *
     * @param at offset
     * @return the number
     * @throws IndexOutOfBoundsException beyond the packet
     */
    int getU8(int at);

    /**
     * Reads two bytes as a number from 0 to 65,535.
     *
     * @param at offset of the first
     * @return the number
     * @throws IndexOutOfBoundsException beyond the packet
     */
    int getU16(int at);

    /**
     * Reads four bytes as a number from 0 to 2³² − 1.
     *
     * @param at offset of the first
     * @return the number
     * @throws IndexOutOfBoundsException beyond the packet
     */
    long getU32(int at);

    /**
     * Reads four bytes.
     *
     * @param at offset of the first
     * @return the bits
     * @throws IndexOutOfBoundsException beyond the packet
     */
    int getInt(int at);

    /**
     * Reads eight bytes.
     *
     * @param at offset of the first
     * @return the bits
     * @throws IndexOutOfBoundsException beyond the packet
     */
    long getLong(int at);

    /**
     * Writes one byte.
     *
     * @param at offset
     * @param value the lower 8 bits are taken
     * @throws IndexOutOfBoundsException beyond the packet
     */
    void setU8(int at, int value);

    /**
     * Writes two bytes.
     *
     * @param at offset of the first
     * @param value the lower 16 bits are taken
     * @throws IndexOutOfBoundsException beyond the packet
     */
    void setU16(int at, int value);

    /**
     * Writes four bytes.
     *
     * @param at offset of the first
     * @param value the bits
     * @throws IndexOutOfBoundsException beyond the packet
     */
    void setInt(int at, int value);

    /**
     * Writes eight bytes.
     *
     * @param at offset of the first
     * @param value the bits
     * @throws IndexOutOfBoundsException beyond the packet
     */
    void setLong(int at, long value);

    /**
     * Copies bytes out of the packet.
     *
     * @param at offset of the first
     * @param into where they go
     * @param start index in {@code into} of the first
     * @param count how many
     * @throws IndexOutOfBoundsException beyond the packet or the array
     */
    void get(int at, byte[] into, int start, int count);

    /**
     * Copies bytes into the packet.
     *
     * @param at offset of the first
     * @param from where they are
     * @param start index in {@code from} of the first
     * @param count how many
     * @throws IndexOutOfBoundsException beyond the packet or the array
     */
    void put(int at, byte[] from, int start, int count);

    /**
     * Copies bytes from one place of the packet to another; the two may overlap.
     *
     * @param from offset of the first byte to be copied
     * @param to offset where it goes
     * @param count how many
     * @throws IndexOutOfBoundsException beyond the packet
     */
    void move(int from, int to, int count);

    /**
     * Returns the packet as a buffer to read and write, in network byte order, whose index 0 is the packet's first
     * byte, position 0 and limit {@link #length()}. It is the same object whenever the same place in memory is asked
     * for, so its position, limit and order are set anew with each call; later changes of length do not change it.
     *
     * <p>It must not be used after the call that got the packet: there are other packets at its place then.
     *
     * @return the buffer
     */
    ByteBuffer buffer();

    /** Has the packet go on as it came, whatever was written over it. This is so from the start. */
    void pass();

    /** Has the packet go no further. */
    void drop();

    /** Has the packet go on as it is left, with the length that it has in the end. Checksums are the module's job. */
    void modified();

    /**
     * Returns what was said last.
     *
     * @return what becomes of the packet
     */
    Verdict verdict();
}
