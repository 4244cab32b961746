// SPDX-License-Identifier: Apache-2.0
package org.netserv.samples.bad;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import org.netserv.block.BlockException;
import org.netserv.packet.PacketView;

/** Uses more than it was given. */
final class Scribbler {
    private static final int MANY = 10_000;
    /** The buffer of an earlier packet, and its view. */
    private static ByteBuffer oldBuffer;
    private static PacketView oldView;

    private Scribbler() {
    }

    /** Writes outside of the packet by all ways that there are, then says that it goes on as it came. */
    static void scribble(Surroundings surroundings) throws BlockException {
        PacketView packet = surroundings.packet;
        int length = packet.length();
        surroundings.attempt("writing before the packet", () -> packet.setU8(-1, 0xee));
        surroundings.attempt("writing behind the packet", () -> packet.setU8(length, 0xee));
        surroundings.attempt("writing over its end", () -> packet.setLong(length - 4, -1));
        surroundings.attempt("copying over its end", () -> packet.put(1, new byte[length], 0, length));
        surroundings.attempt("making it too long", () -> packet.setLength(PacketView.LENGTH_MAX + 1));
        surroundings.attempt("making it too short", () -> packet.setLength(PacketView.LENGTH_MIN - 1));
        surroundings.attempt("writing behind the buffer", () -> packet.buffer().put(length, (byte) 0xee));
        surroundings.attempt("writing behind the slot", () -> {
            ByteBuffer buffer = packet.buffer();
            buffer.clear().put(buffer.capacity(), (byte) 0xee);
        });
        surroundings.attempt("writing before the slot", () -> packet.buffer().slice(0, length).put(-1, (byte) 0xee));
        if (oldView != null && oldView != packet) {
            surroundings.attempt("writing to an old view", () -> oldView.setU8(0, 0xee));
        }
        if (oldBuffer != null && oldBuffer != packet.buffer()) {
            // This works, and spoils at most packets of the same user. What passes goes on as it came.
            oldBuffer.put(0, (byte) 0xee);
        }
        ByteBuffer all = packet.buffer().clear();
        while (all.hasRemaining()) {
            all.put((byte) 0xee);
        }
        oldView = packet;
        oldBuffer = packet.buffer();
        packet.pass();
    }

    /** Asks for more than the module's limits. */
    static void exhaustQuotas(Surroundings surroundings) throws BlockException {
        surroundings.attempt("filling the kv state", () -> {
            for (int at = 0; at < MANY; at++) {
                surroundings.module().kv().set(Integer.toString(at).getBytes(StandardCharsets.UTF_8), new byte[100]);
            }
        });
        surroundings.attempt("setting timers", () -> {
            for (int at = 0; at < MANY; at++) {
                surroundings.module().timers().once(Duration.ofDays(1), () -> { });
            }
        });
        surroundings.attempt("sending packets", () -> {
            for (int at = 0; at < MANY; at++) {
                surroundings.module().injector().inject(new byte[PacketView.LENGTH_MIN], 0, PacketView.LENGTH_MIN);
            }
        });
        surroundings.attempt("making counters", () -> {
            for (int at = 0; at < MANY; at++) {
                surroundings.module().counters().open("many-" + at);
            }
        });
    }
}
