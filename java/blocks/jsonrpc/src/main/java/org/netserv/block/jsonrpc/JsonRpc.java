// SPDX-License-Identifier: Apache-2.0
package org.netserv.block.jsonrpc;

/** The names and codes of the block. */
public final class JsonRpc {
    /**
     * The service property that makes a service callable: the name under which it is, 1 to 64 letters, digits, {@code .},
     * {@code _} and {@code -}, the first one a letter or digit.
     */
    public static final String NAME = "netserv.jsonrpc";

    /** The name of the block as an {@code osgi.implementation} capability. */
    public static final String IMPLEMENTATION = "netserv.jsonrpc";

    /** The body is not JSON. */
    public static final int PARSE_ERROR = -32700;
    /** The JSON is no request, or a batch has no or too many requests. */
    public static final int INVALID_REQUEST = -32600;
    /** There is no such method. */
    public static final int METHOD_NOT_FOUND = -32601;
    /** The method does not take such parameters. */
    public static final int INVALID_PARAMS = -32602;
    /** The method failed; why is in the module's log only. */
    public static final int INTERNAL_ERROR = -32603;
    /** The answer is longer than the block sends. */
    public static final int ANSWER_TOO_LARGE = -32001;

    private JsonRpc() {
    }
}
