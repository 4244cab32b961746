// SPDX-License-Identifier: Apache-2.0
package org.netserv.packet;

import org.osgi.annotation.versioning.ConsumerType;

/**
 * Looks at the packets that a module's filters catch.
 *
 * <p>Register an implementation as an OSGi service, or hand it to {@link PacketDispatcher#addPktProcessor}. Several
 * processors of one bundle are called in the order of their {@code service.ranking}, highest first, then in the order
 * of their registration; one that drops a packet ends its way.
 *
 * <p>All calls come on one thread, the packet thread, and never overlap with each other or with the bundle's timers.
 * Each batch has to be done within the module's {@code call-ms}, or the node kills the worker. What a processor throws
 * ends the module: the batch counts as unseen by it.
 */
@FunctionalInterface
@ConsumerType
public interface PacketProcessor {
    /**
     * Looks at one packet. It passes as it came unless the processor calls {@link PacketView#drop()} or
     * {@link PacketView#modified()}.
     *
     * @param packet the packet; only valid during the call
     * @throws Exception whatever goes wrong; it ends the module
     */
    void process(PacketView packet) throws Exception;

    /**
     * Looks at a batch of 1 to 64 packets. To be overridden by processors that save something by looking at several
     * packets at once; everything else calls {@link #process} for each.
     *
     * @param batch the packets in the order they came; only valid during the call
     * @throws Exception whatever goes wrong; it ends the module
     */
    default void processBatch(PacketBatch batch) throws Exception {
        for (int index = 0, size = batch.size(); index < size; index++) {
            process(batch.get(index));
        }
    }
}
