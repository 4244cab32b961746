// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.io.File;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.netserv.block.Log;
import org.osgi.framework.Bundle;
import org.osgi.framework.BundleContext;
import org.osgi.framework.BundleException;
import org.osgi.framework.Constants;
import org.osgi.framework.namespace.PackageNamespace;
import org.osgi.framework.wiring.BundleCapability;
import org.osgi.framework.wiring.BundleRequirement;
import org.osgi.framework.wiring.BundleRevision;
import org.osgi.framework.wiring.BundleWire;
import org.osgi.framework.wiring.BundleWiring;
import org.osgi.framework.wiring.FrameworkWiring;

/**
 * Building blocks that are bundles: servlet engine, logging and the like. They are installed when the first module
 * needs something that the framework itself has not, and started when a module needs them.
 */
final class BlockBundles {
    /** Where services, implementations of specifications and extenders are announced. */
    private static final List<String> OFFERS = List.of("osgi.service", "osgi.implementation", "osgi.extender");

    private final BundleContext system;
    private final FrameworkWiring wiring;
    private final File folder;
    private final BlockSettings settings;
    private final Log log;
    private final Set<Bundle> blocks = new LinkedHashSet<>();
    private boolean installed;

    BlockBundles(OsgiFramework framework, File folder, BlockSettings settings, Log log) {
        system = framework.context();
        wiring = framework.wiring();
        this.folder = folder;
        this.settings = settings;
        this.log = log;
    }

    /** Installs every building block, once. Returns whether there are any. */
    boolean install() {
        if (!installed) {
            installed = true;
            File[] jars = folder.listFiles((unused, name) -> name.endsWith(".jar"));
            Arrays.sort(jars == null ? jars = new File[0] : jars);
            for (File jar : jars) {
                try {
                    blocks.add(system.installBundle("reference:" + jar.toURI()));
                } catch (BundleException broken) {
                    log.error("building block " + jar.getName() + " cannot be installed", broken);
                }
            }
        }
        return !blocks.isEmpty();
    }

    boolean contains(Bundle bundle) {
        return blocks.contains(bundle);
    }

    /**
     * Returns whether a bundle needs components, services or extenders of building blocks, beyond what it is wired to.
     */
    boolean isWantedBy(Bundle bundle, boolean hasComponents) {
        if (hasComponents) {
            return true;
        }
        for (BundleRequirement requirement : bundle.adapt(BundleRevision.class).getDeclaredRequirements(null)) {
            if (OFFERS.contains(requirement.getNamespace())) {
                return true;
            }
        }
        return false;
    }

    /**
     * Returns the building blocks that have to run for a resolved bundle, those first that others need.
     */
    List<Bundle> neededBy(Bundle bundle, boolean hasComponents) {
        Set<Bundle> needed = new LinkedHashSet<>();
        addWired(bundle, needed);
        for (Bundle block : blocks) {
            if (!needed.contains(block) && serves(block, bundle, hasComponents)
                    && wiring.resolveBundles(List.of(block))) {
                addWired(block, needed);
                needed.add(block);
            }
        }
        addCompanions(needed);
        return new ArrayList<>(needed);
    }

    /** Adds the blocks that the settings say have to run with others, and what those need. */
    private void addCompanions(Set<Bundle> needed) {
        List<Bundle> left = new ArrayList<>(needed);
        while (!left.isEmpty()) {
            List<String> names = settings.with(left.remove(left.size() - 1).getSymbolicName());
            for (Bundle block : blocks) {
                if (names.contains(block.getSymbolicName()) && !needed.contains(block)
                        && wiring.resolveBundles(List.of(block))) {
                    addWired(block, needed);
                    needed.add(block);
                    left.add(block);
                }
            }
        }
    }

    /** Starts blocks that do not run yet. */
    void start(List<Bundle> wanted) {
        for (Bundle block : wanted) {
            boolean isFragment = block.getHeaders("").get("Fragment-Host") != null;
            if (isFragment || block.getState() == Bundle.ACTIVE) {
                continue;
            }
            try {
                block.start(Bundle.START_TRANSIENT);
            } catch (BundleException broken) {
                log.error("building block " + block + " does not start", broken);
            }
        }
    }

    /** Stops the blocks that run and are not wanted any more, those last that were installed first. */
    void stopAllBut(Set<Bundle> wanted) {
        List<Bundle> all = new ArrayList<>(blocks);
        Collections.reverse(all);
        for (Bundle block : all) {
            if (block.getState() != Bundle.ACTIVE || wanted.contains(block)) {
                continue;
            }
            try {
                block.stop(Bundle.STOP_TRANSIENT);
            } catch (BundleException broken) {
                log.error("building block " + block + " does not stop", broken);
            }
        }
    }

    /** Adds the blocks that a bundle is wired to, before the bundle itself. */
    private void addWired(Bundle bundle, Set<Bundle> needed) {
        collect(bundle, needed, new HashSet<>());
    }

    private void collect(Bundle bundle, Set<Bundle> needed, Set<Bundle> seen) {
        BundleWiring wires = bundle.adapt(BundleWiring.class);
        if (wires == null || !seen.add(bundle)) {
            return;
        }
        for (BundleWire wire : wires.getRequiredWires(null)) {
            Bundle provider = wire.getProviderWiring().getBundle();
            if (blocks.contains(provider) && !needed.contains(provider)) {
                collect(provider, needed, seen);
                needed.add(provider);
            }
        }
    }

    /** Returns whether a block implements what a bundle requires at run time, or whose packages it imports. */
    private boolean serves(Bundle block, Bundle bundle, boolean hasComponents) {
        Set<String> imported = packagesFromBlocks(bundle);
        BundleRevision revision = bundle.adapt(BundleRevision.class);
        for (BundleCapability offer : block.adapt(BundleRevision.class).getDeclaredCapabilities(null)) {
            if (!OFFERS.contains(offer.getNamespace())) {
                continue;
            }
            if (hasComponents && "osgi.component".equals(offer.getAttributes().get("osgi.extender"))) {
                return true;
            }
            for (BundleRequirement requirement : revision.getDeclaredRequirements(offer.getNamespace())) {
                if (requirement.matches(offer)) {
                    return true;
                }
            }
            if (usesAny(offer, imported)) {
                return true;
            }
        }
        return false;
    }

    private Set<String> packagesFromBlocks(Bundle bundle) {
        Set<String> packages = new HashSet<>();
        for (BundleWire wire : bundle.adapt(BundleWiring.class).getRequiredWires(PackageNamespace.PACKAGE_NAMESPACE)) {
            if (blocks.contains(wire.getProviderWiring().getBundle())) {
                packages.add(String.valueOf(
                        wire.getCapability().getAttributes().get(PackageNamespace.PACKAGE_NAMESPACE)));
            }
        }
        return packages;
    }

    private static boolean usesAny(BundleCapability offer, Set<String> packages) {
        Map<String, Object> attributes = offer.getAttributes();
        Object classes = attributes.get(Constants.OBJECTCLASS);
        if (classes instanceof Collection<?> several) {
            return several.stream().anyMatch(one -> packages.contains(packageOf(String.valueOf(one))));
        }
        if (classes != null) {
            return packages.contains(packageOf(String.valueOf(classes)));
        }
        String uses = offer.getDirectives().getOrDefault("uses", "");
        return offer.getNamespace().equals("osgi.implementation")
                && Arrays.stream(uses.split(",")).anyMatch(one -> packages.contains(one.trim()));
    }

    private static String packageOf(String className) {
        int dot = className.lastIndexOf('.');
        return dot < 0 ? "" : className.substring(0, dot);
    }
}
