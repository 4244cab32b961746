// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.io.Closeable;
import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import org.netserv.block.Counters;
import org.netserv.block.Injector;
import org.netserv.block.KeyValueStore;
import org.netserv.block.Log;
import org.netserv.block.Timers;
import org.netserv.module.ModuleContext;
import org.osgi.framework.Bundle;

/** One loaded version of a module, with what the node keeps for it. */
final class Module implements ModuleContext {
    private final int slot;
    private final String name;
    private final String version;
    private final File jar;
    private final Map<String, String> properties;
    private final ModuleLimits limits;
    private final Set<String> blocks;
    private final NodeFacts facts;
    private final Native node;
    private final Entropy entropy;
    private final ModuleLog log;
    private final ModuleCounters counters;
    private final ModuleTimers timers;
    private final ModuleInjector injector;
    private final ModuleControl control;
    private final ModuleState state;
    private final KvState kv;
    private final Processors processors = new Processors();
    private final ModuleThreads threads;
    /** Bundles that the module installed itself. */
    private final List<Bundle> others = new ArrayList<>();
    /** Blocks that are made when they are asked for, null for those that are not offered. */
    private final Map<Class<?>, Object> own = new HashMap<>();

    private volatile Bundle bundle;
    /** Whether the host itself stopped the bundle for a while. */
    private volatile boolean isPaused;
    private volatile ClassLoader loader;

    // Counted and read under the dispatcher's lock.
    private long seen;
    private long passed;
    private long dropped;
    private long modified;
    private long injected;
    private boolean isWarned;

    // Guarded by the life cycle, which answers.
    private boolean isAnswered;
    private Refusal early;

    /** What the node says about a module that is to be loaded. */
    record Order(int slot, String name, String version, File jar, Map<String, String> properties,
            ModuleLimits limits, int stateSchema, Set<String> blocks, long control, NodeFacts facts) {
    }

    Module(Order order, KvState kv, Dispatcher dispatcher, Native node, Entropy entropy) {
        slot = order.slot();
        name = order.name();
        version = order.version();
        jar = order.jar();
        properties = order.properties();
        limits = order.limits();
        blocks = order.blocks();
        facts = order.facts();
        this.node = node;
        this.entropy = entropy;
        log = new ModuleLog(node, slot);
        counters = new ModuleCounters(limits.counters());
        timers = new ModuleTimers(node, limits.timers(), dispatcher::timerSet);
        injector = new ModuleInjector(dispatcher, this);
        control = new ModuleControl(order.control(), dispatcher::wake);
        state = new ModuleState(order.control());
        this.kv = kv;
        threads = new ModuleThreads(this);
    }

    int slot() {
        return slot;
    }

    File jar() {
        return jar;
    }

    ModuleLimits limits() {
        return limits;
    }

    Processors processors() {
        return processors;
    }

    ModuleThreads threads() {
        return threads;
    }

    ModuleLog moduleLog() {
        return log;
    }

    ModuleTimers moduleTimers() {
        return timers;
    }

    ModuleCounters moduleCounters() {
        return counters;
    }

    ModuleInjector moduleInjector() {
        return injector;
    }

    NodeFacts facts() {
        return facts;
    }

    ModuleControl moduleControl() {
        return control;
    }

    ModuleState moduleState() {
        return state;
    }

    KvState kvState() {
        return kv;
    }

    /** Says that its load is answered now. Returns what it failed with before, or null. */
    Refusal answer() {
        isAnswered = true;
        return early;
    }

    /** Returns whether its load is not answered yet; then the refusal is kept for that. */
    boolean failsEarly(Refusal refusal) {
        if (!isAnswered) {
            early = refusal;
        }
        return !isAnswered;
    }

    /** Returns the module's bundle, or null before it is installed. */
    Bundle bundle() {
        return bundle;
    }

    void setBundle(Bundle bundle) {
        this.bundle = bundle;
    }

    boolean isPaused() {
        return isPaused;
    }

    void setPaused(boolean isPaused) {
        this.isPaused = isPaused;
    }

    /** Returns the bundle's class loader, or null before it is resolved and after it is unloaded. */
    ClassLoader loader() {
        return loader;
    }

    void setLoader(ClassLoader loader) {
        this.loader = loader;
    }

    /**
     * Returns the module's own block of a kind, made when it is first asked for; null if the operator offers none,
     * which the log says once.
     */
    <S> S block(String name, Class<S> kind, Supplier<S> made) {
        synchronized (own) {
            if (!own.containsKey(kind)) {
                boolean isOffered = blocks.contains(name);
                if (!isOffered) {
                    log.warn("the node does not offer the building block " + name);
                }
                own.put(kind, isOffered ? made.get() : null);
            }
            return kind.cast(own.get(kind));
        }
    }

    /** Ends what the module's blocks have open. */
    void closeBlocks() {
        synchronized (own) {
            for (Object block : own.values()) {
                if (block instanceof Closeable closeable) {
                    try {
                        closeable.close();
                    } catch (IOException broken) {
                        log.debug("a block is not closed well: " + broken.getMessage());
                    }
                }
            }
        }
    }

    /** Takes a bundle that the module installed. Returns whether it may have one more. */
    boolean addOther(Bundle other) {
        synchronized (others) {
            return others.size() < Limits.BUNDLES_PER_MODULE_MAX && others.add(other);
        }
    }

    /** Returns the bundles that the module installed itself, the last one first. */
    List<Bundle> others() {
        synchronized (others) {
            List<Bundle> copy = new ArrayList<>(others);
            java.util.Collections.reverse(copy);
            return copy;
        }
    }

    /** Says once that packets come and nothing takes them; on the packet thread. */
    void warnOfNoProcessor() {
        if (!isWarned) {
            isWarned = true;
            log.warn("packets come for the module, but its bundle has registered no PacketProcessor");
        }
    }

    void countSeen(int seen, int passed, int dropped, int modified) {
        this.seen += seen;
        this.passed += passed;
        this.dropped += dropped;
        this.modified += modified;
    }

    void countInjected(int count) {
        injected += count;
    }

    long[] counts() {
        return new long[] {seen, passed, dropped, modified, injected};
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public String version() {
        return version;
    }

    @Override
    public Map<String, String> properties() {
        return properties;
    }

    @Override
    public long monotonicNanos() {
        return node.now();
    }

    @Override
    public long wallNanos() {
        if (entropy instanceof Entropy.Seeded) {
            return node.now() / 1_000_000 * 1_000_000;
        }
        java.time.Instant now = java.time.Instant.now();
        return Math.addExact(Math.multiplyExact(now.getEpochSecond(), 1_000_000_000L), now.getNano());
    }

    @Override
    public void random(byte[] into) {
        entropy.fill(into);
    }

    @Override
    public long randomNumber() {
        byte[] bytes = new byte[Long.BYTES];
        entropy.fill(bytes);
        long number = 0;
        for (int at = Long.BYTES - 1; at >= 0; at--) {
            number = number << 8 | bytes[at] & 0xff;
        }
        return number;
    }

    @Override
    public Log log() {
        return log;
    }

    @Override
    public KeyValueStore kv() {
        return kv;
    }

    @Override
    public Counters counters() {
        return counters;
    }

    @Override
    public Timers timers() {
        return timers;
    }

    @Override
    public Injector injector() {
        return injector;
    }

    @Override
    public String toString() {
        return name + "@" + version;
    }
}
