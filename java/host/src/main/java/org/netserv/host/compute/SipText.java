// SPDX-License-Identifier: Apache-2.0
package org.netserv.host.compute;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Objects;
import org.netserv.block.Sip;
import org.netserv.block.SipMessage;
import org.netserv.packet.PacketView;

/**
 * A SIP message as places in its bytes. It holds a message to the letter in what frames it and in the headers that
 * every message has, and leaves all other values alone: the same as {@code core/wire/src/sip} does for Wasm modules.
 */
final class SipText implements SipMessage {
    private static final String NOT_SIP = "not a SIP message";
    private static final String INCOMPLETE = "the message goes on after the last byte";
    private static final String START_LINE = "malformed: start line";
    private static final String HEADER = "malformed: header";
    private static final String LINE_END = "malformed: line end";
    private static final String[] DAMAGED = {"malformed: Via", "malformed: From", "malformed: To", "malformed: Call-ID",
        "malformed: CSeq", "malformed: Content-Length"};
    private static final String VERSION = "SIP/2.0";
    private static final int METHOD_BYTES_MAX = 32;
    private static final int NONE = SipBytes.NONE;

    private byte[] bytes;
    private byte[] copy;
    private int start;
    private int end;
    private String error = NOT_SIP;

    private boolean isRequest;
    private int methodEnd;
    private int methodStart;
    /** The request URI, or the reason phrase. */
    private int restStart;
    private int restEnd;
    private int status;

    private int count;
    /** Where the line begins behind the header that was read last. */
    private int next;
    private final byte[] names = new byte[Sip.HEADERS_MAX];
    private final int[] nameStart = new int[Sip.HEADERS_MAX];
    private final int[] nameEnd = new int[Sip.HEADERS_MAX];
    private final int[] valueStart = new int[Sip.HEADERS_MAX];
    private final int[] valueEnd = new int[Sip.HEADERS_MAX];
    /** The first header of those that every message has, and the Content-Length. */
    private final int[] first = new int[SipName.CONTENT_LENGTH + 1];

    private long cseq;
    private int cseqMethod;
    private final SipParameter fromTag = new SipParameter("tag");
    private final SipParameter toTag = new SipParameter("tag");
    private final SipParameter branch = new SipParameter("branch");
    private int bodyStart;
    private int bodyLength;

    @Override
    public boolean parse(byte[] text, int start, int length) {
        Objects.checkFromIndexSize(start, length, text.length);
        bytes = text;
        this.start = start;
        end = start + length;
        error = length > Sip.MESSAGE_BYTES_MAX ? "too large" : read();
        return error == null;
    }

    @Override
    public boolean parse(PacketView packet, int start, int length) {
        Objects.checkFromIndexSize(start, length, packet.length());
        if (copy == null) {
            copy = new byte[PacketView.LENGTH_MAX];
        }
        packet.get(start, copy, 0, length);
        return parse(copy, 0, length);
    }

    /** Returns what is wrong, or null. */
    private String read() {
        Arrays.fill(first, NONE);
        count = 0;
        int at = start;
        while (at + 1 < end && bytes[at] == '\r' && bytes[at + 1] == '\n') {
            at += 2;
        }
        if (at == end || at + 1 == end && bytes[at] == '\r') {
            return INCOMPLETE;
        }
        int lineEnd = lineEnd(at);
        if (!SipBytes.isToken(bytes[at]) || !isLineEnd(lineEnd) && !looksLikeSip()) {
            return NOT_SIP;
        }
        if (!isLineEnd(lineEnd)) {
            return noLineEnd(lineEnd);
        }
        String wrong = readStart(at, lineEnd);
        at = lineEnd + 2;
        while (wrong == null && !isLineEnd(at)) {
            wrong = readHeader(at);
            at = next;
        }
        return wrong == null ? readValues(at + 2) : wrong;
    }

    private String readStart(int from, int lineEnd) {
        int space = SipBytes.find(bytes, from, lineEnd, ' ');
        if (space == lineEnd) {
            return NOT_SIP;
        }
        isRequest = !SipBytes.is(bytes, from, space, VERSION);
        if (!isRequest) {
            return readStatus(space + 1, lineEnd);
        }
        status = 0;
        methodStart = from;
        methodEnd = space;
        restStart = space + 1;
        restEnd = SipBytes.find(bytes, restStart, lineEnd, ' ');
        if (restEnd == lineEnd || !SipBytes.is(bytes, restEnd + 1, lineEnd, VERSION)) {
            return NOT_SIP;
        }
        boolean isMethod = space - from <= METHOD_BYTES_MAX && SipBytes.isToken(bytes, from, space);
        boolean isUri = restStart < restEnd;
        for (int at = restStart; at < restEnd; at++) {
            isUri &= (bytes[at] & 0xff) >= ' ' && bytes[at] != 0x7f;
        }
        return isMethod && isUri ? null : START_LINE;
    }

    private String readStatus(int from, int lineEnd) {
        long code = lineEnd - from < 3 ? NONE : SipBytes.number(bytes, from, from + 3);
        // Some leave the space before an empty reason phrase out.
        if (code < 100 || code >= 700 || lineEnd > from + 3 && bytes[from + 3] != ' ') {
            return START_LINE;
        }
        for (int at = from; at < lineEnd; at++) {
            if (bytes[at] >= 0 && bytes[at] < ' ' && bytes[at] != '\t' || bytes[at] == 0x7f) {
                return START_LINE;
            }
        }
        status = (int) code;
        restStart = Math.min(from + 4, lineEnd);
        restEnd = lineEnd;
        return null;
    }

    private String readHeader(int from) {
        int lineEnd = lineEnd(from);
        if (!isLineEnd(lineEnd)) {
            return noLineEnd(lineEnd);
        }
        int nameEnds = SipBytes.tokenEnd(bytes, from, lineEnd);
        int colon = nameEnds;
        while (colon < lineEnd && isBlank(bytes[colon])) {
            colon++;
        }
        if (nameEnds == from || bytes[colon] != ':') {
            return HEADER;
        }
        // RFC 3261 §7.3.1: a line that starts with white space is part of the one before.
        while (lineEnd + 2 < end && isBlank(bytes[lineEnd + 2])) {
            lineEnd = lineEnd(lineEnd + 2);
            if (!isLineEnd(lineEnd)) {
                return noLineEnd(lineEnd);
            }
        }
        if (lineEnd + 2 >= end) {
            return INCOMPLETE;
        }
        next = lineEnd + 2;
        return take(from, nameEnds, colon + 1, lineEnd);
    }

    private String take(int from, int nameEnds, int valueFrom, int lineEnd) {
        if (count == Sip.HEADERS_MAX) {
            return "too many headers";
        }
        int name = SipName.of(bytes, from, nameEnds);
        if (name != SipName.OTHER && name <= SipName.CONTENT_LENGTH) {
            if (first[name] == NONE) {
                first[name] = count;
            } else if (name != SipName.VIA) {
                return DAMAGED[name];
            }
        }
        names[count] = (byte) name;
        nameStart[count] = from;
        nameEnd[count] = nameEnds;
        valueStart[count] = SipBytes.skipSpaces(bytes, valueFrom, lineEnd);
        valueEnd[count] = SipBytes.trimEnd(bytes, valueStart[count], lineEnd);
        count++;
        return null;
    }

    private String readValues(int body) {
        for (int name = 0; name < SipName.CONTENT_LENGTH; name++) {
            if (first[name] == NONE || !isWhole(name, valueStart[first[name]], valueEnd[first[name]])) {
                return DAMAGED[name];
            }
        }
        bodyStart = body;
        bodyLength = end - body;
        int header = first[SipName.CONTENT_LENGTH];
        if (header != NONE) {
            long length = SipBytes.number(bytes, valueStart[header], valueEnd[header]);
            if (length == NONE) {
                return DAMAGED[SipName.CONTENT_LENGTH];
            }
            // RFC 3261 §18.3: bytes after the body do not count, a body that is cut off does.
            if (length > bodyLength) {
                return INCOMPLETE;
            }
            bodyLength = (int) length;
        }
        return null;
    }

    private boolean isWhole(int name, int from, int to) {
        return switch (name) {
            case SipName.VIA -> branch.ofVia(bytes, from, to);
            case SipName.FROM -> fromTag.ofAddress(bytes, from, to);
            case SipName.TO -> toTag.ofAddress(bytes, from, to);
            case SipName.CALL_ID -> from < to && !hasSpace(from, to);
            default -> readCseq(from, to);
        };
    }

    private boolean hasSpace(int from, int to) {
        for (int at = from; at < to; at++) {
            if (SipBytes.isSpace(bytes[at])) {
                return true;
            }
        }
        return false;
    }

    private boolean readCseq(int from, int to) {
        int digits = from;
        while (digits < to && bytes[digits] >= '0' && bytes[digits] <= '9') {
            digits++;
        }
        cseq = SipBytes.number(bytes, from, digits);
        cseqMethod = SipBytes.skipSpaces(bytes, digits, to);
        boolean isSpaced = cseqMethod > digits && SipBytes.isToken(bytes, cseqMethod, to);
        // RFC 3261 §8.1.1.5: the method of a request is that of its CSeq.
        return isSpaced && cseq != NONE && cseq < 1L << 31
                && (!isRequest || Arrays.equals(bytes, cseqMethod, to, bytes, methodStart, methodEnd));
    }

    /** Returns where the first byte is that may end the line which starts there: CR, LF or NUL. */
    private int lineEnd(int from) {
        int at = from;
        while (at < end && bytes[at] != '\r' && bytes[at] != '\n' && bytes[at] != 0) {
            at++;
        }
        return at;
    }

    private boolean isLineEnd(int at) {
        return at + 1 < end && bytes[at] == '\r' && bytes[at + 1] == '\n';
    }

    private String noLineEnd(int at) {
        return at >= end || at + 1 == end && bytes[at] == '\r' ? INCOMPLETE : LINE_END;
    }

    private boolean looksLikeSip() {
        for (int at = start; at < end; at++) {
            byte value = bytes[at];
            boolean isBlank = value == '\t' || value == '\r' || value == '\n';
            if (value >= 0 && (value < ' ' || value == 0x7f) && !isBlank) {
                return false;
            }
        }
        return true;
    }

    private static boolean isBlank(byte value) {
        return value == ' ' || value == '\t';
    }

    @Override
    public String errorReason() {
        return error;
    }

    @Override
    public boolean isRequest() {
        check();
        return isRequest;
    }

    @Override
    public boolean isRequest(String method) {
        check();
        return isRequest && SipBytes.isExactly(bytes, methodStart, methodEnd, method);
    }

    @Override
    public String method() {
        return isRequest() ? ascii(methodStart, methodEnd) : null;
    }

    @Override
    public String uri() {
        return isRequest() ? SipBytes.text(bytes, restStart, restEnd) : null;
    }

    @Override
    public int status() {
        return isRequest() ? 0 : status;
    }

    @Override
    public String reason() {
        return isRequest() ? null : SipBytes.text(bytes, restStart, restEnd);
    }

    @Override
    public int headers() {
        check();
        return count;
    }

    @Override
    public String headerName(int index) {
        int at = check(index);
        return SipName.text(names[at], bytes, nameStart[at], nameEnd[at]);
    }

    @Override
    public String headerValue(int index) {
        int at = check(index);
        return SipBytes.text(bytes, valueStart[at], valueEnd[at]);
    }

    @Override
    public int valueStart(int index) {
        return valueStart[check(index)] - start;
    }

    @Override
    public int valueEnd(int index) {
        return valueEnd[check(index)] - start;
    }

    @Override
    public int find(String name, int from) {
        check();
        for (int at = Math.max(from, 0); at < count; at++) {
            if (SipName.is(names[at], bytes, nameStart[at], nameEnd[at], name)) {
                return at;
            }
        }
        return NONE;
    }

    @Override
    public boolean matches(String name, String value) {
        for (int at = find(name, 0); at >= 0; at = find(name, at + 1)) {
            int stop = SipBytes.find(bytes, valueStart[at], valueEnd[at], ';');
            if (SipBytes.is(bytes, valueStart[at], SipBytes.trimEnd(bytes, valueStart[at], stop), value)) {
                return true;
            }
        }
        return false;
    }

    @Override
    public boolean contains(String name, String text) {
        for (int at = find(name, 0); at >= 0; at = find(name, at + 1)) {
            for (int from = valueStart[at]; from <= valueEnd[at] - text.length(); from++) {
                if (SipBytes.is(bytes, from, from + text.length(), text)) {
                    return true;
                }
            }
        }
        return false;
    }

    @Override
    public String fromUri() {
        check();
        return fromTag.main(bytes);
    }

    @Override
    public String toUri() {
        check();
        return toTag.main(bytes);
    }

    @Override
    public String sentBy() {
        check();
        return branch.main(bytes);
    }

    @Override
    public String callId() {
        return headerValue(first[SipName.CALL_ID]);
    }

    @Override
    public long cseqNumber() {
        check();
        return cseq;
    }

    @Override
    public String cseqMethod() {
        check();
        return ascii(cseqMethod, valueEnd[first[SipName.CSEQ]]);
    }

    @Override
    public String fromTag() {
        check();
        return fromTag.text(bytes);
    }

    @Override
    public String toTag() {
        check();
        return toTag.text(bytes);
    }

    @Override
    public String branch() {
        check();
        return branch.text(bytes);
    }

    @Override
    public int bodyStart() {
        check();
        return bodyStart - start;
    }

    @Override
    public int bodyLength() {
        check();
        return bodyLength;
    }

    private String ascii(int from, int to) {
        return new String(bytes, from, to - from, StandardCharsets.US_ASCII);
    }

    private void check() {
        if (error != null) {
            throw new IllegalStateException(error);
        }
    }

    private int check(int index) {
        check();
        return Objects.checkIndex(index, count);
    }
}
