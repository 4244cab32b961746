// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Bundles use the building blocks that come to life when they are asked for. */
class ServicesTest {
    private static final String ALL = """
            <S> S block(Class<S> type) {
                return context.getService(context.getServiceReference(type));
            }

            void begin() throws Exception {
                byte[] text = ("OPTIONS sip:a SIP/2.0\\r\\nv: SIP/2.0/UDP h\\r\\nf: <sip:f>\\r\\nt: <sip:t>\\r\\ni: 1\\r\\n"
                        + "CSeq: 1 OPTIONS\\r\\n\\r\\n").getBytes();
                SipMessage message = block(Sip.class).message();
                say("sip " + message.parse(text, 0, text.length) + " " + message.method());
                say("match " + block(Search.class).find(text, 0, text.length, "CSeq".getBytes()));
                say("hash " + block(Hash.class).digest(Hash.Algorithm.CRC32, text).length);
                say("crypto " + block(Crypto.class).hmacSha256(text, text).length);
                var packed = new java.io.ByteArrayOutputStream();
                try (var out = block(Compression.class).compress(Compression.Encoding.ZSTD, 1, packed)) {
                    out.write(text);
                }
                try (var in = block(Compression.class).decompress(Compression.Encoding.ZSTD, 1000,
                        new java.io.ByteArrayInputStream(packed.toByteArray()))) {
                    say("compress " + Arrays.equals(text, in.readAllBytes()));
                }
                var request = java.net.http.HttpRequest.newBuilder(java.net.URI.create(module.property("url"))).build();
                Cache cache = block(Cache.class);
                try (var body = block(HttpCaller.class).send(request).body();
                        var entry = cache.put("key", "text/plain", "", Duration.ofHours(1))) {
                    body.transferTo(entry);
                    entry.finish();
                }
                try (var entry = cache.get("key")) {
                    say("http-client and cache " + new String(entry.body().readAllBytes()));
                }
                module.kv().increment(new byte[] {1}, 1);
                // Left open.
                cache.put("other", "", "", Duration.ZERO);
                block(HttpCaller.class).send(request);
            }

            void say(String text) {
                module.log().info(text);
            }
            """;

    @TempDir
    Path store;

    private static void file(Path path) throws IOException {
        try (RandomAccessFile file = new RandomAccessFile(path.toFile(), "rw")) {
            file.setLength(1 << 20);
        }
    }

    @Test
    void aModuleUsesAllAndLeavesNothing() throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/", exchange -> {
            exchange.sendResponseHeaders(200, 5);
            exchange.getResponseBody().write("hello".getBytes());
            exchange.close();
        });
        server.start();
        String url = "http://127.0.0.1:" + server.getAddress().getPort() + "/";
        file(store.resolve("kv"));
        file(store.resolve("cache"));
        try (Worker worker = new Worker(store)) {
            Path jar = BundleBuilder.active("all", "1.0.0", ALL).write(worker.folder.resolve("all.jar"));
            for (int count = 0; count < Limits.LOADERS_LEAKED_MAX + Limits.LOADERS_UNSEEN_MAX + 1; count++) {
                worker.node.lines.clear();
                Path copy = Files.copy(jar, worker.folder.resolve("data/c" + count + ".jar"));
                ModulesTest.check(0, "loaded",
                        worker.load(0, "example.org/all", copy, Worker.LIMITS, 1, "url", url));
                assertEquals(List.of("2: sip true OPTIONS", "2: match 71", "2: hash 4", "2: crypto 32",
                        "2: compress true", "2: http-client and cache hello"), worker.lines(0));
                worker.unload(0);
            }
            assertNull(worker.restarted.get(), "after " + worker.lines(-1));
            assertEquals(List.of(), worker.lines(-1));
        } finally {
            server.stop(0);
        }
    }

    @Test
    void kvStateOutlivesTheWorker() throws Exception {
        BundleBuilder counting = BundleBuilder.active("counting", "1.0.0", """
                void begin() throws Exception {
                    module.log().info("start " + module.kv().increment("starts".getBytes(), 1));
                }
                """);
        file(store.resolve("kv"));
        for (int start = 1; start <= 3; start++) {
            try (Worker worker = new Worker(store)) {
                ModulesTest.check(0, "loaded", worker.load(0, "example.org/counting", counting));
                assertEquals(List.of("2: start " + start), worker.lines(0));
            }
        }
    }

    @Test
    void whatTheOperatorDoesNotOfferIsNotThere() throws Exception {
        BundleBuilder bundle = BundleBuilder.active("curious", "1.0.0", """
                void begin() {
                    for (int count = 0; count < 2; count++) {
                        Object sip = context.getService(context.getServiceReference(Sip.class));
                        module.log().info("sip " + sip);
                    }
                }
                """);
        try (Worker worker = new Worker()) {
            worker.host.load(0, "example.org/curious", "1.0.0", bundle.write(worker.jar()).toString(), new String[0],
                    Worker.LIMITS, 1, Set.of("hash"), 0);
            ModulesTest.check(0, "loaded", worker.await(0));
            assertEquals(List.of("1: the node does not offer the building block sip", "2: sip null", "2: sip null"),
                    worker.lines(0));
        }
    }

    @Test
    void withoutRoomACacheIsUnavailable() throws Exception {
        BundleBuilder bundle = BundleBuilder.active("caching", "1.0.0", """
                void begin() throws Exception {
                    Cache cache = context.getService(context.getServiceReference(Cache.class));
                    try {
                        cache.put("key", "", "", Duration.ZERO);
                    } catch (BlockException refused) {
                        module.log().info(refused.code() + " " + cache.stat("key"));
                    }
                }
                """);
        try (Worker worker = new Worker()) {
            ModulesTest.check(0, "loaded", worker.load(0, "example.org/caching", bundle));
            assertEquals(List.of("2: UNAVAILABLE null"), worker.lines(0));
            assertTrue(worker.lines(-1).get(0).contains("gives no room for a cache"), worker.lines(-1).toString());
        }
    }
}
