// SPDX-License-Identifier: Apache-2.0
package org.netserv.host.compute;

import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;
import org.netserv.block.BlockException;
import org.netserv.block.BlockException.Code;
import org.netserv.block.Search;
import org.netserv.packet.PacketView;

/** The block {@code match} of one module. */
public final class SearchBlock implements Search {
    private final AtomicInteger sets = new AtomicInteger();

    /** Makes the block of a module. */
    public SearchBlock() {
    }

    @Override
    public int find(byte[] in, int start, int end, byte[] needle) {
        Objects.checkFromToIndex(start, end, in.length);
        if (needle.length == 0) {
            return start;
        }
        byte first = needle[0];
        for (int at = start; at <= end - needle.length; at++) {
            if (in[at] == first && isAt(in, at, needle)) {
                return at;
            }
        }
        return -1;
    }

    private static boolean isAt(byte[] in, int at, byte[] needle) {
        for (int index = 1; index < needle.length; index++) {
            if (in[at + index] != needle[index]) {
                return false;
            }
        }
        return true;
    }

    @Override
    public int find(PacketView in, int start, int end, byte[] needle) {
        Objects.checkFromToIndex(start, end, in.length());
        if (needle.length == 0) {
            return start;
        }
        int first = needle[0] & 0xff;
        for (int at = start; at <= end - needle.length; at++) {
            if (in.getU8(at) == first && isAt(in, at, needle)) {
                return at;
            }
        }
        return -1;
    }

    private static boolean isAt(PacketView in, int at, byte[] needle) {
        for (int index = 1; index < needle.length; index++) {
            if ((byte) in.getU8(at + index) != needle[index]) {
                return false;
            }
        }
        return true;
    }

    @Override
    public Patterns compile(List<byte[]> patterns, boolean ignoreAsciiCase) throws BlockException {
        long bytes = 0;
        for (byte[] pattern : patterns) {
            if (pattern.length == 0) {
                throw new BlockException(Code.INVALID, "a pattern has at least one byte");
            }
            if (pattern.length > PATTERN_BYTES_MAX) {
                throw new BlockException(Code.TOO_LARGE, "a pattern has at most 1,024 bytes");
            }
            bytes += pattern.length;
        }
        if (patterns.isEmpty()) {
            throw new BlockException(Code.INVALID, "a set has at least one pattern");
        }
        if (patterns.size() > PATTERNS_MAX || bytes > SET_BYTES_MAX) {
            throw new BlockException(Code.QUOTA, "a set has at most 4,096 patterns and 128 KiB of them");
        }
        if (sets.incrementAndGet() > SETS_MAX) {
            sets.decrementAndGet();
            throw new BlockException(Code.QUOTA, "a module has at most 16 sets of patterns at a time");
        }
        boolean isMade = false;
        try {
            Patterns made = new PatternSet(new Automaton(patterns, ignoreAsciiCase), sets::decrementAndGet);
            isMade = true;
            return made;
        } finally {
            if (!isMade) {
                sets.decrementAndGet();
            }
        }
    }
}
