// SPDX-License-Identifier: Apache-2.0
package org.netserv.block.log;

import org.osgi.framework.Bundle;
import org.osgi.framework.FrameworkUtil;
import org.slf4j.ILoggerFactory;
import org.slf4j.IMarkerFactory;
import org.slf4j.Logger;
import org.slf4j.helpers.BasicMarkerFactory;
import org.slf4j.helpers.NOPMDCAdapter;
import org.slf4j.spi.MDCAdapter;
import org.slf4j.spi.SLF4JServiceProvider;

/** Makes SLF4J's loggers write to the log of the bundle whose code asked for the logger. Any thread. */
public final class Slf4jProvider implements SLF4JServiceProvider {
    private static final StackWalker CALLERS = StackWalker.getInstance(StackWalker.Option.RETAIN_CLASS_REFERENCE);

    private final IMarkerFactory markers = new BasicMarkerFactory();
    private final MDCAdapter contexts = new NOPMDCAdapter();

    /** Makes the provider; SLF4J calls this. */
    public Slf4jProvider() {
        // Holds nothing that has to be opened.
    }

    @Override
    public ILoggerFactory getLoggerFactory() {
        return Slf4jProvider::logger;
    }

    private static Logger logger(String name) {
        ClassLoader own = Slf4jProvider.class.getClassLoader();
        Bundle caller = CALLERS.walk(frames -> frames.map(StackWalker.StackFrame::getDeclaringClass)
                .filter(type -> type.getClassLoader() != own)
                .map(FrameworkUtil::getBundle)
                .filter(bundle -> bundle != null)
                .findFirst()
                .orElse(null));
        return new Slf4jLogger(new Sink(caller), name);
    }

    @Override
    public IMarkerFactory getMarkerFactory() {
        return markers;
    }

    @Override
    public MDCAdapter getMDCAdapter() {
        return contexts;
    }

    @Override
    public String getRequestedApiVersion() {
        return "2.0.99";
    }

    @Override
    public void initialize() {
        // Nothing to do.
    }
}
