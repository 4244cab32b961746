// SPDX-License-Identifier: Apache-2.0
package org.netserv.samples.netmonitor;

import java.util.Arrays;
import org.netserv.packet.IpText;

/** Counts by source, destination and time to live. Counting allocates nothing. */
final class Counts {
    /** Keys that are counted between two flushes. */
    static final int KEYS_MAX = 4096;

    private static final int PLACES = 2 * KEYS_MAX;
    private static final int USED = 0x200;
    private static final int V6 = 0x100;
    private static final int TTL = 0xff;

    /** What a place holds: 0 for nothing, else {@link #USED}, {@link #V6} and the time to live. */
    private final int[] kinds = new int[PLACES];
    private final long[] sourceHighs = new long[PLACES];
    private final long[] sourceLows = new long[PLACES];
    private final long[] destinationHighs = new long[PLACES];
    private final long[] destinationLows = new long[PLACES];
    private final long[] estimates = new long[PLACES];
    private final long[] packets = new long[PLACES];
    private final long[] bytes = new long[PLACES];
    private int size;

    /** What takes the counts. */
    @FunctionalInterface
    interface Sink {
        /** Takes one, with a name such as {@code 10.1.0.2 10.2.0.1 61}. */
        void take(String name, Sum sum);
    }

    /** Returns the part of a key that is not the addresses. */
    static int kind(boolean v6, int ttl) {
        return USED | (v6 ? V6 : 0) | ttl;
    }

    /** Returns the number of keys. */
    int size() {
        return size;
    }

    /** Adds to the counts of a key. Returns false, and does nothing, if that is new and there are too many keys. */
    boolean add(int kind, long sourceHigh, long sourceLow, long destinationHigh, long destinationLow, long estimate,
            long packetCount, long byteCount) {
        int at = hash(kind, sourceHigh, sourceLow, destinationHigh, destinationLow);
        while (kinds[at] != 0) {
            if (kinds[at] == kind && sourceLows[at] == sourceLow && destinationLows[at] == destinationLow
                    && sourceHighs[at] == sourceHigh && destinationHighs[at] == destinationHigh) {
                estimates[at] += estimate;
                packets[at] += packetCount;
                bytes[at] += byteCount;
                return true;
            }
            at = at + 1 & PLACES - 1;
        }
        if (size >= KEYS_MAX) {
            return false;
        }
        size++;
        kinds[at] = kind;
        sourceHighs[at] = sourceHigh;
        sourceLows[at] = sourceLow;
        destinationHighs[at] = destinationHigh;
        destinationLows[at] = destinationLow;
        estimates[at] = estimate;
        packets[at] = packetCount;
        bytes[at] = byteCount;
        return true;
    }

    /** Gives all counts away, by source, then destination, then time to live; IPv4 first. */
    void drain(Sink sink) {
        if (size == 0) {
            return;
        }
        Integer[] places = new Integer[size];
        int found = 0;
        for (int at = 0; at < PLACES; at++) {
            if (kinds[at] != 0) {
                places[found++] = at;
            }
        }
        Arrays.sort(places, this::compare);
        for (int at : places) {
            sink.take(name(at), new Sum(estimates[at], packets[at], bytes[at]));
        }
        Arrays.fill(kinds, 0);
        size = 0;
    }

    private String name(int at) {
        boolean v6 = (kinds[at] & V6) != 0;
        String source = v6 ? IpText.v6(sourceHighs[at], sourceLows[at]) : IpText.v4((int) sourceLows[at]);
        String destination =
                v6 ? IpText.v6(destinationHighs[at], destinationLows[at]) : IpText.v4((int) destinationLows[at]);
        return source + " " + destination + " " + (kinds[at] & TTL);
    }

    private int compare(int one, int other) {
        int order = Integer.compare(kinds[one] & V6, kinds[other] & V6);
        order = order != 0 ? order : Long.compareUnsigned(sourceHighs[one], sourceHighs[other]);
        order = order != 0 ? order : Long.compareUnsigned(sourceLows[one], sourceLows[other]);
        order = order != 0 ? order : Long.compareUnsigned(destinationHighs[one], destinationHighs[other]);
        order = order != 0 ? order : Long.compareUnsigned(destinationLows[one], destinationLows[other]);
        return order != 0 ? order : Integer.compare(kinds[one], kinds[other]);
    }

    private static int hash(int kind, long sourceHigh, long sourceLow, long destinationHigh, long destinationLow) {
        long hash = kind;
        hash = (hash ^ sourceHigh) * 0x9e37_79b9_7f4a_7c15L;
        hash = (Long.rotateLeft(hash, 29) ^ sourceLow) * 0x9e37_79b9_7f4a_7c15L;
        hash = (Long.rotateLeft(hash, 29) ^ destinationHigh) * 0x9e37_79b9_7f4a_7c15L;
        hash = (Long.rotateLeft(hash, 29) ^ destinationLow) * 0x9e37_79b9_7f4a_7c15L;
        return (int) (hash >>> 40) & PLACES - 1;
    }
}
