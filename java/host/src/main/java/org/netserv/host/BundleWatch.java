// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import org.apache.felix.framework.PropertiesContext;
import org.netserv.block.Log;
import org.osgi.framework.Bundle;
import org.osgi.framework.BundleEvent;
import org.osgi.framework.BundleException;
import org.osgi.framework.SynchronousBundleListener;

/** Watches what modules do to bundles: their own, further ones and the framework itself. */
final class BundleWatch implements SynchronousBundleListener {
    private final ModuleIndex modules;
    private final LifeCycle lifeCycle;
    private final Native node;
    private final Restart restart;
    private final Log log;
    private volatile boolean isEnding;

    BundleWatch(ModuleIndex modules, LifeCycle lifeCycle, Native node, Restart restart, Log log) {
        this.modules = modules;
        this.lifeCycle = lifeCycle;
        this.node = node;
        this.restart = restart;
        this.log = log;
    }

    /** Says that the framework is to stop. */
    void end() {
        isEnding = true;
    }

    @Override
    public void bundleChanged(BundleEvent event) {
        Bundle bundle = event.getBundle();
        switch (event.getType()) {
            case BundleEvent.INSTALLED -> installed(bundle, modules.of(event.getOrigin()));
            case BundleEvent.STOPPED -> stopped(bundle);
            case BundleEvent.LAZY_ACTIVATION, BundleEvent.STARTING -> {
                Module module = modules.of(bundle);
                if (module != null) {
                    PropertiesContext.give(bundle, module.properties());
                }
            }
            case BundleEvent.STOPPING -> {
                if (bundle.getBundleId() == 0 && !isEnding) {
                    frameworkStops();
                }
            }
            default -> { }
        }
    }

    /** Says which module stopped the framework, which it does on a thread that whoever asks for it makes. */
    private void frameworkStops() {
        Thread thread = Thread.currentThread();
        for (Module module : modules.all()) {
            if (module.threads().isOwn(thread)) {
                String what = "stopped the OSGi framework";
                node.log(module.slot(), 0, what);
                node.failed(module.slot(), new Refusal(Refusal.TRAPPED, "the module " + what));
                restart.now("module " + module + " " + what);
            }
        }
        restart.now("a module stopped the OSGi framework");
    }

    private void installed(Bundle bundle, Module by) {
        if (by == null) {
            return;
        }
        modules.put(bundle, by);
        if (!by.addOther(bundle)) {
            by.log().error("a module may install at most " + Limits.BUNDLES_PER_MODULE_MAX + " bundles");
            modules.remove(bundle);
            try {
                bundle.uninstall();
            } catch (BundleException stuck) {
                log.error("bundle " + bundle + " is not uninstalled", stuck);
            }
        }
    }

    private void stopped(Bundle bundle) {
        Module module = modules.of(bundle);
        if (module != null && module.bundle() == bundle) {
            module.processors().clear();
            lifeCycle.bundleStopped(module);
        }
    }
}
