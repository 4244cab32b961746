// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.netserv.block.Log;

/**
 * The kv state of all modules of the container, by name and schema version. Memory is what counts; the disk follows,
 * and whatever is wrong with it, modules go on. Used on the life cycle thread, and for writing on the
 * {@link KvWriter}'s.
 */
final class KvStates {
    private final Map<Key, Kept> states = new HashMap<>();
    private final List<Key> dropped = new ArrayList<>();
    private final KvFile file;
    private final KvRoom room;
    private final KvWriter writer;
    private final Log log;
    private volatile boolean isWarned;
    /** The last time that was told. */
    private long lastNanos;

    /** State that lasts as long as the process. */
    KvStates() {
        this(null, 0, null);
    }

    /**
     * State that lasts as long as a file, which has to be there; without it, as long as the process.
     *
     * @param path the file, or null
     * @param now the monotonic clock
     * @param log where it says what is wrong with the file
     */
    KvStates(File path, long now, Log log) {
        this.log = log;
        file = path == null || !path.isFile() ? null : open(path);
        long heapBytes = Runtime.getRuntime().maxMemory() / Limits.KV_HEAP_PARTS;
        room = new KvRoom(file == null ? Long.MAX_VALUE : Math.min(file.room(), heapBytes));
        writer = file == null ? null : new KvWriter(this::write);
        if (file != null) {
            restore(now);
        }
    }

    /** Returns the state of a module, which all versions of the same schema share. {@link #close} has to follow. */
    synchronized KvState open(String name, int schema) {
        Kept kept = states.computeIfAbsent(new Key(name, schema), unknown -> new Kept(newState()));
        kept.users++;
        return kept.state;
    }

    /** Says that a module does not use its state any more. */
    synchronized void close(String name, int schema, long now) {
        Kept kept = states.get(new Key(name, schema));
        if (kept != null && --kept.users == 0) {
            kept.leftNanos = now;
        }
        forget(now);
    }

    /**
     * Forgets state that no module uses: without a file after a while, in a file when it is empty; beyond
     * {@link Limits#KV_KEPT_MAX} of them in any case, those first that were left first.
     */
    synchronized void forget(long now) {
        lastNanos = now;
        List<Key> old = new ArrayList<>();
        states.forEach((key, kept) -> {
            boolean isOver = file == null ? now - kept.leftNanos >= Limits.KV_KEPT_NANOS : kept.state.size() == 0;
            if (kept.isLeft(now) && isOver) {
                old.add(key);
            }
        });
        old.forEach(this::drop);
        while (states.values().stream().filter(kept -> kept.isLeft(now)).count() > Limits.KV_KEPT_MAX) {
            dropOldest(now);
        }
    }

    /** Returns when state is next to be forgotten, {@link Long#MAX_VALUE} for never. */
    synchronized long nextNanos() {
        return file != null ? Long.MAX_VALUE : states.values().stream()
                .filter(kept -> kept.users == 0)
                .mapToLong(kept -> kept.leftNanos + Limits.KV_KEPT_NANOS)
                .min().orElse(Long.MAX_VALUE);
    }

    /** Writes what is not on the disk, and closes the file; waits at most {@link Limits#KV_LAST_WRITE_MILLIS}. */
    void end() {
        if (writer != null && writer.end()) {
            try {
                file.close();
            } catch (IOException broken) {
                log.warn("the file of the kv state is not closed: " + broken.getMessage());
            }
        }
    }

    private KvFile open(File path) {
        try {
            return KvFile.open(path);
        } catch (IOException | RuntimeException broken) {
            log.warn("kv state is not kept on the disk: " + broken);
            return null;
        }
    }

    private KvState newState() {
        return writer == null ? new KvState() : new KvState(room, writer::changed);
    }

    private void drop(Key key) {
        states.remove(key).state.release();
        if (writer != null) {
            dropped.add(key);
            writer.changed();
        }
    }

    private void dropOldest(long now) {
        states.entrySet().stream()
                .filter(entry -> entry.getValue().isLeft(now))
                .min(Comparator.comparingLong(entry -> entry.getValue().leftNanos))
                .ifPresent(entry -> drop(entry.getKey()));
    }

    /** Forgets the state that was left first, if there was no room for another one. */
    private synchronized void makeRoom() {
        if (room.wasShort()) {
            dropOldest(lastNanos);
        }
    }

    private void restore(long now) {
        KvFile.Reader reader = new KvFile.Reader() {
            @Override
            public boolean take(String name, int schema, byte[] key, byte[] value) {
                Key of = new Key(name, schema);
                if (states.size() >= Limits.KV_KEPT_MAX + Limits.MODULES_MAX && !states.containsKey(of)) {
                    return false;
                }
                states.computeIfAbsent(of, unknown -> new Kept(newState())).state.restore(key, value);
                return room.fits();
            }

            @Override
            public void drop(String name, int schema) {
                Kept kept = states.remove(new Key(name, schema));
                if (kept != null) {
                    kept.state.release();
                }
            }
        };
        try {
            if (!file.read(reader)) {
                log.warn("the file of the kv state holds more than there is memory for, or is damaged: some is lost");
            }
        } catch (IOException | RuntimeException broken) {
            log.warn("the file of the kv state cannot be read: " + broken);
        }
        states.values().forEach(kept -> kept.leftNanos = now + Limits.KV_KEPT_NANOS);
    }

    /** Makes room, and writes what changed. */
    void write() {
        makeRoom();
        try {
            synchronized (file) {
                file.write(this::writeChanges, this::writeAll);
            }
            isWarned = false;
        } catch (IOException | KvFile.FullException | RuntimeException broken) {
            if (!isWarned) {
                isWarned = true;
                log.warn("kv state is not written to the disk: " + broken.getMessage());
            }
        }
    }

    private void writeChanges(KvFile.Output out) throws KvFile.FullException, IOException {
        List<Key> gone;
        Map<Key, KvState> left;
        synchronized (this) {
            gone = new ArrayList<>(dropped);
            dropped.clear();
            left = all();
        }
        for (Key key : gone) {
            out.drop(key.name, key.schema);
        }
        for (Map.Entry<Key, KvState> entry : left.entrySet()) {
            if (entry.getValue().isChanged()) {
                out.state(entry.getKey().name, entry.getKey().schema);
                entry.getValue().writeChanges(out);
            }
        }
    }

    private void writeAll(KvFile.Output out) throws KvFile.FullException, IOException {
        Map<Key, KvState> left;
        synchronized (this) {
            dropped.clear();
            left = all();
        }
        for (Map.Entry<Key, KvState> entry : left.entrySet()) {
            out.state(entry.getKey().name, entry.getKey().schema);
            entry.getValue().writeAll(out);
        }
    }

    /** Returns what there is; the caller holds the lock. */
    private Map<Key, KvState> all() {
        Map<Key, KvState> all = new HashMap<>();
        states.forEach((key, kept) -> all.put(key, kept.state));
        return all;
    }

    private record Key(String name, int schema) {
    }

    private static final class Kept {
        private final KvState state;
        private int users;
        /** When the last one who used it went. */
        private long leftNanos;

        Kept(KvState state) {
            this.state = state;
        }

        /** Returns whether nobody uses it. */
        boolean isLeft(long now) {
            return users == 0 && leftNanos <= now;
        }
    }
}
