// SPDX-License-Identifier: Apache-2.0
package org.netserv.samples.bad;

import org.netserv.block.BlockException;
import org.netserv.block.Counter;
import org.netserv.packet.PacketProcessor;
import org.netserv.packet.PacketView;

/** Counts packets, and misbehaves at each until it returns from it once. */
final class Processor implements PacketProcessor {
    private final Behaviour behaviour;
    private final Surroundings surroundings;
    private final Counter seen;
    private boolean done;

    Processor(Behaviour behaviour, Surroundings surroundings) throws BlockException {
        this.behaviour = behaviour;
        this.surroundings = surroundings;
        seen = surroundings.module().counters().open("seen");
    }

    @Override
    public void process(PacketView packet) throws Exception {
        seen.add(1);
        surroundings.packet = packet;
        if (!done || behaviour.isForEachPacket()) {
            behaviour.act(surroundings);
            done = true;
        }
    }
}
