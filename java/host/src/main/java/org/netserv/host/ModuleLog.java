// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import org.netserv.block.Log;

/** The log of one module, bounded in rate so that a module cannot flood the node. */
final class ModuleLog implements Log {
    private final Native node;
    private final int slot;
    private int tokens = Limits.LOG_LINES_BURST;
    private long refilledNanos;
    private long leftOut;
    private boolean isClosed;
    /** Modules have the log itself, and must not be able to lock the host out. */
    private final Object lock = new Object();

    ModuleLog(Native node, int slot) {
        this.node = node;
        this.slot = slot;
        refilledNanos = node.now();
    }

    @Override
    public boolean write(Level level, String text) {
        synchronized (lock) {
            if (isClosed) {
                return false;
            }
            refill(node.now());
            if (tokens == 0) {
                leftOut++;
                return false;
            }
            tokens--;
            noteLeftOut();
            node.log(slot, level.ordinal(), Text.oneLine(text));
            return true;
        }
    }

    @Override
    public void error(String text, Throwable cause) {
        write(Level.ERROR, text + ": " + Text.shortTrace(cause));
    }

    /** Says how many lines were left out; for the end of a module. */
    void noteLeftOut() {
        synchronized (lock) {
            if (leftOut > 0) {
                node.log(slot, Level.WARN.ordinal(), leftOut + " lines left out: the module writes too many");
                leftOut = 0;
            }
        }
    }

    /** Takes no more lines: the slot may be another module's from here on. */
    void close() {
        synchronized (lock) {
            noteLeftOut();
            isClosed = true;
        }
    }

    private void refill(long now) {
        long steps = (now - refilledNanos) / Limits.LOG_LINE_NANOS;
        if (steps <= 0) {
            return;
        }
        tokens = (int) Math.min(tokens + Math.min(steps, Limits.LOG_LINES_BURST), Limits.LOG_LINES_BURST);
        refilledNanos = tokens == Limits.LOG_LINES_BURST ? now : refilledNanos + steps * Limits.LOG_LINE_NANOS;
    }
}
