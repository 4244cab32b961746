// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Modules that do what they should, in a real framework. */
class ModulesTest {
    /** A module that counts, and drops what starts with its own first byte. */
    private static final String COUNTING = """
            void begin() throws Exception {
                Counter packets = module.counters().open("packets");
                PacketProcessor processor = packet -> {
                    packets.add(1);
                    if (packet.getU8(0) == 1) {
                        packet.drop();
                    }
                };
                context.registerService(PacketProcessor.class, processor, null);
            }
            """;

    private Worker worker;

    @BeforeEach
    void start() throws Exception {
        worker = new Worker();
    }

    @AfterEach
    void end() throws Exception {
        worker.close();
    }

    @Test
    void aServiceIsShownPackets() throws Exception {
        check(0, "loaded", worker.load(0, "example.org/a", BundleBuilder.active("a", "1.0.0", COUNTING)));
        assertEquals(SlotView.PASS, worker.packet(0, 0));
        assertEquals(SlotView.DROP, worker.packet(0, 1));
        assertEquals(2, worker.counter(0, "packets"));
        worker.unload(0);
        assertEquals(SlotView.FAILED, worker.packet(0, 1));
        try (var files = Files.list(worker.folder.resolve("data"))) {
            assertEquals(List.of("felix"), files.map(path -> path.getFileName().toString()).toList());
        }
        assertEquals(List.of(), worker.lines(-1));
    }

    @Test
    void theDispatcherOfThePaperWorksToo() throws Exception {
        BundleBuilder bundle = BundleBuilder.active("paper", "1.0.0", """
                void begin() {
                    PacketDispatcher dispatcher =
                            context.getService(context.getServiceReference(PacketDispatcher.class));
                    PacketProcessor once = new PacketProcessor() {
                        public void process(PacketView packet) {
                            packet.drop();
                            dispatcher.removePktProcessor(this);
                        }
                    };
                    dispatcher.addPktProcessor(packet -> { });
                    dispatcher.addPktProcessor(once);
                }
                """);
        check(0, "loaded", worker.load(0, "example.org/paper", bundle));
        assertEquals(SlotView.DROP, worker.packet(0, 0));
        assertEquals(SlotView.PASS, worker.packet(0, 0));
    }

    @Test
    void servicesAreCalledInOrderOfTheirRanking() throws Exception {
        BundleBuilder bundle = BundleBuilder.active("ranked", "1.0.0", """
                ServiceRegistration<?> add(String name, int ranking) {
                    PacketProcessor processor = packet -> module.log().info(name);
                    return context.registerService(PacketProcessor.class, processor,
                            new Hashtable<>(Map.of("service.ranking", ranking)));
                }
                void begin() {
                    add("second", 1);
                    add("first", 2);
                    ServiceRegistration<?> third = add("third", 0);
                    add("gone", 3).unregister();
                    add("fourth", -1);
                    ServiceRegistration<?> late = add("late", 9);
                    late.setProperties(new Hashtable<>(Map.of("service.ranking", -9)));
                }
                """);
        check(0, "loaded", worker.load(0, "example.org/ranked", bundle));
        worker.packet(0, 0);
        assertEquals(List.of("2: first", "2: second", "2: third", "2: fourth", "2: late"), worker.lines(0));
    }

    @Test
    void aModuleKnowsWhatItIs() throws Exception {
        BundleBuilder bundle = BundleBuilder.active("context", "1.0.0", """
                void begin() throws Exception {
                    byte[] random = new byte[20];
                    module.random(random);
                    boolean isRandom = !Arrays.equals(random, new byte[20]) && module.randomNumber() != 0;
                    Log log = context.getService(context.getServiceReference(Log.class));
                    boolean isSame = log == module.log()
                            && context.getService(context.getServiceReference(KeyValueStore.class)) == module.kv()
                            && context.getService(context.getServiceReference(Counters.class)) == module.counters()
                            && context.getService(context.getServiceReference(Timers.class)) == module.timers()
                            && context.getService(context.getServiceReference(Injector.class)) == module.injector();
                    long wall = module.wallNanos() / 1_000_000_000;
                    boolean isNow = Math.abs(wall - System.currentTimeMillis() / 1000) < 10;
                    log.info(module.name() + " " + module.version() + " " + module.property("a") + " "
                            + module.property("b", "none") + " " + module.monotonicNanos() + " " + isRandom + isSame
                            + isNow);
                }
                """);
        Path jar = bundle.write(worker.jar());
        check(3, "loaded", worker.load(3, "example.org/context", jar, Worker.LIMITS, 1, "a", "1", "c", "x"));
        assertEquals(List.of("2: example.org/context 1.0.0 1 none 1000000000 truetruetrue"), worker.lines(3));
    }

    @Test
    void capabilitiesCanBeRequired() throws Exception {
        BundleBuilder bundle = BundleBuilder.active("caps", "1.0.0", "void begin() { }")
                .header("Require-Capability", "netserv.block;filter:=\"(&(name=kv)(version>=1.0))\","
                        + "osgi.ee;filter:=\"(&(osgi.ee=JavaSE)(version=17))\"")
                .header("Import-Package", BundleBuilder.API
                        + ",javax.sql,java.net.http,org.w3c.dom,com.sun.net.httpserver")
                .source("test.Uses", "public class Uses { java.sql.Date date; }");
        check(0, "loaded", worker.load(0, "example.org/caps", bundle));
    }

    @Test
    void timersAndInjectionsFromStartComeWhenTheModuleIsThere() throws Exception {
        BundleBuilder bundle = BundleBuilder.active("timers", "1.0.0", """
                void begin() throws Exception {
                    Counter ticks = module.counters().open("ticks");
                    module.timers().every(Duration.ofMillis(10), () -> ticks.add(1));
                    module.injector().inject(new byte[20], 0, 20);
                }
                void end() throws Exception {
                    module.injector().inject(new byte[21], 0, 21);
                }
                """);
        check(0, "loaded", worker.load(0, "example.org/timers", bundle));
        worker.await("an injected packet", () -> worker.sent.size() == 1);
        assertEquals(20, worker.sent.get(0).length);
        worker.node.nowNanos.addAndGet(10_000_000);
        worker.idle();
        assertEquals(1, worker.counter(0, "ticks"));
        worker.host.unload(0);
        worker.await("its last packet", () -> worker.sent.size() == 2);
        assertEquals(21, worker.sent.get(1).length);
    }

    @Test
    void anUpdateKeepsStateAndStopsTheOldOne() throws Exception {
        String members = """
                void begin() throws Exception {
                    byte[] value = module.kv().get(new byte[] {1});
                    module.log().info("found " + (value == null ? "nothing" : value[0]));
                    module.kv().set(new byte[] {1}, new byte[] {%d});
                    PacketProcessor processor = packet -> packet.%s();
                    context.registerService(PacketProcessor.class, processor, null);
                }
                void end() {
                    module.log().info("ends %1$d");
                }
                """;
        check(0, "loaded", worker.load(0, "example.org/u",
                BundleBuilder.active("u", "1.0.0", members.formatted(1, "drop"))));
        assertEquals(SlotView.DROP, worker.packet(0, 0));
        check(0, "loaded", worker.load(0, "example.org/u",
                BundleBuilder.active("u", "1.0.0", members.formatted(2, "pass"))));
        assertEquals(SlotView.PASS, worker.packet(0, 0));
        check(1, "loaded", worker.load(1, "example.org/u",
                BundleBuilder.active("u;singleton:=true", "1.1.0", members.formatted(3, "drop"))));
        worker.unload(0);
        assertEquals(SlotView.DROP, worker.packet(1, 0));
        Path other = BundleBuilder.active("u;singleton:=true", "1.1.0", members.formatted(4, "pass"))
                .write(worker.jar());
        check(1, "loaded", worker.load(1, "example.org/u", other, Worker.LIMITS, 2));
        assertEquals(List.of("2: found nothing", "2: found 1", "2: ends 1", "2: ends 2"), worker.lines(0));
        assertEquals(List.of("2: found 2", "2: found nothing", "2: ends 3"), worker.lines(1));
    }

    @Test
    void anUpdateGetsThePortOfTheVersionItReplaces() throws Exception {
        String members = """
                java.net.ServerSocket socket;
                void begin() throws Exception {
                    socket = new java.net.ServerSocket(%d, 1, java.net.InetAddress.getLoopbackAddress());
                    if (%b) {
                        socket.close();
                        throw new java.net.BindException("another one");
                    }
                    module.log().info("listens " + socket.getLocalPort());
                }
                void end() throws Exception {
                    socket.close();
                }
                """;
        check(0, "loaded", worker.load(0, "example.org/s",
                BundleBuilder.active("s", "1.0.0", members.formatted(0, false))));
        int port = Integer.parseInt(worker.lines(0).get(0).substring("2: listens ".length()));
        check(1, "loaded", worker.load(1, "example.org/s",
                BundleBuilder.active("s", "1.0.1", members.formatted(port, false))));
        worker.unload(0);
        check(2, "trapped", worker.load(2, "example.org/t",
                BundleBuilder.active("t", "1.0.1", members.formatted(port, false))));
        check(2, "trapped", worker.load(2, "example.org/s",
                BundleBuilder.active("s", "1.0.2", members.formatted(port, true))));
        worker.settle();
        assertEquals(List.of("2: listens " + port, "2: listens " + port), worker.lines(1));
        assertEquals(0, worker.node.events.size());
    }

    @Test
    void nothingOfTheJvmIsSeenWithoutAnImport() throws Exception {
        BundleBuilder bundle = BundleBuilder.active("isolated", "1.0.0", """
                void begin() {
                    for (String name : List.of("java.sql.Date", "javax.sql.DataSource", "org.netserv.host.Bridge",
                            "org.apache.felix.framework.Felix", "org.netserv.module.ModuleContext",
                            "sun.misc.Unsafe")) {
                        try {
                            Class.forName(name);
                            module.log().info(name);
                        } catch (ClassNotFoundException | NoClassDefFoundError missing) {
                            continue;
                        }
                    }
                }
                """);
        check(0, "loaded", worker.load(0, "example.org/isolated", bundle));
        assertEquals(List.of("2: java.sql.Date", "2: org.netserv.module.ModuleContext"), worker.lines(0));
    }

    @Test
    void aFailedUpdateTakesTheOldOneAway() throws Exception {
        check(0, "loaded", worker.load(0, "example.org/a", BundleBuilder.active("a", "1.0.0", COUNTING)));
        BundleBuilder bad = BundleBuilder.active("a", "1.0.1", "void begin() { throw new IllegalStateException(); }");
        check(0, "trapped", worker.load(0, "example.org/a", bad));
        worker.settle();
        assertEquals(SlotView.FAILED, worker.packet(0, 0));
        check(0, "loaded", worker.load(0, "example.org/a", BundleBuilder.active("a", "1.0.0", COUNTING)));
    }

    @Test
    void aModuleThatThrowsWhileItRunsIsUnloadedAndTheOthersGoOn() throws Exception {
        BundleBuilder bad = BundleBuilder.active("bad", "1.0.0", """
                void begin() {
                    PacketProcessor processor = packet -> { throw new IllegalStateException("no " + packet.length()); };
                    context.registerService(PacketProcessor.class, processor, null);
                }
                void end() {
                    module.log().info("ends");
                }
                """);
        check(0, "loaded", worker.load(0, "example.org/bad", bad));
        check(1, "loaded", worker.load(1, "example.org/a", BundleBuilder.active("a", "1.0.0", COUNTING)));
        assertEquals(SlotView.FAILED, worker.packet(0, 0));
        FakeNative.Event event = worker.await(0);
        check(0, "trapped", event);
        assertTrue(event.detail().startsWith("java.lang.IllegalStateException: no 20 in test.Activator."),
                event.detail());
        worker.settle();
        assertEquals(List.of("2: ends"), worker.lines(0));
        assertEquals(SlotView.DROP, worker.packet(1, 1));
        check(0, "loaded", worker.load(0, "example.org/a2", BundleBuilder.active("a2", "1.0.0", COUNTING)));
    }

    @Test
    void anUncaughtExceptionOfAThreadIsLoggedAndThreadsEndWithTheModule() throws Exception {
        BundleBuilder bundle = BundleBuilder.active("threads", "1.0.0", """
                void begin() {
                    new Thread(() -> { throw new IllegalStateException("in a thread"); }, "thrower").start();
                    new Thread(() -> {
                        try {
                            Thread.sleep(1_000_000);
                        } catch (InterruptedException asked) {
                            module.log().info("interrupted");
                        }
                    }, "sleeper").start();
                }
                """);
        check(0, "loaded", worker.load(0, "example.org/threads", bundle));
        worker.await("a log line", () -> !worker.lines(0).isEmpty());
        assertTrue(worker.lines(0).get(0).startsWith(
                "0: thread thrower ended: java.lang.IllegalStateException: in a thread in test.Activator"));
        worker.unload(0);
        assertEquals("2: interrupted", worker.lines(0).get(1));
        assertEquals(List.of(), worker.lines(-1));
    }

    @Test
    void threadsThatAPacketStartedEndWithTheModule() throws Exception {
        BundleBuilder bundle = BundleBuilder.active("threads", "1.0.0", """
                void begin() {
                    PacketProcessor processor = packet -> {
                        if (packet.getU8(0) == 1) {
                            throw new IllegalStateException();
                        }
                        Thread thread = new Thread(() -> {
                            try {
                                Thread.sleep(1_000_000);
                            } catch (InterruptedException asked) {
                                module.log().info("interrupted");
                            }
                        });
                        thread.setDaemon(true);
                        thread.start();
                    };
                    context.registerService(PacketProcessor.class, processor, null);
                }
                """);
        check(0, "loaded", worker.load(0, "example.org/threads", bundle));
        worker.packet(0, 0);
        worker.packet(0, 0);
        worker.packet(0, 1);
        check(0, "trapped", worker.await(0));
        worker.settle();
        assertEquals(List.of("2: interrupted", "2: interrupted"), worker.lines(0));
    }

    @Test
    void bundlesThatAModuleInstallsGoWithIt() throws Exception {
        Path inner = BundleBuilder.active("inner", "1.0.0", COUNTING).write(worker.folder.resolve("inner.jar"));
        BundleBuilder outer = BundleBuilder.active("outer", "1.0.0", """
                void begin() throws Exception {
                    Bundle inner = context.installBundle("reference:file:%s");
                    inner.start();
                    try {
                        for (int count = 0; count < 20; count++) {
                            context.installBundle("x" + count, new java.io.FileInputStream("%1$s"));
                        }
                    } catch (IllegalStateException | BundleException gone) {
                        module.log().info("no more");
                    }
                    module.log().info("bundles " + context.getBundles().length);
                }
                """.formatted(inner));
        check(0, "loaded", worker.load(0, "example.org/outer", outer));
        assertEquals(SlotView.DROP, worker.packet(0, 1));
        assertTrue(worker.lines(0).contains("2: bundles " + (2 + Limits.BUNDLES_PER_MODULE_MAX)),
                worker.lines(0).toString());
        worker.unload(0);
        check(1, "loaded", worker.load(1, "example.org/inner", BundleBuilder.active("inner", "1.0.0", COUNTING)));
    }

    @Test
    void aBundleThatStopsItselfFails() throws Exception {
        BundleBuilder bundle = BundleBuilder.active("self", "1.0.0", """
                void begin() throws Exception {
                    module.timers().once(Duration.ofMillis(1), () -> context.getBundle().stop());
                    PacketProcessor processor = packet -> { };
                    context.registerService(PacketProcessor.class, processor, null);
                }
                """);
        check(0, "loaded", worker.load(0, "example.org/self", bundle));
        worker.node.nowNanos.addAndGet(5_000_000);
        worker.idle();
        check(0, "trapped", worker.await(0));
        assertEquals(SlotView.FAILED, worker.packet(0, 0));
    }

    @Test
    void packagesOfOneModuleCanBeUsedByAnother() throws Exception {
        BundleBuilder library = BundleBuilder.active("library", "1.0.0", "void begin() { }")
                .header("Export-Package", "lib;version=1.2.0")
                .source("lib.Lib", "public class Lib { public static int x() { return 7; } }");
        BundleBuilder user = new BundleBuilder("user", "1.0.0")
                .header("Import-Package", BundleBuilder.API + ",lib;version=\"[1.1,2)\"")
                .header("Bundle-Activator", "test.User");
        BundleBuilder both = new BundleBuilder("x", "1")
                .source("lib.Lib", "public class Lib { public static int x() { return 7; } }");
        user.entries().putAll(both.entries());
        user.source("test.User", """
                public class User implements BundleActivator {
                    public void start(BundleContext context) throws Exception {
                        Object x = Class.forName("lib.Lib").getMethod("x").invoke(null);
                        Log log = context.getService(context.getServiceReference(Log.class));
                        log.info("x " + x + " from "
                                + Class.forName("lib.Lib").getClassLoader().equals(getClass().getClassLoader()));
                    }
                    public void stop(BundleContext context) { }
                }
                """);
        check(0, "loaded", worker.load(0, "example.org/library", library));
        check(1, "loaded", worker.load(1, "example.org/user", user));
        assertEquals(List.of("2: x 7 from false"), worker.lines(1));
        worker.unload(0);
        FakeNative.Event event = worker.await(1);
        check(1, "trapped", event);
        assertFalse(worker.node.lines.stream().anyMatch(line -> line.startsWith("-1/0")), worker.node.lines.toString());
    }

    @Test
    void shutdownStopsEverything() throws Exception {
        BundleBuilder bundle = BundleBuilder.active("last", "1.0.0", """
                void begin() { }
                void end() {
                    module.log().info("ends");
                }
                """);
        check(0, "loaded", worker.load(0, "example.org/last", bundle));
        worker.host.shutdown(5_000);
        assertEquals(List.of("2: ends"), worker.lines(0));
        assertNull(worker.restarted.get());
    }

    static void check(int slot, String kind, FakeNative.Event event) {
        assertEquals(slot + " " + kind, event.slot() + " " + event.kind(), event.detail());
    }
}
