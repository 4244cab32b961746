// SPDX-License-Identifier: Apache-2.0
package org.netserv.block;

import org.osgi.annotation.versioning.ProviderType;

/** A counter of 64 bits without sign. May be used on any thread; allocates nothing. */
@ProviderType
public interface Counter {
    /**
     * Adds to the counter, wrapping at 2⁶⁴.
     *
     * @param amount how much
     */
    void add(long amount);

    /**
     * Sets the counter.
     *
     * @param value the value
     */
    void set(long value);

    /**
     * Returns the counter's value.
     *
     * @return the value
     */
    long value();
}
