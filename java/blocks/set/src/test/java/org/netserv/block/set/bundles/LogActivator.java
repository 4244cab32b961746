// SPDX-License-Identifier: Apache-2.0
package org.netserv.block.set.bundles;

import org.osgi.framework.BundleActivator;
import org.osgi.framework.BundleContext;
import org.osgi.service.log.FormatterLogger;
import org.osgi.service.log.LogService;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Writes by both APIs for logs. */
public final class LogActivator implements BundleActivator {
    private static final Logger LOG = LoggerFactory.getLogger(LogActivator.class);

    @Override
    public void start(BundleContext context) {
        LOG.info("by SLF4J {}", 1);
        LOG.debug("not seen");
        LOG.error("failed {}", 2, new IllegalStateException("broken"));
        LogService log = context.getService(context.getServiceReference(LogService.class));
        log.getLogger("any").warn("by OSGi {}", 3);
        log.getLogger("any", FormatterLogger.class).info("by OSGi %d", 4);
    }

    @Override
    public void stop(BundleContext context) {
        LOG.info("stopping");
    }
}
