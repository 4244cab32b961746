// SPDX-License-Identifier: Apache-2.0
package org.netserv.host.compute;

import java.nio.charset.StandardCharsets;

/** What SIP's grammar calls its parts, in bytes. Places are indices; {@link #NONE} means that something is damaged. */
final class SipBytes {
    static final int NONE = -1;

    private static final boolean[] TOKEN = new boolean[256];

    static {
        String set = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.!%*_+`'~";
        set.chars().forEach(value -> TOKEN[value] = true);
    }

    private SipBytes() {
    }

    static boolean isToken(byte value) {
        return TOKEN[value & 0xff];
    }

    /** Returns whether there is a token (RFC 3261 §25.1) and nothing else. */
    static boolean isToken(byte[] bytes, int from, int end) {
        return from < end && tokenEnd(bytes, from, end) == end;
    }

    static int tokenEnd(byte[] bytes, int from, int end) {
        int at = from;
        while (at < end && isToken(bytes[at])) {
            at++;
        }
        return at;
    }

    static boolean isSpace(byte value) {
        return value == ' ' || value >= '\t' && value <= '\r' && value != 0x0b;
    }

    static int skipSpaces(byte[] bytes, int from, int end) {
        int at = from;
        while (at < end && isSpace(bytes[at])) {
            at++;
        }
        return at;
    }

    static int trimEnd(byte[] bytes, int from, int end) {
        int at = end;
        while (at > from && isSpace(bytes[at - 1])) {
            at--;
        }
        return at;
    }

    static int find(byte[] bytes, int from, int end, char wanted) {
        for (int at = from; at < end; at++) {
            if (bytes[at] == wanted) {
                return at;
            }
        }
        return end;
    }

    /** Returns where the quoted string's closing quote is that opens at {@code from}, or {@link #NONE}. */
    static int quoteEnd(byte[] bytes, int from, int end) {
        for (int at = from + 1; at < end; at++) {
            if (bytes[at] == '"') {
                return at;
            }
            at += bytes[at] == '\\' ? 1 : 0;
        }
        return NONE;
    }

    /**
     * Returns where the part ends that starts at {@code from}: at the first separator outside of quotes, or at the end;
     * {@link #NONE} if a quote does not end.
     */
    static int partEnd(byte[] bytes, int from, int end, char separator) {
        for (int at = from; at < end; at++) {
            if (bytes[at] == separator) {
                return at;
            }
            if (bytes[at] == '"') {
                at = quoteEnd(bytes, at, end);
                if (at == NONE) {
                    return NONE;
                }
            }
        }
        return end;
    }

    /** Returns a decimal number below 2³² of at most ten digits, or {@link #NONE}. */
    static long number(byte[] bytes, int from, int end) {
        if (from >= end || end - from > 10) {
            return NONE;
        }
        long number = 0;
        for (int at = from; at < end; at++) {
            if (bytes[at] < '0' || bytes[at] > '9') {
                return NONE;
            }
            number = 10 * number + bytes[at] - '0';
        }
        return number < 1L << 32 ? number : NONE;
    }

    /** Returns whether there is a text in ASCII, in any case. */
    static boolean is(byte[] bytes, int from, int end, String text) {
        if (end - from != text.length()) {
            return false;
        }
        for (int at = 0; at < text.length(); at++) {
            if (lower(bytes[from + at]) != lower((byte) text.charAt(at))) {
                return false;
            }
        }
        return true;
    }

    /** Returns whether there is a text in ASCII, in this case. */
    static boolean isExactly(byte[] bytes, int from, int end, String text) {
        if (end - from != text.length()) {
            return false;
        }
        for (int at = 0; at < text.length(); at++) {
            if (bytes[from + at] != text.charAt(at)) {
                return false;
            }
        }
        return true;
    }

    /** Returns a text whose lines are joined. */
    static String text(byte[] bytes, int from, int end) {
        if (find(bytes, from, end, '\r') == end) {
            return new String(bytes, from, end - from, StandardCharsets.UTF_8);
        }
        byte[] joined = new byte[end - from];
        int length = 0;
        for (int at = from; at < end; at++) {
            if (bytes[at] == '\r') {
                while (length > 0 && isSpace(joined[length - 1])) {
                    length--;
                }
                at = skipSpaces(bytes, at, end) - 1;
                joined[length++] = ' ';
            } else {
                joined[length++] = bytes[at];
            }
        }
        return new String(joined, 0, length, StandardCharsets.UTF_8);
    }

    private static int lower(byte value) {
        return value >= 'A' && value <= 'Z' ? value + 32 : value;
    }
}
