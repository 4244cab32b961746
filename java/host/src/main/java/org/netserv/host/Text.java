// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/** Text for logs and refusals. */
final class Text {
    /** What calls a module, and is called by it, without being its own. */
    private static final List<String> NOT_OWN = List.of("org.netserv.host.", "org.netserv.packet.", "org.netserv.block.",
            "org.netserv.module.", "org.apache.felix.", "org.osgi.");

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

    /** Returns what was thrown, where, and its first cause, on one line with some frames of each. */
    static String shortTrace(Throwable thrown) {
        return trace(thrown, Limits.STACK_FRAMES_SHOWN);
    }

    /** Returns what was thrown, in which method of the module's own, and its first cause, on one line. */
    static String reason(Throwable thrown) {
        return trace(thrown, 1);
    }

    /**
     * Returns the methods of the module's own that something was thrown in, the innermost first, and the same of its
     * first cause.
     */
    static List<String> context(Throwable thrown) {
        try {
            List<String> lines = new ArrayList<>(frames(thrown.getStackTrace()));
            Throwable root = root(thrown);
            if (root != thrown) {
                lines.add(oneLine("caused by " + describe(root)));
                lines.addAll(frames(root.getStackTrace()));
            }
            return lines;
        } catch (Throwable worse) {
            // What modules throw may have methods of its own.
            return List.of();
        }
    }

    /**
     * Returns the methods of the module's own in a stack trace, the innermost first, each as {@code in NAME:LINE}; if none
     * is its own, those that the host did not call.
     */
    static List<String> frames(StackTraceElement[] trace) {
        List<String> own = lines(Stream.of(trace).filter(frame -> frame.getModuleName() == null && !isHosts(frame)));
        return own.isEmpty() ? lines(Stream.of(trace).takeWhile(frame -> !isHosts(frame))) : own;
    }

    private static List<String> lines(Stream<StackTraceElement> frames) {
        return frames.limit(Limits.CONTEXT_LINES_MAX).map(frame -> oneLine("in " + name(frame))).toList();
    }

    private static boolean isHosts(StackTraceElement frame) {
        return NOT_OWN.stream().anyMatch(frame.getClassName()::startsWith);
    }

    private static String trace(Throwable thrown, int framesMax) {
        try {
            StringBuilder text = new StringBuilder(describe(thrown));
            frames(thrown, framesMax, text);
            Throwable root = root(thrown);
            if (root != thrown) {
                text.append(", caused by ").append(describe(root));
                frames(root, framesMax, text);
            }
            return oneLine(text.toString());
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

    private static Throwable root(Throwable thrown) {
        Throwable root = thrown;
        // A chain of causes may be a ring.
        for (int depth = 0; depth < Limits.CAUSES_SEEN; depth++) {
            Throwable cause = cause(root);
            if (cause == null) {
                break;
            }
            root = cause;
        }
        return root;
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

    private static void frames(Throwable thrown, int framesMax, StringBuilder text) {
        List<String> frames = frames(thrown.getStackTrace());
        for (int at = 0; at < frames.size() && at < framesMax; at++) {
            text.append(at == 0 ? " " : " < ").append(at == 0 ? frames.get(at) : frames.get(at).substring(3));
        }
    }

    private static String name(StackTraceElement frame) {
        String method = frame.getClassName() + '.' + frame.getMethodName();
        return frame.getLineNumber() > 0 ? method + ':' + frame.getLineNumber() : method;
    }

    private static boolean isSurrogate(int point) {
        return point >= Character.MIN_SURROGATE && point <= Character.MAX_SURROGATE;
    }
}
