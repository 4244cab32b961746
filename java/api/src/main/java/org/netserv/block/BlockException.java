// SPDX-License-Identifier: Apache-2.0
package org.netserv.block;

/** Says why a building block did not do what a module asked. Nothing was done then. It carries no stack trace. */
public final class BlockException extends Exception {
    private static final long serialVersionUID = 1L;

    /** What was wrong. */
    public enum Code {
        /** No such property, key or timer. */
        NOT_FOUND(-1),
        /** One of the module's limits is reached. */
        QUOTA(-3),
        /** A key, value, name or packet is longer than allowed. */
        TOO_LARGE(-4),
        /** An argument has no meaning here. */
        INVALID(-5),
        /** The node does not have what the block needs. */
        UNAVAILABLE(-6);

        private final int number;

        Code(int number) {
            this.number = number;
        }

        /**
         * Returns the number of the code in the packet ABI.
         *
         * @return a number below zero
         */
        public int number() {
            return number;
        }
    }

    private final Code code;

    /**
     * Makes an exception.
     *
     * @param code what was wrong
     * @param message what it was wrong with
     */
    public BlockException(Code code, String message) {
        super(message, null, false, false);
        this.code = code;
    }

    /**
     * Returns what was wrong.
     *
     * @return the code
     */
    public Code code() {
        return code;
    }
}
