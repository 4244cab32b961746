// SPDX-License-Identifier: Apache-2.0
package org.netserv.block;

import org.osgi.annotation.versioning.ProviderType;

/**
 * Counters that people see by their names. They start at 0 with each load of the module.
 *
 * <pre>{@code
 * Counter seen = module.counters().open("seen");
 * // For each packet:
 * seen.add(1);
 * }</pre>
 */
@ProviderType
public interface Counters {
    /** Bytes of a name at most, in UTF-8. */
    int NAME_BYTES_MAX = 64;

    /**
     * Returns the counter of a name, made at 0 if need be. Open counters once and keep them.
     *
     * @param name 1 to {@link #NAME_BYTES_MAX} bytes without control characters
     * @return the counter
     * @throws BlockException {@code QUOTA} beyond the module's {@code counters}, {@code TOO_LARGE} for a long name,
     *     {@code INVALID} for an empty one or one with control characters
     */
    Counter open(String name) throws BlockException;
}
