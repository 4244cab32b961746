// SPDX-License-Identifier: Apache-2.0
package org.netserv.samples.keepalive;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class AddressTextTest {
    @ParameterizedTest
    @CsvSource({"0,0,::", "0,1,::1", "1000000000000,0,1::", "20010db800000000,1000000000001,2001:db8::1:0:0:1",
        "20010db800000001,1000100010001,2001:db8:0:1:1:1:1:1", "1000000000002,3,1:0:0:2::3", "0,1020304,::102:304",
        "0,ffff01020304,::ffff:1.2.3.4", "1ffff,ffff01020304,::1:ffff:0:ffff:102:304",
        "abcdef0123456789,f0e0d0c0b0a0908,abcd:ef01:2345:6789:f0e:d0c:b0a:908",
        "ffffffffffffffff,ffffffffffffffff,ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"})
    void version6HasItsShortForm(String high, String low, String expected) {
        assertEquals(expected,
                written(true, Long.parseUnsignedLong(high, 16), Long.parseUnsignedLong(low, 16)));
    }

    @ParameterizedTest
    @CsvSource({"0,0.0.0.0", "ffffffff,255.255.255.255", "a090064,10.9.0.100"})
    void version4IsDecimal(String address, String expected) {
        assertEquals(expected, written(false, 0, Long.parseLong(address, 16)));
    }

    @Test
    void noRoomIsSaid() {
        assertThrows(IndexOutOfBoundsException.class, () -> AddressText.write(false, 0, 0, new byte[10], 4));
        assertEquals(10, AddressText.write(false, 0, 0, new byte[10], 3));
    }

    private static String written(boolean v6, long high, long low) {
        byte[] text = new byte[AddressText.TEXT_BYTES_MAX];
        return new String(text, 0, AddressText.write(v6, high, low, text, 0), StandardCharsets.US_ASCII);
    }
}
