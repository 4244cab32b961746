// SPDX-License-Identifier: Apache-2.0
package org.netserv.host.compute;

import java.util.Objects;
import java.util.function.LongConsumer;
import org.netserv.block.Search;
import org.netserv.packet.PacketView;

/** A search for many patterns, and its last hit. */
final class PatternSet implements Search.Patterns {
    private static final int PLACE_BITS = 24;
    private static final int PLACE = (1 << PLACE_BITS) - 1;
    /** What is looked at first; what follows a hit is looked at again, so that a hit is not to cost the whole rest. */
    private static final int FIRST_BYTES = 4096;

    private final long number;
    private final LongConsumer closed;
    private byte[] copy;
    private int pattern;
    private int start;
    private int end;

    PatternSet(long number, LongConsumer closed) {
        this.number = number;
        this.closed = closed;
    }

    @Override
    public boolean find(byte[] in, int start, int end) {
        Objects.checkFromToIndex(start, end, in.length);
        int from = start;
        for (int size = FIRST_BYTES; ; size = Math.min(2 * size, SearchNative.BYTES_MAX)) {
            int to = Math.min(end - from, size) + from;
            long hit = SearchNative.find(number, in, from, to);
            int hitStart = from + (int) (hit >> PLACE_BITS & PLACE);
            // From here on, a pattern may reach beyond what was looked at.
            int unsure = to - Search.PATTERN_BYTES_MAX + 1;
            if (hit >= 0 && (to == end || hitStart < unsure)) {
                pattern = (int) (hit >> 2 * PLACE_BITS);
                this.start = hitStart;
                this.end = hitStart + (int) (hit & PLACE);
                return true;
            }
            if (to == end) {
                return false;
            }
            from = Math.max(unsure, from);
        }
    }

    @Override
    public boolean find(PacketView in, int start, int end) {
        Objects.checkFromToIndex(start, end, in.length());
        if (copy == null) {
            copy = new byte[PacketView.LENGTH_MAX];
        }
        in.get(start, copy, 0, end - start);
        if (!find(copy, 0, end - start)) {
            return false;
        }
        this.start += start;
        this.end += start;
        return true;
    }

    @Override
    public int pattern() {
        return pattern;
    }

    @Override
    public int start() {
        return start;
    }

    @Override
    public int end() {
        return end;
    }

    @Override
    public void close() {
        closed.accept(number);
    }
}
