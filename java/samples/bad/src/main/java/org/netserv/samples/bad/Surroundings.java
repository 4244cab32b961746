// SPDX-License-Identifier: Apache-2.0
package org.netserv.samples.bad;

import org.netserv.block.BlockException;
import org.netserv.module.ModuleContext;
import org.netserv.packet.PacketView;
import org.osgi.framework.BundleContext;

/** What there is to misuse. */
final class Surroundings {
    private final BundleContext bundle;
    private final ModuleContext module;
    /** The last packet, or null; kept beyond its call. */
    PacketView packet;

    Surroundings(BundleContext bundle, ModuleContext module) {
        this.bundle = bundle;
        this.module = module;
    }

    BundleContext bundle() {
        return bundle;
    }

    ModuleContext module() {
        return module;
    }

    /** Tries something that must not work. What came of it is counted as {@code refused} or {@code done}, and logged. */
    void attempt(String what, Attempt attempt) throws BlockException {
        try {
            attempt.run();
        } catch (Exception | LinkageError e) {
            module.counters().open("refused").add(1);
            module.log().info(what + " refused: " + e);
            return;
        }
        module.counters().open("done").add(1);
        module.log().error(what + " done");
    }

    /** Something that must not work. */
    @FunctionalInterface
    interface Attempt {
        /** Tries it. */
        void run() throws Exception;
    }
}
