// SPDX-License-Identifier: Apache-2.0
package org.netserv.host.compute;

import java.util.Arrays;
import java.util.List;

/**
 * The automaton of Aho and Corasick: a tree of the patterns' bytes, whose nodes know the longest other node that their
 * own path ends with. Children are found by a hash of node and byte, so that a node costs the same whatever its
 * alphabet, some 35 bytes; the root and its children, where searches spend most of their time, have a table each. Finds the leftmost hit, and of those the longest. Unchanged once it is made.
 */
final class Automaton {
    /** No hit. */
    static final long NONE = -1;

    private static final int ROOT = 0;
    private static final int EMPTY = -1;

    private final byte[] fold = new byte[256];
    private final int[] lengths;
    /** Where each byte leads from the root and its children; null for others. */
    private final int[][] rows;
    /** Nodes by a hash of their parent and byte; a power of two, at most half full. */
    private final int[] table;
    private final int[] parent;
    private final byte[] label;
    private final int[] depth;
    /** Where the search goes on when a node has no child for the next byte. */
    private final int[] fallback;
    /** The longest pattern that a node's path ends with, or {@link #EMPTY}. */
    private final int[] longest;
    private int nodes = 1;

    Automaton(List<byte[]> patterns, boolean ignoreAsciiCase) {
        for (int value = 0; value < fold.length; value++) {
            boolean isUpper = ignoreAsciiCase && value >= 'A' && value <= 'Z';
            fold[value] = (byte) (isUpper ? value + 32 : value);
        }
        int nodesMax = 1 + patterns.stream().mapToInt(pattern -> pattern.length).sum();
        table = new int[Integer.highestOneBit(nodesMax) * 4];
        Arrays.fill(table, EMPTY);
        parent = new int[nodesMax];
        label = new byte[nodesMax];
        depth = new int[nodesMax];
        fallback = new int[nodesMax];
        longest = new int[nodesMax];
        Arrays.fill(longest, EMPTY);
        lengths = new int[patterns.size()];
        for (int number = 0; number < lengths.length; number++) {
            add(patterns.get(number), number);
        }
        rows = new int[nodes][];
        rows[ROOT] = new int[fold.length];
        for (int value = 0; value < fold.length; value++) {
            rows[ROOT][value] = Math.max(child(ROOT, fold[value]), ROOT);
        }
        link();
        for (int value = 0; value < fold.length; value++) {
            addRow(rows[ROOT][value]);
        }
    }

    /** Returns the length of a pattern. */
    int length(int pattern) {
        return lengths[pattern];
    }

    /** Returns the first hit, its pattern in the upper half and its end in the lower one, or {@link #NONE}. */
    long find(byte[] in, int start, int end) {
        int node = ROOT;
        int best = EMPTY;
        int bestStart = 0;
        int bestEnd = 0;
        for (int at = start; at < end; at++) {
            node = step(node, in[at]);
            int found = longest[node];
            if (found != EMPTY) {
                int foundStart = at + 1 - lengths[found];
                // A later end at the same start is a longer hit.
                if (best == EMPTY || foundStart <= bestStart) {
                    best = found;
                    bestStart = foundStart;
                    bestEnd = at + 1;
                }
            }
            // All that can be found from here on begins behind the best hit's start.
            if (best != EMPTY && at + 1 - depth[node] > bestStart) {
                break;
            }
        }
        return best == EMPTY ? NONE : (long) best << Integer.SIZE | bestEnd;
    }

    private int step(int from, byte value) {
        int node = from;
        byte folded = fold[value & 0xff];
        while (rows[node] == null) {
            int next = child(node, folded);
            if (next != EMPTY) {
                return next;
            }
            node = fallback[node];
        }
        return rows[node][value & 0xff];
    }

    private void addRow(int node) {
        if (rows[node] == null) {
            int[] row = new int[fold.length];
            for (int value = 0; value < row.length; value++) {
                row[value] = step(node, (byte) value);
            }
            rows[node] = row;
        }
    }

    private void add(byte[] pattern, int number) {
        lengths[number] = pattern.length;
        int node = ROOT;
        for (byte value : pattern) {
            byte folded = fold[value & 0xff];
            int next = child(node, folded);
            node = next == EMPTY ? make(node, folded) : next;
        }
        longest[node] = longest[node] == EMPTY ? number : longest[node];
    }

    private int make(int above, byte value) {
        int node = nodes++;
        parent[node] = above;
        label[node] = value;
        depth[node] = depth[above] + 1;
        int place = place(above, value);
        while (table[place] != EMPTY) {
            place = place + 1 & table.length - 1;
        }
        table[place] = node;
        return node;
    }

    private int child(int node, byte value) {
        int place = place(node, value);
        while (table[place] != EMPTY) {
            int found = table[place];
            if (parent[found] == node && label[found] == value) {
                return found;
            }
            place = place + 1 & table.length - 1;
        }
        return EMPTY;
    }

    private int place(int node, byte value) {
        int hash = (node << 8 | value & 0xff) * 0x9e37_79b1;
        return (hash ^ hash >>> 15) & table.length - 1;
    }

    /** Sets where searches go on, for nodes nearer to the root first. */
    private void link() {
        for (int node : byDepth()) {
            if (depth[node] > 1) {
                fallback[node] = step(fallback[parent[node]], label[node]);
                if (longest[node] == EMPTY) {
                    longest[node] = longest[fallback[node]];
                }
            }
        }
    }

    private int[] byDepth() {
        int deepest = 0;
        for (int node = 0; node < nodes; node++) {
            deepest = Math.max(deepest, depth[node]);
        }
        int[] places = new int[deepest + 2];
        for (int node = 0; node < nodes; node++) {
            places[depth[node] + 1]++;
        }
        for (int at = 1; at < places.length; at++) {
            places[at] += places[at - 1];
        }
        int[] order = new int[nodes];
        for (int node = 0; node < nodes; node++) {
            order[places[depth[node]]++] = node;
        }
        return order;
    }
}
