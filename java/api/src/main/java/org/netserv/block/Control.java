// SPDX-License-Identifier: Apache-2.0
package org.netserv.block;

import org.osgi.annotation.versioning.ProviderType;

/**
 * Control messages, which the module's user sends to the running module ({@code netserv tell}), and the way back. A
 * service; a module that never asks for it is told nothing ({@code no-inbox}). May be used on any thread.
 *
 * <p>Messages are numbered, each above the one before, and each comes once. The last one of each topic, of 16 topics at
 * most, is kept for as long as the module is installed: a bundle that is started after a restart, or as another version,
 * begins with those. Others that it did not take are lost with it.
 *
 * <pre>{@code
 * Control control = context.getService(context.getServiceReference(Control.class));
 * // netserv tell example.org/sampler --topic sample 10 --to DEST
 * control.listen(message -> {
 *     if (message.topic().equals("sample")) {
 *         oneIn = Integer.parseInt(new String(message.body(), UTF_8));
 *     }
 *     control.notify(message.topic(), "done".getBytes(UTF_8));
 * });
 * // Instead, where it is needed:
 * Message last = control.last("sample");
 * }</pre>
 */
@ProviderType
public interface Control {
    /** Bytes of a message at most. */
    int MESSAGE_BYTES_MAX = 4096;
    /** Bytes of what is told back at most. */
    int NOTIFY_BYTES_MAX = 1024;
    /** Characters of a topic at most, each visible ASCII. */
    int TOPIC_CHARS_MAX = 64;

    /**
     * A message.
     *
     * @param topic what it is about
     * @param seq its number, 64 bits without a sign
     * @param body the message
     */
    record Message(String topic, long seq, byte[] body) {
    }

    /** What takes messages. */
    @FunctionalInterface
    interface Listener {
        /**
         * Takes a message. It has to be done within the module's {@code call-ms}.
         *
         * @param message the message, which is the listener's own
         * @throws Exception whatever goes wrong; it ends the module
         */
        void receive(Message message) throws Exception;
    }

    /**
     * Has messages go to a listener, first the last one of each topic from before, in order. It is called on the packet
     * thread, so that it never overlaps with packets, timers or another message. 64 messages or 256 KiB may wait for it;
     * further ones are refused to their sender ({@code inbox-full}).
     *
     * @param listener the listener, in the place of the one before
     */
    void listen(Listener listener);

    /**
     * Returns the last message of a topic. A module that only reads these is never full.
     *
     * @param topic the topic
     * @return the message, or null if there was none
     */
    Message last(String topic);

    /**
     * Tells the requester of the module's last SETUP something, as a NOTIFY with the event {@code module-message}.
     * Nothing says whether it arrives.
     *
     * @param topic the topic
     * @param body the message
     * @throws BlockException {@code INVALID} for a topic that is none, {@code TOO_LARGE} for more than
     *     {@link #NOTIFY_BYTES_MAX} bytes, {@code QUOTA} after 5 at once or one in each second in the long run
     */
    void notify(String topic, byte[] body) throws BlockException;
}
