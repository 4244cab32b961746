// SPDX-License-Identifier: Apache-2.0
package org.netserv.samples.keepalive;

/**
 * The topmost Via (RFC 3261 §18.2, RFC 3581): writes it with where the request really came from. One object is used for
 * request after request.
 */
final class Via {
    private static final byte[] PROTOCOL = Ascii.bytes("sip/2.0/udp");
    private static final byte[] RPORT = Ascii.bytes("rport");
    private static final byte[] MADDR = Ascii.bytes("maddr");
    private static final byte[] RECEIVED = Ascii.bytes("received");
    private static final byte[] RECEIVED_IS = Ascii.bytes(";received=");
    private static final byte[] RPORT_IS = Ascii.bytes(";rport=");
    private static final ByteSet PART_STOPS = ByteSet.of(";,\"");
    private static final ByteSet HOST =
            ByteSet.of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._");
    private static final ByteSet ADDRESS_V6 = ByteSet.of("abcdefABCDEF0123456789:.");
    /** RFC 3261 §18.2.2. */
    private static final int DEFAULT_PORT = 5060;
    private static final int PORT_MAX = 65_535;

    private int hostEnd;
    private int port;
    private boolean hasRport;
    private int othersFrom;
    private int othersEnd;

    /** Returns the port that the sender listens on. */
    int port() {
        return port;
    }

    /** Returns whether the answer goes to the port that the request came from. */
    boolean hasRport() {
        return hasRport;
    }

    /** Returns where the other Vias of the same header are. */
    int othersFrom() {
        return othersFrom;
    }

    /** Returns where the other Vias of the same header end. */
    int othersEnd() {
        return othersEnd;
    }

    /**
     * Writes the first Via of a header value. Returns false if it is damaged or asks for another transport or address;
     * what was written has no meaning then.
     */
    boolean answerFirst(byte[] bytes, int from, int end, Address source, TextWriter text) {
        int at = partEnd(bytes, from, end);
        int sentFrom = Text.trimStart(bytes, from, at);
        int sentEnd = Text.trimEnd(bytes, sentFrom, at);
        int protocolEnd = sentFrom + PROTOCOL.length;
        if (protocolEnd >= sentEnd || !Text.isIgnoringCase(bytes, sentFrom, protocolEnd, PROTOCOL)
                || !Text.isSpace(bytes[protocolEnd])) {
            return false;
        }
        int hostFrom = Text.trimStart(bytes, protocolEnd, sentEnd);
        if (!splitPort(bytes, hostFrom, sentEnd)) {
            return false;
        }
        text.put(bytes, sentFrom, sentEnd);
        hasRport = false;
        while (at < end && bytes[at] == ';') {
            int start = at + 1;
            at = partEnd(bytes, start, end);
            if (!takeParameter(bytes, start, at, text)) {
                return false;
            }
        }
        if (hasRport || !source.isNamed(bytes, hostFrom, hostEnd)) {
            text.put(RECEIVED_IS);
            source.write(text);
        }
        if (hasRport) {
            text.put(RPORT_IS);
            text.putNumber(source.port());
        }
        othersFrom = Text.trimStart(bytes, Math.min(at + 1, end), end);
        othersEnd = Text.trimEnd(bytes, othersFrom, end);
        return true;
    }

    /** Notes or copies a parameter. Returns false for one that sends the answer elsewhere. */
    private boolean takeParameter(byte[] bytes, int from, int end, TextWriter text) {
        int start = Text.trimStart(bytes, from, end);
        int stop = Text.trimEnd(bytes, start, end);
        int first = start < stop ? bytes[start] | 0x20 : 0;
        // By the first letter first: most parameters are none of these.
        if (first == 'm' || first == 'r') {
            int nameEnd = Text.trimEnd(bytes, start, Text.find(bytes, start, stop, '='));
            if (Text.isIgnoringCase(bytes, start, nameEnd, MADDR)) {
                return false;
            }
            if (Text.isIgnoringCase(bytes, start, nameEnd, RPORT)) {
                hasRport = true;
                return true;
            }
            if (Text.isIgnoringCase(bytes, start, nameEnd, RECEIVED)) {
                return true;
            }
        }
        text.put(';');
        text.put(bytes, start, stop);
        return true;
    }

    /** Returns where the part ends that starts there: at a semicolon or comma outside quotes, or at the end. */
    private static int partEnd(byte[] bytes, int from, int end) {
        int at = PART_STOPS.find(bytes, from, end);
        while (at < end && bytes[at] == '"') {
            at = PART_STOPS.find(bytes, SipRequest.quoteEnd(bytes, at, end) + 1, end);
        }
        return at;
    }

    /** Splits {@code host}, {@code host:port} or {@code [address]:port}. Returns false if it is neither. */
    private boolean splitPort(byte[] bytes, int from, int end) {
        if (from == end) {
            return false;
        }
        if (bytes[from] == '[') {
            hostEnd = ADDRESS_V6.findOther(bytes, from + 1, end) + 1;
            if (hostEnd > end || bytes[hostEnd - 1] != ']') {
                return false;
            }
        } else {
            hostEnd = HOST.findOther(bytes, from, end);
        }
        if (hostEnd == from) {
            return false;
        }
        int rest = Text.trimStart(bytes, hostEnd, end);
        if (rest == end) {
            port = DEFAULT_PORT;
            return true;
        }
        return bytes[rest] == ':' && readPort(bytes, Text.trimStart(bytes, rest + 1, end), end);
    }

    private boolean readPort(byte[] bytes, int from, int end) {
        port = 0;
        for (int at = from; at < end; at++) {
            if (!Text.isDigit(bytes[at])) {
                return false;
            }
            port = port * 10 + bytes[at] - '0';
            if (port > PORT_MAX) {
                return false;
            }
        }
        return from < end;
    }
}
