// SPDX-License-Identifier: Apache-2.0
package org.netserv.block.log;

import java.util.Locale;
import org.osgi.service.log.LogLevel;

/** From which level on lines are written at all. */
final class Threshold {
    /** The standard property of the OSGi Log Service: one of its levels, {@code INFO} if it is not set. */
    static final String PROPERTY = "org.osgi.service.log.admin.loglevel";

    private static volatile LogLevel least = LogLevel.INFO;

    private Threshold() {
    }

    /** Sets the level from the text of the property; a text that is no level leaves it at INFO. */
    static void set(String text) {
        LogLevel level = LogLevel.INFO;
        for (LogLevel one : LogLevel.values()) {
            if (text != null && one.name().equals(text.trim().toUpperCase(Locale.ROOT))) {
                level = one;
            }
        }
        least = level;
    }

    static boolean takes(LogLevel level) {
        return level.ordinal() <= least.ordinal();
    }
}
