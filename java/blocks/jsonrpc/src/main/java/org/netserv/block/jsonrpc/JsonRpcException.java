// SPDX-License-Identifier: Apache-2.0
package org.netserv.block.jsonrpc;

/** What a method throws to answer with an error of its own; any other exception is answered as an internal error. */
public class JsonRpcException extends Exception {
    private static final long serialVersionUID = 1L;

    private final int code;
    private final transient Object data;

    /**
     * Makes an error without further data.
     *
     * @param code the error's number; those from -32768 to -32000 belong to JSON-RPC itself
     * @param message one short sentence, which the caller sees
     */
    public JsonRpcException(int code, String message) {
        this(code, message, null);
    }

    /**
     * Makes an error.
     *
     * @param code the error's number; those from -32768 to -32000 belong to JSON-RPC itself
     * @param message one short sentence, which the caller sees
     * @param data anything that the JSON library can write, or null for none
     */
    public JsonRpcException(int code, String message, Object data) {
        super(message);
        this.code = code;
        this.data = data;
    }

    /**
     * Returns the error's number.
     *
     * @return the number
     */
    public int code() {
        return code;
    }

    /**
     * Returns what else the caller is told.
     *
     * @return the data, or null if there is none
     */
    public Object data() {
        return data;
    }
}
