// SPDX-License-Identifier: Apache-2.0
package org.netserv.host.cache;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;
import org.netserv.block.BlockException;
import org.netserv.block.BlockException.Code;
import org.netserv.block.Cache;

class ModuleCacheTest {
    /** Bytes of a block, of which a header is some; the file has so many. */
    private static final int BLOCK = 16 * 1024;
    private static final int BLOCKS = 20;

    @TempDir
    Path folder;
    private CacheFile file;
    private ModuleCache cache;

    @BeforeEach
    void open() throws IOException {
        file = new CacheFile(sized(BLOCKS * BLOCK + 7));
        cache = new ModuleCache(file, "example.org/a");
    }

    @AfterEach
    void close() {
        cache.close();
        file.close();
    }

    private File sized(long bytes) throws IOException {
        File path = folder.resolve("cache").toFile();
        try (RandomAccessFile made = new RandomAccessFile(path, "rw")) {
            made.setLength(bytes);
        }
        return path;
    }

    private void put(String key, byte[] body) throws Exception {
        try (Cache.Writer writer = cache.put(key, "text/plain", "\"1\"", Duration.ofSeconds(60))) {
            writer.write(body);
            writer.finish();
        }
    }

    private byte[] get(String key) throws Exception {
        try (Cache.Entry entry = cache.get(key)) {
            return entry == null ? null : entry.body().readAllBytes();
        }
    }

    private static byte[] filled(int length, int seed) {
        byte[] bytes = new byte[length];
        new Random(seed).nextBytes(bytes);
        return bytes;
    }

    private static void code(Code code, Executable call) {
        assertEquals(code, assertThrows(BlockException.class, call).code());
    }

    @Test
    void anEntryComesBackWhole() throws Exception {
        for (int length : new int[] {0, 1, 100, 8191, 8192, 8193, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 3}) {
            byte[] body = filled(length, length);
            put("key", body);
            assertArrayEquals(body, get("key"), length + " bytes");
        }
        Cache.Stat stat = cache.stat("key");
        assertEquals(new Cache.Stat(5 * BLOCK + 3, "text/plain", "\"1\"", stat.age(), Duration.ofSeconds(60)), stat);
        assertFalse(stat.isStale() || stat.age().isNegative());
        assertNull(cache.stat("other"));
        assertNull(cache.get("other"));
        ModuleCache other = new ModuleCache(file, "example.org/b");
        assertNull(other.stat("key"));
        assertFalse(other.remove("key"));
        assertTrue(cache.remove("key"));
        assertFalse(cache.remove("key"));
    }

    @Test
    void aPartIsRead() throws Exception {
        byte[] body = filled(3 * BLOCK, 1);
        put("key", body);
        long[][] parts = {{0, 10}, {BLOCK - 5, 10}, {BLOCK, BLOCK}, {3 * BLOCK - 1, 10}, {3 * BLOCK, 1},
            {Long.MAX_VALUE, 1}, {5, Long.MAX_VALUE}, {7, 0}};
        for (long[] part : parts) {
            int from = (int) Math.min(part[0], body.length);
            int to = (int) Math.min(body.length, from + Math.min(part[1], body.length));
            try (Cache.Entry entry = cache.get("key", part[0], part[1])) {
                byte[] found = entry.body().readAllBytes();
                assertArrayEquals(Arrays.copyOfRange(body, from, to), found);
                assertEquals(body.length, entry.stat().size());
            }
        }
        code(Code.INVALID, () -> cache.get("key", -1, 1));
        code(Code.INVALID, () -> cache.get("key", 0, -1));
    }

    @Test
    void theLeastRecentlyUsedGoFirst() throws Exception {
        for (int count = 0; count < BLOCKS; count++) {
            put("k" + count, new byte[BLOCK / 2]);
        }
        assertNotNull(get("k0"));
        put("one more", new byte[1]);
        assertNotNull(cache.stat("k0"));
        assertNull(cache.stat("k1"));
        assertNotNull(cache.stat("k2"));
    }

    @Test
    void anEntryStaysReadableUntilItIsClosed() throws Exception {
        byte[] body = filled(4 * BLOCK, 2);
        put("key", body);
        Cache.Entry entry = cache.get("key");
        put("key", new byte[] {1});
        for (int count = 0; count < 2 * BLOCKS; count++) {
            put("k" + count, filled(BLOCK / 2, count));
        }
        assertArrayEquals(body, entry.body().readAllBytes());
        entry.close();
        entry.close();
        assertThrows(IOException.class, () -> entry.body().read());
        // Its blocks are there again, once.
        for (int count = 0; count < BLOCKS; count++) {
            put("k" + count, new byte[BLOCK / 2]);
        }
        for (int count = 0; count < BLOCKS; count++) {
            assertNotNull(cache.stat("k" + count));
        }
    }

    @Test
    void anEntryThatIsNotFinishedIsNone() throws Exception {
        try (Cache.Writer writer = cache.put("key", "", "", Duration.ZERO)) {
            writer.write(filled(3 * BLOCK, 1));
            assertNull(cache.stat("key"));
        }
        assertNull(cache.stat("key"));
        Cache.Writer closed = cache.put("key", "", "", Duration.ZERO);
        closed.close();
        assertThrows(IOException.class, () -> closed.write(1));
        assertThrows(IOException.class, () -> closed.write(new byte[0]));
        assertThrows(IOException.class, closed::finish);
    }

    @Test
    void bodiesAreBoundedByTheModulesShare() throws Exception {
        int most = (BLOCKS - 1) * BLOCK;
        put("key", new byte[most]);
        assertEquals(most, cache.stat("key").size());
        assertThrows(IOException.class, () -> put("other", new byte[BLOCKS * BLOCK]));
        ModuleCache second = new ModuleCache(file, "example.org/b");
        assertThrows(IOException.class, () -> put("other", new byte[most]));
        put("other", new byte[most / 2 - BLOCK]);
        second.close();
        put("other", new byte[most]);
    }

    @Test
    void anEntryOutlivesTheFilesUser() throws Exception {
        byte[] body = filled(2 * BLOCK, 5);
        put("key", body);
        close();
        file = new CacheFile(folder.resolve("cache").toFile());
        cache = new ModuleCache(file, "example.org/a");
        assertArrayEquals(body, get("key"));
    }

    @Test
    void whatIsOpenIsBounded() throws Exception {
        put("key", new byte[1]);
        List<AutoCloseable> open = new ArrayList<>();
        for (int count = 0; count < Cache.OPEN_MAX; count++) {
            open.add(count % 2 == 0 ? cache.get("key") : cache.put("k" + count, "", "", Duration.ZERO));
        }
        code(Code.QUOTA, () -> cache.get("key"));
        code(Code.QUOTA, () -> cache.put("key", "", "", Duration.ZERO));
        open.get(0).close();
        cache.get("key").close();
        cache.close();
        code(Code.QUOTA, () -> cache.get("key"));
        Cache.Writer writer = (Cache.Writer) open.get(1);
        assertThrows(IOException.class, () -> writer.write(1));
    }

    @Test
    void keysAndMetadataAreBounded() throws Exception {
        String key = "k".repeat(Cache.KEY_BYTES_MAX);
        String text = "t".repeat(Cache.METADATA_BYTES_MAX);
        cache.put(key, text, text, Duration.ZERO).finish();
        assertEquals(text, cache.stat(key).etag());
        code(Code.INVALID, () -> cache.put("", "", "", Duration.ZERO));
        code(Code.INVALID, () -> cache.put(key + "k", "", "", Duration.ZERO));
        code(Code.INVALID, () -> cache.put("\u00e9".repeat(Cache.KEY_BYTES_MAX / 2 + 1), "", "", Duration.ZERO));
        code(Code.INVALID, () -> cache.put("k", text + "t", "", Duration.ZERO));
        code(Code.INVALID, () -> cache.put("k", "", text + "t", Duration.ZERO));
        code(Code.INVALID, () -> cache.put("k", "", "", Duration.ofSeconds(-1)));
    }

    @Test
    void withoutAFileNothingIsKept() throws Exception {
        ModuleCache none = new ModuleCache(null, "example.org/a");
        assertNull(none.stat("key"));
        assertNull(none.get("key"));
        assertFalse(none.remove("key"));
        code(Code.UNAVAILABLE, () -> none.put("key", "", "", Duration.ZERO));
        assertThrows(IOException.class, () -> new CacheFile(folder.resolve("none").toFile()));
        assertThrows(IOException.class, () -> new CacheFile(folder.toFile()));
    }

    @Test
    void anInterruptClosesNothing() throws Exception {
        byte[] body = filled(BLOCK, 1);
        Thread.currentThread().interrupt();
        put("key", body);
        assertArrayEquals(body, get("key"));
        assertTrue(Thread.interrupted());
    }

    @Test
    void aFileThatIsCutOffIsAnError() throws Exception {
        put("key", new byte[3 * BLOCK]);
        Files.write(folder.resolve("cache"), new byte[10]);
        assertThrows(IOException.class, () -> get("key"));
    }

    @Test
    void whateverIsDoneNothingIsMixedUp() throws Exception {
        Random random = new Random(11);
        Map<String, byte[]> expected = new HashMap<>();
        for (int round = 0; round < 3_000; round++) {
            String key = "k" + random.nextInt(12);
            switch (random.nextInt(4)) {
                case 0, 1 -> {
                    byte[] body = filled(random.nextInt(3 * BLOCK), round);
                    put(key, body);
                    expected.put(key, body);
                }
                case 2 -> cache.remove(key);
                default -> {
                    byte[] found = get(key);
                    if (found != null) {
                        assertArrayEquals(expected.get(key), found);
                    }
                }
            }
        }
        for (int number = 0; number < BLOCKS; number++) {
            put("l" + number, new byte[1]);
        }
        assertNotNull(cache.stat("l0"));
    }
}
