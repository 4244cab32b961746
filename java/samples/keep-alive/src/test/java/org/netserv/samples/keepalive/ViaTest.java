// SPDX-License-Identifier: Apache-2.0
package org.netserv.samples.keepalive;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ViaTest {
    private static final String PHONE = "192.0.2.9:40000";

    @Test
    void theSourceIsPutIn() {
        check("SIP/2.0/UDP 10.0.0.5:5062;branch=z9hG4bK1", "10.0.0.5:40000",
                "SIP/2.0/UDP 10.0.0.5:5062;branch=z9hG4bK1", 5062);
        check("SIP/2.0/UDP 10.0.0.5;branch=z9hG4bK1", PHONE,
                "SIP/2.0/UDP 10.0.0.5;branch=z9hG4bK1;received=192.0.2.9", 5060);
        check("SIP/2.0/UDP 10.0.0.5;rport;branch=z9hG4bK1", "10.0.0.5:40000",
                "SIP/2.0/UDP 10.0.0.5;branch=z9hG4bK1;received=10.0.0.5;rport=40000", 40000);
        check("sip/2.0/udp  phone.example:5061 ; received=6.6.6.6 ;rport=1;x=\"a;b\"", PHONE,
                "sip/2.0/udp  phone.example:5061;x=\"a;b\";received=192.0.2.9;rport=40000", 40000);
        check("SIP/2.0/UDP [2001:db8::5]:5062;branch=z", "[2001:db8::5]:5062",
                "SIP/2.0/UDP [2001:db8::5]:5062;branch=z", 5062);
    }

    @Test
    void theOtherViasStay() {
        Answer answer = answer("SIP/2.0/UDP a;x=\"1,\\\"2\" , SIP/2.0/UDP b, SIP/2.0/TCP c", "192.0.2.9:1");
        assertEquals("SIP/2.0/UDP a;x=\"1,\\\"2\";received=192.0.2.9", answer.first);
        assertEquals("SIP/2.0/UDP b, SIP/2.0/TCP c", answer.others);
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "SIP/2.0/UDP", "SIP/2.0/UDP ;branch=1", "SIP/2.0/TCP a", "SIP/2.0/UDP a:port",
        "SIP/2.0/UDP a:70000", "SIP/2.0/UDP a:", "SIP/2.0/UDP [::1", "SIP/2.0/UDP a b", "SIP/2.0/UDP a[b]",
        "SIP/2.0/UDP [phone]:5060", "SIP/2.0/UDP a;maddr=239.1.1.1"})
    void otherTransportsAndDamageAreNothing(String value) {
        assertNull(answer(value, "192.0.2.9:1"));
    }

    private static void check(String value, String source, String expected, int port) {
        assertEquals(new Answer(expected, port, ""), answer(value, source));
    }

    private static Answer answer(String value, String source) {
        Address address = Sources.of(source);
        TextWriter text = new TextWriter(200);
        Via via = new Via();
        // Neighbours that must not be looked at.
        byte[] bytes = ("\"" + value + "\"").getBytes(StandardCharsets.UTF_8);
        if (!via.answerFirst(bytes, 1, bytes.length - 1, address, text)) {
            return null;
        }
        int port = via.hasRport() ? address.port() : via.port();
        String first = new String(text.bytes(), 0, text.length(), StandardCharsets.UTF_8);
        int othersLength = via.othersEnd() - via.othersFrom();
        return new Answer(first, port, new String(bytes, via.othersFrom(), othersLength, StandardCharsets.UTF_8));
    }

    private record Answer(String first, int port, String others) {
    }
}
