// SPDX-License-Identifier: Apache-2.0
package org.netserv.block.http;

import org.apache.felix.http.jetty.ConnectorFactory;
import org.osgi.framework.BundleActivator;
import org.osgi.framework.BundleContext;

/** Offers the bounds to Felix's Jetty, which asks each {@link ConnectorFactory} when its server has started. */
public final class Activator implements BundleActivator {
    @Override
    public void start(BundleContext context) {
        context.registerService(ConnectorFactory.class, new BoundedConnector(Limits.CONNECTIONS, Limits.HEADER_MS), null);
    }

    @Override
    public void stop(BundleContext context) {
        // The framework takes the registration back.
    }
}
