// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

/** The native side of the worker, which talks to the node. May be called on any thread; nothing waits. */
interface Native {
    /** Says that modules can be loaded, and what runs them. */
    void ready(String engine);

    /** Says that a module is loaded. */
    void loaded(int slot);

    /** Says that a module was not loaded, or is gone; why, and where in its code. */
    void failed(int slot, String refusalKind, String detail, String[] context);

    /** Says that a module was not loaded, or is gone. */
    default void failed(int slot, Refusal refusal) {
        failed(slot, refusal.kind(), refusal.getMessage(), refusal.context().toArray(String[]::new));
    }

    /** Hands a log line over; slot -1 is the host. Levels count from 0, error, to 3, debug. */
    void log(int slot, int level, String text);

    /** Hands the counts of one module over: seen, passed, dropped, modified, injected; then its counters. */
    void stats(int slot, long[] counts, String[] names, long[] values);

    /** Says that all modules' counts were handed over. */
    void statsDone();

    /** Has the packet thread call {@code idle} soon. */
    void wake();

    /** Returns nanoseconds of the monotonic clock. */
    long now();
}
