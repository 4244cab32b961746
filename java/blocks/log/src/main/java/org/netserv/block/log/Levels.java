// SPDX-License-Identifier: Apache-2.0
package org.netserv.block.log;

import org.netserv.block.Log;
import org.osgi.service.log.LogLevel;
import org.slf4j.event.Level;

/** The levels of the three APIs in one another's words. */
final class Levels {
    private Levels() {
    }

    static Log.Level node(LogLevel level) {
        return switch (level) {
            case ERROR -> Log.Level.ERROR;
            case WARN -> Log.Level.WARN;
            case AUDIT, INFO -> Log.Level.INFO;
            case DEBUG, TRACE -> Log.Level.DEBUG;
        };
    }

    static LogLevel osgi(Level level) {
        return switch (level) {
            case ERROR -> LogLevel.ERROR;
            case WARN -> LogLevel.WARN;
            case INFO -> LogLevel.INFO;
            case DEBUG -> LogLevel.DEBUG;
            case TRACE -> LogLevel.TRACE;
        };
    }

    /** Returns the level for the numbers that the Log Service had before it had loggers. */
    static LogLevel osgi(int number) {
        return switch (number) {
            case 1 -> LogLevel.ERROR;
            case 2 -> LogLevel.WARN;
            case 3 -> LogLevel.INFO;
            case 4 -> LogLevel.DEBUG;
            default -> LogLevel.TRACE;
        };
    }
}
