// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.io.File;
import java.nio.ByteBuffer;
import java.util.Set;
import org.osgi.framework.BundleException;

/**
 * What the native side of the worker calls, and what it is told by. One batch of packets is one call.
 *
 * <p>With the system property {@value Entropy#TEST_PROPERTY} set, modules get the random bytes and the time of day that
 * recorded tests of Wasm modules give.
 */
public final class Bridge {
    /** Names another folder than {@value #STORE} for what outlives the process. */
    private static final String STORE_PROPERTY = "netserv.store";
    private static final String STORE = "/store";

    private static Host host;

    private Bridge() {
    }

    /**
     * Starts the framework and the life cycle; {@link #ready} follows. The calling thread is the packet thread.
     *
     * @param table 64 entries of a batch, 64 bytes each, see {@link RingLayout}
     * @param slots the slots of the ring
     * @param injects 64 slots for packets that modules make
     * @param header the ring's first page
     * @param blocksDir the folder with building blocks
     * @param dataDir a folder to write to
     * @throws BundleException if the framework does not start
     */
    public static void start(ByteBuffer table, ByteBuffer slots, ByteBuffer injects, ByteBuffer header,
            String blocksDir, String dataDir) throws BundleException {
        if (Boolean.getBoolean(Entropy.TEST_PROPERTY)) {
            // Standard output is for the tests' reports; what modules print may stand beside them.
            System.setOut(System.err);
        }
        Native node = new Native() {
            @Override
            public void ready(String engine) {
                Bridge.ready(engine);
            }

            @Override
            public void loaded(int slot) {
                Bridge.loaded(slot);
            }

            @Override
            public void failed(int slot, String refusalKind, String detail, String[] context) {
                Bridge.failed(slot, refusalKind, detail, context);
            }

            @Override
            public void log(int slot, int level, String text) {
                Bridge.log(slot, level, text);
            }

            @Override
            public void stats(int slot, long[] counts, String[] names, long[] values) {
                Bridge.stats(slot, counts, names, values);
            }

            @Override
            public void statsDone() {
                Bridge.statsDone();
            }

            @Override
            public void wake() {
                Bridge.wake();
            }

            @Override
            public long now() {
                return Bridge.now();
            }
        };
        Host.Buffers buffers = new Host.Buffers(table, slots, injects, header);
        File store = new File(System.getProperty(STORE_PROPERTY, STORE));
        host = new Host(node, buffers, new Host.Folders(new File(blocksDir), new File(dataDir), store),
                new Restart(node));
        host.open();
    }

    /**
     * Shows a batch to the modules; on the packet thread.
     *
     * @param count packets in the table, at most 64
     * @return the number of packets that were injected
     */
    public static int process(int count) {
        return host.process(count);
    }

    /**
     * Runs timers that are due and takes what other threads inject; on the packet thread.
     *
     * @param nowNanos the monotonic clock
     * @return when there is something to do next, {@link Long#MAX_VALUE} for never
     */
    public static long idle(long nowNanos) {
        return host.idle(nowNanos);
    }

    /**
     * Returns how many packets the last call injected; on the packet thread.
     *
     * @return 0 to 64
     */
    public static int injected() {
        return host.injected();
    }

    /**
     * Says what modules are told of the node that are loaded from here on.
     *
     * @param id the node's name
     * @param place where it is
     * @param factsKV names and facts in turn
     * @param addresses the addresses of the container
     */
    public static void node(String id, String place, String[] factsKV, String[] addresses) {
        host.tellNode(NodeFacts.of(id, place, factsKV, addresses));
    }

    /**
     * Queues a load, which {@link #loaded} or {@link #failed} answers.
     *
     * @param slot the module's slot, 0 to 63
     * @param name the module's name
     * @param version its version
     * @param jarPath its bundle, which is used where it is and deleted after the unload
     * @param propertiesKV keys and values in turn
     * @param limits see {@link ModuleLimits}
     * @param stateSchema the schema of its kv state
     * @param blocks the building blocks that it may use
     * @param control the number of its port for control messages, which is closed with the module, and of the state
     *     that it begins with
     */
    public static void load(int slot, String name, String version, String jarPath, String[] propertiesKV,
            long[] limits, int stateSchema, String[] blocks, long control) {
        host.load(slot, name, version, jarPath, propertiesKV, limits, stateSchema, Set.of(blocks), control);
    }

    /**
     * Asks a module for its state; on the packet thread.
     *
     * @param slot the module's slot
     */
    public static void export(int slot) {
        host.export(slot);
    }

    /**
     * Queues an unload.
     *
     * @param slot the module's slot
     */
    public static void unload(int slot) {
        host.unload(slot);
    }

    /** Has {@link #stats(int, long[], String[], long[])} called for each module, then {@link #statsDone}. */
    public static void stats() {
        host.stats();
    }

    /**
     * Stops everything.
     *
     * @param millisMax how long this may take
     */
    public static void shutdown(long millisMax) {
        host.shutdown(millisMax);
    }

    private static native void ready(String engine);

    private static native void loaded(int slot);

    private static native void failed(int slot, String refusalKind, String detail, String[] context);

    private static native void log(int slot, int level, String text);

    private static native void stats(int slot, long[] counts, String[] names, long[] values);

    private static native void statsDone();

    private static native void wake();

    private static native long now();
}
