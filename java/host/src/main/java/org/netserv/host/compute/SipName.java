// SPDX-License-Identifier: Apache-2.0
package org.netserv.host.compute;

import java.nio.charset.StandardCharsets;
import java.util.Locale;

/** Names of headers that are known, in any case, long or short (RFC 3261 §7.3.3, RFC 3968). */
final class SipName {
    static final int OTHER = -1;
    static final int VIA = 0;
    static final int FROM = 1;
    static final int TO = 2;
    static final int CALL_ID = 3;
    static final int CSEQ = 4;
    static final int CONTENT_LENGTH = 5;

    /** The first six are those above, and then there are those with a short form. */
    private static final String[] LONG = {
        "via", "from", "to", "call-id", "cseq", "content-length", "accept-contact", "referred-by", "content-type",
        "request-disposition", "content-encoding", "reject-contact", "supported", "contact", "event", "refer-to",
        "subject", "allow-events", "session-expires", "identity",
    };
    private static final String SHORT = "vfti\0labcdejkmorsuxy";

    private SipName() {
    }

    /** Returns the number of a name, or {@link #OTHER}. */
    static int of(byte[] bytes, int from, int end) {
        if (end - from == 1) {
            return SHORT.indexOf(bytes[from] | 0x20);
        }
        for (int number = 0; number < LONG.length; number++) {
            if (SipBytes.is(bytes, from, end, LONG[number])) {
                return number;
            }
        }
        return OTHER;
    }

    /** Returns a name in its long form and lower case. */
    static String text(int number, byte[] bytes, int from, int end) {
        if (number != OTHER) {
            return LONG[number];
        }
        return new String(bytes, from, end - from, StandardCharsets.US_ASCII).toLowerCase(Locale.ROOT);
    }

    /** Returns whether a name is this one, in its long form and lower case. */
    static boolean is(int number, byte[] bytes, int from, int end, String name) {
        return number == OTHER ? SipBytes.is(bytes, from, end, name) : LONG[number].equals(name);
    }
}
