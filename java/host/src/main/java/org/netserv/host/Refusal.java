// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.net.BindException;
import java.util.List;

/** Says why a module is not loaded, with the node's word for it. */
final class Refusal extends Exception {
    /** The bundle needs packages or capabilities that are not there, or a newer Java. */
    static final String MISSING_DEPENDENCY = "missing-dependency";
    /** The jar is not a bundle that can be loaded. */
    static final String BAD_CODE = "bad-code";
    /** The module threw something. */
    static final String TRAPPED = "trapped";
    /** The container has no more memory. */
    static final String MEMORY_LIMIT = "memory-limit";
    /** The module did not come to an end in time. */
    static final String STALLED = "stalled";
    /** The module takes no state, or not the one that came, or does not say its own. */
    static final String STATE_REFUSED = "state-refused";
    /** There is no module to ask. */
    static final String NOT_RUNNING = "not-running";
    /** Something that is not the module's fault. */
    static final String NODE_FAILED = "node-failed";

    private static final long serialVersionUID = 1L;

    private final String kind;
    private final transient List<String> context;
    private final boolean isAddressInUse;

    Refusal(String kind, String detail) {
        this(kind, detail, List.of());
    }

    /** Says, too, in which methods of its own the module was. */
    Refusal(String kind, String detail, List<String> context) {
        this(kind, detail, context, false);
    }

    private Refusal(String kind, String detail, List<String> context, boolean isAddressInUse) {
        super(Text.cut(detail, Limits.DETAIL_CHARS_MAX), null, false, false);
        this.kind = kind;
        this.context = context;
        this.isAddressInUse = isAddressInUse;
    }

    /** Returns whether the module found a port taken that it wanted to listen on. */
    boolean isAddressInUse() {
        return isAddressInUse;
    }

    String kind() {
        return kind;
    }

    /** Returns what more is known of the module's failure, at most {@link Limits#CONTEXT_LINES_MAX} lines. */
    List<String> context() {
        return context;
    }

    /** Returns the refusal of a module that threw something while it ran. */
    static Refusal trapped(Throwable thrown) {
        if (thrown instanceof OutOfMemoryError) {
            return new Refusal(MEMORY_LIMIT, "the container has no more memory: " + Text.reason(thrown), context(thrown));
        }
        return new Refusal(TRAPPED, Text.reason(thrown), context(thrown), hasBindException(thrown));
    }

    /** Returns the refusal of a module that threw something when it was to say its state, or to take one. */
    static Refusal ofState(String what, Throwable thrown) {
        return new Refusal(STATE_REFUSED, what + ": " + Text.reason(thrown), context(thrown));
    }

    private static List<String> context(Throwable thrown) {
        return Text.context(thrown).stream().limit(Limits.CONTEXT_LINES_MAX).toList();
    }

    private static boolean hasBindException(Throwable thrown) {
        Throwable at = thrown;
        for (int depth = 0; depth < Limits.CAUSES_SEEN && at != null; depth++, at = Text.cause(at)) {
            if (at instanceof BindException) {
                return true;
            }
        }
        return false;
    }
}
