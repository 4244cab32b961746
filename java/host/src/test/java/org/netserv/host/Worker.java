// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import org.osgi.framework.BundleException;

/** A whole host without native code. The thread that makes it is its packet thread. */
final class Worker implements AutoCloseable {
    static final long[] LIMITS = {1 << 22, 100, 1 << 20, 8, 8, 6000};
    static final Set<String> BLOCKS =
            Set.of("cache", "compress", "crypto", "hash", "http-client", "match", "sip", "state");
    private static final long WAIT_MILLIS_MAX = 60_000;

    final FakeNative node = new FakeNative();
    final Ring ring = new Ring();
    final Path folder;
    final Path blocks;
    final Path store;
    /** Why the worker asked to be restarted; nothing while it did not. */
    final AtomicReference<String> restarted = new AtomicReference<>();
    /** Packets that were injected while nothing came in. */
    final List<byte[]> sent = new ArrayList<>();
    final Host host;
    private int jars;

    Worker() throws IOException, BundleException {
        this(null);
    }

    /** A worker with a folder of what outlives it; its own empty one if there is none. */
    Worker(Path kept) throws IOException, BundleException {
        folder = Files.createTempDirectory("netserv-host");
        blocks = Files.createDirectory(folder.resolve("blocks"));
        Path data = Files.createDirectory(folder.resolve("data"));
        store = kept == null ? Files.createDirectory(folder.resolve("store")) : kept;
        Restart restart = new Restart(node) {
            @Override
            void end(String why) {
                restarted.set(why);
            }
        };
        Host.Folders folders = new Host.Folders(blocks.toFile(), data.toFile(), store.toFile());
        host = new Host(node, ring.buffers(), folders, restart);
    }

    /** Loads a bundle as a module of that name, and returns what came of it. */
    FakeNative.Event load(int slot, String name, BundleBuilder bundle) throws IOException {
        return load(slot, name, bundle.write(folder.resolve("data/m" + jars++ + ".jar")), LIMITS, 1);
    }

    FakeNative.Event load(int slot, String name, Path jar, long[] limits, int schema, String... properties) {
        host.load(slot, name, "1.0.0", jar.toString(), properties, limits, schema, BLOCKS, 0);
        return await(slot);
    }

    Path jar() {
        return folder.resolve("data/m" + jars++ + ".jar");
    }

    /** Waits until something is told about a slot. */
    FakeNative.Event await(int slot) {
        FakeNative.Event[] found = new FakeNative.Event[1];
        await("news of slot " + slot, () -> {
            for (FakeNative.Event event : node.events) {
                if (event.slot() == slot && node.events.remove(event)) {
                    found[0] = event;
                    return true;
                }
            }
            return false;
        });
        return found[0];
    }

    /** Unloads a module, and waits until it is gone. */
    void unload(int slot) {
        host.unload(slot);
        settle();
    }

    /** Waits until every command so far is carried out. */
    void settle() {
        host.load(63, "example.org/none", "1.0.0", folder.resolve("none").toString(), new String[0], LIMITS, 1,
                BLOCKS, 0);
        await(63);
    }

    /** Runs the packet thread until something is so. */
    void await(String what, BooleanSupplier isSo) {
        long until = System.nanoTime() + WAIT_MILLIS_MAX * 1_000_000;
        while (!isSo.getAsBoolean()) {
            if (System.nanoTime() > until) {
                throw new AssertionError("no " + what + "; events " + node.events + ", log " + node.lines);
            }
            try {
                if (node.awaitWake(20)) {
                    idle();
                }
            } catch (InterruptedException interrupted) {
                throw new AssertionError(interrupted);
            }
        }
    }

    /** Runs what is due, and takes what was injected. */
    void idle() {
        host.idle(node.now());
        for (int index = 0; index < host.injected(); index++) {
            sent.add(ring.injected(index));
        }
    }

    /** Shows one packet to the module in a slot, and returns the verdict. */
    int packet(int slot, int first) {
        ring.put(0, 0, DispatcherTest.filled(20, first), 1L << slot);
        host.process(1);
        return ring.verdict(0);
    }

    /** Returns a counter of a module, 0 if there is none. */
    long counter(int slot, String name) {
        node.stats.clear();
        host.stats();
        FakeNative.Stats stats = node.stats.getOrDefault(slot, new FakeNative.Stats(List.of(), Map.of()));
        return stats.counters().getOrDefault(name, 0L);
    }

    /** Returns the lines that a module wrote. */
    List<String> lines(int slot) {
        List<String> lines = new ArrayList<>();
        for (String line : node.lines) {
            if (line.startsWith(slot + "/")) {
                lines.add(line.substring(line.indexOf('/') + 1));
            }
        }
        return lines;
    }

    @Override
    public void close() throws IOException {
        host.shutdown(5_000);
        try (var paths = Files.walk(folder)) {
            paths.sorted(java.util.Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
        }
    }
}
