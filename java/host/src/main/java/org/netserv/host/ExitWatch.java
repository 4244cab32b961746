// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.util.Map;
import org.osgi.framework.Bundle;

/** Finds out which module ended the process by System.exit, and says so before it is too late. */
final class ExitWatch extends Thread {
    private final ModuleIndex modules;
    private final Dispatcher dispatcher;
    private final Native node;
    private final Restart restart;

    ExitWatch(ModuleIndex modules, Dispatcher dispatcher, Native node, Restart restart) {
        super("exit-watch");
        this.modules = modules;
        this.dispatcher = dispatcher;
        this.node = node;
        this.restart = restart;
    }

    @Override
    public void run() {
        for (Map.Entry<Thread, StackTraceElement[]> entry : Thread.getAllStackTraces().entrySet()) {
            if (!isExit(entry.getValue())) {
                continue;
            }
            Module module = culprit(entry.getKey(), entry.getValue());
            if (module != null) {
                String what = "called System.exit on thread " + entry.getKey().getName();
                node.log(module.slot(), 0, what);
                node.failed(module.slot(),
                        new Refusal(Refusal.TRAPPED, "the module " + what, Text.frames(entry.getValue())));
                restart.now("module " + module + " " + what);
            }
        }
    }

    private static boolean isExit(StackTraceElement[] trace) {
        for (StackTraceElement frame : trace) {
            if (frame.getClassName().equals("java.lang.Shutdown") && frame.getMethodName().equals("exit")
                    || frame.getClassName().equals("java.lang.Runtime") && frame.getMethodName().equals("exit")) {
                return true;
            }
        }
        return false;
    }

    /** Returns the module whose class calls first, or whose thread it is. */
    private Module culprit(Thread thread, StackTraceElement[] trace) {
        Module owner = thread == dispatcher.packetThread() ? dispatcher.running() : owner(thread);
        for (StackTraceElement frame : trace) {
            String path = frame.getClassName().replace('.', '/') + ".class";
            // Two versions of a module have classes of the same names.
            if (owner != null && has(owner, path)) {
                return owner;
            }
            for (Module module : modules.all()) {
                if (has(module, path)) {
                    return module;
                }
            }
        }
        return owner;
    }

    private Module owner(Thread thread) {
        for (Module module : modules.all()) {
            if (module.threads().alive().contains(thread)) {
                return module;
            }
        }
        return null;
    }

    private static boolean has(Module module, String path) {
        Bundle bundle = module.bundle();
        return bundle != null && bundle.getEntry(path) != null;
    }
}
