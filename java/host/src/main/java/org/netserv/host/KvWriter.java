// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.util.concurrent.locks.LockSupport;

/** Has kv state written a while after it changed, on a thread of its own. */
final class KvWriter implements Runnable {
    private final Runnable write;
    private final Thread thread;
    private volatile boolean isChanged;
    private volatile boolean isEnding;

    KvWriter(Runnable write) {
        this.write = write;
        thread = new Thread(this, "kv-writer");
        thread.setDaemon(true);
        thread.start();
    }

    /** Says that there is something to be written. Any thread; neither waits nor allocates. */
    void changed() {
        if (!isChanged) {
            isChanged = true;
            LockSupport.unpark(thread);
        }
    }

    /** Has the rest written. Returns whether it was done in time. */
    boolean end() {
        isEnding = true;
        LockSupport.unpark(thread);
        try {
            thread.join(Limits.KV_LAST_WRITE_MILLIS);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
        return !thread.isAlive();
    }

    @Override
    public void run() {
        while (!isEnding) {
            while (!isChanged && !isEnding) {
                LockSupport.park(this);
            }
            long until = System.nanoTime() + Limits.KV_WRITE_NANOS;
            for (long left = Limits.KV_WRITE_NANOS; left > 0 && !isEnding; left = until - System.nanoTime()) {
                LockSupport.parkNanos(this, left);
            }
            writeIfChanged();
        }
        writeIfChanged();
    }

    private void writeIfChanged() {
        if (isChanged) {
            // What changes from here on is written the next time, if not this time.
            isChanged = false;
            write.run();
        }
    }
}
