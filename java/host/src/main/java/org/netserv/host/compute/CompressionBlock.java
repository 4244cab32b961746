// SPDX-License-Identifier: Apache-2.0
package org.netserv.host.compute;

import java.io.Closeable;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.netserv.block.BlockException;
import org.netserv.block.BlockException.Code;
import org.netserv.block.Compression;

/** The block {@code compress} of one module. The native side bounds the memory of all streams of the container. */
public final class CompressionBlock implements Compression, Closeable {
    private final Set<Long> open = new HashSet<>();
    private boolean isClosed;

    /** Makes the block of a module. */
    public CompressionBlock() {
    }

    @Override
    public boolean compresses(Encoding encoding) {
        return true;
    }

    @Override
    public OutputStream compress(Encoding encoding, int level, OutputStream into) throws BlockException {
        if (level < 0 || level > LEVEL_MAX) {
            throw new BlockException(Code.INVALID, "levels are 0 to 9");
        }
        synchronized (open) {
            checkOpen();
            long number = CompressionNative.compress(encoding.ordinal(), level);
            open.add(number);
            return new Packing(number, into);
        }
    }

    @Override
    public InputStream decompress(Encoding encoding, long outputMax, InputStream from) throws BlockException {
        if (outputMax < 0 || outputMax > OUTPUT_BYTES_MAX) {
            throw new BlockException(Code.INVALID, "at most 1 GiB may come out");
        }
        synchronized (open) {
            checkOpen();
            long number = CompressionNative.decompress(encoding.ordinal(), outputMax);
            open.add(number);
            return new Unpacking(number, from);
        }
    }

    /** Ends the streams that the module has left open; no further one can be begun. */
    @Override
    public void close() {
        List<Long> left;
        synchronized (open) {
            isClosed = true;
            left = List.copyOf(open);
        }
        left.forEach(this::release);
    }

    private void checkOpen() throws BlockException {
        if (isClosed) {
            throw new BlockException(Code.QUOTA, "the module has stopped");
        }
    }

    private void release(long number) {
        synchronized (open) {
            open.remove(number);
        }
        CompressionNative.release(number);
    }

    private final class Packing extends OutputStream {
        private final long number;
        private final OutputStream into;
        private final byte[] one = new byte[1];

        Packing(long number, OutputStream into) {
            this.number = number;
            this.into = into;
        }

        @Override
        public synchronized void write(int value) throws IOException {
            one[0] = (byte) value;
            write(one, 0, 1);
        }

        @Override
        public void write(byte[] from, int start, int length) throws IOException {
            Objects.checkFromIndexSize(start, length, from.length);
            for (int done = 0; done < length; done += CompressionNative.PIECE_BYTES) {
                int piece = Math.min(CompressionNative.PIECE_BYTES, length - done);
                into.write(CompressionNative.pack(number, from, start + done, piece));
            }
        }

        @Override
        public void flush() throws IOException {
            into.write(CompressionNative.flush(number, false));
            into.flush();
        }

        @Override
        public void close() throws IOException {
            try (into) {
                if (isOpen()) {
                    into.write(CompressionNative.flush(number, true));
                }
            } finally {
                release(number);
            }
        }

        private boolean isOpen() {
            synchronized (open) {
                return open.contains(number);
            }
        }
    }

    private final class Unpacking extends InputStream {
        private final long number;
        private final InputStream from;
        private final byte[] packed = new byte[8192];
        private boolean isAtEnd;

        Unpacking(long number, InputStream from) {
            this.number = number;
            this.from = from;
        }

        @Override
        public int read() throws IOException {
            byte[] one = new byte[1];
            return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
        }

        @Override
        public synchronized int read(byte[] into, int start, int length) throws IOException {
            Objects.checkFromIndexSize(start, length, into.length);
            if (length == 0) {
                return 0;
            }
            while (!isAtEnd) {
                int read = CompressionNative.read(number, into, start, Math.min(length, CompressionNative.PIECE_BYTES));
                if (read > 0) {
                    return read;
                }
                int count = from.read(packed);
                if (count < 0) {
                    CompressionNative.finish(number);
                    isAtEnd = true;
                } else {
                    CompressionNative.feed(number, packed, count);
                }
            }
            return -1;
        }

        @Override
        public void close() throws IOException {
            release(number);
            from.close();
        }
    }
}
