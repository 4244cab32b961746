// SPDX-License-Identifier: Apache-2.0
package org.netserv.block.jsonrpc.internal;

import java.io.Writer;

/** Keeps what is written up to a number of characters, and forgets the rest. One thread. */
final class BoundedWriter extends Writer {
    private final StringBuilder text = new StringBuilder();
    private final int max;
    private boolean cut;

    BoundedWriter(int max) {
        this.max = max;
    }

    @Override
    public void write(char[] from, int start, int length) {
        if (text.length() + length > max) {
            cut = true;
        } else {
            text.append(from, start, length);
        }
    }

    @Override
    public void flush() {
        // Everything is in memory.
    }

    @Override
    public void close() {
        // Nothing is open.
    }

    boolean isCut() {
        return cut;
    }

    @Override
    public String toString() {
        return text.toString();
    }
}
