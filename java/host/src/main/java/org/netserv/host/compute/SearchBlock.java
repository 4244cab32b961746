// SPDX-License-Identifier: Apache-2.0
package org.netserv.host.compute;

import java.io.Closeable;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.netserv.block.BlockException;
import org.netserv.block.BlockException.Code;
import org.netserv.block.Search;
import org.netserv.packet.PacketView;

/** The block {@code match} of one module. */
public final class SearchBlock implements Search, Closeable {
    /** Numbers of the sets that are open. */
    private final Set<Long> sets = new HashSet<>();
    private boolean isClosed;

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
        int bytes = 0;
        for (byte[] pattern : patterns) {
            if (pattern.length > PATTERN_BYTES_MAX) {
                throw new BlockException(Code.TOO_LARGE, "a pattern has at most 1,024 bytes");
            }
            bytes += pattern.length;
            if (bytes > SET_BYTES_MAX) {
                throw new BlockException(Code.QUOTA, "a set has at most 128 KiB of patterns");
            }
        }
        if (patterns.size() > PATTERNS_MAX) {
            throw new BlockException(Code.QUOTA, "a set has at most 4,096 patterns");
        }
        ByteBuffer list = ByteBuffer.allocate(Short.BYTES * patterns.size() + bytes).order(ByteOrder.LITTLE_ENDIAN);
        for (byte[] pattern : patterns) {
            list.putShort((short) pattern.length).put(pattern);
        }
        synchronized (sets) {
            if (isClosed || sets.size() >= SETS_MAX) {
                throw new BlockException(Code.QUOTA, "a module has at most 16 sets of patterns at a time");
            }
            long set = SearchNative.compile(list.array(), ignoreAsciiCase);
            sets.add(set);
            return new PatternSet(set, this::release);
        }
    }

    private void release(long set) {
        synchronized (sets) {
            sets.remove(set);
        }
        SearchNative.release(set);
    }

    /** Ends the sets that the module has left open; no further one can be made. */
    @Override
    public void close() {
        List<Long> left;
        synchronized (sets) {
            isClosed = true;
            left = List.copyOf(sets);
        }
        left.forEach(this::release);
    }
}
