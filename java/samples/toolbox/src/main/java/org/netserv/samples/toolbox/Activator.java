// SPDX-License-Identifier: Apache-2.0
package org.netserv.samples.toolbox;

import jakarta.servlet.Servlet;
import java.util.Hashtable;
import java.util.Map;
import org.netserv.block.BlockException;
import org.netserv.packet.PacketProcessor;
import org.osgi.framework.BundleActivator;
import org.osgi.framework.BundleContext;

/** Starts both parts of the module. */
public final class Activator implements BundleActivator {
    @Override
    public void start(BundleContext context) throws BlockException {
        Blocks blocks = new Blocks(context);
        context.registerService(PacketProcessor.class, new SipCounter(blocks), null);
        var everything = new Hashtable<>(Map.of("osgi.http.whiteboard.servlet.pattern", "/*"));
        context.registerService(Servlet.class, new Toolbox(blocks), everything);
    }

    @Override
    public void stop(BundleContext context) {
        // The framework takes the registrations back.
    }
}
