// SPDX-License-Identifier: Apache-2.0
package org.netserv.block.http;

/** The bounds of the HTTP engine that Felix has no property for; the others are in {@code blocks.properties}. */
final class Limits {
    /** How many connections are open at once unless {@link #CONNECTIONS_PROPERTY} says so; others wait to be accepted. */
    static final int CONNECTIONS = 64;
    /** The property of the framework for the number of connections, 1 to 4,096. */
    static final String CONNECTIONS_PROPERTY = "org.netserv.block.http.connections";
    /** The most that the property may ask for. */
    static final int CONNECTIONS_MAX = 4_096;
    /** How long a connection may be idle while there are as many as may be, in milliseconds. */
    static final long IDLE_MS_WHEN_FULL = 1_000;
    /**
     * How long a connection may take from its start, or the end of a request, to the next request's last header, unless
     * {@link #HEADER_MS_PROPERTY} says so.
     */
    static final int HEADER_MS = 10_000;
    /** The property of the framework for that time, 1 to 600,000 milliseconds. */
    static final String HEADER_MS_PROPERTY = "org.netserv.block.http.header-ms";
    /** The most that the property may ask for. */
    static final int HEADER_MS_MAX = 600_000;
    /** How often that is looked at, in milliseconds. */
    static final long HEADER_CHECK_MS = 500;
    /** The slowest body that is still read, in bytes per second. */
    static final long BODY_BYTES_PER_SECOND = 1_024;
    /** Threads that stay when there is nothing to do; others end after a minute. */
    static final int THREADS_MIN = 2;
    /** The longest body of a request, in bytes, unless {@link #BODY_BYTES_PROPERTY} says so. */
    static final int BODY_BYTES = 1024 * 1024;
    /** The property of the framework for that length, 1 byte to 1 GiB. */
    static final String BODY_BYTES_PROPERTY = "org.netserv.block.http.body-bytes";
    /** The most that the property may ask for. */
    static final int BODY_BYTES_MAX = 1024 * 1024 * 1024;

    private Limits() {
    }
}
