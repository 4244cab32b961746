// SPDX-License-Identifier: Apache-2.0
package org.netserv.host.compute;

import java.util.Objects;
import org.netserv.block.Search;
import org.netserv.packet.PacketView;

/** A search for many patterns, and its last hit. */
final class PatternSet implements Search.Patterns {
    private final Runnable closed;
    private Automaton automaton;
    private byte[] copy;
    private int pattern;
    private int start;
    private int end;

    PatternSet(Automaton automaton, Runnable closed) {
        this.automaton = automaton;
        this.closed = closed;
    }

    @Override
    public boolean find(byte[] in, int start, int end) {
        Objects.checkFromToIndex(start, end, in.length);
        if (automaton == null) {
            throw new IllegalStateException("the patterns are closed");
        }
        long hit = automaton.find(in, start, end);
        if (hit == Automaton.NONE) {
            return false;
        }
        pattern = (int) (hit >>> Integer.SIZE);
        this.end = (int) hit;
        this.start = this.end - automaton.length(pattern);
        return true;
    }

    @Override
    public boolean find(PacketView in, int start, int end) {
        Objects.checkFromToIndex(start, end, in.length());
        if (copy == null) {
            copy = new byte[PacketView.LENGTH_MAX];
        }
        in.get(start, copy, 0, end - start);
        if (!find(copy, 0, end - start)) {
            return false;
        }
        this.start += start;
        this.end += start;
        return true;
    }

    @Override
    public int pattern() {
        return pattern;
    }

    @Override
    public int start() {
        return start;
    }

    @Override
    public int end() {
        return end;
    }

    @Override
    public void close() {
        if (automaton != null) {
            automaton = null;
            closed.run();
        }
    }
}
