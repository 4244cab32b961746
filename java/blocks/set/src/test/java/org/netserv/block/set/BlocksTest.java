// SPDX-License-Identifier: Apache-2.0
package org.netserv.block.set;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.Method;
import java.net.ConnectException;
import java.net.Socket;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.util.Dictionary;
import java.util.Hashtable;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.netserv.block.set.bundles.DsServlet;
import org.netserv.block.set.bundles.JakartaActivator;
import org.netserv.block.set.bundles.JavaxActivator;
import org.netserv.block.set.bundles.LogActivator;
import org.netserv.block.set.bundles.RpcActivator;
import org.osgi.framework.Bundle;

/** Starts what a bundle needs in a Felix without anything else, and asks it over HTTP. */
class BlocksTest {
    private static final String COMPONENT = """
            <scr:component xmlns:scr="http://www.osgi.org/xmlns/scr/v1.5.0" name="%1$s" activate="activate">
              <implementation class="%1$s"/>
              <property name="osgi.http.whiteboard.servlet.pattern" value="/ds"/>
              <property name="colour" value="red"/>
              <service><provide interface="jakarta.servlet.Servlet"/></service>
            </scr:component>
            """.formatted(DsServlet.class.getName());

    @TempDir
    Path folder;

    static TestBundle jakarta() throws Exception {
        return new TestBundle("servlet.jakarta").activator(JakartaActivator.class)
                .header("Import-Package", "org.osgi.framework,jakarta.servlet,jakarta.servlet.http");
    }

    @Test
    void servletsOfBothGenerationsAnswer() throws Exception {
        TestBundle javax = new TestBundle("servlet.javax").activator(JavaxActivator.class)
                .header("Import-Package", "org.osgi.framework,javax.servlet;version=\"[3.1,5)\",javax.servlet.http");
        try (Container container = new Container(folder, Map.of())) {
            container.install(jakarta().write(folder));
            container.install(javax.write(folder));
            assertEquals("jakarta 0", container.get("/jakarta").body());
            assertEquals("javax", container.get("/javax").body());
            assertEquals(404, container.get("/nothing").statusCode());
        }
    }

    @Test
    void anEngineThatIsStoppedLeavesNothing() throws Exception {
        try (Container container = new Container(folder, Map.of())) {
            Set<Thread> before = Thread.getAllStackTraces().keySet();
            container.install(jakarta().write(folder));
            assertEquals(200, container.get("/jakarta").statusCode());
            int port = container.port();
            Bundle jetty = container.bundle("org.apache.felix.http.jetty12");
            assertNotNull(jetty);
            jetty.stop();
            Assertions.assertThrows(ConnectException.class, () -> new Socket("127.0.0.1", port).close());
            Set<String> left = Thread.getAllStackTraces().keySet().stream()
                    .filter(thread -> thread.isAlive() && !before.contains(thread))
                    .map(Thread::getName).filter(name -> !name.startsWith("HttpClient")).collect(Collectors.toSet());
            assertTrue(left.stream().noneMatch(name -> name.contains("qtp") || name.contains("Scheduler")),
                    () -> "threads left: " + left);
            jetty.start();
            assertEquals(200, container.get("/jakarta").statusCode());
        }
    }

    @Test
    void aComponentIsAServletAndIsConfigured() throws Exception {
        TestBundle ds = new TestBundle("servlet.ds").classes(DsServlet.class)
                .header("Import-Package", "jakarta.servlet,jakarta.servlet.http")
                .header("Service-Component", "OSGI-INF/servlet.xml").file("OSGI-INF/servlet.xml", COMPONENT);
        TestBundle admin = new TestBundle("needs.configuration").header("Require-Capability",
                "osgi.service;filter:=\"(objectClass=org.osgi.service.cm.ConfigurationAdmin)\";effective:=active");
        try (Container container = new Container(folder, Map.of())) {
            container.install(ds.write(folder));
            assertEquals("component red", container.get("/ds").body());
            container.install(admin.write(folder));
            configure(container, DsServlet.class.getName(), Map.of("colour", "green"));
            // The component is told in a thread of its own, and may be away for a moment.
            long until = System.nanoTime() + 60_000_000_000L;
            String body = "";
            while (!body.equals("component green") && System.nanoTime() < until) {
                body = container.get("/ds").body();
            }
            assertEquals("component green", body);
        }
    }

    /** Changes a configuration by reflection: the test's own class loader has another Configuration Admin's API. */
    private static void configure(Container container, String pid, Map<String, String> values) throws Exception {
        var context = container.framework.getBundleContext();
        Object admin = context.getService(container.service("org.osgi.service.cm.ConfigurationAdmin"));
        Class<?> api = container.bundle("org.apache.felix.configadmin")
                .loadClass("org.osgi.service.cm.ConfigurationAdmin");
        Method get = api.getMethod("getConfiguration", String.class, String.class);
        get.getReturnType().getMethod("update", Dictionary.class)
                .invoke(get.invoke(admin, pid, "?"), new Hashtable<>(values));
    }

    @Test
    void aServiceIsCalledByJsonRpc() throws Exception {
        TestBundle rpc = new TestBundle("rpc").activator(RpcActivator.class)
                .header("Import-Package", "org.osgi.framework").header("Require-Capability",
                        "osgi.implementation;filter:=\"(osgi.implementation=netserv.jsonrpc)\"");
        try (Container container = new Container(folder, Map.of())) {
            Bundle bundle = container.install(rpc.write(folder));
            String call = "{\"jsonrpc\":\"2.0\",\"method\":\"add\",\"params\":[40,2],\"id\":7}";
            HttpResponse<String> answer = container.post("/adder", "application/json; charset=utf-8", call);
            assertEquals("{\"jsonrpc\":\"2.0\",\"result\":42,\"id\":7}", answer.body());
            assertEquals("application/json", answer.headers().firstValue("Content-Type").orElse(""));
            assertEquals(405, container.get("/adder").statusCode());
            assertEquals(415, container.post("/adder", "text/plain", call).statusCode());
            assertEquals(413, container.post("/adder", "application/json", " ".repeat(64 * 1024 + 1)).statusCode());
            assertEquals(204, container.post("/adder", "application/json", call.replace(",\"id\":7", "")).statusCode());
            bundle.stop();
            assertEquals(404, container.post("/adder", "application/json", call).statusCode());
        }
    }

    @Test
    void linesGoToTheLogOfTheBundleThatWroteThem() throws Exception {
        TestBundle log = new TestBundle("writer").activator(LogActivator.class).header("Import-Package",
                "org.osgi.framework,org.osgi.service.log;version=\"[1.4,2)\",org.slf4j;version=\"[1.7,3)\"");
        try (Container container = new Container(folder, Map.of())) {
            Bundle writer = container.install(log.write(folder));
            writer.stop();
            assertTrue(container.log.contains("writer INFO by SLF4J 1"), container.log::toString);
            assertTrue(container.log.contains("writer ERROR failed 2"), container.log::toString);
            assertTrue(container.log.contains("writer ERROR java.lang.IllegalStateException: broken"));
            assertTrue(container.log.contains("writer WARN by OSGi 3"), container.log::toString);
            assertTrue(container.log.contains("writer INFO by OSGi 4"), container.log::toString);
            assertTrue(container.log.contains("writer INFO stopping"), container.log::toString);
            assertFalse(container.log.toString().contains("not seen"));
            assertNull(container.bundle("org.apache.felix.http.jetty12"), "a log needs no servlet engine");
        }
    }

    @Test
    void allBlocksStartTogether() throws Exception {
        try (Container container = new Container(folder, Map.of())) {
            for (BlockIndex.Block block : container.index().all()) {
                container.framework.getBundleContext().installBundle(block.jar().toUri().toString());
            }
            for (BlockIndex.Block block : container.index().all()) {
                Bundle bundle = container.bundle(block.name());
                bundle.start();
                assertEquals(Bundle.ACTIVE, bundle.getState(), block.name());
            }
            assertTrue(container.log.stream().noneMatch(line -> line.contains(" ERROR ")), container.log::toString);
        }
    }
}
