// SPDX-License-Identifier: Apache-2.0
package org.netserv.block;

import org.osgi.annotation.versioning.ProviderType;

/**
 * The module's log. The node takes a burst of 256 lines, then 100 per second; others are counted and lost. A line is
 * cut at 1,024 bytes of UTF-8, and its control characters become spaces. May be used on any thread.
 */
@ProviderType
public interface Log {
    /** How important a line is. */
    enum Level {
        /** Something is broken. */
        ERROR,
        /** A person should look. */
        WARN,
        /** A state change that a user sees. */
        INFO,
        /** For those who debug the module. */
        DEBUG
    }

    /**
     * Writes a line.
     *
     * @param level how important it is
     * @param text the line
     * @return whether the node took it
     */
    boolean write(Level level, String text);

    /**
     * Writes a line of level error.
     *
     * @param text the line
     */
    default void error(String text) {
        write(Level.ERROR, text);
    }

    /**
     * Writes a line of level error with the cause in short: its type, message and where it comes from.
     *
     * @param text the line
     * @param cause why
     */
    void error(String text, Throwable cause);

    /**
     * Writes a line of level warn.
     *
     * @param text the line
     */
    default void warn(String text) {
        write(Level.WARN, text);
    }

    /**
     * Writes a line of level info.
     *
     * @param text the line
     */
    default void info(String text) {
        write(Level.INFO, text);
    }

    /**
     * Writes a line of level debug.
     *
     * @param text the line
     */
    default void debug(String text) {
        write(Level.DEBUG, text);
    }
}
