// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import org.netserv.block.BlockException;

/** The native side of control messages. It makes a port for each load; numbers of nothing hold nothing. */
final class ControlNative {
    private ControlNative() {
    }

    /** Forgets a port, and all that waits in it. */
    static native void close(long port);

    /** Has messages kept for a module that reads the last one of a topic. */
    static native void ask(long port);

    /** Gives a module an inbox, with the last message of each topic from before. */
    static native void listen(long port);

    /** Takes the oldest message out of the inbox, laid out as for {@code control_receive}; null if there is none. */
    static native byte[] receive(long port);

    /** Returns the last message of a topic in the same form, or null. */
    static native byte[] last(long port, String topic);

    static native void notify(long port, String topic, byte[] body) throws BlockException;
}
