// SPDX-License-Identifier: Apache-2.0
package org.netserv.block;

import java.nio.ByteBuffer;
import org.osgi.annotation.versioning.ProviderType;

/**
 * Sends new IP packets. No module of the service container sees them. The node checks each: it has to be a valid IP
 * packet whose source the user may use. May be used on any thread; what other threads than the packet thread send goes
 * out soon after. What a call of the module injects is lost if that call ends the module.
 *
 * <pre>{@code
 * byte[] packet = new byte[UdpWriter.headerBytes(4) + 4];
 * // …
 * module.injector().inject(packet, 0, packet.length);
 * }</pre>
 */
@ProviderType
public interface Injector {
    /** Packets in one call of the module at most; also packets of other threads that wait to go out. */
    int PACKETS_PER_CALL_MAX = 64;

    /**
     * Sends a packet, which is copied.
     *
     * @param from where the packet is
     * @param start index in {@code from} of its IP header
     * @param length bytes, {@code PacketView.LENGTH_MIN} to {@code PacketView.LENGTH_MAX}
     * @throws BlockException {@code INVALID} for a packet that is too short, {@code TOO_LARGE} for one that is too
     *     long, {@code QUOTA} after {@link #PACKETS_PER_CALL_MAX} packets
     * @throws IndexOutOfBoundsException beyond the array
     */
    void inject(byte[] from, int start, int length) throws BlockException;

    /**
     * Sends a packet, which is copied.
     *
     * @param packet the packet from its position to its limit; neither changes
     * @throws BlockException as for the other form
     */
    void inject(ByteBuffer packet) throws BlockException;
}
