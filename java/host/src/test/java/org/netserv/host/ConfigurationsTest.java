// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Properties of modules as configurations, with a Configuration Admin that only tells what it is asked. */
class ConfigurationsTest {
    private static final String ADMIN = """
            public class Admin implements BundleActivator {
                public void start(BundleContext context) throws Exception {
                    Log log = context.getService(context.getServiceReference(Log.class));
                    ClassLoader loader = getClass().getClassLoader();
                    Class<?>[] admin = {loader.loadClass("org.osgi.service.cm.ConfigurationAdmin")};
                    Class<?>[] one = {loader.loadClass("org.osgi.service.cm.Configuration")};
                    Object made = java.lang.reflect.Proxy.newProxyInstance(loader, admin, (of, get, named) -> {
                        if (!get.getName().equals("getConfiguration")) {
                            return null;
                        }
                        if (named[0].toString().startsWith("refused")) {
                            throw new IllegalStateException("as it is told");
                        }
                        return java.lang.reflect.Proxy.newProxyInstance(loader, one, (self, method, what) -> {
                            log.info(method.getName() + " " + named[0] + (what == null ? "" : " " + what[0]));
                            return null;
                        });
                    });
                    context.registerService(admin[0].getName(), made, null);
                }
                public void stop(BundleContext context) { }
            }
            """;
    private static final String NEEDS =
            "osgi.service;filter:=\"(objectClass=org.osgi.service.cm.ConfigurationAdmin)\";effective:=active";

    private Worker worker;

    @BeforeEach
    void start() throws Exception {
        worker = new Worker();
        new BundleBuilder("admin", "1.0.0")
                .header("Provide-Capability",
                        "osgi.service;objectClass:List<String>=\"org.osgi.service.cm.ConfigurationAdmin\"")
                .header("Bundle-Activator", "test.Admin").source("test.Admin", ADMIN)
                .source("org.osgi.service.cm.ConfigurationAdmin",
                        "public interface ConfigurationAdmin { Object getConfiguration(String pid, String location); }")
                .source("org.osgi.service.cm.Configuration",
                        "public interface Configuration { void update(Dictionary<String, ?> to); void delete(); }")
                .write(worker.blocks.resolve("a.jar"));
    }

    @AfterEach
    void end() throws Exception {
        worker.close();
    }

    @Test
    void componentsAndServicesAreConfiguredAndForgotten() throws Exception {
        String components = """
                <scr:component name="first"><implementation class="a.B"/></scr:component>
                <x:component configuration-pid="$ other
                  third" name='second'></x:component>
                <component immediate="true"><implementation
                  class='c.D'/></component>
                """;
        BundleBuilder bundle = managed("\"refused\", \"first\", \"service\"")
                .header("Service-Component", "OSGI-INF/*.xml, none.xml;a=b")
                .entry("OSGI-INF/all.xml", components.getBytes())
                .entry("OSGI-INF/no.txt", "<component name='x'>".getBytes());
        ModulesTest.check(0, "loaded", load(bundle));
        assertEquals(List.of("first", "second", "other", "third", "c.D", "service"), told("update"));
        String refused = "1: the module's properties are no configuration for refused: "
                + "java.lang.IllegalStateException: as it is told";
        assertEquals(List.of(refused), worker.lines(0));
        assertTrue(worker.lines(-1).stream().anyMatch(line -> line.endsWith(".jar {colour=red}")));
        worker.unload(0);
        assertEquals(6, told("delete").size());
    }

    @Test
    void pidsAndDescriptionsAreBounded() throws Exception {
        String many = "java.util.stream.IntStream.range(0, 70).mapToObj(Integer::toString).toArray(String[]::new)";
        BundleBuilder bundle = managed(many).header("Service-Component", "a.xml")
                .entry("a.xml", (" ".repeat(Limits.COMPONENT_BYTES_MAX) + "<component name='late'/>").getBytes());
        ModulesTest.check(0, "loaded", load(bundle));
        assertEquals(Limits.CONFIGURATIONS_MAX, told("update").size());
        assertEquals("0", told("update").get(0));
    }

    private FakeNative.Event load(BundleBuilder bundle) throws Exception {
        return worker.load(0, "example.org/m", bundle.write(worker.jar()), Worker.LIMITS, 1, "colour", "red");
    }

    /** Returns the PIDs that were asked for something, without what they are targeted at. */
    private List<String> told(String what) {
        return worker.lines(-1).stream().filter(line -> line.startsWith("2: " + what + " "))
                .map(line -> line.split(" ")[2].split("\\|")[0]).toList();
    }

    private static BundleBuilder managed(String pids) {
        String value = pids.startsWith("\"") ? "new String[] {" + pids + "}" : pids;
        return BundleBuilder.active("managed", "1.0.0", """
                void begin() {
                    Dictionary<String, Object> properties = new Hashtable<>();
                    properties.put("service.pid", %s);
                    Object service = new ServiceFactory<Object>() {
                        public Object getService(Bundle bundle, ServiceRegistration<Object> registration) {
                            return null;
                        }
                        public void ungetService(Bundle bundle, ServiceRegistration<Object> registration, Object of) { }
                    };
                    context.registerService("org.osgi.service.cm.ManagedService", service, properties);
                }
                """.formatted(value)).header("Require-Capability", NEEDS);
    }
}
