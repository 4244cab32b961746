// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

/**
 * What one module may use.
 *
 * @param memoryBytes bytes of memory; the heap belongs to the container as a whole
 * @param kvEntries entries of kv state
 * @param kvBytes bytes of kv state, keys and values together
 * @param timers timers at a time
 * @param counters counters
 * @param callMillis milliseconds that one batch or timer may take
 */
record ModuleLimits(long memoryBytes, long kvEntries, long kvBytes, long timers, long counters, long callMillis) {
    private static final int FIELDS = 6;

    /** Reads limits as the native side hands them over. */
    static ModuleLimits of(long[] fields) {
        if (fields.length != FIELDS) {
            throw new IllegalArgumentException("limits have " + FIELDS + " fields, not " + fields.length);
        }
        return new ModuleLimits(fields[0], fields[1], fields[2], fields[3], fields[4], fields[5]);
    }
}
