// SPDX-License-Identifier: Apache-2.0
package org.netserv.block.log;

import java.util.IllegalFormatException;
import org.osgi.service.log.FormatterLogger;
import org.osgi.service.log.LogLevel;
import org.osgi.service.log.LoggerConsumer;
import org.slf4j.helpers.FormattingTuple;
import org.slf4j.helpers.MessageFormatter;

/**
 * A logger of the OSGi Log Service: fills {@code {}} places, or {@code %s} places if it is a formatter logger. A last
 * argument that is left over and an exception is the cause. Any
 * thread.
 */
final class OsgiLogger implements FormatterLogger {
    private final Sink sink;
    private final String name;
    private final boolean printf;

    OsgiLogger(Sink sink, String name, boolean printf) {
        this.sink = sink;
        this.name = name;
        this.printf = printf;
    }

    @Override
    public String getName() {
        return name;
    }

    private void write(LogLevel level, String format, Object... arguments) {
        if (!Threshold.takes(level)) {
            return;
        }
        if (printf) {
            Throwable cause = MessageFormatter.getThrowableCandidate(arguments);
            sink.write(Levels.node(level), printf(format, arguments), cause);
        } else {
            FormattingTuple filled = MessageFormatter.arrayFormat(format, arguments);
            sink.write(Levels.node(level), filled.getMessage(), filled.getThrowable());
        }
    }

    private static String printf(String format, Object[] arguments) {
        try {
            return arguments.length == 0 ? format : String.format(format, arguments);
        } catch (IllegalFormatException broken) {
            return format;
        }
    }

    @Override
    public boolean isTraceEnabled() {
        return Threshold.takes(LogLevel.TRACE);
    }

    @Override
    public void trace(String message) {
        write(LogLevel.TRACE, message);
    }

    @Override
    public void trace(String format, Object argument) {
        write(LogLevel.TRACE, format, argument);
    }

    @Override
    public void trace(String format, Object first, Object second) {
        write(LogLevel.TRACE, format, first, second);
    }

    @Override
    public void trace(String format, Object... arguments) {
        write(LogLevel.TRACE, format, arguments);
    }

    @Override
    public <E extends Exception> void trace(LoggerConsumer<E> consumer) throws E {
        if (isTraceEnabled()) {
            consumer.accept(this);
        }
    }

    @Override
    public boolean isDebugEnabled() {
        return Threshold.takes(LogLevel.DEBUG);
    }

    @Override
    public void debug(String message) {
        write(LogLevel.DEBUG, message);
    }

    @Override
    public void debug(String format, Object argument) {
        write(LogLevel.DEBUG, format, argument);
    }

    @Override
    public void debug(String format, Object first, Object second) {
        write(LogLevel.DEBUG, format, first, second);
    }

    @Override
    public void debug(String format, Object... arguments) {
        write(LogLevel.DEBUG, format, arguments);
    }

    @Override
    public <E extends Exception> void debug(LoggerConsumer<E> consumer) throws E {
        if (isDebugEnabled()) {
            consumer.accept(this);
        }
    }

    @Override
    public boolean isInfoEnabled() {
        return Threshold.takes(LogLevel.INFO);
    }

    @Override
    public void info(String message) {
        write(LogLevel.INFO, message);
    }

    @Override
    public void info(String format, Object argument) {
        write(LogLevel.INFO, format, argument);
    }

    @Override
    public void info(String format, Object first, Object second) {
        write(LogLevel.INFO, format, first, second);
    }

    @Override
    public void info(String format, Object... arguments) {
        write(LogLevel.INFO, format, arguments);
    }

    @Override
    public <E extends Exception> void info(LoggerConsumer<E> consumer) throws E {
        if (isInfoEnabled()) {
            consumer.accept(this);
        }
    }

    @Override
    public boolean isWarnEnabled() {
        return Threshold.takes(LogLevel.WARN);
    }

    @Override
    public void warn(String message) {
        write(LogLevel.WARN, message);
    }

    @Override
    public void warn(String format, Object argument) {
        write(LogLevel.WARN, format, argument);
    }

    @Override
    public void warn(String format, Object first, Object second) {
        write(LogLevel.WARN, format, first, second);
    }

    @Override
    public void warn(String format, Object... arguments) {
        write(LogLevel.WARN, format, arguments);
    }

    @Override
    public <E extends Exception> void warn(LoggerConsumer<E> consumer) throws E {
        if (isWarnEnabled()) {
            consumer.accept(this);
        }
    }

    @Override
    public boolean isErrorEnabled() {
        return Threshold.takes(LogLevel.ERROR);
    }

    @Override
    public void error(String message) {
        write(LogLevel.ERROR, message);
    }

    @Override
    public void error(String format, Object argument) {
        write(LogLevel.ERROR, format, argument);
    }

    @Override
    public void error(String format, Object first, Object second) {
        write(LogLevel.ERROR, format, first, second);
    }

    @Override
    public void error(String format, Object... arguments) {
        write(LogLevel.ERROR, format, arguments);
    }

    @Override
    public <E extends Exception> void error(LoggerConsumer<E> consumer) throws E {
        if (isErrorEnabled()) {
            consumer.accept(this);
        }
    }

    @Override
    public void audit(String message) {
        write(LogLevel.AUDIT, message);
    }

    @Override
    public void audit(String format, Object argument) {
        write(LogLevel.AUDIT, format, argument);
    }

    @Override
    public void audit(String format, Object first, Object second) {
        write(LogLevel.AUDIT, format, first, second);
    }

    @Override
    public void audit(String format, Object... arguments) {
        write(LogLevel.AUDIT, format, arguments);
    }
}
