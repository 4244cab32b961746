// SPDX-License-Identifier: Apache-2.0
package org.netserv.host.compute;

import io.airlift.compress.zstd.ZstdInputStream;
import io.airlift.compress.zstd.ZstdOutputStream;
import java.io.Closeable;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.HashMap;
import java.util.Map;
import java.util.zip.GZIPInputStream;
import java.util.zip.GZIPOutputStream;
import org.brotli.dec.BrotliInputStream;
import org.netserv.block.BlockException;
import org.netserv.block.BlockException.Code;
import org.netserv.block.Compression;

/** The block {@code compress} of one module: the JDK's gzip, Airlift's Zstandard, and Google's decoder of Brotli. */
public final class CompressionBlock implements Compression {
    /** Bytes of memory that a stream takes at most, of each encoding: a window of the size that it may ask for. */
    private static final Map<Encoding, Long> STREAM_BYTES =
            Map.of(Encoding.GZIP, 512L << 10, Encoding.BR, 16L << 20, Encoding.ZSTD, 8L << 20);
    /** The part of the heap that a module's streams may take: one of so many. */
    private static final long HEAP_PARTS = 2;

    private final Map<Closeable, Encoding> open = new HashMap<>();
    private final long bytesMax;

    /** Makes the block of a module. */
    public CompressionBlock() {
        this(Runtime.getRuntime().maxMemory() / HEAP_PARTS);
    }

    /** For tests, with another bound. */
    CompressionBlock(long bytesMax) {
        this.bytesMax = bytesMax;
    }

    @Override
    public boolean compresses(Encoding encoding) {
        return switch (encoding) {
            case GZIP, ZSTD -> true;
            case BR -> false;
        };
    }

    @Override
    public OutputStream compress(Encoding encoding, int level, OutputStream into)
            throws BlockException, IOException {
        if (level < 0 || level > LEVEL_MAX || !compresses(encoding)) {
            throw new BlockException(Code.INVALID, "levels are 0 to 9, encodings gzip and zstd");
        }
        Packing packing = new Packing();
        keep(packing, encoding);
        boolean isMade = false;
        try {
            packing.use(encoding == Encoding.GZIP ? new Gzip(into, level) : new ZstdOutputStream(into));
            isMade = true;
        } finally {
            if (!isMade) {
                forget(packing);
            }
        }
        return packing;
    }

    @Override
    public InputStream decompress(Encoding encoding, long outputMax, InputStream from)
            throws BlockException, IOException {
        if (outputMax < 0 || outputMax > OUTPUT_BYTES_MAX) {
            throw new BlockException(Code.INVALID, "at most 1 GiB may come out");
        }
        Unpacking unpacking = new Unpacking(outputMax);
        keep(unpacking, encoding);
        boolean isMade = false;
        try {
            unpacking.use(switch (encoding) {
                case GZIP -> new GZIPInputStream(from);
                case BR -> new BrotliInputStream(from);
                case ZSTD -> new ZstdInputStream(from);
            });
            isMade = true;
        } catch (RuntimeException damaged) {
            throw new IOException("not " + encoding, damaged);
        } finally {
            if (!isMade) {
                forget(unpacking);
            }
        }
        return unpacking;
    }

    /** Takes note of a stream. One may be open whatever it takes. */
    private void keep(Closeable stream, Encoding encoding) throws BlockException {
        synchronized (open) {
            long bytes = open.values().stream().mapToLong(STREAM_BYTES::get).sum() + STREAM_BYTES.get(encoding);
            if (open.size() >= STREAMS_MAX || !open.isEmpty() && bytes > bytesMax) {
                throw new BlockException(Code.QUOTA, "a module may have 16 streams open at a time, which together may "
                        + "take " + bytesMax + " bytes of memory");
            }
            open.put(stream, encoding);
        }
    }

    private void forget(Closeable stream) {
        synchronized (open) {
            open.remove(stream);
        }
    }

    private static final class Gzip extends GZIPOutputStream {
        Gzip(OutputStream into, int level) throws IOException {
            super(into, true);
            def.setLevel(level);
        }

        @Override
        public void close() throws IOException {
            try {
                super.close();
            } finally {
                def.end();
            }
        }
    }

    private final class Packing extends FilterOutputStream {
        Packing() {
            super(OutputStream.nullOutputStream());
        }

        void use(OutputStream into) {
            out = into;
        }

        @Override
        public void write(byte[] from, int start, int length) throws IOException {
            out.write(from, start, length);
        }

        @Override
        public void close() throws IOException {
            forget(this);
            out.close();
        }
    }

    private final class Unpacking extends InputStream {
        private final long outputMax;
        private InputStream from = InputStream.nullInputStream();
        private long count;

        Unpacking(long outputMax) {
            this.outputMax = outputMax;
        }

        void use(InputStream from) {
            this.from = from;
        }

        @Override
        public int read() throws IOException {
            byte[] one = new byte[1];
            return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
        }

        @Override
        public int read(byte[] into, int start, int length) throws IOException {
            int read;
            try {
                read = from.read(into, start, length);
            } catch (RuntimeException damaged) {
                throw new IOException("the compressed bytes are damaged", damaged);
            }
            count += Math.max(read, 0);
            if (count > outputMax) {
                throw new IOException("more than " + outputMax + " bytes come out");
            }
            return read;
        }

        @Override
        public void close() throws IOException {
            forget(this);
            from.close();
        }
    }
}
