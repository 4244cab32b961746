// SPDX-License-Identifier: Apache-2.0
package org.netserv.samples.keepalive;

import java.util.Arrays;

/**
 * As much of SIP (RFC 3261) as keep-alives need: a request whose headers could be told apart. One object is used for
 * datagram after datagram; it holds places in the datagram, no copies.
 */
final class SipRequest {
    /** Headers of a request; one with more is not looked at. */
    static final int HEADERS_MAX = 64;

    private static final byte[] VERSION = Ascii.bytes("sip/2.0");
    private static final byte[] NOTIFY = Ascii.bytes("NOTIFY");
    private static final byte[] OPTIONS = Ascii.bytes("OPTIONS");
    private static final byte[] KEEP_ALIVE = Ascii.bytes("keep-alive");
    private static final byte[] PROXY_REQUIRE = Ascii.bytes("proxy-require");
    private static final byte[] SIP = Ascii.bytes("sip:");
    private static final byte[] SIPS = Ascii.bytes("sips:");
    private static final byte[] TAG = Ascii.bytes("tag");

    private static final byte[] OK_AND_VIA = Ascii.bytes("SIP/2.0 200 OK\r\nVia: ");
    private static final byte[] VIA_HEADER = Ascii.bytes("\r\nVia: ");
    private static final byte[] FROM_HEADER = Ascii.bytes("\r\nFrom: ");
    private static final byte[] TO_HEADER = Ascii.bytes("\r\nTo: ");
    private static final byte[] TAG_PARAMETER = Ascii.bytes(";tag=");
    private static final byte[] CALL_ID_HEADER = Ascii.bytes("\r\nCall-ID: ");
    private static final byte[] CSEQ_HEADER = Ascii.bytes("\r\nCSeq: ");
    private static final byte[] LAST_HEADER = Ascii.bytes("\r\nContent-Length: 0\r\n\r\n");

    private static final long WORD_VIA = word("via");
    private static final long WORD_V = word("v");
    private static final long WORD_FROM = word("from");
    private static final long WORD_F = word("f");
    private static final long WORD_TO = word("to");
    private static final long WORD_T = word("t");
    private static final long WORD_CALL_ID = word("call-id");
    private static final long WORD_I = word("i");
    private static final long WORD_CSEQ = word("cseq");
    private static final long WORD_EVENT = word("event");
    private static final long WORD_O = word("o");
    private static final long WORD_REQUIRE = word("require");
    /** This bit is what upper case lacks. */
    private static final long LOWER = 0x2020_2020_2020_2020L;

    private static final ByteSet TOKEN =
            ByteSet.of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.!%*_+`'~");
    private static final ByteSet ADDRESS_PARTS = ByteSet.of("\"<>;");
    private static final ByteSet QUOTED_STOPS = ByteSet.of("\"\\");

    private static final int NONE = -1;

    private byte[] bytes;
    private int end;
    private int methodEnd;
    private int uriFrom;
    private int uriEnd;
    private int viaFrom;
    private int viaEnd;
    private final int[] otherVias = new int[2 * HEADERS_MAX];
    private int otherViaCount;
    private int fromFrom;
    private int fromEnd;
    private int toFrom;
    private int toEnd;
    private int callIdFrom;
    private int callIdEnd;
    private int cseqFrom;
    private int cseqEnd;
    private int eventFrom;
    private int eventEnd;
    /** Whether it asks for extensions, which only the server can say no to. */
    private boolean requires;
    /** Whether some header goes on in further lines. */
    private boolean goesOn;
    private final Via via = new Via();

    /**
     * Takes a datagram in. Returns false if it is no request or lacks what every request has (RFC 3261 §8.1.1); nothing
     * else may be asked then.
     */
    boolean parse(byte[] bytes, int end) {
        this.bytes = bytes;
        this.end = end;
        forget();
        int lineEnd = Text.lineEnd(bytes, 0, end);
        if (!isLineEnd(lineEnd) || !parseFirst(lineEnd)) {
            return false;
        }
        int at = lineEnd + 2;
        for (int count = 0; count <= HEADERS_MAX; count++) {
            if (isLineEnd(at)) {
                return isWhole();
            }
            at = parseHeader(at);
            if (at == NONE) {
                return false;
            }
        }
        return false;
    }

    /** Returns whether this is a NOTIFY that only keeps a binding alive. */
    boolean isKeepAliveNotify() {
        if (requires || eventFrom == NONE || !Text.is(bytes, 0, methodEnd, NOTIFY)) {
            return false;
        }
        int stop = Text.trimEnd(bytes, eventFrom, Text.find(bytes, eventFrom, eventEnd, ';'));
        return Text.isIgnoringCase(bytes, eventFrom, stop, KEEP_ALIVE);
    }

    /** Returns whether this is an OPTIONS outside a dialog to the server itself. */
    boolean isPing() {
        return !requires && Text.is(bytes, 0, methodEnd, OPTIONS) && !hasTag(bytes, toFrom, toEnd)
                && namesNoUser(bytes, uriFrom, uriEnd);
    }

    /**
     * Writes the 200 response to the request, and returns the port that it goes to. {@code source} is where the request
     * came from; {@code secret} makes the To tag one that nobody can guess.
     *
     * <p>Returns 0 if the topmost Via is damaged or asks for another transport or address.
     */
    int writeOk(Address source, boolean forceRport, long secret, TextWriter response) {
        response.put(OK_AND_VIA);
        if (!via.answerFirst(bytes, viaFrom, viaEnd, source, response)) {
            return 0;
        }
        if (via.othersFrom() < via.othersEnd()) {
            response.put(VIA_HEADER);
            response.put(bytes, via.othersFrom(), via.othersEnd());
        }
        for (int at = 0; at < otherViaCount; at++) {
            response.put(VIA_HEADER);
            response.put(bytes, otherVias[2 * at], otherVias[2 * at + 1]);
        }
        response.put(FROM_HEADER);
        response.put(bytes, fromFrom, fromEnd);
        response.put(TO_HEADER);
        response.put(bytes, toFrom, toEnd);
        if (!hasTag(bytes, toFrom, toEnd)) {
            response.put(TAG_PARAMETER);
            response.putHexadecimal(toTag(secret));
        }
        response.put(CALL_ID_HEADER);
        response.put(bytes, callIdFrom, callIdEnd);
        response.put(CSEQ_HEADER);
        response.put(bytes, cseqFrom, cseqEnd);
        response.put(LAST_HEADER);
        if (goesOn) {
            response.joinLines();
        }
        return via.hasRport() || forceRport ? source.port() : via.port();
    }

    /** Returns the To tag of a response as a number: the same for a request that comes again (RFC 3261 §8.2.7). */
    long toTag(long secret) {
        // FNV-1a by words, then the last steps of SplitMix64.
        long hash = secret ^ 0xcbf2_9ce4_8422_2325L;
        hash = mix(hash, callIdFrom, callIdEnd);
        hash = mix(hash, fromFrom, fromEnd);
        hash = mix(hash, cseqFrom, cseqEnd);
        hash = (hash ^ hash >>> 30) * 0xbf58_476d_1ce4_e5b9L;
        hash = (hash ^ hash >>> 27) * 0x94d0_49bb_1331_11ebL;
        return hash ^ hash >>> 31;
    }

    private long mix(long start, int from, int end) {
        long hash = start;
        int at = from;
        for (; at + Long.BYTES <= end; at += Long.BYTES) {
            hash = mixWord(hash, Text.littleEndian(bytes, at, Long.BYTES));
        }
        hash = mixWord(hash, end - from);
        return mixWord(hash, Text.littleEndian(bytes, at, end - at));
    }

    private static long mixWord(long hash, long word) {
        return Long.rotateLeft((hash ^ word) * 0x9e37_79b9_7f4a_7c15L, 29);
    }

    private void forget() {
        viaFrom = NONE;
        otherViaCount = 0;
        fromFrom = NONE;
        toFrom = NONE;
        callIdFrom = NONE;
        cseqFrom = NONE;
        eventFrom = NONE;
        requires = false;
        goesOn = false;
    }

    private boolean isLineEnd(int at) {
        return at + 1 < end && bytes[at] == '\r' && bytes[at + 1] == '\n';
    }

    private boolean parseFirst(int lineEnd) {
        methodEnd = Text.find(bytes, 0, lineEnd, ' ');
        uriFrom = methodEnd + 1;
        uriEnd = Text.find(bytes, uriFrom, lineEnd, ' ');
        return uriFrom < uriEnd && uriEnd < lineEnd && Text.isIgnoringCase(bytes, uriEnd + 1, lineEnd, VERSION);
    }

    /**
     * Takes a header in, with the lines that it goes on in (RFC 3261 §7.3.1). Returns where the next begins, or
     * {@link #NONE} if it is damaged or there may be only one of its kind.
     */
    private int parseHeader(int from) {
        int nameEnd = TOKEN.findOther(bytes, from, end);
        int lineEnd = Text.lineEnd(bytes, nameEnd, end);
        if (!isLineEnd(lineEnd)) {
            return NONE;
        }
        int colon = nameEnd;
        while (colon < lineEnd && isBlank(bytes[colon])) {
            colon++;
        }
        if (nameEnd == from || colon == lineEnd || bytes[colon] != ':') {
            return NONE;
        }
        int next = lineEnd + 2;
        while (next < end && isBlank(bytes[next])) {
            goesOn = true;
            lineEnd = Text.lineEnd(bytes, next, end);
            if (!isLineEnd(lineEnd)) {
                return NONE;
            }
            next = lineEnd + 2;
        }
        int valueFrom = Text.trimStart(bytes, colon + 1, lineEnd);
        int valueEnd = Text.trimEnd(bytes, valueFrom, lineEnd);
        return take(from, nameEnd, valueFrom, valueEnd) ? next : NONE;
    }

    /** Takes a header in. Returns false if there is one of its kind that there may be only one of. */
    private boolean take(int nameFrom, int nameEnd, int from, int end) {
        int length = nameEnd - nameFrom;
        if (length > Long.BYTES) {
            requires |= Text.isIgnoringCase(bytes, nameFrom, nameEnd, PROXY_REQUIRE);
            return true;
        }
        long name = Text.littleEndian(bytes, nameFrom, length) | LOWER >>> Long.SIZE - 8 * length;
        boolean first = true;
        if (name == WORD_VIA || name == WORD_V) {
            takeVia(from, end);
        } else if (name == WORD_FROM || name == WORD_F) {
            first = fromFrom == NONE;
            fromFrom = from;
            fromEnd = end;
        } else if (name == WORD_TO || name == WORD_T) {
            first = toFrom == NONE;
            toFrom = from;
            toEnd = end;
        } else if (name == WORD_CALL_ID || name == WORD_I) {
            first = callIdFrom == NONE;
            callIdFrom = from;
            callIdEnd = end;
        } else if (name == WORD_CSEQ) {
            first = cseqFrom == NONE;
            cseqFrom = from;
            cseqEnd = end;
        } else if (name == WORD_EVENT || name == WORD_O) {
            first = eventFrom == NONE;
            eventFrom = from;
            eventEnd = end;
        } else if (name == WORD_REQUIRE) {
            requires = true;
        }
        return first;
    }

    private void takeVia(int from, int end) {
        if (viaFrom == NONE) {
            viaFrom = from;
            viaEnd = end;
        } else {
            otherVias[2 * otherViaCount] = from;
            otherVias[2 * otherViaCount + 1] = end;
            otherViaCount++;
        }
    }

    /** Returns whether nothing that every request has is missing, and the CSeq names the method. */
    private boolean isWhole() {
        boolean there = viaFrom != NONE && fromFrom != NONE && toFrom != NONE && callIdFrom != NONE && cseqFrom != NONE;
        if (!there || fromFrom == fromEnd || toFrom == toEnd || callIdFrom == callIdEnd) {
            return false;
        }
        int digitsEnd = cseqFrom;
        while (digitsEnd < cseqEnd && Text.isDigit(bytes[digitsEnd])) {
            digitsEnd++;
        }
        int name = Text.trimStart(bytes, digitsEnd, cseqEnd);
        return digitsEnd > cseqFrom && name > digitsEnd && cseqEnd - name == methodEnd
                && Arrays.equals(bytes, name, cseqEnd, bytes, 0, methodEnd);
    }

    /** Returns whether a From or To value has a tag parameter, outside its display name and address. */
    static boolean hasTag(byte[] bytes, int from, int end) {
        boolean bracketed = false;
        for (int at = ADDRESS_PARTS.find(bytes, from, end); at < end; at = ADDRESS_PARTS.find(bytes, at + 1, end)) {
            byte found = bytes[at];
            if (found == '<') {
                bracketed = true;
            } else if (found == '>') {
                bracketed = false;
            } else if (!bracketed && found == '"') {
                at = quoteEnd(bytes, at, end);
            } else if (!bracketed && found == ';' && namesTag(bytes, at + 1, end)) {
                return true;
            }
        }
        return false;
    }

    /** Returns whether the first parameter there has the name {@code tag}. */
    private static boolean namesTag(byte[] bytes, int from, int end) {
        int name = Text.trimStart(bytes, from, end);
        int nameEnd = name + TAG.length;
        if (nameEnd > end || !Text.isIgnoringCase(bytes, name, nameEnd, TAG)) {
            return false;
        }
        int next = Text.trimStart(bytes, nameEnd, end);
        return next == end || bytes[next] == '=' || bytes[next] == ';';
    }

    /** Returns where the quoted string ends that starts there: at its closing quote, or at {@code end}. */
    static int quoteEnd(byte[] bytes, int from, int end) {
        int at = QUOTED_STOPS.find(bytes, from + 1, end);
        while (at < end && bytes[at] == '\\') {
            at = QUOTED_STOPS.find(bytes, at + 2, end);
        }
        return at;
    }

    /** Returns whether a SIP URI is of a server and not of a user there. */
    static boolean namesNoUser(byte[] bytes, int from, int end) {
        int rest = Math.min(Text.find(bytes, from, end, ':') + 1, end);
        boolean known = Text.isIgnoringCase(bytes, from, rest, SIP) || Text.isIgnoringCase(bytes, from, rest, SIPS);
        return known && rest < end && Text.find(bytes, rest, end, '@') == end;
    }

    private static boolean isBlank(byte value) {
        return value == ' ' || value == '\t';
    }

    /** Returns a name of at most eight bytes, in lower case, as a number. */
    private static long word(String name) {
        return Text.littleEndian(Ascii.bytes(name), 0, name.length());
    }
}
