// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.osgi.framework.Bundle;

/** Which bundle belongs to which module. */
final class ModuleIndex {
    private final Map<Long, Module> modules = new ConcurrentHashMap<>();

    void put(Bundle bundle, Module module) {
        modules.put(bundle.getBundleId(), module);
    }

    void remove(Bundle bundle) {
        modules.remove(bundle.getBundleId());
    }

    /** Returns the module of a bundle, or null if it belongs to none. */
    Module of(Bundle bundle) {
        return bundle == null ? null : modules.get(bundle.getBundleId());
    }

    Iterable<Module> all() {
        return modules.values();
    }
}
