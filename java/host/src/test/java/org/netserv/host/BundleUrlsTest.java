// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.junit.jupiter.api.Test;

/** Bundles may make URLs of their resources out of text. */
class BundleUrlsTest {
    @Test
    void resourcesAreReadByTheTextOfTheirUrls() throws Exception {
        BundleBuilder reader = BundleBuilder.active("reader", "1.0.0", """
                void begin() throws Exception {
                    String text = getClass().getResource("/test/Activator.class").toString();
                    module.log().info("first byte " + new java.net.URL(text).openStream().read());
                    for (String other : new String[] {text + "x", "bundle://x/y", "bundle://x_999.0:1/y", "bundle:y"}) {
                        try {
                            new java.net.URL(other).openStream();
                            module.log().error("opened " + other);
                        } catch (java.io.IOException expected) {
                            module.log().info("refused");
                        }
                    }
                }
                """);
        try (Worker worker = new Worker()) {
            ModulesTest.check(0, "loaded", worker.load(0, "example.org/reader", reader));
            assertEquals(List.of("2: first byte 202", "2: refused", "2: refused", "2: refused", "2: refused"),
                    worker.lines(0));
        }
    }
}
