// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.Objects;
import org.netserv.block.BlockException;
import org.netserv.block.BlockException.Code;
import org.netserv.block.Injector;

/**
 * Sends packets of one module: those of its calls on the packet thread go where the node takes them from; all others
 * wait for the packet thread.
 */
final class ModuleInjector implements Injector {
    private final Dispatcher dispatcher;
    private final Module module;
    /** Also the lock: modules have this object, and must not be able to lock the host out. */
    private final ArrayDeque<byte[]> waiting = new ArrayDeque<>();
    private int inCall;
    private boolean closed;

    ModuleInjector(Dispatcher dispatcher, Module module) {
        this.dispatcher = dispatcher;
        this.module = module;
    }

    @Override
    public void inject(byte[] from, int start, int length) throws BlockException {
        Objects.checkFromIndexSize(start, length, from.length);
        check(length);
        if (dispatcher.runsHere(module)) {
            countInCall();
            if (dispatcher.injections().add(module.slot(), from, start, length)) {
                return;
            }
        }
        byte[] copy = new byte[length];
        System.arraycopy(from, start, copy, 0, length);
        queue(copy);
    }

    @Override
    public void inject(ByteBuffer packet) throws BlockException {
        int length = packet.remaining();
        check(length);
        if (dispatcher.runsHere(module)) {
            countInCall();
            if (dispatcher.injections().add(module.slot(), packet, packet.position(), length)) {
                return;
            }
        }
        byte[] copy = new byte[length];
        packet.get(packet.position(), copy);
        queue(copy);
    }

    /** Begins a call of the module on the packet thread. */
    void beginCall() {
        inCall = 0;
    }

    /**
     * Moves waiting packets to where the node takes them from, as far as there is room. Returns whether some are left.
     */
    boolean drain(Injections injections) {
        synchronized (waiting) {
            while (!waiting.isEmpty() && !injections.isFull()) {
                byte[] packet = waiting.poll();
                injections.add(module.slot(), packet, 0, packet.length);
                module.countInjected(1);
            }
            return !waiting.isEmpty();
        }
    }

    /** Takes nothing from here on; what waits is still to be sent. */
    void close() {
        synchronized (waiting) {
            closed = true;
        }
    }

    /** Forgets what waits, and takes nothing from here on. */
    void closeNow() {
        synchronized (waiting) {
            closed = true;
            waiting.clear();
        }
    }

    private static void check(int length) throws BlockException {
        if (length < Limits.PACKET_BYTES_MIN) {
            throw new BlockException(Code.INVALID, "a packet has at least 20 bytes");
        }
        if (length > Limits.PACKET_BYTES_MAX) {
            throw new BlockException(Code.TOO_LARGE, "a packet has at most 1,984 bytes");
        }
    }

    private void countInCall() throws BlockException {
        if (inCall >= Limits.INJECTS_PER_CALL_MAX) {
            throw new BlockException(Code.QUOTA, "one call injects at most 64 packets");
        }
        inCall++;
    }

    private void queue(byte[] packet) throws BlockException {
        synchronized (waiting) {
            if (closed || waiting.size() >= Limits.INJECTS_PER_CALL_MAX) {
                throw new BlockException(Code.QUOTA, "64 packets wait to be sent");
            }
            waiting.add(packet);
        }
        dispatcher.wake();
    }
}
