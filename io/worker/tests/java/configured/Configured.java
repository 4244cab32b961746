// SPDX-License-Identifier: Apache-2.0
package configured;

import java.util.Hashtable;
import java.util.Map;
import org.netserv.block.Log;
import org.osgi.framework.BundleActivator;
import org.osgi.framework.BundleContext;
import org.osgi.service.cm.ManagedService;

/** A bundle that says what it is configured with, as an activator, a service and a component. */
public final class Configured implements BundleActivator {
    /** Builds an activator. */
    public Configured() {
    }

    @Override
    public void start(BundleContext bundle) {
        say(bundle, "framework " + bundle.getProperty("colour") + " " + bundle.getProperty("java.specification.name"));
        ManagedService service = properties -> {
            if (properties != null) {
                say(bundle, "service " + properties.get("colour"));
            }
        };
        bundle.registerService(ManagedService.class, service, new Hashtable<>(Map.of("service.pid", "of.service")));
    }

    @Override
    public void stop(BundleContext bundle) {
    }

    private static void say(BundleContext bundle, String text) {
        bundle.getService(bundle.getServiceReference(Log.class)).info(text);
    }

    /** A component. */
    public static final class Part {
        /** Builds a component. */
        public Part() {
        }

        void activate(BundleContext bundle, Map<String, Object> properties) {
            say(bundle, "component " + properties.get("colour"));
        }
    }
}
