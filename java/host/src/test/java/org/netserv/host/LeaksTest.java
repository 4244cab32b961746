// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.ref.WeakReference;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;

class LeaksTest {
    private static final int UPDATES = 1000;
    private static final int WARM_UP = 50;
    /** Where the versions of the bundle note their class loaders, weakly. */
    private static final String LOADERS = "netserv.test.loaders";

    @Test
    void aThousandUpdatesLeaveNothingBehind() throws Exception {
        BundleBuilder bundle = BundleBuilder.active("updated", "1.0.0", """
                void begin() throws Exception {
                    ((List<Object>) System.getProperties().get("netserv.test.loaders"))
                            .add(new java.lang.ref.WeakReference<>(getClass().getClassLoader()));
                    Counter packets = module.counters().open("packets");
                    PacketProcessor processor = packet -> packets.add(packet.getU8(0));
                    context.registerService(PacketProcessor.class, processor, null);
                    module.timers().every(Duration.ofMillis(1), () -> packets.add(1));
                    module.kv().set(new byte[] {1}, new byte[100]);
                }
                """);
        List<WeakReference<ClassLoader>> loaders = Collections.synchronizedList(new ArrayList<>());
        System.getProperties().put(LOADERS, loaders);
        try (Worker worker = new Worker()) {
            Path jar = bundle.write(worker.folder.resolve("updated.jar"));
            for (int count = 0; count < WARM_UP; count++) {
                update(worker, jar, count);
            }
            onlyOneIsLeft(worker, loaders);
            long metaspace = metaspaceBytes();
            long heap = heapBytes();
            int groups = groups();
            int threads = threads();
            for (int count = WARM_UP; count < WARM_UP + UPDATES; count++) {
                update(worker, jar, count);
            }
            assertEquals(WARM_UP + UPDATES, loaders.size());
            onlyOneIsLeft(worker, loaders);
            worker.await("no more threads than before", () -> threads() <= threads);
            long metaspaceMore = metaspaceBytes() - metaspace;
            long heapMore = heapBytes() - heap;
            int groupsMore = groups() - groups;
            assertTrue(metaspaceMore < 3 << 20, metaspaceMore + " bytes of metaspace more");
            // A bundle that the framework keeps takes about 4 KiB.
            assertTrue(heapMore < 1 << 20, heapMore + " bytes of heap more");
            // The JVM makes one or two groups of its own when it likes.
            assertTrue(groupsMore < 5, groupsMore + " groups of threads more");
            assertNull(worker.restarted.get());
            assertEquals(List.of(), worker.lines(-1));
        } finally {
            System.getProperties().remove(LOADERS);
        }
    }

    @Test
    void leaksAreCountedAndEndTheWorker() throws Exception {
        BundleBuilder bundle = BundleBuilder.active("leaky", "1.0.0", """
                void begin() {
                    // Something of the JVM's own that is never let go of.
                    Object me = this;
                    ((List<Object>) System.getProperties().get("netserv.test.leaks")).add(me);
                }
                """);
        List<Object> leaks = new ArrayList<>();
        System.getProperties().put("netserv.test.leaks", leaks);
        try (Worker worker = new Worker()) {
            Path jar = bundle.write(worker.folder.resolve("leaky.jar"));
            for (int count = 0; worker.restarted.get() == null; count++) {
                assertTrue(count <= Limits.LOADERS_LEAKED_MAX + Limits.LOADERS_UNSEEN_MAX, "no restart is asked for");
                update(worker, jar, count);
            }
            assertEquals("-1/1: 16 class loaders of unloaded modules are still held: example.org/updated@1.0.0",
                    worker.node.lines.stream().filter(line -> line.contains("class loaders")).findFirst().orElse(""));
            assertEquals("unloaded modules leak 32 class loaders: example.org/updated@1.0.0", worker.restarted.get());
        } finally {
            System.getProperties().remove("netserv.test.leaks");
        }
    }

    private static void update(Worker worker, Path jar, int count) throws Exception {
        Path copy = Files.copy(jar, worker.folder.resolve("data/u" + count + ".jar"));
        ModulesTest.check(0, "loaded", worker.load(0, "example.org/updated", copy, Worker.LIMITS, 1));
        worker.packet(0, 0);
    }

    /** Waits until of all versions only the one that is loaded has a class loader. */
    private static void onlyOneIsLeft(Worker worker, List<WeakReference<ClassLoader>> loaders) {
        worker.await("all but one of " + loaders.size() + " class loaders go", () -> {
            System.gc();
            return loaders.stream().filter(loader -> !loader.refersTo(null)).count() == 1;
        });
    }

    private static int threads() {
        return Thread.getAllStackTraces().size();
    }

    private static long metaspaceBytes() {
        return ManagementFactory.getMemoryPoolMXBeans().stream()
                .filter(pool -> pool.getName().equals("Metaspace")).map(MemoryPoolMXBean::getUsage)
                .mapToLong(usage -> usage.getUsed()).sum();
    }

    private static long heapBytes() {
        return ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
    }

    private static int groups() {
        ThreadGroup root = Thread.currentThread().getThreadGroup();
        while (root.getParent() != null) {
            root = root.getParent();
        }
        return root.activeGroupCount();
    }
}
