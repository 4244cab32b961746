// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Building blocks that are bundles come when they are needed, and not before. */
class BlockBundlesTest {
    private static final String SAYS_SO = """
            public class Started implements BundleActivator {
                public void start(BundleContext context) {
                    Log log = context.getService(context.getServiceReference(Log.class));
                    log.info(context.getBundle().getSymbolicName() + " starts");
                }
                public void stop(BundleContext context) { }
            }
            """;

    private Worker worker;

    @BeforeEach
    void start() throws Exception {
        worker = new Worker();
        block("engine-api").header("Export-Package", "engine.api;version=2.1.0")
                .source("engine.api.Servlet", "public interface Servlet { }").write(worker.blocks.resolve("a.jar"));
        block("engine").header("Import-Package", BundleBuilder.API + ",engine.api,util")
                .header("Provide-Capability", "osgi.implementation;osgi.implementation=\"engine\";version:Version=1.0;"
                        + "uses:=\"other,engine.api\",osgi.service;objectClass:List<String>=\"engine.api.Runtime\"")
                .write(worker.blocks.resolve("b.jar"));
        block("util").header("Export-Package", "util").source("util.Util", "public class Util { }")
                .write(worker.blocks.resolve("c.jar"));
        block("components").header("Provide-Capability",
                "osgi.extender;osgi.extender=\"osgi.component\";version:Version=1.5")
                .write(worker.blocks.resolve("d.jar"));
        block("broken").header("Import-Package", "nowhere").header("Export-Package", "broken")
                .write(worker.blocks.resolve("e.jar"));
    }

    @AfterEach
    void end() throws Exception {
        worker.close();
    }

    @Test
    void aPlainModuleGetsNone() throws Exception {
        check("loaded", plain());
        assertEquals(List.of(), started());
        BundleBuilder count = BundleBuilder.active("count", "1.0.0", """
                void begin() {
                    module.log().info("bundles " + context.getBundles().length);
                }
                """);
        ModulesTest.check(1, "loaded", worker.load(1, "example.org/count", count));
        assertEquals(List.of("2: bundles 3"), worker.lines(1));
    }

    @Test
    void aPackageBringsItsBundleAndWhatImplementsIt() throws Exception {
        check("loaded", plain().header("Import-Package", BundleBuilder.API + ",engine.api;version=\"[2.0,3)\""));
        assertEquals(List.of("engine-api starts", "util starts", "engine starts"), started());
    }

    @Test
    void aRequiredImplementationIsStarted() throws Exception {
        check("loaded", plain()
                .header("Require-Capability", "osgi.implementation;filter:=\"(osgi.implementation=engine)\""));
        assertEquals(List.of("engine-api starts", "util starts", "engine starts"), started());
    }

    @Test
    void aServiceThatIsOnlyNeededAtRunTimeIsStarted() throws Exception {
        check("loaded", plain().header("Require-Capability",
                "osgi.service;effective:=active;filter:=\"(objectClass=engine.api.Runtime)\""));
        assertEquals(List.of("engine-api starts", "util starts", "engine starts"), started());
    }

    @Test
    void componentsBringTheirRuntime() throws Exception {
        check("loaded", plain().header("Service-Component", "OSGI-INF/x.xml"));
        assertEquals(List.of("components starts"), started());
    }

    @Test
    void aLibraryBringsOnlyItself() throws Exception {
        check("loaded", plain().header("Import-Package", BundleBuilder.API + ",util"));
        assertEquals(List.of("util starts"), started());
    }

    @Test
    void whatABlockLacksIsToldToo() throws Exception {
        FakeNative.Event event = worker.load(0, "example.org/x",
                plain().header("Import-Package", BundleBuilder.API + ",broken"));
        ModulesTest.check(0, "missing-dependency", event);
        assertTrue(event.detail().contains("nowhere"), event.detail());
        event = worker.load(0, "example.org/x",
                plain().header("Import-Package", BundleBuilder.API + ",engine.api;version=3"));
        ModulesTest.check(0, "missing-dependency", event);
        assertEquals("the node has not what the bundle needs: package engine.api 3.0.0 (the node has 2.1.0)",
                event.detail());
    }

    private void check(String kind, BundleBuilder bundle) throws Exception {
        ModulesTest.check(0, kind, worker.load(0, "example.org/x", bundle));
    }

    private List<String> started() {
        return worker.lines(-1).stream().map(line -> line.substring(3)).toList();
    }

    private static BundleBuilder plain() {
        return BundleBuilder.active("plain", "1.0.0", "void begin() { }");
    }

    private static BundleBuilder block(String name) {
        return new BundleBuilder(name, "1.0.0").header("Bundle-Activator", "start.Started")
                .source("start.Started", SAYS_SO);
    }
}
