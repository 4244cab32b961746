// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;

/**
 * The end of a worker that cannot go on as it is: what is queued for the node is sent, the reason goes to standard
 * error, and the process ends with {@link #EXIT_CODE}, to be started anew by the node.
 */
class Restart {
    /** The code that says that the worker asks to be restarted. */
    static final int EXIT_CODE = 70;

    private final Native node;
    private final AtomicReference<String> reason = new AtomicReference<>();
    private final CountDownLatch sent = new CountDownLatch(1);
    private int looks;

    Restart(Native node) {
        this.node = node;
    }

    /** Ends the process. The packet thread gets a moment to send what is queued. Does not return. */
    void now(String why) {
        if (reason.compareAndSet(null, why)) {
            node.log(-1, 0, "the worker asks to be restarted: " + why);
        }
        node.wake();
        try {
            sent.await(Limits.LAST_WORDS_MILLIS, TimeUnit.MILLISECONDS);
        } catch (InterruptedException interrupted) {
            // There is nothing to wait for any more.
        }
        end(reason.get());
    }

    /** Returns whether the process is about to end. */
    boolean isAsked() {
        return reason.get() != null;
    }

    /** Is told by the packet thread that it sent what was queued before. */
    void handleIdle() {
        // What is queued for a call is sent before it, unless the call came for another reason just then.
        if (isAsked()) {
            looks++;
            if (looks > 1) {
                sent.countDown();
            } else {
                node.wake();
            }
        }
    }

    /** Ends the process; tests do something else. */
    void end(String why) {
        System.err.println("netserv-jvm: " + why);
        System.err.flush();
        Runtime.getRuntime().halt(EXIT_CODE);
    }
}
