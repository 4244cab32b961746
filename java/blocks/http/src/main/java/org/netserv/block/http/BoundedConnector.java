// SPDX-License-Identifier: Apache-2.0
package org.netserv.block.http;

import org.apache.felix.http.jetty.ConnectorFactory;
import org.eclipse.jetty.server.Connector;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.NetworkConnectionLimit;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.util.thread.QueuedThreadPool;

/**
 * Takes the connector that Felix made from its properties, puts bounds on it that Felix has no properties for, and gives
 * it back. Called once for each start of Felix's server.
 */
final class BoundedConnector implements ConnectorFactory {
    private final int connections;
    private final long headerMs;
    private final long bodyBytes;

    BoundedConnector(int connections, long headerMs, long bodyBytes) {
        this.connections = connections;
        this.headerMs = headerMs;
        this.bodyBytes = bodyBytes;
    }

    @Override
    public Connector createConnector(Server server) {
        for (Connector connector : server.getConnectors()) {
            if (connector instanceof ServerConnector known) {
                server.removeConnector(known);
                stop(known);
                bound(server, known);
                return known;
            }
        }
        throw new IllegalStateException("the HTTP engine has no connector: its port may be taken");
    }

    /** Stops the connector, so that its settings may change; Felix starts it again. */
    private static void stop(ServerConnector connector) {
        try {
            connector.stop();
        } catch (Exception failed) {
            throw new IllegalStateException("cannot stop " + connector, failed);
        }
    }

    private void bound(Server server, ServerConnector connector) {
        HttpConnectionFactory http = connector.getConnectionFactory(HttpConnectionFactory.class);
        HttpConfiguration settings = http.getHttpConfiguration();
        // Buffers outside of the heap have a small bound of their own in a container.
        settings.setUseInputDirectByteBuffers(false);
        settings.setUseOutputDirectByteBuffers(false);
        settings.setMinRequestDataRate(Limits.BODY_BYTES_PER_SECOND);
        HeaderDeadline deadline = new HeaderDeadline(server.getScheduler(), headerMs);
        settings.addCustomizer(deadline);
        settings.addCustomizer(new BodyLimit(bodyBytes));
        connector.addBean(deadline);
        NetworkConnectionLimit limit = new NetworkConnectionLimit(connections, connector);
        limit.setEndPointIdleTimeout(Limits.IDLE_MS_WHEN_FULL);
        connector.addBean(limit);
        if (server.getThreadPool() instanceof QueuedThreadPool pool) {
            pool.setMinThreads(Math.min(Limits.THREADS_MIN, pool.getMaxThreads()));
        }
    }
}
