// SPDX-License-Identifier: Apache-2.0
package org.netserv.samples.central;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.netserv.block.set.Container;

/** Bundles of others answer HTTP with their own content, with nothing but the blocks beside them. */
class CentralTest {
    @TempDir
    Path folder;

    /** Starts the bundle that a sidecar names, and checks what it answers. */
    private void check(String name, String path, String content) throws Exception {
        Path sidecar = Path.of(name, "netserv.toml");
        List<String> lines = Files.readAllLines(sidecar);
        String bundle = lines.stream().filter(line -> line.startsWith("bundle = ")).findFirst().orElseThrow();
        Path jar = sidecar.resolveSibling(bundle.replaceAll("bundle = \"(.*)\"", "$1"));
        try (Container container = new Container(folder, Map.of())) {
            container.install(jar);
            HttpResponse<String> answer = container.get(path);
            assertEquals(200, answer.statusCode(), answer.body() + container.log());
            assertTrue(answer.body().contains(content), answer.body());
        }
    }

    @Test
    void paxWebSaysHello() throws Exception {
        check("pax-hello", "/helloworld/hs", "Hello World");
    }

    @Test
    void jolokiaReadsTheMemory() throws Exception {
        check("jolokia", "/jolokia/read/java.lang:type=Memory/HeapMemoryUsage", "\"max\":");
    }
}
