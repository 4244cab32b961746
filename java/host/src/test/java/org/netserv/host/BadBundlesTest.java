// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Bundles that do what they should not, beside an innocent one that goes on. */
class BadBundlesTest {
    private static final long[] HASTY = {1 << 22, 100, 1 << 20, 8, 8, 20};

    private Worker worker;

    @BeforeEach
    void start() throws Exception {
        worker = new Worker();
        BundleBuilder innocent = BundleBuilder.active("innocent", "1.0.0", """
                void begin() {
                    PacketProcessor processor = packet -> packet.drop();
                    context.registerService(PacketProcessor.class, processor, null);
                }
                """);
        ModulesTest.check(9, "loaded", worker.load(9, "example.org/innocent", innocent));
    }

    @AfterEach
    void theInnocentOneGoesOn() throws Exception {
        if (worker.restarted.get() == null) {
            assertEquals(SlotView.DROP, worker.packet(9, 0));
        }
        worker.close();
    }

    @Test
    void everyMissingPackageAndCapabilityIsNamed() throws Exception {
        BundleBuilder bundle = BundleBuilder.active("needy", "1.0.0", "void begin() { }")
                .header("Import-Package",
                        BundleBuilder.API.replace("org.netserv.packet", "org.netserv.packet;version=\"[2,3)\"")
                        + ",com.missing.one;version=\"[1.2,2)\",com.missing.two,com.optional;resolution:=optional")
                .header("Require-Capability",
                        "netserv.block;filter:=\"(name=teleport)\",osgi.service;effective:=active;filter:=\"(a=b)\"")
                .header("Require-Bundle", "com.missing.bundle;bundle-version=\"3.0\"");
        check("missing-dependency", "the node has not what the bundle needs: bundle com.missing.bundle, "
                + "capability netserv.block (name=teleport), package com.missing.one 1.2.0 to below 2.0.0, "
                + "package com.missing.two, package org.netserv.packet 2.0.0 to below 3.0.0 (the node has 1.0.0)",
                worker.load(0, "example.org/needy", bundle));
    }

    @Test
    void aRefusalNamesSixteenAtMostAndIsCut() throws Exception {
        StringBuilder imports = new StringBuilder(BundleBuilder.API);
        for (int count = 10; count < 30; count++) {
            imports.append(",p").append(count);
        }
        FakeNative.Event event = worker.load(0, "example.org/x",
                new BundleBuilder("x", "1").header("Import-Package", imports.toString()));
        assertTrue(event.detail().endsWith(", package p24, package p25 and 4 more"), event.detail());
        event = worker.load(0, "example.org/x",
                new BundleBuilder("x", "1").header("Import-Package", "p" + "q".repeat(3 * Limits.DETAIL_CHARS_MAX)));
        assertEquals(Limits.DETAIL_CHARS_MAX, event.detail().length());
    }

    @Test
    void commandsThatWaitAreBounded() throws Exception {
        BundleBuilder bundle = BundleBuilder.active("waiting", "1.0.0", """
                void begin() throws Exception {
                    module.log().info("waits");
                    while (System.getProperty("netserv.test.waiting") == null) {
                        Thread.sleep(1);
                    }
                }
                """);
        String jar = bundle.write(worker.jar()).toString();
        try {
            worker.host.load(0, "example.org/waiting", "1.0.0", jar, new String[0], Worker.LIMITS, 1, Worker.BLOCKS, 0);
            worker.await("its start", () -> !worker.lines(0).isEmpty());
            for (int count = 0; count < Limits.COMMANDS_MAX; count++) {
                worker.host.load(1, "example.org/none", "1.0.0", "none", new String[0], Worker.LIMITS, 1, Worker.BLOCKS, 0);
            }
            Path refused = Files.createFile(worker.jar());
            check("node-failed", "the worker has too much to do",
                    worker.load(1, "example.org/none", refused, Worker.LIMITS, 1));
            assertTrue(Files.notExists(refused));
        } finally {
            System.setProperty("netserv.test.waiting", "no");
        }
        ModulesTest.check(0, "loaded", worker.await(0));
        worker.await("every answer", () -> worker.node.events.size() == Limits.COMMANDS_MAX);
    }

    @Test
    void aNewerJavaIsNamed() throws Exception {
        int present = Runtime.version().feature();
        BundleBuilder header = BundleBuilder.active("newer", "1.0.0", "void begin() { }")
                .header("Require-Capability", "osgi.ee;filter:=\"(&(osgi.ee=JavaSE)(version=99))\"");
        String detail = "the bundle needs Java 99, the node runs Java " + present;
        check("missing-dependency", detail, worker.load(0, "example.org/newer", header));
        BundleBuilder classes = BundleBuilder.active("newer", "1.0.0", "void begin() { }");
        byte[] code = classes.entries().get("test/Activator.class").clone();
        code[7] = (byte) (99 + 44);
        classes.entry("test/Activator.class", code);
        check("missing-dependency", detail, worker.load(0, "example.org/newer", classes));
    }

    @Test
    void filesThatAreNoBundlesAreRefused() throws Exception {
        Path text = Files.writeString(worker.jar(), "not a jar");
        check("bad-code", "the file is not a jar: ", worker.load(0, "example.org/x", text, Worker.LIMITS, 1));
        Path none = worker.jar();
        check("bad-code", "the file is not a jar: ", worker.load(0, "example.org/x", none, Worker.LIMITS, 1));
        Path bare = new BundleBuilder("x", "1").write(worker.jar(), null);
        check("bad-code", "the jar has no META-INF/MANIFEST.MF",
                worker.load(0, "example.org/x", bare, Worker.LIMITS, 1));
        check("bad-code", "the jar is not a bundle: its manifest has no Bundle-SymbolicName",
                worker.load(0, "example.org/x", new BundleBuilder("x", "1").header("Bundle-SymbolicName", null)));
        check("bad-code", "the bundle's manifest has no Bundle-ManifestVersion: 2",
                worker.load(0, "example.org/x", new BundleBuilder("x", "1").header("Bundle-ManifestVersion", null)));
        check("bad-code", "the bundle is a fragment",
                worker.load(0, "example.org/x", new BundleBuilder("x", "1").header("Fragment-Host", "innocent")));
        check("bad-code", "the bundle cannot be installed: ",
                worker.load(0, "example.org/x", new BundleBuilder("x", "1.2.3.4.5")));
        check("bad-code", "the bundle cannot be installed: ",
                worker.load(0, "example.org/x", new BundleBuilder("x", "1").header("Import-Package", "a,b,a")));
        check("bad-code", "the bundle cannot be installed: ",
                worker.load(0, "example.org/x", new BundleBuilder("x", "1").header("Import-Package", "a;;=,")));
        check("bad-code", "the bundle has not the class that starts it: ",
                worker.load(0, "example.org/x",
                        new BundleBuilder("x", "1").header("Bundle-Activator", "gone.Activator")));
    }

    @Test
    void manifestsThatTwoReadersReadDifferentlyAreRefused() throws Exception {
        String good = "Manifest-Version: 1.0\nBundle-ManifestVersion: 2\nBundle-SymbolicName: x\n";
        refuseManifest("twice", good + "bundle-symbolicname: y\n\n");
        refuseManifest("a line that is no header: nonsense", good + "nonsense\n\n");
        refuseManifest("starts with a continued line", " " + good);
        refuseManifest("longer than", good + "X: " + "x".repeat(Limits.MANIFEST_BYTES_MAX) + "\n\n");
        Path two = new BundleBuilder("x", "1").entry("meta-inf/manifest.mf", good.getBytes(StandardCharsets.UTF_8))
                .write(worker.jar());
        check("bad-code", "the jar has more than one META-INF/MANIFEST.MF",
                worker.load(0, "example.org/x", two, Worker.LIMITS, 1));
    }

    @Test
    void aBundleOfAnotherModuleIsNotLoadedTwice() throws Exception {
        check("bad-code", "bundle innocent 1.0.0 is there already, as part of module example.org/innocent",
                worker.load(0, "example.org/thief", new BundleBuilder("innocent", "1.0.0")));
        ModulesTest.check(0, "loaded", worker.load(0, "example.org/thief", new BundleBuilder("innocent", "1.0.1")));
    }

    @Test
    void brokenCodeIsRefused() throws Exception {
        BundleBuilder bundle = BundleBuilder.active("broken", "1.0.0", "void begin() { }");
        byte[] code = bundle.entries().get("test/Activator.class");
        bundle.entry("test/Activator.class", java.util.Arrays.copyOf(code, code.length / 2));
        check("bad-code", "the bundle's code is broken: java.lang.ClassFormatError",
                worker.load(0, "example.org/broken", bundle));
    }

    @Test
    void whatStartThrowsIsTold() throws Exception {
        BundleBuilder thrower = BundleBuilder.active("thrower", "1.0.0", """
                void begin() throws Exception {
                    context.registerService(PacketProcessor.class, (PacketProcessor) packet -> packet.drop(), null);
                    throw new java.io.IOException("no disk");
                }
                """);
        check("trapped", "java.io.IOException: no disk in test.Activator.begin",
                worker.load(0, "example.org/thrower", thrower));
        BundleBuilder hungry = BundleBuilder.active("hungry", "1.0.0", """
                void begin() { throw new OutOfMemoryError("Java heap space"); }
                """);
        check("memory-limit", "the container has no more memory", worker.load(0, "example.org/hungry", hungry));
        assertEquals(SlotView.FAILED, worker.packet(0, 0));
    }

    @Test
    void aRefusalNamesMethodsOfTheModulesOwn() throws Exception {
        BundleBuilder bundle = BundleBuilder.active("caused", "1.0.0", """
                void begin() throws Exception {
                    try {
                        module.timers().once(null, null);
                    } catch (NullPointerException none) {
                        throw new IllegalStateException("no rules", none);
                    }
                }
                """);
        FakeNative.Event event = worker.load(0, "example.org/caused", bundle);
        check("trapped", "java.lang.IllegalStateException: no rules in test.Activator.begin:", event);
        List<String> expected = List.of("in test.Activator.begin:", "in test.Activator.start:",
                "caused by java.lang.NullPointerException", "in test.Activator.begin:", "in test.Activator.start:");
        assertEquals(expected.size(), event.context().size(), event.toString());
        for (int line = 0; line < expected.size(); line++) {
            assertTrue(event.context().get(line).startsWith(expected.get(line)), event.toString());
        }
        assertTrue(event.detail().contains(", caused by java.lang.NullPointerException"), event.detail());
        BundleBuilder deep = BundleBuilder.active("deep", "1.0.0", "void begin() { begin(); }");
        event = worker.load(0, "example.org/deep", deep);
        assertEquals(Limits.CONTEXT_LINES_MAX, event.context().size(), event.toString());
    }

    @Test
    void whatStartThrowsMayThrowWhenItIsLookedAt() throws Exception {
        BundleBuilder bundle = BundleBuilder.active("evil", "1.0.0", """
                void begin() throws Exception {
                    throw new RuntimeException() {
                        public synchronized Throwable getCause() { throw this; }
                        public StackTraceElement[] getStackTrace() { return null; }
                        public String toString() { throw this; }
                    };
                }
                """);
        ModulesTest.check(0, "trapped", worker.load(0, "example.org/evil", bundle));
        ModulesTest.check(1, "trapped", worker.load(1, "example.org/evil", bundle));
    }

    @Test
    void aModuleThatFailsBeforeItsLoadIsAnsweredIsRefused() throws Exception {
        BundleBuilder old = BundleBuilder.active("early", "1.0.0", """
                void begin() { }
                void end() throws Exception {
                    module.log().info("stops");
                    while (System.getProperty("netserv.test.early") == null) {
                        Thread.sleep(1);
                    }
                }
                """);
        BundleBuilder bad = BundleBuilder.active("early", "1.0.1", """
                void begin() {
                    PacketProcessor processor = packet -> { throw new IllegalStateException(); };
                    context.registerService(PacketProcessor.class, processor, null);
                }
                """);
        ModulesTest.check(0, "loaded", worker.load(0, "example.org/early", old));
        try {
            worker.host.load(0, "example.org/early", "1.0.1", bad.write(worker.jar()).toString(), new String[0],
                    Worker.LIMITS, 1, Worker.BLOCKS, 0);
            worker.await("the old one's stop", () -> !worker.lines(0).isEmpty());
            assertEquals(SlotView.FAILED, worker.packet(0, 0));
        } finally {
            System.setProperty("netserv.test.early", "no");
        }
        worker.settle();
        assertEquals(1, worker.node.events.stream().filter(event -> event.slot() == 0).count());
        ModulesTest.check(0, "trapped", worker.await(0));
    }

    @Test
    void bundlesOfAModuleAndThreadsOfItsOwnMakeCannotHoldItsUnloadUp() throws Exception {
        Path inner = BundleBuilder.active("inner", "1.0.0", """
                void begin() { }
                void end() throws Exception {
                    Thread.sleep(3_600_000);
                }
                """).write(worker.folder.resolve("inner.jar"));
        BundleBuilder outer = BundleBuilder.active("outer", "1.0.0", """
                static void forever() {
                    while (System.getProperty("netserv.test.forever") == null) {
                        Thread.onSpinWait();
                    }
                }
                void begin() throws Exception {
                    context.installBundle("reference:file:%s").start();
                    Thread thread = new Thread("evil") {
                        public void run() { forever(); }
                        public void interrupt() { forever(); }
                        public ClassLoader getContextClassLoader() { forever(); return null; }
                    };
                    thread.setDaemon(true);
                    thread.start();
                }
                """.formatted(inner));
        try {
            ModulesTest.check(0, "loaded",
                    worker.load(0, "example.org/outer", outer.write(worker.jar()), HASTY, 1));
            worker.unload(9);
            BundleBuilder innocent = BundleBuilder.active("innocent", "1.0.0", """
                    void begin() {
                        PacketProcessor processor = packet -> packet.drop();
                        context.registerService(PacketProcessor.class, processor, null);
                    }
                    """);
            ModulesTest.check(9, "loaded", worker.load(9, "example.org/innocent", innocent));
            worker.unload(0);
            assertTrue(worker.node.lines.stream().anyMatch(line -> line.contains("stop took more than 200 ms")),
                    worker.node.lines.toString());
            assertTrue(worker.node.lines.stream().anyMatch(line -> line.contains("1 threads behind: evil")
                    || line.contains("2 threads behind")), worker.node.lines.toString());
        } finally {
            System.setProperty("netserv.test.forever", "no");
        }
    }

    @Test
    void aModuleCannotTakeTheApisPlace() throws Exception {
        BundleBuilder bundle = new BundleBuilder("api", "1.0.0").header("Import-Package", "org.osgi.framework")
                .header("Export-Package", "org.netserv.packet;version=1.0.9,org.netserv.block;version=1.0.9")
                .source("org.netserv.packet.None", "public class None { }");
        ModulesTest.check(0, "loaded", worker.load(0, "example.org/api", bundle));
        BundleBuilder other = BundleBuilder.active("other", "1.0.0", """
                void begin() {
                    PacketProcessor processor = packet -> packet.drop();
                    context.registerService(PacketProcessor.class, processor, null);
                }
                """);
        ModulesTest.check(1, "loaded", worker.load(1, "example.org/other", other));
        assertEquals(SlotView.DROP, worker.packet(1, 0));
    }

    @Test
    void whatAnUnloadedModuleLeftBehindWritesNothing() throws Exception {
        BundleBuilder bundle = BundleBuilder.active("ghost", "1.0.0", """
                void begin() throws Exception {
                    module.kv().set(new byte[] {1}, new byte[] {1});
                    Thread thread = new Thread(() -> {
                        while (System.getProperty("netserv.test.unloaded") == null) {
                            Thread.interrupted();
                            Thread.onSpinWait();
                        }
                        String told = String.valueOf(module.log().write(Log.Level.INFO, "late"));
                        told += module.kv().delete(new byte[] {1});
                        try {
                            module.kv().set(new byte[] {2}, new byte[] {2});
                        } catch (BlockException closed) {
                            told += closed.code();
                        }
                        System.setProperty("netserv.test.told", told);
                    }, "ghost");
                    thread.setDaemon(true);
                    thread.start();
                }
                """);
        ModulesTest.check(0, "loaded", worker.load(0, "example.org/ghost", bundle));
        worker.unload(0);
        System.setProperty("netserv.test.unloaded", "yes");
        worker.await("what the ghost did", () -> System.getProperty("netserv.test.told") != null);
        assertEquals("falsefalseQUOTA", System.getProperty("netserv.test.told"));
        assertEquals(java.util.List.of(), worker.lines(0));
    }

    @Test
    void aStartThatNeverEndsIsStalled() throws Exception {
        BundleBuilder bundle = BundleBuilder.active("slow", "1.0.0", """
                void begin() throws Exception {
                    new java.util.concurrent.CountDownLatch(1).await();
                }
                """);
        Path jar = bundle.write(worker.jar());
        check("stalled", "start took more than 200 ms", worker.load(0, "example.org/slow", jar, HASTY, 1));
        worker.settle();
        assertNull(worker.restarted.get());
    }

    @Test
    void aStartThatCannotBeEndedAsksForARestart() throws Exception {
        BundleBuilder bundle = BundleBuilder.active("stuck", "1.0.0", """
                void begin() throws Exception {
                    while (System.getProperty("netserv.test.go") == null) {
                        try {
                            Thread.sleep(10);
                        } catch (InterruptedException ignored) {
                        }
                    }
                }
                """);
        Path jar = bundle.write(worker.jar());
        try {
            check("stalled", "start took more than 200 ms", worker.load(0, "example.org/stuck", jar, HASTY, 1));
            worker.await("a restart", () -> worker.restarted.get() != null);
            assertTrue(worker.restarted.get().startsWith("module example.org/stuck@1.0.0 does not end: start took"));
        } finally {
            System.setProperty("netserv.test.go", "yes");
        }
    }

    @Test
    void aStopThatBlocksIsInterrupted() throws Exception {
        BundleBuilder bundle = BundleBuilder.active("stopper", "1.0.0", """
                void begin() { }
                void end() throws Exception {
                    new java.util.concurrent.CountDownLatch(1).await();
                }
                """);
        Path jar = bundle.write(worker.jar());
        ModulesTest.check(0, "loaded", worker.load(0, "example.org/stopper", jar, HASTY, 1));
        worker.unload(0);
        assertTrue(worker.lines(0).stream().anyMatch(line -> line.startsWith("0: stop took more than 200 ms")),
                worker.lines(0).toString());
        assertNull(worker.restarted.get());
    }

    @Test
    void aStopThatCannotBeEndedAsksForARestart() throws Exception {
        BundleBuilder bundle = BundleBuilder.active("unstoppable", "1.0.0", """
                void begin() { }
                void end() throws Exception {
                    while (System.getProperty("netserv.test.end") == null) {
                        try {
                            Thread.sleep(10);
                        } catch (InterruptedException ignored) {
                        }
                    }
                }
                """);
        Path jar = bundle.write(worker.jar());
        ModulesTest.check(0, "loaded", worker.load(0, "example.org/unstoppable", jar, HASTY, 1));
        try {
            worker.host.unload(0);
            worker.await("a restart", () -> worker.restarted.get() != null);
            assertTrue(worker.restarted.get()
                    .startsWith("module example.org/unstoppable@1.0.0 does not end: stop took"));
        } finally {
            System.setProperty("netserv.test.end", "yes");
        }
    }

    @Test
    void threadsThatDoNotEndAreCountedUntilARestartIsAskedFor() throws Exception {
        String members = """
                void begin() throws Exception {
                    for (int count = 0; count < %d; count++) {
                        Thread thread = new Thread(() -> {
                            while (System.getProperty("netserv.test.threads") == null) {
                                try {
                                    Thread.sleep(10);
                                } catch (InterruptedException ignored) {
                                }
                            }
                        }, "immortal-" + count);
                        thread.setDaemon(true);
                        thread.start();
                    }
                }
                """;
        try {
            ModulesTest.check(0, "loaded",
                    worker.load(0, "example.org/few", BundleBuilder.active("few", "1.0.0", members.formatted(2))));
            worker.unload(0);
            String told = "-1/1: module example.org/few@1.0.0 left 2 threads behind: immortal-0, immortal-1";
            assertTrue(worker.node.lines.contains(told), worker.node.lines.toString());
            assertNull(worker.restarted.get());
            ModulesTest.check(0, "loaded",
                    worker.load(0, "example.org/many",
                            BundleBuilder.active("many", "1.0.0", members.formatted(Limits.THREADS_LEFT_MAX - 1))));
            worker.host.unload(0);
            worker.await("a restart", () -> worker.restarted.get() != null);
            assertTrue(worker.restarted.get().startsWith("unloaded modules left 17 threads behind"));
        } finally {
            System.setProperty("netserv.test.threads", "yes");
        }
    }

    @Test
    void aModuleWithItsOwnCopyOfTheApiIsTold() throws Exception {
        BundleBuilder bundle = new BundleBuilder("copy", "1.0.0")
                .header("Import-Package", "org.osgi.framework").header("Bundle-Activator", "test.Copy");
        String[] classes = {"PacketProcessor", "PacketView", "PacketBatch", "Verdict"};
        for (String name : classes) {
            String path = "org/netserv/packet/" + name + ".class";
            try (var stream = getClass().getClassLoader().getResourceAsStream(path)) {
                bundle.entry(path, stream.readAllBytes());
            }
        }
        bundle.source("test.Copy", """
                public class Copy implements BundleActivator {
                    public void start(BundleContext context) {
                        context.registerService(PacketProcessor.class, packet -> { }, null);
                    }
                    public void stop(BundleContext context) { }
                }
                """);
        ModulesTest.check(0, "loaded", worker.load(0, "example.org/copy", bundle));
        assertTrue(worker.lines(0).get(0).contains("the bundle has to import org.netserv.packet"),
                worker.lines(0).toString());
    }

    @Test
    void aModuleThatStopsTheFrameworkEndsTheWorker() throws Exception {
        BundleBuilder bundle = BundleBuilder.active("stopper", "1.0.0", """
                void begin() throws Exception {
                    context.getBundle(0).stop();
                }
                """);
        worker.host.load(0, "example.org/stopper", "1.0.0", bundle.write(worker.jar()).toString(), new String[0],
                Worker.LIMITS, 1, Worker.BLOCKS, 0);
        worker.await("a restart", () -> worker.restarted.get() != null);
        // It may be told to run meanwhile.
        worker.await("its failure", () -> worker.node.events.stream()
                .anyMatch(event -> event.slot() == 0 && event.detail().equals("the module stopped the OSGi framework")));
        assertEquals("module example.org/stopper@1.0.0 stopped the OSGi framework", worker.restarted.get());
    }

    @Test
    void badSlotsAreRefused() throws Exception {
        Path jar = new BundleBuilder("x", "1").write(worker.jar());
        check("node-failed", "there is no module slot 64", worker.load(64, "example.org/x", jar, Worker.LIMITS, 1));
    }

    private void refuseManifest(String detail, String manifest) throws Exception {
        Path jar = new BundleBuilder("x", "1").write(worker.jar(), manifest);
        FakeNative.Event event = worker.load(0, "example.org/x", jar, Worker.LIMITS, 1);
        assertEquals("bad-code", event.kind());
        assertTrue(event.detail().contains(detail), event.detail());
    }

    private static void check(String kind, String detail, FakeNative.Event event) {
        assertNotNull(event);
        assertEquals(kind, event.kind(), event.detail());
        assertTrue(event.detail().startsWith(detail), event.detail());
    }
}
