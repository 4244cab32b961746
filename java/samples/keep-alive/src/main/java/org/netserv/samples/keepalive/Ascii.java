// SPDX-License-Identifier: Apache-2.0
package org.netserv.samples.keepalive;

import java.nio.charset.StandardCharsets;

/** ASCII text as bytes, for constants. */
final class Ascii {
    private Ascii() {
    }

    /** Returns the bytes of a text. */
    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }
}
