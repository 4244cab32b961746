// SPDX-License-Identifier: Apache-2.0
package org.netserv.host.compute;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.netserv.block.BlockException;
import org.netserv.block.BlockException.Code;
import org.netserv.block.Compression;
import org.netserv.block.Compression.Encoding;

class CompressionBlockTest {
    private static final byte[] TEXT = "NetServ runs modules. ".repeat(2_000).getBytes(StandardCharsets.US_ASCII);
    /** By Brotli 1.1 at quality 5: 64 times `NetServ `, then a line feed. */
    private static final byte[] BROTLI = HexFormat.of().parseHex("1b000200c431ce171a69197890bb4b11dec2495699d31300");
    /** By `zstd -19`: the same. */
    private static final byte[] ZSTD = HexFormat.of().parseHex("28b52ffd0468850000484e657453657276200a0100f5d5cb05527069c4");
    private static final byte[] PLAIN = ("NetServ ".repeat(64) + "\n").getBytes(StandardCharsets.US_ASCII);

    private final Compression compression = new CompressionBlock();

    private byte[] compress(Encoding encoding, int level, byte[] plain) throws Exception {
        ByteArrayOutputStream into = new ByteArrayOutputStream();
        try (OutputStream out = compression.compress(encoding, level, into)) {
            out.write(plain);
        }
        return into.toByteArray();
    }

    private byte[] decompress(Encoding encoding, long outputMax, byte[] packed) throws Exception {
        try (InputStream in = compression.decompress(encoding, outputMax, new ByteArrayInputStream(packed))) {
            return in.readAllBytes();
        }
    }

    @Test
    void whatIsCompressedComesBack() throws Exception {
        byte[] noise = new byte[300_000];
        new Random(1).nextBytes(noise);
        for (Encoding encoding : Encoding.values()) {
            assertTrue(compression.compresses(encoding));
            for (int level : new int[] {0, 1, Compression.LEVEL_MAX}) {
                byte[] packed = compress(encoding, level, TEXT);
                assertTrue(level == 0 || packed.length < TEXT.length / 10, encoding + " " + packed.length);
                assertArrayEquals(TEXT, decompress(encoding, TEXT.length, packed));
            }
            assertArrayEquals(noise, decompress(encoding, noise.length, compress(encoding, 6, noise)));
            assertEquals(0, decompress(encoding, 0, compress(encoding, 6, new byte[0])).length);
        }
    }

    @Test
    void whatOthersCompressedIsRead() throws Exception {
        assertArrayEquals(PLAIN, decompress(Encoding.BR, 1000, BROTLI));
        assertArrayEquals(PLAIN, decompress(Encoding.ZSTD, 1000, ZSTD));
    }

    @Test
    void outputIsBounded() throws Exception {
        byte[][] packed = {compress(Encoding.GZIP, 9, PLAIN), BROTLI, ZSTD};
        for (Encoding encoding : Encoding.values()) {
            byte[] one = packed[encoding.ordinal()];
            assertEquals(PLAIN.length, decompress(encoding, PLAIN.length, one).length);
            assertThrows(IOException.class, () -> decompress(encoding, PLAIN.length - 1, one), encoding + "");
            for (long outputMax : new long[] {-1, Compression.OUTPUT_BYTES_MAX + 1}) {
                BlockException refused =
                        assertThrows(BlockException.class, () -> decompress(encoding, outputMax, one));
                assertEquals(Code.INVALID, refused.code());
            }
        }
    }

    @Test
    void damageIsAnErrorAndNothingElse() throws Exception {
        byte[][] packed = {compress(Encoding.GZIP, 9, PLAIN), BROTLI, compress(Encoding.ZSTD, 3, TEXT), ZSTD};
        Encoding[] encodings = {Encoding.GZIP, Encoding.BR, Encoding.ZSTD, Encoding.ZSTD};
        Random random = new Random(4);
        int errors = 0;
        for (int which = 0; which < packed.length; which++) {
            for (int end = 0; end < packed[which].length; end++) {
                byte[] cut = Arrays.copyOf(packed[which], end);
                Encoding encoding = encodings[which];
                assertThrows(IOException.class, () -> decompress(encoding, 100_000, cut), encoding + " cut at " + end);
            }
            for (int round = 0; round < 2_000; round++) {
                byte[] damaged = packed[which].clone();
                damaged[random.nextInt(damaged.length)] ^= (byte) (1 + random.nextInt(255));
                try {
                    decompress(encodings[which], 100_000, damaged);
                } catch (IOException expected) {
                    errors++;
                }
            }
        }
        assertTrue(errors > 2_000, errors + " errors");
        for (Encoding encoding : Encoding.values()) {
            assertThrows(IOException.class, () -> decompress(encoding, 100, new byte[] {'n', 'o', 'n', 'e', 0, 1}));
        }
    }

    @Test
    void levelsAreBoundedAndStreamsByTheirMemory() throws Exception {
        code(Code.INVALID, Encoding.GZIP, -1);
        code(Code.INVALID, Encoding.GZIP, Compression.LEVEL_MAX + 1);
        List<OutputStream> open = new ArrayList<>();
        BlockException refused = assertThrows(BlockException.class, () -> {
            while (true) {
                open.add(compression.compress(Encoding.GZIP, 1, OutputStream.nullOutputStream()));
            }
        });
        assertEquals(Code.QUOTA, refused.code());
        assertTrue(open.size() > 16, open.size() + " streams");
        assertEquals(Code.QUOTA,
                assertThrows(BlockException.class, () -> decompress(Encoding.BR, 1000, BROTLI)).code());
        for (OutputStream stream : open.subList(0, open.size() / 2)) {
            stream.close();
            stream.close();
        }
        // Streams that do not begin count no more.
        for (int count = 0; count < 3; count++) {
            assertThrows(IOException.class, () -> decompress(Encoding.GZIP, 1, new byte[0]));
        }
        compress(Encoding.ZSTD, 1, TEXT);
        // The memory is that of all tests.
        for (OutputStream stream : open) {
            stream.close();
        }
    }

    @Test
    void theMemoryOfAllStreamsIsBounded() throws Exception {
        // What the native side has for all, unless it is told the container's size, and what it takes a stream to need.
        int count = (64 << 20) / (9 << 20);
        CompressionBlock other = new CompressionBlock();
        for (int number = 0; number < count; number++) {
            other.decompress(Encoding.ZSTD, 1000, new ByteArrayInputStream(ZSTD));
        }
        assertEquals(Code.QUOTA, assertThrows(BlockException.class, () -> decompress(Encoding.ZSTD, 1000, ZSTD)).code());
        other.close();
        assertArrayEquals(PLAIN, decompress(Encoding.ZSTD, 1000, ZSTD));
    }

    @Test
    void closedStreamsDoNothing() throws Exception {
        CompressionBlock block = new CompressionBlock();
        OutputStream out = block.compress(Encoding.GZIP, 1, OutputStream.nullOutputStream());
        InputStream in = block.decompress(Encoding.BR, 1000, new ByteArrayInputStream(BROTLI));
        block.close();
        assertThrows(IOException.class, () -> out.write(1));
        assertThrows(IOException.class, out::flush);
        assertThrows(IOException.class, in::read);
        out.close();
        in.close();
        assertEquals(Code.QUOTA, assertThrows(BlockException.class,
                () -> block.compress(Encoding.GZIP, 1, OutputStream.nullOutputStream())).code());
    }

    private void code(Code code, Encoding encoding, int level) {
        assertEquals(code, assertThrows(BlockException.class,
                () -> compression.compress(encoding, level, OutputStream.nullOutputStream())).code());
    }
}
