// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.io.File;
import java.io.IOException;
import java.security.AccessController;
import java.security.PrivilegedAction;
import org.netserv.block.Log;
import org.netserv.host.cache.CacheFile;
import org.netserv.host.client.SharedClient;

/** What building blocks share between modules, made when the first module asks. Any thread. */
final class SharedBlocks {
    private final File store;
    private final Log log;
    private final ThreadGroup group = Thread.currentThread().getThreadGroup();
    private boolean isCacheSought;
    private CacheFile cache;
    private SharedClient client;

    SharedBlocks(File store, Log log) {
        this.store = store;
        this.log = log;
    }

    /** Returns the cache's file, or null if the node gives no room for one. */
    synchronized CacheFile cache() {
        if (!isCacheSought) {
            isCacheSought = true;
            try {
                cache = new CacheFile(new File(store, "cache"));
            } catch (IOException none) {
                log.warn("modules have no cache: " + none.getMessage());
            }
        }
        return cache;
    }

    /** Returns the client. */
    synchronized SharedClient client() {
        if (client == null) {
            runAsHost(() -> client = new SharedClient());
        }
        return client;
    }

    /** Runs something on a thread that has nothing of the calling one, which may be a module's. */
    @SuppressWarnings("removal")
    private void runAsHost(Runnable task) {
        // Up to Java 23, a thread holds the code that is on the stack where it is made.
        Thread thread = AccessController.doPrivileged((PrivilegedAction<Thread>) () -> {
            Thread made = new Thread(group, task, "blocks");
            made.setContextClassLoader(SharedBlocks.class.getClassLoader());
            return made;
        });
        thread.start();
        boolean isInterrupted = false;
        while (thread.isAlive()) {
            try {
                thread.join();
            } catch (InterruptedException interrupted) {
                isInterrupted = true;
            }
        }
        if (isInterrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
