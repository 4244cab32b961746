// SPDX-License-Identifier: Apache-2.0
package org.netserv.samples.toolbox;

import org.netserv.module.ModuleContext;
import org.osgi.framework.BundleContext;
import org.osgi.framework.ServiceReference;

/** Gets building blocks: each is a service, which the node binds to the bundle that asks. */
final class Blocks {
    private final BundleContext context;

    Blocks(BundleContext context) {
        this.context = context;
    }

    /** Returns a block, which is alive from the first time on that somebody asks for it. */
    <S> S get(Class<S> type) {
        ServiceReference<S> reference = context.getServiceReference(type);
        S block = reference == null ? null : context.getService(reference);
        if (block == null) {
            throw new IllegalStateException("the node does not offer " + type.getSimpleName());
        }
        return block;
    }

    ModuleContext module() {
        return get(ModuleContext.class);
    }
}
