// SPDX-License-Identifier: Apache-2.0
package org.netserv.block;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import org.osgi.annotation.versioning.ProviderType;

/**
 * Compression of streams. May be used on any thread. A module that cannot do without says
 * {@code dependencies = ["compress>=1"]} in its manifest.
 *
 * <pre>{@code
 * Compression compression = context.getService(context.getServiceReference(Compression.class));
 * try (OutputStream out = compression.compress(Compression.Encoding.ZSTD, 6, client)) {
 *     out.write(text);
 *     // What was written so far can be decompressed from here on.
 *     out.flush();
 * }
 * try (InputStream in = compression.decompress(Compression.Encoding.GZIP, 1_000_000, upstream)) {
 *     byte[] plain = in.readAllBytes();
 * }
 * }</pre>
 */
@ProviderType
public interface Compression {
    /** Bytes that one stream may be decompressed to at most. */
    long OUTPUT_BYTES_MAX = 1L << 30;
    /** The level with the smallest output. */
    int LEVEL_MAX = 9;
    /**
     * Streams that nodes held a module to once. What bounds them is the memory that they may take in the container.
     *
     * @deprecated nothing is held to it
     */
    @Deprecated
    int STREAMS_MAX = 16;

    /** How bytes are compressed, as in {@code Content-Encoding} of HTTP. */
    enum Encoding {
        /** RFC 1952. */
        GZIP,
        /** RFC 7932. */
        BR,
        /** RFC 8878. */
        ZSTD
    }

    /**
     * Returns whether an encoding can be compressed to. All can, and be decompressed.
     *
     * @param encoding the encoding
     * @return whether it can
     */
    boolean compresses(Encoding encoding);

    /**
     * Begins to compress.
     *
     * @param encoding the encoding
     * @param level 0 (fast) to {@link #LEVEL_MAX} (small)
     * @param into where the compressed bytes go; it is closed with what is returned
     * @return what takes the plain bytes; close it
     * @throws BlockException {@code INVALID} for a level or an encoding that there is not, {@code QUOTA} with too little
     *     memory for one more
     * @throws IOException what the other stream throws
     */
    OutputStream compress(Encoding encoding, int level, OutputStream into) throws BlockException, IOException;

    /**
     * Begins to decompress. What is returned throws {@link IOException} on bytes that are not of the encoding, end
     * early or become more than allowed.
     *
     * @param encoding the encoding
     * @param outputMax bytes that may come out, at most {@link #OUTPUT_BYTES_MAX}
     * @param from the compressed bytes; closed with what is returned
     * @return the plain bytes; close it
     * @throws BlockException {@code INVALID} for a negative or too large bound, {@code QUOTA} with too little memory for
     *     one more
     * @throws IOException what the other stream throws, or its first bytes are not of the encoding
     */
    InputStream decompress(Encoding encoding, long outputMax, InputStream from) throws BlockException, IOException;
}
