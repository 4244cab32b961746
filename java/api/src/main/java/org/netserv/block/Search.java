// SPDX-License-Identifier: Apache-2.0
package org.netserv.block;

import java.util.List;
import org.netserv.packet.PacketView;
import org.osgi.annotation.versioning.ProviderType;

/**
 * Search for bytes. May be used on any thread.
 *
 * <pre>{@code
 * Search search = context.getService(context.getServiceReference(Search.class));
 * Search.Patterns words = search.compile(List.of("keep-alive".getBytes(UTF_8), "options".getBytes(UTF_8)), true);
 * // For each packet:
 * int at = search.find(packet, 28, packet.length(), marker);
 * if (at >= 0 && words.find(packet, at, packet.length())) {
 *     counter.add(1);
 * }
 * // When the bundle stops:
 * words.close();
 * }</pre>
 */
@ProviderType
public interface Search {
    /** Patterns of one set at most. */
    int PATTERNS_MAX = 4_096;
    /** Bytes of one pattern at most. */
    int PATTERN_BYTES_MAX = 1_024;
    /** Bytes of one set's patterns together at most. */
    int SET_BYTES_MAX = 128 * 1024;
    /** Sets that a module may have at a time. */
    int SETS_MAX = 16;

    /**
     * Returns where some bytes are for the first time. Allocates nothing.
     *
     * @param in where to search
     * @param start the first byte to look at
     * @param end behind the last byte to look at
     * @param needle what to search; nothing is found at {@code start}
     * @return an index of {@code in}, or -1
     * @throws IndexOutOfBoundsException beyond the array
     */
    int find(byte[] in, int start, int end, byte[] needle);

    /**
     * Returns where some bytes of a packet are for the first time. Allocates nothing.
     *
     * @param in where to search
     * @param start the first byte to look at
     * @param end behind the last byte to look at
     * @param needle what to search; nothing is found at {@code start}
     * @return an offset in the packet, or -1
     * @throws IndexOutOfBoundsException beyond the packet
     */
    int find(PacketView in, int start, int end, byte[] needle);

    /**
     * Prepares patterns that are looked for at once, which takes some time and memory: sets of some kilobytes are searched
     * faster and take up to a kilobyte for each byte of a pattern, larger ones some dozens of bytes.
     *
     * @param patterns the patterns; an equal one is found under the first one's number
     * @param ignoreAsciiCase whether a to z count as A to Z
     * @return the set; close it
     * @throws BlockException {@code INVALID} for an empty pattern or none at all, {@code TOO_LARGE} beyond
     *     {@link #PATTERN_BYTES_MAX}, {@code QUOTA} beyond {@link #PATTERNS_MAX}, {@link #SET_BYTES_MAX},
     *     {@link #SETS_MAX} sets open, or the memory that the container has for them
     */
    Patterns compile(List<byte[]> patterns, boolean ignoreAsciiCase) throws BlockException;

    /**
     * Many patterns. Where several begin at one place, the longest is found. Used by one thread at a time; allocates
     * nothing.
     */
    @ProviderType
    interface Patterns extends AutoCloseable {
        /**
         * Looks for the first hit.
         *
         * @param in where to search
         * @param start the first byte to look at
         * @param end behind the last byte to look at
         * @return whether there is one; the other methods tell which
         * @throws IndexOutOfBoundsException beyond the array
         */
        boolean find(byte[] in, int start, int end);

        /**
         * Looks for the first hit in a packet.
         *
         * @param in where to search
         * @param start the first byte to look at
         * @param end behind the last byte to look at
         * @return whether there is one; the other methods tell which
         * @throws IndexOutOfBoundsException beyond the packet
         */
        boolean find(PacketView in, int start, int end);

        /**
         * Returns which pattern was found. To go on, search from {@link #end()}.
         *
         * @return its number in the list
         */
        int pattern();

        /**
         * Returns where the hit begins.
         *
         * @return the index of its first byte
         */
        int start();

        /**
         * Returns where the hit ends.
         *
         * @return the index behind its last byte
         */
        int end();

        @Override
        void close();
    }
}
