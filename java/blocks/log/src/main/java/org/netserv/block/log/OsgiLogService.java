// SPDX-License-Identifier: Apache-2.0
package org.netserv.block.log;

import org.osgi.framework.Bundle;
import org.osgi.framework.ServiceReference;
import org.osgi.service.log.FormatterLogger;
import org.osgi.service.log.LogLevel;
import org.osgi.service.log.LogService;
import org.osgi.service.log.Logger;

/** The OSGi Log Service of one bundle. Any thread. */
@SuppressWarnings("deprecation")
final class OsgiLogService implements LogService {
    private final Bundle owner;

    OsgiLogService(Bundle owner) {
        this.owner = owner;
    }

    @Override
    public Logger getLogger(String name) {
        return logger(owner, name, Logger.class);
    }

    @Override
    public Logger getLogger(Class<?> type) {
        return logger(owner, type.getName(), Logger.class);
    }

    @Override
    public <L extends Logger> L getLogger(String name, Class<L> type) {
        return logger(owner, name, type);
    }

    @Override
    public <L extends Logger> L getLogger(Class<?> named, Class<L> type) {
        return logger(owner, named.getName(), type);
    }

    @Override
    public <L extends Logger> L getLogger(Bundle bundle, String name, Class<L> type) {
        return logger(bundle, name, type);
    }

    private static <L extends Logger> L logger(Bundle bundle, String name, Class<L> type) {
        if (type != Logger.class && type != FormatterLogger.class) {
            throw new IllegalArgumentException("no such kind of logger: " + type.getName());
        }
        return type.cast(new OsgiLogger(new Sink(bundle), name, type == FormatterLogger.class));
    }

    @Override
    public void log(int level, String message) {
        log(level, message, null);
    }

    @Override
    public void log(int level, String message, Throwable cause) {
        LogLevel known = Levels.osgi(level);
        if (Threshold.takes(known)) {
            new Sink(owner).write(Levels.node(known), message, cause);
        }
    }

    @Override
    public void log(ServiceReference<?> reference, int level, String message) {
        log(reference, level, message, null);
    }

    @Override
    public void log(ServiceReference<?> reference, int level, String message, Throwable cause) {
        log(level, reference == null ? message : reference + ": " + message, cause);
    }
}
