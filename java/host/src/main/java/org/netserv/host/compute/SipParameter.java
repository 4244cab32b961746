// SPDX-License-Identifier: Apache-2.0
package org.netserv.host.compute;

import java.nio.charset.StandardCharsets;

/** An address or a Via: where its URI or host is, and the value of one parameter. */
final class SipParameter {
    private static final int NONE = SipBytes.NONE;

    private final String name;
    private int from;
    private int end;
    private int mainFrom;
    private int mainEnd;

    SipParameter(String name) {
        this.name = name;
    }

    /** Returns its value, empty without one. */
    String text(byte[] bytes) {
        return from == NONE ? "" : new String(bytes, from, end - from, StandardCharsets.US_ASCII);
    }

    /** Returns the URI or the host. */
    String main(byte[] bytes) {
        return SipBytes.text(bytes, mainFrom, mainEnd);
    }

    /** Reads a From or To value (RFC 3261 §20.10). Returns whether it is whole. */
    boolean ofAddress(byte[] bytes, int start, int stop) {
        int at = start;
        while (at < stop && bytes[at] != '<' && bytes[at] != ';') {
            if (bytes[at] == '"') {
                at = SipBytes.quoteEnd(bytes, at, stop);
                if (at == NONE) {
                    return false;
                }
            }
            at++;
        }
        int uri = start;
        int uriEnd = SipBytes.trimEnd(bytes, start, at);
        if (at < stop && bytes[at] == '<') {
            uri = at + 1;
            uriEnd = SipBytes.find(bytes, uri, stop, '>');
            at = uriEnd + 1;
        }
        if (uri == uriEnd || uriEnd == stop && at > stop) {
            return false;
        }
        for (int index = uri; index < uriEnd; index++) {
            if (bytes[index] == ' ' || bytes[index] == '\t' || bytes[index] == '"') {
                return false;
            }
        }
        mainFrom = uri;
        mainEnd = uriEnd;
        return read(bytes, at, stop);
    }

    /** Reads the first value of a Via (RFC 3261 §20.42). Returns whether it is whole. */
    boolean ofVia(byte[] bytes, int start, int stop) {
        int valueEnd = SipBytes.partEnd(bytes, start, stop, ',');
        int protocolEnd = valueEnd == NONE ? NONE : protocolEnd(bytes, start, valueEnd);
        int parameters = protocolEnd == NONE ? NONE : SipBytes.partEnd(bytes, protocolEnd, valueEnd, ';');
        if (parameters == NONE || protocolEnd >= stop || !SipBytes.isSpace(bytes[protocolEnd])) {
            return false;
        }
        mainFrom = SipBytes.skipSpaces(bytes, protocolEnd, parameters);
        mainEnd = SipBytes.trimEnd(bytes, mainFrom, parameters);
        return mainFrom < parameters && read(bytes, parameters, valueEnd);
    }

    /** Returns where {@code SIP/2.0/UDP} ends, between whose parts there may be spaces. */
    private static int protocolEnd(byte[] bytes, int start, int stop) {
        int at = start;
        for (int part = 0; part < 3; part++) {
            at = SipBytes.skipSpaces(bytes, at, stop);
            if (part > 0) {
                if (at == stop || bytes[at] != '/') {
                    return NONE;
                }
                at = SipBytes.skipSpaces(bytes, at + 1, stop);
            }
            int tokenEnd = SipBytes.tokenEnd(bytes, at, stop);
            if (tokenEnd == at) {
                return NONE;
            }
            at = tokenEnd;
        }
        return at;
    }

    /** Reads parameters, each behind a semicolon. Returns whether they are whole, and this one at most once there. */
    private boolean read(byte[] bytes, int start, int stop) {
        from = NONE;
        int at = SipBytes.skipSpaces(bytes, start, stop);
        while (at < stop) {
            int next = bytes[at] == ';' ? SipBytes.partEnd(bytes, at + 1, stop, ';') : NONE;
            if (next == NONE) {
                return false;
            }
            int nameStart = SipBytes.skipSpaces(bytes, at + 1, next);
            int nameEnd = SipBytes.tokenEnd(bytes, nameStart, next);
            if (SipBytes.is(bytes, nameStart, nameEnd, name) && !take(bytes, nameEnd, next)) {
                return false;
            }
            at = next;
        }
        return true;
    }

    private boolean take(byte[] bytes, int nameEnd, int stop) {
        int equals = SipBytes.skipSpaces(bytes, nameEnd, stop);
        if (from != NONE || equals == stop || bytes[equals] != '=') {
            return false;
        }
        from = SipBytes.skipSpaces(bytes, equals + 1, stop);
        end = SipBytes.trimEnd(bytes, from, stop);
        return SipBytes.isToken(bytes, from, end);
    }
}
