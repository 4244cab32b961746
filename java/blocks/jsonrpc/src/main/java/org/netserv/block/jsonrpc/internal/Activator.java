// SPDX-License-Identifier: Apache-2.0
package org.netserv.block.jsonrpc.internal;

import org.netserv.block.jsonrpc.JsonRpc;
import org.osgi.framework.BundleActivator;
import org.osgi.framework.BundleContext;
import org.osgi.framework.InvalidSyntaxException;
import org.osgi.util.tracker.ServiceTracker;

/** Looks for services that have a name for JSON-RPC. An activator, because Declarative Services cost memory. */
public final class Activator implements BundleActivator {
    private ServiceTracker<Object, Services.Exposed> tracker;

    @Override
    public void start(BundleContext context) throws InvalidSyntaxException {
        tracker = new ServiceTracker<>(context, context.createFilter("(" + JsonRpc.NAME + "=*)"), new Services(context));
        tracker.open(true);
    }

    @Override
    public void stop(BundleContext context) {
        tracker.close();
    }
}
