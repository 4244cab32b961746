// SPDX-License-Identifier: Apache-2.0
package org.netserv.samples.netmonitor;

/**
 * What was counted of one source, destination and time to live, and is kept in kv state as {@code modules/apps/net-monitor}
 * keeps it.
 *
 * @param estimate packets, with those that each one that was looked at stands for
 * @param packets packets that were looked at
 * @param bytes bytes of these, from their IP headers on
 */
record Sum(long estimate, long packets, long bytes) {
    /** Returns what an entry says, of one number in versions without bytes; null if it is another entry. */
    static Sum parse(byte[] value) {
        long[] numbers = Numbers.parseAll(value);
        if (numbers == null) {
            return null;
        }
        return switch (numbers.length) {
            case 1 -> new Sum(numbers[0], numbers[0], 0);
            case 3 -> new Sum(numbers[0], numbers[1], numbers[2]);
            default -> null;
        };
    }

    Sum plus(Sum other) {
        return new Sum(estimate + other.estimate, packets + other.packets, bytes + other.bytes);
    }

    @Override
    public String toString() {
        return Numbers.text(estimate, packets, bytes);
    }
}
