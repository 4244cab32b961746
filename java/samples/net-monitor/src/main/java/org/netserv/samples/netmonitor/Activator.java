// SPDX-License-Identifier: Apache-2.0
package org.netserv.samples.netmonitor;

import org.netserv.block.Control;
import org.netserv.block.NodeInfo;
import org.netserv.block.State;
import org.netserv.module.ModuleContext;
import org.netserv.packet.PacketProcessor;
import org.osgi.framework.BundleActivator;
import org.osgi.framework.BundleContext;

/** Starts and stops the module. */
public final class Activator implements BundleActivator {
    private NetMonitor monitor;

    /** Builds an activator. */
    public Activator() {
    }

    @Override
    public void start(BundleContext bundle) throws Exception {
        ModuleContext module = bundle.getService(bundle.getServiceReference(ModuleContext.class));
        monitor = new NetMonitor(module);
        Control control = bundle.getService(bundle.getServiceReference(Control.class));
        NodeInfo node = bundle.getService(bundle.getServiceReference(NodeInfo.class));
        if (control != null) {
            control.listen(message -> monitor.told(control, node, message));
        }
        State state = bundle.getService(bundle.getServiceReference(State.class));
        if (state != null) {
            state.carry(monitor);
        }
        bundle.registerService(PacketProcessor.class, monitor, null);
    }

    @Override
    public void stop(BundleContext bundle) {
        monitor.flush();
    }
}
