// SPDX-License-Identifier: Apache-2.0
package org.netserv.host.client;

import java.net.http.HttpClient;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import org.netserv.block.HttpCaller;

/**
 * The client of all modules, with its threads. To be made on a thread of the host's, on which all its threads start:
 * those that a module's thread starts would belong to the module, and hold it.
 */
public final class SharedClient {
    private final HttpClient client;
    private final ScheduledThreadPoolExecutor deadlines;

    /** Makes a client. */
    public SharedClient() {
        bound("jdk.httpclient.connectionPoolSize", Limits.IDLE_CONNECTIONS_MAX);
        bound("jdk.httpclient.keepalive.timeout", Limits.IDLE_SECONDS);
        bound("jdk.http.maxHeaderSize", HttpCaller.HEADER_BYTES_MAX);
        ThreadFactory threads = task -> {
            Thread thread = new Thread(task, "http-client");
            thread.setDaemon(true);
            return thread;
        };
        ScheduledThreadPoolExecutor workers = new ScheduledThreadPoolExecutor(Limits.THREADS, threads);
        start(workers);
        deadlines = new ScheduledThreadPoolExecutor(1, threads);
        deadlines.setRemoveOnCancelPolicy(true);
        start(deadlines);
        client = HttpClient.newBuilder().executor(workers).connectTimeout(HttpCaller.CONNECT_MAX)
                .followRedirects(HttpClient.Redirect.NEVER).proxy(HttpClient.Builder.NO_PROXY).build();
    }

    HttpClient client() {
        return client;
    }

    ScheduledThreadPoolExecutor deadlines() {
        return deadlines;
    }

    private static void start(ThreadPoolExecutor executor) {
        executor.prestartAllCoreThreads();
    }

    private static void bound(String property, int value) {
        if (System.getProperty(property) == null) {
            System.setProperty(property, String.valueOf(value));
        }
    }
}
