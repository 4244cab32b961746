// SPDX-License-Identifier: Apache-2.0
package org.netserv.block.log;

import org.osgi.framework.Bundle;
import org.osgi.framework.BundleActivator;
import org.osgi.framework.BundleContext;
import org.osgi.framework.ServiceFactory;
import org.osgi.framework.ServiceRegistration;
import org.osgi.service.log.LogService;
import org.osgi.service.log.LoggerFactory;

/** Registers the Log Service. An activator, because Declarative Services would cost each user of a log their memory. */
public final class Activator implements BundleActivator {
    private static final String[] NAMES = {LogService.class.getName(), LoggerFactory.class.getName()};

    @Override
    public void start(BundleContext context) {
        Threshold.set(context.getProperty(Threshold.PROPERTY));
        context.registerService(NAMES, new PerBundle(), null);
    }

    @Override
    public void stop(BundleContext context) {
        // The framework takes the registration back.
    }

    /** Gives each bundle a Log Service that knows whose lines it writes. */
    private static final class PerBundle implements ServiceFactory<Object> {
        @Override
        public Object getService(Bundle bundle, ServiceRegistration<Object> registration) {
            return new OsgiLogService(bundle);
        }

        @Override
        public void ungetService(Bundle bundle, ServiceRegistration<Object> registration, Object service) {
            // Holds nothing.
        }
    }
}
