// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.io.File;
import org.junit.jupiter.api.extension.Extension;

/** The native side as a library, loaded before the first test; {@code ./dev test} builds it. */
public final class Natives implements Extension {
    private static final KvStates KV;

    static {
        System.load(System.getProperty("netserv.natives"));
        KV = new KvStates(new File("none"));
    }

    /** Does nothing but what the class does. */
    static void load() {
    }

    /** Returns kv state that is in memory only. */
    static KvState kv(String name, int schema, ModuleLimits limits) {
        return KV.open(name, schema, limits);
    }
}
