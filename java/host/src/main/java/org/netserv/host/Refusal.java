// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.net.BindException;

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
    /** Something that is not the module's fault. */
    static final String NODE_FAILED = "node-failed";

    private static final long serialVersionUID = 1L;

    private final String kind;
    private final boolean isAddressInUse;

    Refusal(String kind, String detail) {
        this(kind, detail, false);
    }

    private Refusal(String kind, String detail, boolean isAddressInUse) {
        super(Text.cut(detail, Limits.DETAIL_CHARS_MAX), null, false, false);
        this.kind = kind;
        this.isAddressInUse = isAddressInUse;
    }

    /** Returns whether the module found a port taken that it wanted to listen on. */
    boolean isAddressInUse() {
        return isAddressInUse;
    }

    String kind() {
        return kind;
    }

    /** Returns the refusal of a module that threw something while it ran. */
    static Refusal trapped(Throwable thrown) {
        if (thrown instanceof OutOfMemoryError) {
            return new Refusal(MEMORY_LIMIT, "the container has no more memory: " + Text.shortTrace(thrown));
        }
        return new Refusal(TRAPPED, Text.shortTrace(thrown), hasBindException(thrown));
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
