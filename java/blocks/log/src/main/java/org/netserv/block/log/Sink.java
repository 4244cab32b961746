// SPDX-License-Identifier: Apache-2.0
package org.netserv.block.log;

import java.util.ArrayList;
import java.util.List;
import org.netserv.block.Log;
import org.osgi.framework.Bundle;
import org.osgi.framework.BundleContext;
import org.osgi.framework.ServiceReference;

/**
 * Where the lines of one bundle go: the log that the node gives to this bundle, which is the module's for a module. Any
 * thread.
 */
final class Sink {
    private final Bundle bundle;

    Sink(Bundle bundle) {
        this.bundle = bundle;
    }

    /** Writes a message and, in short, what caused it; a bundle that has stopped, or has no log, loses the line. */
    void write(Log.Level level, String message, Throwable cause) {
        BundleContext context = bundle == null ? null : bundle.getBundleContext();
        if (context == null) {
            return;
        }
        try {
            ServiceReference<Log> reference = context.getServiceReference(Log.class);
            Log log = reference == null ? null : context.getService(reference);
            if (log == null) {
                return;
            }
            for (String line : lines(message, cause)) {
                log.write(level, line);
            }
            context.ungetService(reference);
        } catch (IllegalStateException stopped) {
            // The bundle stopped in between: it has no log any more.
        }
    }

    /** Returns the message and at most {@link Limits#TRACE_LINES} lines about its cause. */
    static List<String> lines(String message, Throwable cause) {
        List<String> lines = new ArrayList<>();
        lines.add(String.valueOf(message));
        Throwable now = cause;
        for (int depth = 0; now != null && depth < Limits.CAUSES; depth++, now = now.getCause()) {
            append(lines, (depth == 0 ? "" : "caused by ") + now);
            for (StackTraceElement frame : now.getStackTrace()) {
                append(lines, "at " + frame);
            }
        }
        return lines;
    }

    private static void append(List<String> lines, String line) {
        if (lines.size() <= Limits.TRACE_LINES) {
            lines.add(line);
        }
    }
}
