// SPDX-License-Identifier: Apache-2.0
package org.netserv.samples.keepalive;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SipRequestTest {
    @ParameterizedTest
    @ValueSource(strings = {"<sip:a@b>;tag=1", "\"x\" <sip:a@b> ; Tag = 1", "sip:a@b;tag=1",
        "\"\\\"\" <sip:a@b>;x;tag=1", "x;tag"})
    void tagsAreFoundWhereTheyCount(String value) {
        assertTrue(SipRequest.hasTag(bytes(value), 0, value.length()));
    }

    @ParameterizedTest
    @ValueSource(strings = {"<sip:a@b;tag=1>", "\";tag=1\" <sip:a@b>", "sip:a@b", "<sip:a@b>;tagged=1",
        "\"\\\";tag=1\" <a>", "\";tag=1", ";ta", "\\"})
    void tagsAreNotFoundElsewhere(String value) {
        assertFalse(SipRequest.hasTag(bytes(value), 0, value.length()));
    }

    @ParameterizedTest
    @ValueSource(strings = {"sip:example.com", "SIPS:[2001:db8::1]:5061;transport=udp", "sip:192.0.2.1"})
    void serversHaveNoUser(String uri) {
        assertTrue(SipRequest.namesNoUser(bytes(uri), 0, uri.length()));
    }

    @ParameterizedTest
    @ValueSource(strings = {"sip:alice@example.com", "tel:+1234", "sip:", "example.com", "sip:example.com?a=b@c", ""})
    void othersAreNoServers(String uri) {
        assertFalse(SipRequest.namesNoUser(bytes(uri), 0, uri.length()));
    }

    @Test
    void linesEndAtTheFirstControlByteThatCounts() {
        byte[] text = new byte[253];
        int length = 0;
        for (int value = 1; value < 256; value++) {
            if (value != '\r' && value != '\n') {
                text[length++] = (byte) value;
            }
        }
        assertEquals(length, Text.lineEnd(text, 0, length));
        for (int at = 0; at < length; at++) {
            for (byte end : new byte[] {'\r', '\n', 0}) {
                byte[] line = text.clone();
                line[at] = end;
                for (int from = 0; from <= at; from++) {
                    assertEquals(at, Text.lineEnd(line, from, length));
                    assertEquals(at, Text.lineEnd(line, from, at));
                }
            }
        }
    }

    @Test
    void shortTextsAreNumbers() {
        byte[] bytes = {1, 2, 3, 4, 5, 6, 7, 8, 9};
        long word = 0;
        for (int length = 0; length <= 8; length++) {
            word |= length == 0 ? 0 : (long) length << 8 * (length - 1);
            assertEquals(word, Text.littleEndian(bytes, 0, length));
        }
    }

    @Test
    void headersMayGoOnInTheNextLine() {
        String text = "OPTIONS sip:a SIP/2.0\r\nVia: SIP/2.0/UDP 10.0.0.5\r\nf: a\r\n\tb\r\nt: c \r\n d\r\n"
                + "i: e\r\nCSeq: 1 OPTIONS\r\n\r\n";
        SipRequest request = new SipRequest();
        assertTrue(request.parse(bytes(text), text.length()));
        TextWriter response = new TextWriter(500);
        assertEquals(5060, request.writeOk(Sources.of("10.0.0.5:7"), false, 0, response));
        String written = new String(response.bytes(), 0, response.length(), StandardCharsets.UTF_8);
        assertTrue(written.contains("\r\nFrom: a  \tb\r\nTo: c    d;tag="), written);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
