// SPDX-License-Identifier: Apache-2.0
package org.netserv.block.http;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.eclipse.jetty.http.HttpFields;
import org.eclipse.jetty.io.Connection;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.util.thread.Scheduler;

/**
 * Closes connections that take too long for their headers. Jetty's idle timeout starts again with each byte, so a client
 * that sends one now and then would keep its connection for ever. Bounded by the number of connections. Any thread.
 */
final class HeaderDeadline implements Connection.Listener, HttpConfiguration.Customizer {
    /** In place of a time: a request of the connection is being served. */
    private static final long SERVING = Long.MAX_VALUE;

    private final Map<Connection, Long> waitingSince = new ConcurrentHashMap<>();
    private final AtomicBoolean checking = new AtomicBoolean();
    private final Scheduler scheduler;
    private final long limitNanos;

    HeaderDeadline(Scheduler scheduler, long limitMs) {
        this.scheduler = scheduler;
        this.limitNanos = TimeUnit.MILLISECONDS.toNanos(limitMs);
    }

    @Override
    public void onOpened(Connection connection) {
        waitingSince.put(connection, System.nanoTime());
        checkLater();
    }

    @Override
    public void onClosed(Connection connection) {
        waitingSince.remove(connection);
    }

    @Override
    public Request customize(Request request, HttpFields.Mutable responseHeaders) {
        Connection connection = request.getConnectionMetaData().getConnection();
        waitingSince.computeIfPresent(connection, (key, since) -> SERVING);
        Request.addCompletionListener(request,
                failure -> waitingSince.computeIfPresent(connection, (key, since) -> System.nanoTime()));
        return request;
    }

    private void checkLater() {
        if (checking.compareAndSet(false, true)) {
            scheduler.schedule(this::check, Limits.HEADER_CHECK_MS, TimeUnit.MILLISECONDS);
        }
    }

    private void check() {
        checking.set(false);
        long now = System.nanoTime();
        waitingSince.forEach((connection, since) -> {
            if (since != SERVING && now - since > limitNanos) {
                connection.getEndPoint().close();
            }
        });
        if (!waitingSince.isEmpty()) {
            checkLater();
        }
    }
}
