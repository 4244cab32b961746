// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.netserv.block.Log;
import org.osgi.framework.Bundle;
import org.osgi.framework.BundleException;
import org.osgi.framework.wiring.BundleRequirement;
import org.osgi.framework.wiring.BundleWiring;

/** Brings the bundles of modules into the framework, and takes them out. Used on the life cycle thread alone. */
final class Installer {
    private final OsgiFramework framework;
    private final ModuleIndex modules;
    private final BlockBundles blocks;
    private final Configurations configurations;
    private final Missing missing;
    private final Log log;
    /** The building blocks that run for a bundle. */
    private final Map<Bundle, List<Bundle>> needs = new HashMap<>();

    Installer(OsgiFramework framework, ModuleIndex modules, BlockBundles blocks, Configurations configurations,
            Log log) {
        this.framework = framework;
        this.modules = modules;
        this.blocks = blocks;
        this.configurations = configurations;
        this.log = log;
        missing = new Missing(framework.wiring());
    }

    OsgiFramework framework() {
        return framework;
    }

    /**
     * Installs, resolves and starts the bundle of a module.
     *
     * @throws Refusal if that does not go well; {@link #stop} and {@link #uninstall} clean up
     * @throws ModuleThreads.Late if the bundle takes too long
     */
    void start(Module module) throws Refusal, ModuleThreads.Late {
        BundleFile file = BundleFile.read(module.jar());
        Bundle bundle = install(module);
        refuseDuplicate(bundle, module);
        List<Bundle> needed = resolve(bundle, file.hasComponents());
        module.setLoader(bundle.adapt(BundleWiring.class).getClassLoader());
        needs.put(bundle, needed);
        if (!needed.isEmpty()) {
            BlockSettings.setPort(module);
            blocks.start(needed);
        }
        startAgain(module);
    }

    /**
     * Starts the bundle of a module that is resolved.
     *
     * @throws Refusal if it does not start
     * @throws ModuleThreads.Late if it takes too long
     */
    void startAgain(Module module) throws Refusal, ModuleThreads.Late {
        Bundle bundle = module.bundle();
        Throwable thrown = module.threads().run("start", millisMax(module), () -> {
            try {
                configurations.configureComponents(module);
                bundle.start(Bundle.START_TRANSIENT);
            } catch (Throwable any) {
                // Looking at it calls the module's code again, so this is the place.
                throw startFailure(any);
            }
        });
        if (thrown instanceof Refusal refusal) {
            throw refusal;
        }
        if (thrown != null) {
            throw new Refusal(Refusal.TRAPPED, thrown.getClass().getName());
        }
    }

    /**
     * Stops the bundle of a module; what it throws goes to its log.
     *
     * @throws ModuleThreads.Late if it takes too long
     */
    void stop(Module module) throws ModuleThreads.Late {
        List<Bundle> active = new ArrayList<>();
        if (module.bundle() != null && module.bundle().getState() == Bundle.ACTIVE) {
            active.add(module.bundle());
        }
        for (Bundle other : module.others()) {
            if ((other.getState() & (Bundle.STARTING | Bundle.ACTIVE)) != 0) {
                active.add(other);
            }
        }
        if (active.isEmpty()) {
            return;
        }
        try {
            module.threads().run("stop", millisMax(module), () -> active.forEach(bundle -> stop(module, bundle)));
        } catch (Refusal noThread) {
            throw new ModuleThreads.Late(noThread.getMessage(), List.of(), false);
        }
    }

    private static void stop(Module module, Bundle bundle) {
        try {
            bundle.stop(Bundle.STOP_TRANSIENT);
        } catch (Throwable any) {
            Throwable cause = any instanceof BundleException ? any.getCause() : null;
            module.log().error("the module failed while it stopped", cause == null ? any : cause);
        }
    }

    /** Forgets the bundles of a module that is stopped, and its jar; nothing if it does not come to an end. */
    void uninstall(Module module) {
        Bundle own = module.bundle();
        if (own != null && (own.getState() & (Bundle.STARTING | Bundle.STOPPING)) != 0) {
            log.warn("module " + module + " is stuck, and stays");
            return;
        }
        List<Bundle> gone = new ArrayList<>(module.others());
        if (own != null) {
            gone.add(own);
        }
        forgetConfigurations(module, gone);
        for (Bundle bundle : gone) {
            if ((bundle.getState() & (Bundle.STARTING | Bundle.STOPPING)) != 0) {
                log.warn("bundle " + bundle + " of module " + module + " is stuck, and stays");
                continue;
            }
            try {
                if (bundle.getState() != Bundle.UNINSTALLED) {
                    bundle.uninstall();
                }
            } catch (BundleException | IllegalStateException stuck) {
                log.error("bundle " + bundle + " of module " + module + " is not uninstalled", stuck);
            }
            modules.remove(bundle);
            needs.remove(bundle);
        }
        Set<Bundle> wanted = new HashSet<>();
        needs.values().forEach(wanted::addAll);
        blocks.stopAllBut(wanted);
        if (!gone.isEmpty() && !framework.refresh(gone)) {
            log.warn("the framework does not forget module " + module + " in time");
        }
        delete(module.jar(), log);
    }

    private void forgetConfigurations(Module module, List<Bundle> gone) {
        if (gone.stream().noneMatch(configurations::has)) {
            return;
        }
        try {
            module.threads().run("forget", millisMax(module), () -> gone.forEach(configurations::forget));
        } catch (Refusal | ModuleThreads.Late notDone) {
            log.warn("the configuration of module " + module + " stays: " + notDone.getMessage());
        }
    }

    /** Deletes the jar of a module. */
    static void delete(File jar, Log log) {
        try {
            Files.deleteIfExists(jar.toPath());
        } catch (IOException stuck) {
            log.warn("the file of a module is not deleted: " + stuck.getMessage());
        }
    }

    private Bundle install(Module module) throws Refusal {
        String location = "reference:" + module.jar().toURI();
        if (framework.context().getBundle(location) != null) {
            throw new Refusal(Refusal.NODE_FAILED, "the same file is loaded already");
        }
        try {
            Bundle bundle = framework.context().installBundle(location);
            module.setBundle(bundle);
            modules.put(bundle, module);
            return bundle;
        } catch (BundleException malformed) {
            throw new Refusal(Refusal.BAD_CODE, "the bundle cannot be installed: " + causes(malformed));
        }
    }

    private void refuseDuplicate(Bundle bundle, Module module) throws Refusal {
        for (Bundle other : framework.context().getBundles()) {
            Module owner = modules.of(other);
            boolean isSame = other != bundle && other.getVersion().equals(bundle.getVersion())
                    && bundle.getSymbolicName().equals(other.getSymbolicName());
            if (isSame && (owner == null || !owner.name().equals(module.name()))) {
                String who = owner == null ? "the node" : "module " + owner.name();
                throw new Refusal(Refusal.BAD_CODE, "bundle " + bundle.getSymbolicName() + " " + bundle.getVersion()
                        + " is there already, as part of " + who);
            }
        }
    }

    /** Resolves a bundle. Returns the building blocks that have to run for it, in order. */
    private List<Bundle> resolve(Bundle bundle, boolean hasComponents) throws Refusal {
        List<BundleRequirement> unmet = missing.of(bundle);
        boolean wantsBlocks = !unmet.isEmpty() || blocks.isWantedBy(bundle, hasComponents);
        if (wantsBlocks && blocks.install()) {
            unmet = missing.of(bundle);
        }
        if (!unmet.isEmpty()) {
            throw missing.refusal(unmet);
        }
        if (!framework.wiring().resolveBundles(List.of(bundle))) {
            throw unresolved(bundle);
        }
        return blocks.neededBy(bundle, hasComponents);
    }

    /** Says why a bundle whose requirements can all be met one by one is not resolved. */
    private static Refusal unresolved(Bundle bundle) {
        String why = "its requirements contradict each other";
        try {
            bundle.start(Bundle.START_TRANSIENT);
        } catch (BundleException exception) {
            why = causes(exception);
        }
        return new Refusal(Refusal.MISSING_DEPENDENCY, "the bundle cannot be resolved: " + why);
    }

    private static Refusal startFailure(Throwable thrown) {
        if (thrown instanceof BundleException exception && exception.getType() == BundleException.RESOLVE_ERROR) {
            return new Refusal(Refusal.MISSING_DEPENDENCY, causes(exception));
        }
        Throwable root = thrown;
        for (int depth = 0; depth < Limits.CAUSES_SEEN && root != null; depth++, root = Text.cause(root)) {
            if (root instanceof UnsupportedClassVersionError newer) {
                return new Refusal(Refusal.MISSING_DEPENDENCY, JavaVersion.tooOld(newer));
            }
            if (root instanceof OutOfMemoryError) {
                return Refusal.trapped(root);
            }
            if (root instanceof ClassFormatError || root instanceof VerifyError) {
                return new Refusal(Refusal.BAD_CODE, "the bundle's code is broken: " + Text.shortTrace(root));
            }
        }
        Throwable within = thrown instanceof BundleException ? thrown.getCause() : null;
        Throwable cause = within == null ? thrown : within;
        if (cause instanceof ClassNotFoundException) {
            return new Refusal(Refusal.BAD_CODE, "the bundle has not the class that starts it: " + cause.getMessage());
        }
        return Refusal.trapped(cause);
    }

    private static String causes(Throwable thrown) {
        String message = String.valueOf(thrown.getMessage());
        Throwable cause = thrown.getCause();
        return Text.oneLine(cause == null || message.contains(String.valueOf(cause.getMessage()))
                ? message : message + ": " + cause.getMessage());
    }

    private static long millisMax(Module module) {
        return Math.max(module.limits().callMillis(), 1) * Limits.CALLS_PER_START;
    }
}
