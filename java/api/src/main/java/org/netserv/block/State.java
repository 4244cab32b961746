// SPDX-License-Identifier: Apache-2.0
package org.netserv.block;

import org.osgi.annotation.versioning.ProviderType;

/**
 * What a module carries from one node to another beside its kv entries, which go by themselves
 * ({@code netserv state export}). A service; a module that never asks for it carries its kv entries alone. May be used on
 * any thread.
 *
 * <p>Write numbers in a fixed order and width: the other node may have another processor, and the module there may be a
 * packet module for WebAssembly, which reads the same bytes.
 *
 * <pre>{@code
 * State state = context.getService(context.getServiceReference(State.class));
 * state.carry(new State.Carrier() {
 *     public byte[] exportState() {
 *         return ByteBuffer.allocate(Long.BYTES).putLong(seen).array();
 *     }
 *
 *     public void importState(byte[] said) {
 *         seen = ByteBuffer.wrap(said).getLong();
 *     }
 * });
 * }</pre>
 */
@ProviderType
public interface State {
    /** Bytes at most of all that moves: what the module says, its kv entries, and what frames them. */
    int BYTES_MAX = 64 * 1024 * 1024;

    /** What says a module's state, and takes it. */
    interface Carrier {
        /**
         * Returns what the module has to know elsewhere. It is called on the packet thread, so that it never overlaps
         * with packets, timers or messages, and has to be done within the module's {@code call-ms}. What it puts into kv
         * goes along. The module goes on afterwards.
         *
         * @return the bytes; null or none for nothing to say
         * @throws Exception why it cannot be said now, which the user is told ({@code state-refused}); the module goes on
         */
        byte[] exportState() throws Exception;

        /**
         * Takes what another instance of the module said, of the same schema. Its kv entries are there already. It is
         * called on the thread that calls {@link State#carry}.
         *
         * @param state the bytes, at least one, which are the carrier's own
         * @throws Exception why it cannot be taken, which the user is told ({@code state-refused}); the module is not
         *     installed then, and kv is as before
         */
        void importState(byte[] state) throws Exception;
    }

    /**
     * Names what says the module's state, in the place of the one before. While the bundle starts, and if another
     * instance said something, {@link Carrier#importState} is called with that before this returns. A bundle that has
     * started without that is refused ({@code state-refused}) if it was to begin with what another instance said.
     *
     * @param carrier the carrier
     * @throws BlockException {@code INVALID} if it did not take the state, {@code QUOTA} if there is no memory for it;
     *     the module is not installed, whatever it does then
     */
    void carry(Carrier carrier) throws BlockException;
}
