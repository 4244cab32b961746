// SPDX-License-Identifier: Apache-2.0
package org.netserv.samples.keepalive;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.netserv.packet.IpView;
import org.netserv.packet.PacketView;
import org.netserv.testing.Allocations;
import org.netserv.testing.FakeNode;
import org.netserv.testing.FakePacket;
import org.netserv.testing.Packets;

class KeepAliveTest {
    private static final String PHONE = "192.0.2.9:40000";
    private static final String SERVER = "198.51.100.7:5060";

    private static final String NOTIFY = "NOTIFY sip:example.com SIP/2.0\r\n"
            + "Via: SIP/2.0/UDP 10.0.0.5:5060;branch=z9hG4bK77ef;rport\r\n"
            + "From: \"Alice\" <sip:alice@example.com>;tag=42\r\n"
            + "To: <sip:example.com>\r\n"
            + "Call-ID: 1234@10.0.0.5\r\n"
            + "CSeq: 7 NOTIFY\r\n"
            + "Max-Forwards: 70\r\n"
            + "Event: keep-alive\r\n"
            + "Content-Length: 0\r\n\r\n";

    private FakeNode node = new FakeNode(Map.of());

    @Test
    void aNotifyIsAnswered() throws Exception {
        Answer answer = answerTo(NOTIFY);
        assertEquals(PHONE, answer.to);
        String tag = answer.text.split("To: <sip:example.com>;tag=")[1].substring(0, 16);
        assertEquals("SIP/2.0 200 OK\r\n"
                + "Via: SIP/2.0/UDP 10.0.0.5:5060;branch=z9hG4bK77ef;received=192.0.2.9;rport=40000\r\n"
                + "From: \"Alice\" <sip:alice@example.com>;tag=42\r\n"
                + "To: <sip:example.com>;tag=" + tag + "\r\n"
                + "Call-ID: 1234@10.0.0.5\r\n"
                + "CSeq: 7 NOTIFY\r\n"
                + "Content-Length: 0\r\n\r\n", answer.text);
        assertEquals(1, node.counter("notify"));
    }

    @Test
    void withoutRportTheAnswerGoesToThePortOfTheVia() throws Exception {
        String plain = NOTIFY.replace(";rport", "").replace("10.0.0.5:5060", "10.0.0.5:5062");
        assertEquals("192.0.2.9:5062", answerTo(plain).to);
        node = new FakeNode(Map.of("force-rport", "on"));
        assertEquals(PHONE, answerTo(plain).to);
    }

    @Test
    void allViasAreCopied() throws Exception {
        String text = answerTo(NOTIFY.replace(
                ";rport\r\n", ";rport , SIP/2.0/TCP b\r\nv: SIP/2.0/UDP c\r\n  ;branch=2\r\n")).text;
        assertEquals(List.of("Via: SIP/2.0/UDP 10.0.0.5:5060;branch=z9hG4bK77ef;received=192.0.2.9;rport=40000",
                "Via: SIP/2.0/TCP b", "Via: SIP/2.0/UDP c    ;branch=2"),
                text.lines().filter(line -> line.startsWith("Via: ")).toList());
    }

    @Test
    void aRequestThatComesAgainGetsTheSameTag() throws Exception {
        KeepAlive module = new KeepAlive(node);
        byte[] first = node.process(module, packet(NOTIFY));
        assertArrayEquals(first, node.process(module, packet(NOTIFY)));
        byte[] next = node.process(module, packet(NOTIFY.replace("CSeq: 7", "CSeq: 8")));
        assertNotEquals(new String(first, StandardCharsets.ISO_8859_1), new String(next, StandardCharsets.ISO_8859_1));
    }

    @Test
    void onlyKeepAliveNotifiesAreAnswered() throws Exception {
        assertFalse(passes(NOTIFY.replace("Event: keep-alive", "o: Keep-Alive;x=1")));
        assertFalse(passes(NOTIFY.replace("sip:example.com SIP", "sip:alice@example.com SIP")));
        assertTrue(passes(NOTIFY.replace("Event: keep-alive", "Event: presence")));
        assertTrue(passes(NOTIFY.replace("Event: keep-alive\r\n", "")));
        assertTrue(passes(NOTIFY.replace("Event:", "Require: 100rel\r\nEvent:")));
        assertTrue(passes(NOTIFY.replace("Event:", "pRoxy-Require: 100rel\r\nEvent:")));
        assertTrue(passes(NOTIFY.replace("NOTIFY", "SUBSCRIBE")));
    }

    @Test
    void onlyPingsToTheServerAreAnswered() throws Exception {
        String ping = NOTIFY.replace("NOTIFY", "OPTIONS").replace("Event: keep-alive\r\n", "");
        assertTrue(answerTo(ping).text.contains("\r\nCSeq: 7 OPTIONS\r\n"));
        assertTrue(passes(ping.replace("sip:example.com SIP", "sip:bob@example.com SIP")));
        assertTrue(passes(ping.replace("To: <sip:example.com>", "To: <sip:example.com>;tag=1")));
        node = new FakeNode(Map.of("options", "off"));
        assertTrue(passes(ping));
        FakeNode wrong = new FakeNode(Map.of("options", "maybe"));
        String message = assertThrows(IllegalArgumentException.class, () -> new KeepAlive(wrong)).getMessage();
        assertEquals("property `options` is `maybe`; write `on` or `off`", message);
    }

    @Test
    void crlfPingsGetAPong() throws Exception {
        assertEquals(new Answer(PHONE, "\r\n"), answerTo("\r\n\r\n"));
        KeepAlive module = new KeepAlive(node);
        assertNull(node.process(module, packet("\r\n")));
        assertEquals(2, node.counter("crlf"));
        for (String other : new String[] {"", "\r\n\r\n\r\n", "\r", "\n\r", "\r\n\r", "\r\n\n\n"}) {
            assertTrue(passes(other));
        }
    }

    @Test
    void damagedRequestsPass() throws Exception {
        for (String name : new String[] {"Via", "From", "To", "Call-ID", "CSeq"}) {
            assertTrue(passes(NOTIFY.replace("\r\n" + name + ": ", "\r\nX: ")), name);
        }
        String[][] changes = {{"\r\n\r\n", "\r\n"}, {"SIP/2.0\r\n", "SIP/3.0\r\n"},
            {"CSeq: 7 NOTIFY", "CSeq: 7 OPTIONS"}, {"CSeq: 7 NOTIFY", "CSeq: x NOTIFY"},
            {"Event: keep-alive\r\n", "Event: keep-alive\r\nEvent: keep-alive\r\n"},
            {"Max-Forwards: 70\r\n", "Max-Forwards: 70\n"}, {"Max-Forwards", "Max Forwards"},
            {"Max-Forwards:", "Max-Forwards"}, {"10.0.0.5:5060;", "10.0.0.5:0x1;"}, {"SIP/2.0/UDP", "SIP/2.0/TLS"},
            {"sip:example.com SIP", "sip:example.com  SIP"}, {"10.0.0.5:5060;branch=z9hG4bK77ef;rport", "a:0"}};
        for (String[] change : changes) {
            assertTrue(passes(NOTIFY.replace(change[0], change[1])), change[1]);
        }
        assertTrue(passes(NOTIFY.replace("Max-Forwards: 70\r\n", "X: y\r\n".repeat(64))));
        assertFalse(passes(NOTIFY.replace("Max-Forwards: 70\r\n", "X: y\r\n".repeat(56))));
        assertEquals(1, answersOf("v: x\r\n"));
        assertEquals(0, answersOf("v: x\r\n".repeat(100)));
    }

    @Test
    void noDamageMakesItThrow() throws Exception {
        KeepAlive module = new KeepAlive(node);
        for (int at = 0; at < NOTIFY.length(); at++) {
            node.process(module, packet(NOTIFY.substring(0, at)));
            for (char value : "\0\r\n :;,<\"\\[\u00ff".toCharArray()) {
                node.process(module, packet(NOTIFY.substring(0, at) + value + NOTIFY.substring(at + 1)));
            }
        }
    }

    @Test
    void anAnswerThatDoesNotFitIsNotGiven() throws Exception {
        // What the answer adds is longer than what it leaves out, so it does not fit where the request just does.
        String start = NOTIFY.replace("Max-Forwards: 70\r\n", "").replace(";rport", ";rport;x=");
        String filler = "y".repeat(PacketView.LENGTH_MAX - 28 - start.length());
        String full = start.replace(";x=", ";x=" + filler);
        assertTrue(passes(full));
        assertFalse(passes(full.replace(filler, filler.substring(40))));
    }

    @Test
    void nothingIsAllocatedPerPacket() throws Exception {
        KeepAlive module = new KeepAlive(node);
        List<byte[]> packets = new ArrayList<>();
        String ping = NOTIFY.replace("NOTIFY", "OPTIONS").replace("Event: keep-alive\r\n", "");
        for (String text : new String[] {NOTIFY, ping, "\r\n\r\n", "\r\n", NOTIFY.substring(0, 99), "INVITE sip:a"}) {
            packets.add(packet(text));
            packets.add(Packets.udp("[2001:db8::9]:5060", "[2001:db8::7]:5060", 61, bytes(text)));
        }
        assertEquals(0, Allocations.bytesOf(module, packets), "bytes for 12,000 packets");
    }

    private int answersOf(String vias) throws Exception {
        return passes(NOTIFY.replace("From:", vias + "From:")) ? 0 : 1;
    }

    private boolean passes(String payload) throws Exception {
        return answerTo(payload) == null;
    }

    /** Runs the module on one datagram from the phone. Returns where the answer goes and its text; null without one. */
    private Answer answerTo(String payload) throws Exception {
        FakePacket packet = new FakePacket(packet(payload));
        new KeepAlive(node).process(packet);
        return switch (packet.verdict()) {
            case PASS, DROP -> null;
            case MODIFIED -> Answer.of(packet);
        };
    }

    private static byte[] packet(String payload) {
        return Packets.udp(PHONE, SERVER, 61, bytes(payload));
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.ISO_8859_1);
    }

    private record Answer(String to, String text) {
        static Answer of(FakePacket packet) {
            IpView ip = new IpView();
            assertTrue(ip.parse(packet) && ip.isUdp() && ip.hasRightChecksums());
            assertEquals(SERVER, ip.sourceText() + ":" + ip.sourcePort());
            byte[] payload = new byte[ip.payloadLength()];
            packet.get(ip.payloadOffset(), payload, 0, payload.length);
            String to = ip.destinationText() + ":" + ip.destinationPort();
            return new Answer(to, new String(payload, StandardCharsets.ISO_8859_1));
        }
    }
}
