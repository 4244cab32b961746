// SPDX-License-Identifier: Apache-2.0
package org.netserv.block.set;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.jar.JarFile;
import org.apache.felix.framework.FrameworkFactory;
import org.netserv.block.Log;
import org.osgi.framework.Bundle;
import org.osgi.framework.BundleException;
import org.osgi.framework.Constants;
import org.osgi.framework.InvalidSyntaxException;
import org.osgi.framework.ServiceFactory;
import org.osgi.framework.ServiceReference;
import org.osgi.framework.ServiceRegistration;
import org.osgi.framework.launch.Framework;

/** A plain Felix with the blocks that its bundles need, each at its turn, and a log service as a node's host has it. */
public final class Container implements AutoCloseable {
    static final String PORT = "org.osgi.service.http.port";

    final Framework framework;
    final List<String> log = new CopyOnWriteArrayList<>();
    private final BlockIndex index = new BlockIndex(Path.of(System.getProperty("netserv.blocks")));

    /** Starts a framework that writes to a folder, with settings that come before those of the blocks. */
    public Container(Path data, Map<String, String> settings) throws IOException, BundleException {
        Map<String, String> all = new HashMap<>(index.properties("framework."));
        all.put(Constants.FRAMEWORK_STORAGE, data.resolve("cache").toString());
        all.put(Constants.FRAMEWORK_SYSTEMPACKAGES_EXTRA, "org.netserv.block;version=1.3.0");
        all.putAll(settings);
        System.setProperty(PORT, "0");
        framework = new FrameworkFactory().newFramework(all);
        framework.init();
        framework.getBundleContext().registerService(Log.class.getName(), new Logs(), null);
        framework.start();
    }

    /** Installs a bundle with the blocks that it needs, and starts all of them. */
    public Bundle install(Path jar) throws IOException, BundleException {
        List<Bundle> bundles = new ArrayList<>();
        try (JarFile file = new JarFile(jar.toFile())) {
            for (BlockIndex.Block block : index.closure(file.getManifest())) {
                bundles.add(framework.getBundleContext().installBundle(block.jar().toUri().toString()));
            }
        }
        bundles.add(framework.getBundleContext().installBundle(jar.toUri().toString()));
        for (Bundle bundle : bundles) {
            bundle.start();
        }
        return bundles.get(bundles.size() - 1);
    }

    /** Returns what was logged, as {@code symbolic-name LEVEL text}. */
    public List<String> log() {
        return log;
    }

    BlockIndex index() {
        return index;
    }

    Bundle bundle(String name) {
        for (Bundle bundle : framework.getBundleContext().getBundles()) {
            if (name.equals(bundle.getSymbolicName())) {
                return bundle;
            }
        }
        return null;
    }

    int port() {
        return Integer.parseInt((String) service("org.osgi.service.servlet.runtime.HttpServiceRuntime").getProperty(PORT));
    }

    /** Returns the service of this name, whose class the test's own class loader may have another version of. */
    ServiceReference<?> service(String name) {
        try {
            ServiceReference<?>[] found = framework.getBundleContext().getAllServiceReferences(name, null);
            if (found == null) {
                throw new IllegalStateException(name + " is not there; the log: " + log);
            }
            return found[0];
        } catch (InvalidSyntaxException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    /** Asks for a path. */
    public HttpResponse<String> get(String path) throws IOException, InterruptedException {
        return send(HttpRequest.newBuilder(uri(path)).build());
    }

    HttpResponse<String> post(String path, String type, String body) throws IOException, InterruptedException {
        return send(HttpRequest.newBuilder(uri(path)).header("Content-Type", type)
                .POST(HttpRequest.BodyPublishers.ofString(body)).build());
    }

    HttpResponse<String> send(HttpRequest request) throws IOException, InterruptedException {
        HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
        return client.send(request, HttpResponse.BodyHandlers.ofString());
    }

    URI uri(String path) {
        return URI.create("http://127.0.0.1:" + port() + path);
    }

    @Override
    public void close() throws BundleException {
        framework.stop();
        try {
            framework.waitForStop(10_000);
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
    }

    private final class Logs implements ServiceFactory<Log> {
        @Override
        public Log getService(Bundle bundle, ServiceRegistration<Log> registration) {
            return new Log() {
                @Override
                public boolean write(Level level, String text) {
                    return log.add(bundle.getSymbolicName() + " " + level + " " + text);
                }

                @Override
                public void error(String text, Throwable cause) {
                    write(Level.ERROR, text + ": " + cause);
                }
            };
        }

        @Override
        public void ungetService(Bundle bundle, ServiceRegistration<Log> registration, Log service) {
            // Holds nothing.
        }
    }
}
