// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.StandardOpenOption;
import java.util.zip.CRC32C;

/**
 * The file that holds kv state: of fixed size, in two halves. One half has a copy of everything, followed by what
 * changed since; when it is full, a new copy goes to the other half. What is written together is a batch of records, and
 * counts when the last one of them is there. One thread at a time.
 *
 * <p>A half begins with a magic number, its generation and a checksum; the higher generation counts. A record is its
 * length, which is negative of the last one of a batch, its generation, a checksum over these, its place and content,
 * and the content: puts, deletions, and which state they are of.
 */
final class KvFile implements AutoCloseable {
    private static final long MAGIC = 0x4e45_5453_4b56_0002L;
    private static final int HALF_HEADER_BYTES = 20;
    private static final int RECORD_HEADER_BYTES = 16;
    private static final int LAST = 1 << 31;
    private static final byte STATE = 1;
    private static final byte PUT = 2;
    private static final byte DELETE = 3;
    private static final byte DROP = 4;

    private final FileChannel channel;
    private final long halfBytes;
    /** The record that is read or collected; null until there is one. */
    private ByteBuffer buffer;
    private final CRC32C crc = new CRC32C();
    /** The half that counts, 0 or 1. */
    private int half;
    /** 0 if neither half counts. */
    private long generation;
    /** Where the next record is or goes, from the half's start; its end if nothing may be added. */
    private long at;
    /** Whether the record that was read last ends its batch. */
    private boolean isLast;

    /** What is told what a file holds. */
    interface Reader {
        /** Takes an entry; a value of null takes it away. Returns whether to go on. */
        boolean take(String name, int schema, byte[] key, byte[] value);

        /** Forgets a state. */
        void drop(String name, int schema);
    }

    /** What gives a file all that it is to hold. */
    @FunctionalInterface
    interface Source {
        void write(Output out) throws FullException, IOException;
    }

    /** There is no room left. */
    static final class FullException extends Exception {
        private static final long serialVersionUID = 1L;

        FullException() {
            super("the file is full", null, false, false);
        }
    }

    private KvFile(FileChannel channel, long halfBytes) {
        this.channel = channel;
        this.halfBytes = halfBytes;
        at = halfBytes;
    }

    /** Opens a file that is there; its size stays what it is. */
    static KvFile open(File file) throws IOException {
        FileChannel channel = FileChannel.open(file.toPath(), StandardOpenOption.READ, StandardOpenOption.WRITE);
        return new KvFile(channel, channel.size() / 2);
    }

    /** Returns how many bytes of entries, with {@link Limits#KV_ENTRY_FILE_BYTES} each, are sure to fit. */
    long room() {
        // Records end early where the next entry does not fit; each begins with the name of its state.
        return Math.max(halfBytes - HALF_HEADER_BYTES - halfBytes / 64 - Limits.KV_NAMES_BYTES_MAX, 0);
    }

    /**
     * Reads the batches that there are, up to the first one that is cut off or damaged. Returns false if there was one.
     *
     * <p>What is behind the last one may be pieces of another, which must not count once there is something before them:
     * so what is written next is everything.
     */
    boolean read(Reader reader) throws IOException {
        for (int which = 0; which < 2; which++) {
            long found = generationOf(which);
            if (found > generation) {
                generation = found;
                half = which;
            }
        }
        if (generation == 0) {
            return true;
        }
        useBuffer();
        long end = HALF_HEADER_BYTES;
        at = end;
        boolean isWhole;
        do {
            isWhole = readRecord();
            at += isWhole ? RECORD_HEADER_BYTES + buffer.limit() : 0;
            end = isWhole && isLast ? at : end;
        } while (isWhole);
        isWhole = at == end && !isBegun();
        at = HALF_HEADER_BYTES;
        boolean isTaken = true;
        while (isTaken && at < end) {
            isTaken = readRecord();
            at += RECORD_HEADER_BYTES + buffer.limit();
            isTaken = isTaken && apply(reader);
        }
        at = halfBytes;
        return isWhole && isTaken;
    }

    /** Adds changes, or everything anew where they do not fit or something went wrong before. */
    void write(Source changes, Source all) throws FullException, IOException {
        useBuffer();
        if (at < halfBytes) {
            try {
                fill(changes);
                channel.force(false);
                return;
            } catch (FullException full) {
                // Everything is written anew.
            }
        }
        writeAnew(all);
    }

    private void useBuffer() {
        if (buffer == null) {
            buffer = ByteBuffer.allocateDirect(Limits.KV_RECORD_BYTES_MAX);
        }
    }

    private void writeAnew(Source all) throws FullException, IOException {
        int oldHalf = half;
        long oldGeneration = generation;
        half = 1 - half;
        generation++;
        at = HALF_HEADER_BYTES;
        boolean isDone = false;
        try {
            fill(all);
            channel.force(false);
            writeHeader();
            channel.force(false);
            isDone = true;
        } finally {
            if (!isDone) {
                half = oldHalf;
                generation = oldGeneration;
                at = halfBytes;
            }
        }
    }

    private void fill(Source source) throws FullException, IOException {
        boolean isDone = false;
        try {
            buffer.clear();
            Output out = new Output();
            source.write(out);
            out.flush(LAST);
            isDone = true;
        } finally {
            if (!isDone) {
                // What of the changes is written is not known: nothing can be added any more.
                at = halfBytes;
            }
        }
    }

    private void writeHeader() throws IOException {
        ByteBuffer header = ByteBuffer.allocate(HALF_HEADER_BYTES).putLong(MAGIC).putLong(generation);
        crc.reset();
        crc.update(header.array(), 0, header.position());
        writeFully(header.putInt((int) crc.getValue()).flip(), half * halfBytes);
    }

    private long generationOf(int which) throws IOException {
        ByteBuffer header = ByteBuffer.allocate(HALF_HEADER_BYTES);
        if (halfBytes < HALF_HEADER_BYTES || !readFully(header, which * halfBytes) || header.getLong(0) != MAGIC) {
            return 0;
        }
        crc.reset();
        crc.update(header.array(), 0, HALF_HEADER_BYTES - Integer.BYTES);
        boolean isWhole = header.getInt(HALF_HEADER_BYTES - Integer.BYTES) == (int) crc.getValue();
        return isWhole ? Math.max(header.getLong(Long.BYTES), 0) : 0;
    }

    /** Reads the record at the place that is next into the buffer. Returns whether there is one. */
    private boolean readRecord() throws IOException {
        if (at + RECORD_HEADER_BYTES > halfBytes) {
            return false;
        }
        ByteBuffer header = ByteBuffer.allocate(RECORD_HEADER_BYTES);
        if (!readFully(header, half * halfBytes + at)) {
            return false;
        }
        int length = header.getInt(0) & ~LAST;
        isLast = header.getInt(0) < 0;
        if (length < 1 || length > buffer.capacity() || at + RECORD_HEADER_BYTES + length > halfBytes) {
            return false;
        }
        buffer.clear().limit(length);
        return readFully(buffer, half * halfBytes + at + RECORD_HEADER_BYTES)
                && header.equals(header(isLast ? LAST : 0));
    }

    /** Returns whether there is the header of a record of this half at the place that is next, whole or not. */
    private boolean isBegun() throws IOException {
        ByteBuffer header = ByteBuffer.allocate(RECORD_HEADER_BYTES);
        return at + RECORD_HEADER_BYTES <= halfBytes
                && readFully(header, half * halfBytes + at)
                && header.getLong(Integer.BYTES) == generation;
    }

    /** Returns the header of the record in the buffer, which is unchanged. */
    private ByteBuffer header(int flags) {
        ByteBuffer header = ByteBuffer.allocate(RECORD_HEADER_BYTES).putInt(buffer.limit() | flags).putLong(generation);
        crc.reset();
        crc.update(ByteBuffer.allocate(Long.BYTES).putLong(at).flip());
        crc.update(header.duplicate().flip());
        crc.update(buffer.duplicate());
        return header.putInt((int) crc.getValue()).flip();
    }

    /** Tells what the record in the buffer holds. Returns whether it was whole and wanted. */
    private boolean apply(Reader reader) {
        String name = null;
        int schema = 0;
        while (buffer.hasRemaining()) {
            byte kind = buffer.get();
            if (kind == STATE || kind == DROP) {
                byte[] bytes = take(2, Limits.KV_NAME_BYTES_MAX);
                if (bytes == null || buffer.remaining() < Integer.BYTES) {
                    return false;
                }
                name = new String(bytes, StandardCharsets.UTF_8);
                schema = buffer.getInt();
                if (kind == DROP) {
                    reader.drop(name, schema);
                }
            } else if (kind == PUT || kind == DELETE) {
                byte[] key = take(2, Limits.KV_KEY_BYTES_MAX);
                byte[] value = kind == PUT ? take(4, Limits.KV_VALUE_BYTES_MAX) : null;
                boolean isWhole = name != null && key != null && key.length > 0 && (value != null || kind == DELETE);
                if (!isWhole || !reader.take(name, schema, key, value)) {
                    return false;
                }
            } else {
                return false;
            }
        }
        return true;
    }

    /** Takes bytes behind their length out of the buffer; null if they are not there. */
    private byte[] take(int lengthBytes, int max) {
        if (buffer.remaining() < lengthBytes) {
            return null;
        }
        int length = lengthBytes == 2 ? buffer.getShort() & 0xffff : buffer.getInt();
        if (length < 0 || length > max || length > buffer.remaining()) {
            return null;
        }
        byte[] bytes = new byte[length];
        buffer.get(bytes);
        return bytes;
    }

    private boolean readFully(ByteBuffer into, long from) throws IOException {
        long place = from;
        while (into.hasRemaining()) {
            int count = channel.read(into, place);
            if (count <= 0) {
                return false;
            }
            place += count;
        }
        into.flip();
        return true;
    }

    private void writeFully(ByteBuffer bytes, long to) throws IOException {
        long place = to;
        while (bytes.hasRemaining()) {
            place += channel.write(bytes, place);
        }
    }

    @Override
    public void close() throws IOException {
        channel.close();
    }

    /** What is written, collected to records. */
    final class Output {
        private byte[] name = {};
        private int schema;

        private Output() {
        }

        /** Says whose entries come from here on. */
        void state(String name, int schema) throws FullException, IOException {
            this.name = name.getBytes(StandardCharsets.UTF_8);
            this.schema = schema;
            if (buffer.remaining() < nameBytes()) {
                flush();
            } else {
                putName(STATE);
            }
        }

        /** Says that a state is forgotten. */
        void drop(String name, int schema) throws FullException, IOException {
            this.name = name.getBytes(StandardCharsets.UTF_8);
            this.schema = schema;
            if (buffer.remaining() < nameBytes()) {
                flush();
            }
            putName(DROP);
        }

        /** Adds an entry, without a value its deletion. Returns false if there has to be a {@link #flush} first. */
        boolean put(byte[] key, byte[] value) {
            int bytes = Limits.KV_ENTRY_FILE_BYTES + key.length + (value == null ? 0 : value.length);
            if (buffer.remaining() < bytes) {
                return false;
            }
            buffer.put(value == null ? DELETE : PUT).putShort((short) key.length).put(key);
            if (value != null) {
                buffer.putInt(value.length).put(value);
            }
            return true;
        }

        /** Writes what was collected. */
        void flush() throws FullException, IOException {
            flush(0);
        }

        private void flush(int flags) throws FullException, IOException {
            if (buffer.position() > 0) {
                buffer.flip();
                int length = buffer.limit();
                if (at + RECORD_HEADER_BYTES + length > halfBytes) {
                    throw new FullException();
                }
                ByteBuffer header = header(flags);
                writeFully(buffer, half * halfBytes + at + RECORD_HEADER_BYTES);
                writeFully(header, half * halfBytes + at);
                at += RECORD_HEADER_BYTES + length;
            }
            buffer.clear();
            if (name.length > 0) {
                putName(STATE);
            }
        }

        private void putName(byte kind) {
            buffer.put(kind).putShort((short) name.length).put(name).putInt(schema);
        }

        private int nameBytes() {
            return 1 + Short.BYTES + name.length + Integer.BYTES;
        }
    }
}
