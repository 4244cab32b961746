// SPDX-License-Identifier: Apache-2.0
package org.netserv.block.jsonrpc.internal;

/** The bounds of the JSON-RPC block. */
final class Limits {
    /** The longest body of a call, in bytes. */
    static final int BODY_BYTES = 64 * 1024;
    /** The longest answer, in characters. */
    static final int ANSWER_CHARS = 256 * 1024;
    /** How many requests a batch may have. */
    static final int BATCH = 64;
    /** How deep arrays and objects may nest. */
    static final int DEPTH = 32;
    /** How many services may be callable at once. */
    static final int SERVICES = 64;
    /** The longest name of a service. */
    static final int NAME_CHARS = 64;

    private Limits() {
    }
}
