// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.io.File;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.felix.framework.Felix;
import org.apache.felix.framework.Logger;
import org.netserv.block.Log;
import org.osgi.framework.Bundle;
import org.osgi.framework.BundleContext;
import org.osgi.framework.BundleException;
import org.osgi.framework.Constants;
import org.osgi.framework.ServiceReference;
import org.osgi.framework.hooks.resolver.ResolverHook;
import org.osgi.framework.hooks.resolver.ResolverHookFactory;
import org.osgi.framework.launch.Framework;
import org.osgi.framework.namespace.PackageNamespace;
import org.osgi.framework.wiring.BundleCapability;
import org.osgi.framework.wiring.BundleRequirement;
import org.osgi.framework.wiring.BundleRevision;
import org.osgi.framework.wiring.FrameworkWiring;

/** The OSGi framework of the worker, with no bundles but its own. */
final class OsgiFramework {
    /** Packages of the API, with the version that they are exported with. */
    private static final String API_PACKAGES = "org.netserv.packet;version=1.0.0,"
            + "org.netserv.module;version=1.0.0;uses:=\"org.netserv.block\",org.netserv.block;version=1.3.0;"
            + "uses:=\"org.netserv.packet\"";
    private static final Set<Object> API = Set.of("org.netserv.packet", "org.netserv.module", "org.netserv.block");
    private static final long REFRESH_MILLIS_MAX = 5_000;

    private final Framework framework;
    private final Log log;

    private OsgiFramework(Framework framework, Log log) {
        this.framework = framework;
        this.log = log;
    }

    /**
     * Starts a framework.
     *
     * @param data a folder to write to
     * @param settings what building blocks want to find in the configuration
     * @param log where it writes
     */
    static OsgiFramework start(File data, Map<String, String> settings, Log log) throws BundleException {
        Map<String, Object> configuration = new HashMap<>(settings);
        configuration.putAll(configuration(data, log));
        Framework framework = new Felix(configuration);
        framework.init();
        framework.getBundleContext().registerService(ResolverHookFactory.class, unused -> new Resolution(), null);
        BundleUrls.use(framework.getBundleContext());
        framework.start();
        return new OsgiFramework(framework, log);
    }

    BundleContext context() {
        return framework.getBundleContext();
    }

    FrameworkWiring wiring() {
        return framework.adapt(FrameworkWiring.class);
    }

    /** Says what runs modules, for people. */
    String describe() {
        String runtime = System.getProperty("java.runtime.name", "");
        String java = runtime.contains("OpenJDK") ? "OpenJDK" : System.getProperty("java.vm.vendor", "Java");
        return "Felix " + framework.getVersion() + " (OSGi Core 8) on " + java + " "
                + System.getProperty("java.version");
    }

    /** Forgets uninstalled bundles and what they were wired to. Returns whether it was done in time. */
    boolean refresh(Collection<Bundle> bundles) {
        bundles.forEach(this::forgetServicesOf);
        // The framework itself forgets those that nothing is wired to.
        List<Bundle> held = new ArrayList<>(wiring().getRemovalPendingBundles());
        held.retainAll(bundles);
        if (held.isEmpty()) {
            return true;
        }
        CountDownLatch done = new CountDownLatch(1);
        wiring().refreshBundles(held, event -> done.countDown());
        try {
            return done.await(REFRESH_MILLIS_MAX, TimeUnit.MILLISECONDS);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            return false;
        }
    }

    /** Stops the framework with every bundle, and waits at most so long. */
    void stop(long millisMax) {
        try {
            framework.stop();
            framework.waitForStop(Math.max(millisMax, 1));
        } catch (BundleException | InterruptedException ending) {
            // The process is about to end anyway.
            Thread.currentThread().interrupt();
        }
    }

    /**
     * Has the framework forget which services a bundle used. Felix 7.0.5 keeps that, and with it the bundle, for
     * bundles that leave it to the framework to give their services back.
     */
    private void forgetServicesOf(Bundle bundle) {
        try {
            Object registry = field(framework, Felix.class, "m_registry");
            ((Map<?, ?>) field(registry, registry.getClass(), "m_inUseMap")).remove(bundle);
        } catch (ReflectiveOperationException | ClassCastException changed) {
            log.debug("bundle " + bundle + " may be kept: " + changed);
        }
    }

    private static Object field(Object of, Class<?> type, String name) throws ReflectiveOperationException {
        Field field = type.getDeclaredField(name);
        field.setAccessible(true);
        return field.get(of);
    }

    private static Map<String, Object> configuration(File data, Log log) {
        Map<String, Object> configuration = new HashMap<>();
        configuration.put(Constants.FRAMEWORK_STORAGE, new File(data, "felix").getPath());
        configuration.put(Constants.FRAMEWORK_STORAGE_CLEAN, Constants.FRAMEWORK_STORAGE_CLEAN_ONFIRSTINIT);
        configuration.put(Constants.FRAMEWORK_SYSTEMPACKAGES_EXTRA, API_PACKAGES);
        configuration.put(Constants.FRAMEWORK_SYSTEMCAPABILITIES_EXTRA, ModuleServices.CAPABILITIES);
        configuration.put(Constants.FRAMEWORK_BOOTDELEGATION, "");
        // Two versions of a module are there while one replaces the other; the host looks for duplicates itself.
        configuration.put(Constants.FRAMEWORK_BSNVERSION, Constants.FRAMEWORK_BSNVERSION_MULTIPLE);
        configuration.put("felix.bootdelegation.implicit", "false");
        configuration.put("felix.service.urlhandlers", "false");
        configuration.put("felix.cache.locking", "false");
        configuration.put("felix.cache.bufsize", "4096");
        configuration.put("felix.resolver.parallelism", "1");
        configuration.put("felix.log.logger", new FelixLog(log));
        configuration.put("felix.log.level", "2");
        return configuration;
    }

    /**
     * Lets the old and the new version of a singleton bundle be resolved side by side, and nobody take the place of
     * the host's API.
     */
    private static final class Resolution implements ResolverHook {
        @Override
        public void filterResolvable(Collection<BundleRevision> candidates) {
            // All may be resolved.
        }

        @Override
        public void filterSingletonCollisions(
                BundleCapability singleton, Collection<BundleCapability> collisionCandidates) {
            collisionCandidates.clear();
        }

        @Override
        public void filterMatches(BundleRequirement requirement, Collection<BundleCapability> candidates) {
            // What a module exports under the API's name is not the API that the host calls.
            if (requirement.getNamespace().equals(PackageNamespace.PACKAGE_NAMESPACE)) {
                candidates.removeIf(one -> one.getRevision().getBundle().getBundleId() != 0
                        && API.contains(one.getAttributes().get(PackageNamespace.PACKAGE_NAMESPACE)));
            }
        }

        @Override
        public void end() {
            // Nothing was kept.
        }
    }

    private static final class FelixLog extends Logger {
        private static final List<Log.Level> LEVELS =
                List.of(Log.Level.ERROR, Log.Level.ERROR, Log.Level.WARN, Log.Level.INFO, Log.Level.DEBUG);

        private final Log log;

        FelixLog(Log log) {
            this.log = log;
        }

        @Override
        @SuppressWarnings("rawtypes")
        protected void doLog(
                Bundle bundle, ServiceReference reference, int level, String message, Throwable thrown) {
            String who = bundle == null ? "" : bundle.getSymbolicName() + ": ";
            String why = thrown == null ? "" : ": " + Text.shortTrace(thrown);
            log.write(LEVELS.get(Math.min(Math.max(level, 0), 4)), who + message + why);
        }
    }
}
