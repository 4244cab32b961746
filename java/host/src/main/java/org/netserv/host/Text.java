// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.nio.charset.StandardCharsets;

/** Text for logs and refusals. */
final class Text {
    private Text() {
    }

    static String cut(String text, int charsMax) {
        return text.length() <= charsMax ? text : text.substring(0, charsMax);
    }

    /** Returns text as one line of at most {@link Limits#LOG_LINE_BYTES_MAX} bytes of UTF-8. */
    static String oneLine(String text) {
        String cut = cut(text == null ? "null" : text, Limits.LOG_LINE_BYTES_MAX);
        StringBuilder line = new StringBuilder(cut.length());
        int bytes = 0;
        for (int at = 0; at < cut.length();) {
            int point = cut.codePointAt(at);
            at += Character.charCount(point);
            int shown = Character.isISOControl(point) ? ' ' : isSurrogate(point) ? '\ufffd' : point;
            bytes += shown < 0x80 ? 1 : shown < 0x800 ? 2 : shown < 0x10000 ? 3 : 4;
            if (bytes > Limits.LOG_LINE_BYTES_MAX) {
                break;
            }
            line.appendCodePoint(shown);
        }
        return line.toString();
    }

    /** Returns what was thrown, where, and its first cause, on one line. */
    static String shortTrace(Throwable thrown) {
        try {
            return trace(thrown);
        } catch (Throwable worse) {
            // What modules throw may have methods of its own.
            return thrown.getClass().getName();
        }
    }

    /** Returns the cause of what a module threw, null if there is none or it cannot be told. */
    static Throwable cause(Throwable thrown) {
        try {
            return thrown.getCause();
        } catch (Throwable worse) {
            return null;
        }
    }

    private static String trace(Throwable thrown) {
        StringBuilder text = new StringBuilder(describe(thrown));
        frames(thrown, text);
        Throwable root = thrown;
        // A chain of causes may be a ring.
        for (int depth = 0; depth < Limits.CAUSES_SEEN; depth++) {
            Throwable cause = cause(root);
            if (cause == null) {
                break;
            }
            root = cause;
        }
        if (root != thrown) {
            text.append(", caused by ").append(describe(root));
            frames(root, text);
        }
        return oneLine(text.toString());
    }

    static int utf8Length(String text) {
        return text.getBytes(StandardCharsets.UTF_8).length;
    }

    private static String describe(Throwable thrown) {
        try {
            return thrown.toString();
        } catch (Throwable worse) {
            return thrown.getClass().getName();
        }
    }

    private static void frames(Throwable thrown, StringBuilder text) {
        StackTraceElement[] trace = thrown.getStackTrace();
        for (int at = 0; at < trace.length && at < Limits.STACK_FRAMES_SHOWN; at++) {
            StackTraceElement frame = trace[at];
            if (frame.getClassName().startsWith("org.netserv.host.")
                    || frame.getClassName().equals("org.netserv.packet.PacketProcessor")) {
                break;
            }
            text.append(at == 0 ? " in " : " < ").append(frame.getClassName()).append('.')
                    .append(frame.getMethodName());
            if (frame.getLineNumber() > 0) {
                text.append(':').append(frame.getLineNumber());
            }
        }
    }

    private static boolean isSurrogate(int point) {
        return point >= Character.MIN_SURROGATE && point <= Character.MAX_SURROGATE;
    }
}
