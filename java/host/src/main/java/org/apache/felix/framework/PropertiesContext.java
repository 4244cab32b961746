// SPDX-License-Identifier: Apache-2.0
package org.apache.felix.framework;

import java.util.Map;
import org.osgi.framework.Bundle;

/**
 * A bundle's context that knows properties of the bundle's own beside those of the framework. It is in Felix's package,
 * since the context is: Felix has framework properties for all bundles only, and modules of one user share a framework.
 */
public final class PropertiesContext extends BundleContextImpl {
    private final Map<String, String> properties;

    private PropertiesContext(BundleImpl bundle, Map<String, String> properties) {
        super(bundle.getFramework().getLogger(), bundle.getFramework(), bundle);
        this.properties = properties;
    }

    /**
     * Gives a bundle that is about to start properties of its own, which stand before those of the framework.
     *
     * @param bundle the bundle, whose activator was not called yet
     * @param properties its properties
     */
    public static void give(Bundle bundle, Map<String, String> properties) {
        if (bundle instanceof BundleImpl felix && !(felix._getBundleContext() instanceof PropertiesContext)) {
            felix.setBundleContext(new PropertiesContext(felix, properties));
        }
    }

    @Override
    public String getProperty(String key) {
        // Felix checks whether the context may be used still.
        String ofFramework = super.getProperty(key);
        return properties.getOrDefault(key, ofFramework);
    }
}
