// SPDX-License-Identifier: Apache-2.0
package org.netserv.block.log;

/** The bounds of the log block; the node bounds the length of a line and the lines per second itself. */
final class Limits {
    /** How many lines of a stack trace follow a message. */
    static final int TRACE_LINES = 12;
    /** How many causes of an exception are followed. */
    static final int CAUSES = 4;

    private Limits() {
    }
}
