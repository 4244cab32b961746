// SPDX-License-Identifier: Apache-2.0
package org.netserv.ip;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.Arrays;
import org.junit.jupiter.api.Test;

class ChecksumTest {
    @Test
    void theChecksumIsTheOneOfTheRfc() {
        // RFC 1071 §3: the sum of these bytes is 0xddf2.
        byte[] bytes = {0x00, 0x01, (byte) 0xf2, 0x03, (byte) 0xf4, (byte) 0xf5, (byte) 0xf6, (byte) 0xf7};
        assertEquals(~0xddf2 & 0xffff, Checksum.finish(Checksum.sum(bytes, 0, 8)));
        assertEquals(~0xddf2 & 0xffff, Checksum.finish(Checksum.sum(0x0001f203f4f5f6f7L)));
        assertEquals(~0xddf2 & 0xffff, Checksum.finish(Checksum.sum(0x0001f203) + Checksum.sum(0xf4f5f6f7)));
    }

    @Test
    void rangesOfAllLengthsAreSummedUp() {
        byte[] bytes = new byte[80];
        Arrays.setAll(new Integer[bytes.length], at -> bytes[at] = (byte) (at * 37 + 200));
        for (int start = 0; start < 17; start++) {
            long sum = 0;
            for (int count = 0; start + count < bytes.length; count++) {
                assertEquals(Checksum.finish(sum), Checksum.finish(Checksum.sum(bytes, start, count)));
                sum += (bytes[start + count] & 0xff) << (count % 2 == 0 ? 8 : 0);
            }
        }
        assertThrows(IndexOutOfBoundsException.class, () -> Checksum.sum(bytes, 1, bytes.length));
    }
}
