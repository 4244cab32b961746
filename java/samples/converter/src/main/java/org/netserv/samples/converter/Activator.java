// SPDX-License-Identifier: Apache-2.0
package org.netserv.samples.converter;

import jakarta.servlet.Servlet;
import java.util.Hashtable;
import java.util.Map;
import org.netserv.block.Media;
import org.osgi.framework.BundleActivator;
import org.osgi.framework.BundleContext;

/** Starts the module. */
public final class Activator implements BundleActivator {
    @Override
    public void start(BundleContext context) {
        Media media = context.getService(context.getServiceReference(Media.class));
        var everything = new Hashtable<>(Map.of("osgi.http.whiteboard.servlet.pattern", "/*"));
        context.registerService(Servlet.class, new Converter(media), everything);
    }

    @Override
    public void stop(BundleContext context) {
        // The framework takes the registration back.
    }
}
