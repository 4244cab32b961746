// SPDX-License-Identifier: Apache-2.0
package org.netserv.block.log;

import org.osgi.service.log.LogLevel;
import org.slf4j.Marker;
import org.slf4j.event.Level;
import org.slf4j.helpers.LegacyAbstractLogger;
import org.slf4j.helpers.MessageFormatter;

/** An SLF4J logger of one bundle. Any thread. */
final class Slf4jLogger extends LegacyAbstractLogger {
    private static final long serialVersionUID = 1L;

    private final transient Sink sink;

    Slf4jLogger(Sink sink, String name) {
        this.sink = sink;
        this.name = name;
    }

    @Override
    public boolean isTraceEnabled() {
        return Threshold.takes(LogLevel.TRACE);
    }

    @Override
    public boolean isDebugEnabled() {
        return Threshold.takes(LogLevel.DEBUG);
    }

    @Override
    public boolean isInfoEnabled() {
        return Threshold.takes(LogLevel.INFO);
    }

    @Override
    public boolean isWarnEnabled() {
        return Threshold.takes(LogLevel.WARN);
    }

    @Override
    public boolean isErrorEnabled() {
        return Threshold.takes(LogLevel.ERROR);
    }

    @Override
    protected String getFullyQualifiedCallerName() {
        return null;
    }

    @Override
    protected void handleNormalizedLoggingCall(Level level, Marker marker, String format, Object[] arguments,
            Throwable cause) {
        LogLevel known = Levels.osgi(level);
        if (Threshold.takes(known)) {
            sink.write(Levels.node(known), MessageFormatter.basicArrayFormat(format, arguments), cause);
        }
    }
}
