// SPDX-License-Identifier: Apache-2.0
package org.netserv.host.compute;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.netserv.block.Sip;
import org.netserv.block.SipMessage;
import org.netserv.packet.PacketProcessor;
import org.netserv.testing.Allocations;
import org.netserv.testing.FakePacket;

/** SIP messages, by the cases that the parser of Wasm modules has too. */
class SipTextTest {
    private static final Path VECTORS = Path.of("../../vectors/sip");

    private final SipMessage message = new SipBlock().message();

    @Test
    void messagesAreTakenApart() throws IOException {
        List<Path> files;
        try (var all = Files.list(VECTORS)) {
            files = all.filter(path -> path.toString().endsWith(".sip")).sorted().toList();
        }
        assertTrue(files.size() > 50, "too few cases: " + files);
        for (Path file : files) {
            byte[] text = Files.readAllBytes(file);
            String expected = Files.readString(Path.of(file.toString().replaceAll("sip$", "txt")));
            assertEquals(expected, shown(text, 0), file.toString());
            byte[] within = new byte[text.length + 7];
            System.arraycopy(text, 0, within, 5, text.length);
            message.parse(within, 5, text.length);
            assertEquals(expected, shown(), file + " within an array");
        }
    }

    private String shown(byte[] text, int start) {
        message.parse(text, start, text.length - start);
        return shown();
    }

    private String shown() {
        if (message.errorReason() != null) {
            return "error " + message.errorReason() + "\n";
        }
        StringBuilder text = new StringBuilder();
        line(text, message.isRequest() ? "request " + message.method() + " " + message.uri()
                : "response " + message.status() + " " + message.reason());
        for (int index = 0; index < message.headers(); index++) {
            line(text, "header " + message.headerName(index) + " " + message.headerValue(index));
        }
        line(text, "call-id " + message.callId());
        line(text, "cseq " + message.cseqNumber() + " " + message.cseqMethod());
        line(text, "from-tag " + message.fromTag());
        line(text, "to-tag " + message.toTag());
        line(text, "branch " + message.branch());
        line(text, "body " + message.bodyStart() + " " + message.bodyLength());
        return text.toString();
    }

    private static void line(StringBuilder text, String line) {
        text.append(line.stripTrailing()).append('\n');
    }

    private static byte[] request() throws IOException {
        return Files.readAllBytes(VECTORS.resolve("compact.sip"));
    }

    @Test
    void headersAreFoundAndMatched() throws IOException {
        byte[] text = request();
        assertTrue(message.parse(text, 0, text.length));
        assertTrue(message.isRequest("INVITE"));
        assertFalse(message.isRequest("invite"));
        assertEquals(0, message.find("via", 0));
        assertEquals(1, message.find("via", 1));
        assertEquals(-1, message.find("via", 2));
        assertEquals("application/sdp", message.header("content-type"));
        assertNull(message.header("subject"));
        assertTrue(message.matches("content-type", "Application/SDP"));
        assertTrue(message.matches("to", "sip:bob@example.com"));
        assertFalse(message.matches("to", "sip:bob@example.co"));
        assertTrue(message.matches("x-unknown", ""));
        assertFalse(message.matches("subject", ""));
        assertTrue(message.contains("via", "UDP C"));
        assertFalse(message.contains("via", "udp d"));
        assertFalse(message.contains("x-unknown", "x"));
        assertEquals("sip:a@b;tag=no", message.fromUri());
        assertEquals("sip:bob@example.com", message.toUri());
        assertEquals("a", message.sentBy());
        String value = new String(text, message.valueStart(4), message.valueEnd(4) - message.valueStart(4),
                StandardCharsets.UTF_8);
        assertEquals(message.headerValue(4), value);
        assertThrows(IndexOutOfBoundsException.class, () -> message.headerName(message.headers()));
        assertFalse(message.parse(text, 0, 10));
        assertThrows(IllegalStateException.class, message::headers);
        assertThrows(IllegalStateException.class, () -> message.matches("to", ""));
        assertThrows(IllegalStateException.class, message::callId);
        assertThrows(IndexOutOfBoundsException.class, () -> message.parse(text, 1, text.length));
    }

    @Test
    void messagesAreBounded() throws IOException {
        String request = Files.readString(VECTORS.resolve("request.sip"));
        String head = request.substring(0, request.length() - 2);
        check(head + "X: y\r\n".repeat(Sip.HEADERS_MAX - 5) + "\r\n", null);
        assertEquals(Sip.HEADERS_MAX, message.headers());
        check(head + "X: y\r\n".repeat(Sip.HEADERS_MAX - 4) + "\r\n", "too many headers");
        check(request + "b".repeat(Sip.MESSAGE_BYTES_MAX - request.length()), null);
        check(request + "b".repeat(Sip.MESSAGE_BYTES_MAX + 1 - request.length()), "too large");
    }

    private void check(String text, String error) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        message.parse(bytes, 0, bytes.length);
        assertEquals(error, message.errorReason());
    }

    @Test
    void noDamageMakesItThrow() throws IOException {
        byte[] whole = Files.readAllBytes(VECTORS.resolve("rfc4475-tortuous.sip"));
        Random random = new Random(7);
        byte[] some = "\r\n \t\":;,<>=\\/a1\0\u00ffSIP.20@".getBytes(StandardCharsets.ISO_8859_1);
        int good = 0;
        for (int round = 0; round < 20_000; round++) {
            byte[] text = whole.clone();
            for (int change = random.nextInt(6); change >= 0; change--) {
                text[random.nextInt(text.length)] = some[random.nextInt(some.length)];
            }
            good += shown(text, 0).startsWith("error") ? 0 : 1;
            message.parse(text, 0, random.nextInt(text.length));
            shown();
        }
        assertTrue(good > 100, "only " + good + " were messages");
    }

    @Test
    void nothingIsAllocatedPerPacket() throws Exception {
        byte[] invite = request();
        PacketProcessor processor = packet -> {
            if (message.parse(packet, 0, packet.length()) && message.isRequest("INVITE")
                    && message.matches("content-type", "application/sdp") && message.find("x-other", 0) < 0) {
                packet.drop();
            }
        };
        FakePacket packet = new FakePacket(invite);
        processor.process(packet);
        assertNull(packet.outcome());
        byte[] cut = Arrays.copyOf(invite, 100);
        assertEquals(0, Allocations.bytesOf(processor, List.of(invite, cut)));
    }
}
