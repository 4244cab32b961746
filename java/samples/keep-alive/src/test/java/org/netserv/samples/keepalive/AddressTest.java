// SPDX-License-Identifier: Apache-2.0
package org.netserv.samples.keepalive;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class AddressTest {
    @Test
    void mappedAddressesAreOfVersion6() {
        // InetAddress takes these for IPv4.
        Address address = new Address();
        address.set(true, 0, 0xffff_0102_0304L, 1);
        assertTrue(isNamed(address, "::ffff:1.2.3.4") && isNamed(address, "::FFFF:102:304"));
        assertTrue(isNamed(address, "0:0:0:0:0:ffff:1.2.3.4") && !isNamed(address, "1.2.3.4"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"2001:db8::5", "[2001:db8::5]", "2001:0DB8::0005", "2001:db8:0:0:0:0:0:5",
        "2001:db8:0::0:0.0.0.5", "2001:db8:0:0:0:0::5"})
    void namesOfAnAddressAreKnown(String name) {
        assertTrue(isNamed(Sources.of("[2001:db8::5]:1"), name));
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "[", "[]", "2001:db8::6", "2001:db8:::5", "2001:db8::5:", "12001:db8::5",
        "2001:db8::5%1",
        "2001:db8:0:0:0:0:0:0:5", "[2001:db8::5", "1.2.3.4::", "2001:db8::0.0.0.05", "2001:db8::0.0.5", "::1::5",
        "2001:db8::00005", "2001:db8:0:0:0:0:0::5", "phone.example"})
    void otherNamesAreNot(String name) {
        assertFalse(isNamed(Sources.of("[2001:db8::5]:1"), name));
    }

    @Test
    void octetsHaveNoLeadingZeros() {
        Address address = Sources.of("10.0.0.5:1");
        assertTrue(isNamed(address, "10.0.0.5") && isNamed(address, "[10.0.0.5]"));
        for (String name : new String[] {"10.0.0.05", "10.0.0.6", "10.0.5", "10.0.0.5.", "10.0.0.0x5", "::5"}) {
            assertFalse(isNamed(address, name), name);
        }
    }

    private static boolean isNamed(Address address, String name) {
        byte[] bytes = name.getBytes(StandardCharsets.UTF_8);
        return address.isNamed(bytes, 0, bytes.length);
    }
}
