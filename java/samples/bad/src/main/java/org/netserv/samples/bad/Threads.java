// SPDX-License-Identifier: Apache-2.0
package org.netserv.samples.bad;

/** Threads that stay. */
final class Threads {
    /** Holds the class, which holds the loader, for as long as the thread lives. */
    private static final ThreadLocal<Object> LEFT_BEHIND = new ThreadLocal<>();

    private Threads() {
    }

    /** Returns a thread that does something, and keeps no process alive. */
    static Thread running(String name, Runnable work) {
        Thread thread = new Thread(work, name);
        thread.setDaemon(true);
        return thread;
    }

    /** Returns a thread that does nothing for ever. */
    static Thread sleeping(String name) {
        return running(name, Threads::sleepForEver);
    }

    /** Sleeps, whoever interrupts. */
    static void sleepForEver() {
        while (true) {
            try {
                Thread.sleep(Long.MAX_VALUE);
            } catch (InterruptedException e) {
                Thread.onSpinWait();
            }
        }
    }

    /** Leaves behind what holds this bundle's classes. */
    static void leak(Surroundings surroundings) {
        LEFT_BEHIND.set(surroundings);
        sleeping("bad-leak").start();
        Runtime.getRuntime().addShutdownHook(new Thread(surroundings::hashCode, "bad-hook"));
    }
}
