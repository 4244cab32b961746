// SPDX-License-Identifier: Apache-2.0
package org.netserv.host.media;

import java.nio.charset.StandardCharsets;
import java.util.Locale;
import org.netserv.block.BlockException;
import org.netserv.block.BlockException.Code;
import org.netserv.block.Media;
import org.netserv.block.Media.Live;
import org.netserv.block.Media.Order;
import org.netserv.block.Media.Output;
import org.netserv.block.Media.Overlay;
import org.netserv.block.Media.Segments;

/** Orders as the native side reads them. */
final class OrderJson {
    private OrderJson() {
    }

    /** Returns the order as JSON. */
    static String of(Order order) throws BlockException {
        if (order.outputs().size() > Media.OUTPUTS_MAX) {
            throw new BlockException(Code.INVALID, "a job has at most 4 outputs");
        }
        StringBuilder outputs = new StringBuilder();
        for (Output output : order.outputs()) {
            outputs.append(outputs.isEmpty() ? "" : ",").append(json(output));
        }
        Live live = order.live();
        return "{\"transcode\":{\"source\":" + word(order.source()) + ",\"part\":{\"start-ms\":"
                + order.start().toMillis() + ",\"duration-ms\":" + order.duration().toMillis() + ",\"live\":"
                + (live == null ? "null" : json(live)) + "},\"outputs\":[" + outputs + "]}}";
    }

    private static String json(Live live) {
        return "{\"cpu-permille\":" + live.cpuPermille() + ",\"keep-times\":" + live.keepTimes() + "}";
    }

    private static String json(Output output) throws BlockException {
        Overlay overlay = output.overlay();
        return "{\"format\":" + word(output.format()) + ",\"video\":" + word(output.video()) + ",\"audio\":"
                + word(output.audio()) + ",\"width\":" + output.width() + ",\"height\":" + output.height()
                + ",\"video-bit-rate\":" + output.videoBitRate() + ",\"audio-bit-rate\":" + output.audioBitRate()
                + ",\"grey\":" + output.isGrey() + ",\"segments\":" + json(output.segments()) + ",\"overlay\":"
                + (overlay == null ? "null" : json(overlay)) + "}";
    }

    private static String json(Segments segments) {
        return switch (segments.kind()) {
            case FREE, SOURCE -> word(segments.kind());
            case EVERY -> "{\"every\":" + segments.length().toMillis() + "}";
        };
    }

    private static String json(Overlay overlay) throws BlockException {
        return "{\"layer\":" + layer(overlay) + ",\"corner\":" + word(overlay.corner()) + "}";
    }

    private static String layer(Overlay overlay) throws BlockException {
        byte[] picture = overlay.picture();
        if ((overlay.text() == null) == (picture == null)) {
            throw new BlockException(Code.INVALID, "an overlay is a text or a picture");
        }
        if (picture == null) {
            return "{\"text\":" + quoted(overlay.text()) + "}";
        }
        if (startsWith(picture, 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n')) {
            return "\"png\"";
        }
        if (startsWith(picture, 0xff, 0xd8, 0xff)) {
            return "\"jpeg\"";
        }
        throw new BlockException(Code.INVALID, "the picture is neither PNG nor JPEG");
    }

    private static boolean startsWith(byte[] bytes, int... start) {
        if (bytes.length < start.length) {
            return false;
        }
        for (int at = 0; at < start.length; at++) {
            if ((bytes[at] & 0xff) != start[at]) {
                return false;
            }
        }
        return true;
    }

    /** Returns a text as JSON has it: everything but plain letters as an escape, so that nothing of it can mean more. */
    static String quoted(String text) throws BlockException {
        if (text.getBytes(StandardCharsets.UTF_8).length > Media.TEXT_BYTES_MAX) {
            throw new BlockException(Code.TOO_LARGE, "a text has at most 256 bytes");
        }
        StringBuilder json = new StringBuilder("\"");
        for (int at = 0; at < text.length(); at++) {
            char one = text.charAt(at);
            boolean isPlain = one < 128 && (Character.isLetterOrDigit(one) || one == ' ');
            json.append(isPlain ? String.valueOf(one) : String.format("\\u%04x", (int) one));
        }
        return json.append('"').toString();
    }

    /** Returns a constant's name as JSON has it. */
    static String word(Enum<?> value) {
        return "\"" + value.name().toLowerCase(Locale.ROOT).replace('_', '-') + "\"";
    }
}
