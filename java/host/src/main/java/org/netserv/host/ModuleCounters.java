// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.Map;
import java.util.TreeMap;
import org.netserv.block.BlockException;
import org.netserv.block.BlockException.Code;
import org.netserv.block.Counter;
import org.netserv.block.Counters;

/** The counters of one module. */
final class ModuleCounters implements Counters {
    private final long max;
    /** Also the lock: modules have this object, and must not be able to lock the host out. */
    private final Map<String, Cell> cells = new TreeMap<>();

    ModuleCounters(long max) {
        this.max = max;
    }

    @Override
    public Counter open(String name) throws BlockException {
        if (name.length() > Limits.COUNTER_NAME_BYTES_MAX
                || Text.utf8Length(name) > Limits.COUNTER_NAME_BYTES_MAX) {
            throw new BlockException(Code.TOO_LARGE, "a counter's name has at most 64 bytes");
        }
        if (name.isEmpty() || name.chars().anyMatch(Character::isISOControl)) {
            throw new BlockException(Code.INVALID, "a counter's name is printable and not empty");
        }
        synchronized (cells) {
            Cell known = cells.get(name);
            if (known != null) {
                return known;
            }
            if (cells.size() >= max) {
                throw new BlockException(Code.QUOTA, "the module has " + max + " counters");
            }
            Cell cell = new Cell();
            cells.put(name, cell);
            return cell;
        }
    }

    /** Returns all counters by name. */
    Map<String, Long> all() {
        Map<String, Long> all = new TreeMap<>();
        synchronized (cells) {
            cells.forEach((name, cell) -> all.put(name, cell.value()));
        }
        return all;
    }

    private static final class Cell implements Counter {
        private static final VarHandle VALUE;

        static {
            try {
                VALUE = MethodHandles.lookup().findVarHandle(Cell.class, "value", long.class);
            } catch (ReflectiveOperationException impossible) {
                throw new ExceptionInInitializerError(impossible);
            }
        }

        private volatile long value;

        @Override
        public void add(long amount) {
            VALUE.getAndAdd(this, amount);
        }

        @Override
        public void set(long value) {
            this.value = value;
        }

        @Override
        public long value() {
            return value;
        }
    }
}
