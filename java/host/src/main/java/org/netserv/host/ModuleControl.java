// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicReference;
import org.netserv.block.BlockException;
import org.netserv.block.Control;

/** What one module is told, and tells: the native side's port of its load. */
final class ModuleControl implements Control {
    /** Where the length of the topic is, behind the number. */
    private static final int LENGTH_AT = Long.BYTES;
    private static final int TOPIC_AT = LENGTH_AT + Short.BYTES;

    private final long port;
    private final Runnable onListener;
    private final AtomicReference<Listener> listener = new AtomicReference<>();
    private volatile boolean isLoaded;

    /** Takes a port. {@code onListener} is told when there may be messages to deliver. */
    ModuleControl(long port, Runnable onListener) {
        this.port = port;
        this.onListener = onListener;
    }

    /** Says that the module reads the last messages of topics. */
    ModuleControl open() {
        ControlNative.ask(port);
        return this;
    }

    /** Says that the node knows that the module runs. What it says to a message would be nobody's before. */
    void begin() {
        isLoaded = true;
        onListener.run();
    }

    /** Takes no messages from here on, and tells nothing. */
    void close() {
        ControlNative.close(port);
        listener.set(null);
    }

    /** Returns what takes messages, or null; on the packet thread. */
    Listener listener() {
        return isLoaded ? listener.get() : null;
    }

    /** Takes the oldest message, or null; on the packet thread. */
    Message poll() {
        return message(ControlNative.receive(port));
    }

    @Override
    public void listen(Listener listener) {
        Objects.requireNonNull(listener);
        if (this.listener.getAndSet(listener) == null) {
            ControlNative.listen(port);
        }
        onListener.run();
    }

    @Override
    public Message last(String topic) {
        return message(ControlNative.last(port, topic));
    }

    @Override
    public void notify(String topic, byte[] body) throws BlockException {
        ControlNative.notify(port, topic, body);
    }

    private static Message message(byte[] bytes) {
        if (bytes == null) {
            return null;
        }
        ByteBuffer read = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
        int bodyAt = TOPIC_AT + Short.toUnsignedInt(read.getShort(LENGTH_AT));
        String topic = new String(bytes, TOPIC_AT, bodyAt - TOPIC_AT, StandardCharsets.US_ASCII);
        return new Message(topic, read.getLong(0), Arrays.copyOfRange(bytes, bodyAt, bytes.length));
    }
}
