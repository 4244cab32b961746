// SPDX-License-Identifier: Apache-2.0
package org.netserv.samples.keepalive;

/** Puts text together, piece by piece, in memory of a fixed size. One object is used for text after text. */
final class TextWriter {
    private static final byte[] DIGITS = Ascii.bytes("0123456789abcdef");

    private final byte[] room;
    private int length;
    private boolean cut;

    /** Builds a writer of texts of at most {@code capacity} bytes. */
    TextWriter(int capacity) {
        room = new byte[capacity];
    }

    /** Forgets the text. */
    void clear() {
        length = 0;
        cut = false;
    }

    /** Returns the memory that the text is in, from its start. */
    byte[] bytes() {
        return room;
    }

    /** Returns how many bytes were written. */
    int length() {
        return length;
    }

    /** Returns whether some piece did not fit; the text has no meaning then. */
    boolean isCut() {
        return cut;
    }

    /** Writes a piece. */
    void put(byte[] piece) {
        put(piece, 0, piece.length);
    }

    /** Writes a range as a piece. */
    void put(byte[] bytes, int from, int end) {
        int count = end - from;
        if (count > room.length - length) {
            cut = true;
            return;
        }
        System.arraycopy(bytes, from, room, length, count);
        length += count;
    }

    /** Writes a character, which is ASCII. */
    void put(char character) {
        if (length == room.length) {
            cut = true;
            return;
        }
        room[length++] = (byte) character;
    }

    /** Writes a number from 0 to 65,535 in decimal. */
    void putNumber(int number) {
        // By constants: other divisions take as long as the rest of a packet's answer.
        if (number >= 10_000) {
            putDigit(number / 10_000);
        }
        if (number >= 1000) {
            putDigit(number / 1000 % 10);
        }
        if (number >= 100) {
            putDigit(number / 100 % 10);
        }
        if (number >= 10) {
            putDigit(number / 10 % 10);
        }
        putDigit(number % 10);
    }

    /** Writes a number as 16 hexadecimal digits. */
    void putHexadecimal(long number) {
        int digits = Long.SIZE / 4;
        if (room.length - length < digits) {
            cut = true;
            return;
        }
        for (int at = 0; at < digits; at++) {
            room[length + at] = DIGITS[(int) (number >>> Long.SIZE - 4 - 4 * at) & 0xf];
        }
        length += digits;
    }

    private void putDigit(int digit) {
        put((char) ('0' + digit));
    }

    /** Makes lines that begin with a space or tab part of the line before, by spaces. */
    void joinLines() {
        for (int at = 0; at + 2 < length; at++) {
            boolean ends = room[at] == '\r' && room[at + 1] == '\n';
            if (ends && (room[at + 2] == ' ' || room[at + 2] == '\t')) {
                room[at] = ' ';
                room[at + 1] = ' ';
            }
        }
    }
}
