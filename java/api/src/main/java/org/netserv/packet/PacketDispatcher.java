// SPDX-License-Identifier: Apache-2.0
package org.netserv.packet;

import org.osgi.annotation.versioning.ProviderType;

/**
 * Hands packets to processors: the older way to get packets, without registering a service. Each bundle that asks for
 * this service gets its own.
 */
@ProviderType
public interface PacketDispatcher {
    /**
     * Has a processor look at packets, behind the bundle's other ones of the same rank. Its rank is 0. One that is
     * there already is not added again.
     *
     * @param processor the processor
     * @throws IllegalStateException if the bundle has 64 processors
     */
    void addPktProcessor(PacketProcessor processor);

    /**
     * Takes a processor away. A batch that is under way may still be shown to it. One that is not there is ignored.
     *
     * @param processor the processor
     */
    void removePktProcessor(PacketProcessor processor);
}
