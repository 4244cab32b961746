// SPDX-License-Identifier: Apache-2.0
package org.netserv.block.set.bundles;

import java.util.Hashtable;
import java.util.Map;
import org.osgi.framework.BundleActivator;
import org.osgi.framework.BundleContext;

/** A service that is called by JSON-RPC. */
public final class RpcActivator implements BundleActivator {
    /** What can be called. */
    public interface Adder {
        /** Adds two numbers. */
        int add(int left, int right);
    }

    @Override
    public void start(BundleContext context) {
        Adder adder = (left, right) -> left + right;
        context.registerService(Adder.class, adder, new Hashtable<>(Map.of("netserv.jsonrpc", "adder")));
    }

    @Override
    public void stop(BundleContext context) {
        // The framework takes the registration back.
    }
}
