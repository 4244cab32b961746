// SPDX-License-Identifier: Apache-2.0
package org.netserv.packet;

import org.osgi.annotation.versioning.ProviderType;

/** Packets that are looked at together. */
@ProviderType
public interface PacketBatch {
    /** Packets in a batch at most. */
    int PACKETS_MAX = 64;

    /**
     * Returns the number of packets, 1 to {@link #PACKETS_MAX}.
     *
     * @return the number of packets
     */
    int size();

    /**
     * Returns one packet. Views of different packets may be used side by side.
     *
     * @param index which packet, from 0
     * @return a view of the packet, only valid until the call that got the batch returns
     * @throws IndexOutOfBoundsException if there is no such packet
     */
    PacketView get(int index);
}
