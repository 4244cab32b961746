// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

/** The native side of states that move. A load has the number of its port for control messages. */
final class StateNative {
    private StateNative() {
    }

    /** Returns what another instance said for a module that is being loaded; null if nothing. */
    static native byte[] given(long load);

    /** Forgets that. Returns whether there was something. */
    static native boolean forget(long load);

    /** Leaves what a module says for whoever asked; on the packet thread. */
    static native void say(byte[] state);

    /** Says why a module does not say its state, with the node's word for it; on the packet thread. */
    static native void decline(String refusalKind, String detail);
}
