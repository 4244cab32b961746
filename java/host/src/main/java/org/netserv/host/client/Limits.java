// SPDX-License-Identifier: Apache-2.0
package org.netserv.host.client;

/** Named bounds of the client. Those that modules see are in {@link org.netserv.block.HttpCaller}. */
final class Limits {
    /** Threads that run what connections have to do. */
    static final int THREADS = 4;
    /** Connections that are kept without a request. */
    static final int IDLE_CONNECTIONS_MAX = 16;
    /** Seconds that a connection is kept without a request. */
    static final int IDLE_SECONDS = 10;

    private Limits() {
    }
}
