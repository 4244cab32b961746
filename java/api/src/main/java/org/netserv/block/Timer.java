// SPDX-License-Identifier: Apache-2.0
package org.netserv.block;

import org.osgi.annotation.versioning.ProviderType;

/** A timer that was set. */
@ProviderType
public interface Timer {
    /**
     * Forgets the timer.
     *
     * @return whether it was still to run
     */
    boolean cancel();
}
