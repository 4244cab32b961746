// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.util.Comparator;
import java.util.HashMap;
import java.util.Map;

/** The kv state of all modules of the container, by name and schema version. Used on the life cycle thread alone. */
final class KvStates {
    private final Map<Key, Kept> states = new HashMap<>();

    /** Returns the state of a module, which all versions of the same schema share. {@link #close} has to follow. */
    KvState open(String name, int schema) {
        Kept kept = states.computeIfAbsent(new Key(name, schema), unknown -> new Kept());
        kept.users++;
        return kept.state;
    }

    /** Says that a module does not use its state any more. */
    void close(String name, int schema, long now) {
        Kept kept = states.get(new Key(name, schema));
        if (kept != null && --kept.users == 0) {
            kept.leftNanos = now;
        }
        forget(now);
    }

    /** Forgets state that no module has used for a while. */
    void forget(long now) {
        states.values().removeIf(kept -> kept.users == 0 && now - kept.leftNanos >= Limits.KV_KEPT_NANOS);
        while (states.values().stream().filter(kept -> kept.users == 0).count() > Limits.KV_KEPT_MAX) {
            states.entrySet().stream()
                    .filter(entry -> entry.getValue().users == 0)
                    .min(Comparator.comparingLong(entry -> entry.getValue().leftNanos))
                    .ifPresent(entry -> states.remove(entry.getKey()));
        }
    }

    /** Returns when state is next to be forgotten, {@link Long#MAX_VALUE} for never. */
    long nextNanos() {
        return states.values().stream()
                .filter(kept -> kept.users == 0)
                .mapToLong(kept -> kept.leftNanos + Limits.KV_KEPT_NANOS)
                .min().orElse(Long.MAX_VALUE);
    }

    private record Key(String name, int schema) {
    }

    private static final class Kept {
        private final KvState state = new KvState();
        private int users;
        private long leftNanos;
    }
}
