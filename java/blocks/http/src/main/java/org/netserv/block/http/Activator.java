// SPDX-License-Identifier: Apache-2.0
package org.netserv.block.http;

import org.apache.felix.http.jetty.ConnectorFactory;
import org.osgi.framework.BundleActivator;
import org.osgi.framework.BundleContext;

/** Offers the bounds to Felix's Jetty, which asks each {@link ConnectorFactory} when its server has started. */
public final class Activator implements BundleActivator {
    @Override
    public void start(BundleContext context) {
        int connections = number(context.getProperty(Limits.CONNECTIONS_PROPERTY), Limits.CONNECTIONS,
                Limits.CONNECTIONS_MAX);
        int headerMs = number(context.getProperty(Limits.HEADER_MS_PROPERTY), Limits.HEADER_MS, Limits.HEADER_MS_MAX);
        int body = number(context.getProperty(Limits.BODY_BYTES_PROPERTY), Limits.BODY_BYTES, Limits.BODY_BYTES_MAX);
        context.registerService(ConnectorFactory.class, new BoundedConnector(connections, headerMs, body), null);
    }

    @Override
    public void stop(BundleContext context) {
        // The framework takes the registration back.
    }

    /** Returns the number that a text has, if it is 1 to {@code max}, otherwise the usual one. */
    static int number(String text, int usual, int max) {
        try {
            int number = text == null ? usual : Integer.parseInt(text.trim());
            return number >= 1 && number <= max ? number : usual;
        } catch (NumberFormatException broken) {
            return usual;
        }
    }
}
