// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;

/** Looks whether the classes of unloaded modules go. What holds them is a leak of the module's. */
final class LoaderWatch {
    private final List<Unloaded> unloaded = new ArrayList<>();
    private int leaked;

    /** Adds a module that was unloaded. */
    void add(String module, ClassLoader loader) {
        if (loader != null) {
            unloaded.add(new Unloaded(module, new WeakReference<>(loader)));
        }
    }

    /**
     * Looks which class loaders are still there. The collector is asked for it when there are
     * {@link Limits#LOADERS_UNSEEN_MAX} more than at the last look.
     *
     * @return whether there are many more leaks than at the last look
     */
    boolean look() {
        unloaded.removeIf(one -> one.loader.refersTo(null));
        if (unloaded.size() < leaked + Limits.LOADERS_UNSEEN_MAX) {
            leaked = Math.min(leaked, unloaded.size());
            return false;
        }
        System.gc();
        unloaded.removeIf(one -> one.loader.refersTo(null));
        // A thread that has just ended may hold the last one or two a while.
        boolean isMore = unloaded.size() >= leaked + Limits.LOADERS_UNSEEN_MAX / 2;
        leaked = unloaded.size();
        return isMore;
    }

    /** Returns the number of leaks found. */
    int leaked() {
        return leaked;
    }

    /** Returns the modules that leak, each once. */
    List<String> names() {
        return unloaded.stream().map(Unloaded::module).distinct().limit(Limits.MISSING_NAMED_MAX).toList();
    }

    private record Unloaded(String module, WeakReference<ClassLoader> loader) {
    }
}
