// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Modules that end the process, each in a process of its own. */
class ExitTest {
    private static final BundleBuilder BUNDLE = BundleBuilder.active("exit", "1.0.0", """
            void begin() throws Exception {
                String how = module.property("how");
                if (how.equals("start")) {
                    System.exit(3);
                }
                if (how.equals("thread")) {
                    new Thread(() -> Runtime.getRuntime().exit(0), "quitter").start();
                }
                PacketProcessor processor = packet -> {
                    switch (how) {
                        case "packet" -> System.exit(4);
                        case "halt" -> Runtime.getRuntime().halt(6);
                        default -> { }
                    }
                };
                context.registerService(PacketProcessor.class, processor, null);
            }
            """);

    @TempDir
    Path folder;

    private record Ended(int code, List<String> told, String lastWords) {
    }

    @Test
    void anExitInStartIsTheModulesFault() throws Exception {
        Ended ended = run("start");
        assertEquals(Restart.EXIT_CODE, ended.code);
        assertEquals("5 trapped the module called System.exit on thread example.org/exit@1.0.0 start",
                ended.told.get(ended.told.size() - 1));
        assertEquals("netserv-jvm: module example.org/exit@1.0.0 called System.exit on thread "
                + "example.org/exit@1.0.0 start", ended.lastWords);
    }

    @Test
    void anExitOnAThreadIsTheModulesFault() throws Exception {
        Ended ended = run("thread");
        assertEquals(Restart.EXIT_CODE, ended.code);
        assertTrue(ended.told.contains("5 trapped the module called System.exit on thread quitter"),
                ended.told.toString());
    }

    @Test
    void anExitOnThePacketThreadIsSaidInTheLastWords() throws Exception {
        Ended ended = run("packet");
        assertEquals(Restart.EXIT_CODE, ended.code);
        assertEquals("netserv-jvm: module example.org/exit@1.0.0 called System.exit on thread main", ended.lastWords);
    }

    @Test
    void aHaltCannotBeCaught() throws Exception {
        assertEquals(6, run("halt").code);
    }

    private Ended run(String how) throws Exception {
        BUNDLE.write(folder.resolve("exit.bundle"));
        File out = folder.resolve("out").toFile();
        File err = folder.resolve("err").toFile();
        Process process = new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-XX:TieredStopAtLevel=1",
                "-XX:+UseSerialGC", "-Dnetserv.natives=" + System.getProperty("netserv.natives"), "-cp", System.getProperty("java.class.path"),
                ExitMain.class.getName(), folder.toString(), how).redirectOutput(out).redirectError(err).start();
        try {
            assertTrue(process.waitFor(30, TimeUnit.SECONDS), "the process goes on");
        } finally {
            process.destroyForcibly();
        }
        List<String> lines = Files.readAllLines(err.toPath()).stream().filter(line -> line.startsWith("netserv"))
                .toList();
        return new Ended(process.exitValue(), Files.readAllLines(out.toPath()),
                lines.isEmpty() ? "" : lines.get(lines.size() - 1));
    }
}
