// SPDX-License-Identifier: Apache-2.0
package org.netserv.samples.keepalive;

import org.netserv.module.ModuleContext;
import org.netserv.packet.PacketProcessor;
import org.osgi.framework.BundleActivator;
import org.osgi.framework.BundleContext;

/** Starts the module. */
public final class Activator implements BundleActivator {
    /** Builds an activator. */
    public Activator() {
    }

    @Override
    public void start(BundleContext bundle) throws Exception {
        ModuleContext module = bundle.getService(bundle.getServiceReference(ModuleContext.class));
        bundle.registerService(PacketProcessor.class, new KeepAlive(module), null);
    }

    @Override
    public void stop(BundleContext bundle) {
        // The framework takes the service back.
    }
}
