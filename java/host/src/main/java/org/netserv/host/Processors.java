// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.netserv.packet.PacketDispatcher;
import org.netserv.packet.PacketProcessor;

/** The packet processors of one module in the order of their calls. */
final class Processors implements PacketDispatcher {
    private static final PacketProcessor[] NONE = {};

    /** Also the lock: modules have this object, and must not be able to lock the host out. */
    private final List<Ranked> ranked = new ArrayList<>();
    private long numbers;
    private volatile PacketProcessor[] inTurn = NONE;

    /** Returns the processors in turn. */
    PacketProcessor[] inTurn() {
        return inTurn;
    }

    /** Puts a processor in, which {@code key} stands for; one that was there under that key goes. */
    void put(Object key, int ranking, PacketProcessor processor) {
        synchronized (ranked) {
            Ranked old = remove(key);
            if (ranked.size() >= Limits.PROCESSORS_MAX) {
                throw new IllegalStateException(
                        "a module has at most " + Limits.PROCESSORS_MAX + " packet processors");
            }
            ranked.add(new Ranked(key, ranking, old == null ? numbers++ : old.number(), processor));
            ranked.sort(Comparator.comparingInt(Ranked::ranking).reversed().thenComparingLong(Ranked::number));
            publish();
        }
    }

    /** Takes the processor out that {@code key} stands for. Returns whether it was there. */
    boolean take(Object key) {
        synchronized (ranked) {
            boolean wasThere = remove(key) != null;
            publish();
            return wasThere;
        }
    }

    /** Takes all processors out. */
    void clear() {
        synchronized (ranked) {
            ranked.clear();
            publish();
        }
    }

    @Override
    public void addPktProcessor(PacketProcessor processor) {
        synchronized (ranked) {
            if (ranked.stream().noneMatch(known -> known.key() == processor)) {
                put(processor, 0, java.util.Objects.requireNonNull(processor));
            }
        }
    }

    @Override
    public void removePktProcessor(PacketProcessor processor) {
        take(processor);
    }

    private Ranked remove(Object key) {
        for (Ranked known : ranked) {
            if (known.key() == key) {
                ranked.remove(known);
                return known;
            }
        }
        return null;
    }

    private void publish() {
        inTurn = ranked.stream().map(Ranked::processor).toArray(PacketProcessor[]::new);
    }

    private record Ranked(Object key, int ranking, long number, PacketProcessor processor) {
    }
}
