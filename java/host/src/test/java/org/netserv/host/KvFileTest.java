// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.netserv.host.DispatcherTest.code;

import com.sun.management.ThreadMXBean;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.netserv.block.BlockException;
import org.netserv.block.BlockException.Code;
import org.netserv.block.KeyValueStore;

/** Kv state on the disk: what is found again, and what damage does. */
class KvFileTest {
    private static final String NAME = "example.org/a";
    private static final int FILE_BYTES = 1 << 20;
    private static final byte[] LONG = bytes("x".repeat(60_000));

    @TempDir
    Path folder;
    private Path path;
    private final FakeNative node = new FakeNative();

    @BeforeEach
    void make() throws IOException {
        path = folder.resolve("kv");
        try (RandomAccessFile file = new RandomAccessFile(path.toFile(), "rw")) {
            file.setLength(FILE_BYTES);
        }
    }

    private KvStates open() {
        return new KvStates(path.toFile(), 0, new ModuleLog(node, -1));
    }

    private static KeyValueStore view(KvStates states, String name) {
        return states.open(name, 1).within(new ModuleLimits(0, 10_000, 1 << 20, 0, 0, 0));
    }

    /** Returns what a new process finds. */
    private Map<String, String> found(String name) {
        KvStates states = open();
        Map<String, String> found = new TreeMap<>();
        KeyValueStore kv = view(states, name);
        for (byte[] key = kv.next(new byte[0]); key != null; key = kv.next(key)) {
            found.put(text(key), text(kv.get(key)));
        }
        states.end();
        return found;
    }

    @Test
    void whatWasSetIsFoundAgain() throws Exception {
        KvStates states = open();
        KeyValueStore kv = view(states, NAME);
        kv.set(bytes("a"), bytes("1"));
        kv.set(bytes("b"), bytes("2"));
        kv.set(bytes("c"), bytes(""));
        kv.delete(bytes("b"));
        kv.set(bytes("a"), bytes("3"));
        kv.delete(bytes("c"));
        kv.set(bytes("c"), bytes("again"));
        view(states, "example.org/other").set(bytes("a"), bytes("other"));
        states.end();
        assertEquals(Map.of("a", "3", "c", "again"), found(NAME));
        assertEquals(Map.of("a", "other"), found("example.org/other"));
        assertEquals("[]", node.lines.toString());
    }

    @Test
    void aChangeIsWrittenWithoutBeingAsked() throws Exception {
        KvStates states = open();
        byte[] before = Files.readAllBytes(path);
        long start = System.nanoTime();
        view(states, NAME).set(bytes("a"), bytes("1"));
        long until = start + 10_000_000_000L;
        while (Arrays.equals(before, Files.readAllBytes(path)) && System.nanoTime() < until) {
            Thread.onSpinWait();
        }
        // The half's header is the last thing that is written: a crash from here on loses nothing.
        Map<String, String> seen = Map.of();
        while (seen.isEmpty() && System.nanoTime() < until) {
            Path copy = Files.copy(path, folder.resolve("copy"), StandardCopyOption.REPLACE_EXISTING);
            seen = entries(copy);
        }
        assertEquals(Map.of("a", "1"), seen);
        states.end();
    }

    private static Map<String, String> entries(Path path) throws IOException {
        Map<String, String> entries = new TreeMap<>();
        try (KvFile file = KvFile.open(path.toFile())) {
            file.read(new KvFile.Reader() {
                @Override
                public boolean take(String name, int schema, byte[] key, byte[] value) {
                    if (value == null) {
                        entries.remove(text(key));
                    } else {
                        entries.put(text(key), text(value));
                    }
                    return true;
                }

                @Override
                public void drop(String name, int schema) {
                    entries.clear();
                }
            });
        }
        return entries;
    }

    @Test
    void theFileIsUsedAgainAndAgain() throws Exception {
        KvStates states = open();
        KeyValueStore kv = view(states, NAME);
        Map<String, String> expected = new TreeMap<>();
        Random random = new Random(5);
        for (int round = 0; round < 200; round++) {
            for (int count = 0; count < 40; count++) {
                String key = "k" + random.nextInt(60);
                if (random.nextInt(4) == 0) {
                    kv.delete(bytes(key));
                    expected.remove(key);
                } else {
                    String value = String.valueOf((char) ('a' + random.nextInt(26))).repeat(random.nextInt(3_000));
                    kv.set(bytes(key), bytes(value));
                    expected.put(key, value);
                }
            }
            states.write();
        }
        states.end();
        assertEquals(expected, found(NAME));
        assertEquals("[]", node.lines.toString());
    }

    @Test
    void longNamesKeysAndValuesFit() throws Exception {
        String name = "example.org/" + "n".repeat(200);
        KvStates states = open();
        KeyValueStore kv = view(states, name);
        byte[] key = new byte[Limits.KV_KEY_BYTES_MAX];
        for (int count = 0; count < 5; count++) {
            key[0] = (byte) ('a' + count);
            kv.set(key, new byte[Limits.KV_VALUE_BYTES_MAX]);
        }
        states.end();
        assertEquals(5, found(name).size());
    }

    @Test
    void aFullFileIsAQuota() throws Exception {
        KvStates states = open();
        KeyValueStore kv = view(states, NAME);
        List<String> keys = new ArrayList<>();
        code(Code.QUOTA, () -> {
            for (int count = 0; ; count++) {
                kv.set(bytes("k" + count), new byte[10_000]);
                keys.add("k" + count);
            }
        });
        assertTrue(keys.size() > 40, keys.size() + " entries of 10,000 bytes");
        code(Code.QUOTA, () -> view(states, "example.org/other").set(bytes("a"), new byte[10_000]));
        kv.set(bytes("k0"), bytes("short"));
        kv.set(bytes("last"), new byte[9_000]);
        states.end();
        assertEquals(keys.size() + 1, found(NAME).size());
        assertEquals("[]", node.lines.toString());
    }

    @Test
    void manySmallEntriesFillTheFileAndFit() throws Exception {
        KvStates states = open();
        KeyValueStore kv = states.open(NAME, 1).within(new ModuleLimits(0, 1_000_000, 1 << 30, 0, 0, 0));
        int[] count = new int[1];
        code(Code.QUOTA, () -> {
            for (; ; count[0]++) {
                kv.set(bytes("k" + count[0]), bytes("v"));
            }
        });
        states.end();
        assertEquals(count[0], found(NAME).size());
        assertEquals("[]", node.lines.toString());
    }

    @Test
    void anEntryTakesNoMoreOfTheHeapThanItCounts() throws Exception {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        int count = 20_000;
        for (int length : new int[] {0, 1, 8, 9, 200}) {
            KvState.View kv = new KvState().within(new ModuleLimits(0, count, 1 << 30, 0, 0, 0));
            byte[] value = new byte[length];
            byte[][] keys = new byte[count][];
            Arrays.setAll(keys, number -> bytes("k" + number));
            long cost = 0;
            for (byte[] key : keys) {
                cost += key.length + length + Limits.KV_ENTRY_COST_BYTES;
            }
            long before = threads.getCurrentThreadAllocatedBytes();
            for (byte[] key : keys) {
                kv.set(key, value);
            }
            long taken = threads.getCurrentThreadAllocatedBytes() - before;
            assertTrue(taken <= cost && taken > cost / 2, "values of " + length + ": " + taken + " of " + cost);
        }
    }

    @Test
    void aBatchThatWasCutOffCountsNotAtAll() throws Exception {
        byte[] before = writeBatchAfterOne();
        byte[] after = Files.readAllBytes(path);
        int first = Arrays.mismatch(before, after);
        assertEquals(6, entries(path).size());
        for (int cut = first; cut < first + 300_000; cut += 10_000) {
            byte[] content = after.clone();
            Arrays.fill(content, cut, content.length, (byte) 0);
            Files.write(path, content);
            assertEquals(Set.of("before"), entries(path).keySet(), "cut off after " + (cut - first));
        }
        assertEquals("[]", node.lines.toString());
    }

    /** Writes one key, and then a batch of three records. Returns the file as it was before the batch. */
    private byte[] writeBatchAfterOne() throws Exception {
        KvStates states = open();
        KeyValueStore kv = view(states, NAME);
        kv.set(bytes("before"), bytes("1"));
        states.write();
        byte[] before = Files.readAllBytes(path);
        for (int number = 0; number < 5; number++) {
            kv.set(bytes("k" + number), LONG);
        }
        states.write();
        states.end();
        return before;
    }

    @Test
    void piecesOfABatchThatWasCutOffNeverCount() throws Exception {
        byte[] before = writeBatchAfterOne();
        // The power cut took the first record, and left the others.
        byte[] content = Files.readAllBytes(path);
        int first = Arrays.mismatch(before, content);
        Arrays.fill(content, first, first + 16, (byte) 0);
        Files.write(path, content);
        KvStates next = open();
        KeyValueStore again = view(next, NAME);
        // What is written there is as long.
        again.set(bytes("n0"), LONG);
        again.set(bytes("n1"), LONG);
        next.end();
        assertEquals(List.of("before", "n0", "n1"), List.copyOf(entries(path).keySet()));
    }

    @Test
    void whatIsDamagedIsSaid() throws Exception {
        KvStates states = open();
        view(states, NAME).set(bytes("a"), bytes("the value"));
        states.end();
        byte[] content = Files.readAllBytes(path);
        String text = new String(content, StandardCharsets.ISO_8859_1);
        content[text.indexOf("the value")]++;
        Files.write(path, content);
        assertEquals(Map.of(), found(NAME));
        assertTrue(node.lines.toString().contains("is damaged"), node.lines.toString());
    }

    @Test
    void whatNobodyUsesIsKeptUntilItsRoomIsNeeded() throws Exception {
        KvStates states = open();
        for (int number = 0; number < 3; number++) {
            view(states, "example.org/" + number).set(bytes("a"), new byte[60_000]);
            states.close("example.org/" + number, 1, number);
        }
        states.forget(Limits.KV_KEPT_NANOS);
        assertEquals(1, states.open("example.org/2", 1).size());
        KeyValueStore kv = view(states, NAME);
        int[] count = new int[1];
        code(Code.QUOTA, () -> {
            for (; ; count[0]++) {
                kv.set(bytes("k" + count[0]), new byte[50_000]);
            }
        });
        states.write();
        // The first one went, and no other.
        kv.set(bytes("more"), new byte[50_000]);
        states.end();
        assertEquals(count[0] + 1, found(NAME).size());
        assertEquals(Map.of(), found("example.org/0"));
        assertEquals(1, found("example.org/1").size());
        assertEquals(1, found("example.org/2").size());
        assertEquals("[]", node.lines.toString());
    }

    @Test
    void emptyStateIsForgotten() throws Exception {
        KvStates states = open();
        KvState state = states.open(NAME, 1);
        KeyValueStore kv = view(states, NAME);
        kv.set(bytes("a"), bytes("1"));
        states.write();
        kv.delete(bytes("a"));
        states.close(NAME, 1, 0);
        states.close(NAME, 1, 1);
        KvState again = states.open(NAME, 1);
        assertNotSame(state, again);
        again.within(new ModuleLimits(0, 9, 99, 0, 0, 0)).set(bytes("b"), bytes("2"));
        states.end();
        assertEquals(Map.of("b", "2"), found(NAME));
    }

    @Test
    void stateThatIsLeftInTheFileIsBounded() throws Exception {
        KvStates states = open();
        for (int count = 0; count <= Limits.KV_KEPT_MAX; count++) {
            view(states, "example.org/" + count).set(bytes("a"), bytes("1"));
            states.close("example.org/" + count, 1, count);
        }
        states.end();
        assertEquals(Map.of(), found("example.org/0"));
        assertEquals(1, found("example.org/1").size());
        // The modules of what was found are about to be loaded, or gone.
        KvStates next = open();
        next.forget(Limits.KV_KEPT_NANOS - 1);
        assertEquals(1, next.open("example.org/2", 1).size());
        assertEquals(Long.MAX_VALUE, next.nextNanos());
        next.end();
    }

    @Test
    void damageCostsWhatIsBehindItAndNothingElse() throws Exception {
        KvStates states = open();
        KeyValueStore kv = view(states, NAME);
        for (int count = 0; count < 10; count++) {
            kv.set(bytes("k" + count), bytes("value"));
            states.write();
        }
        states.end();
        byte[] whole = Files.readAllBytes(path);
        Random random = new Random(9);
        int lost = 0;
        for (int round = 0; round < 300; round++) {
            byte[] damaged = whole.clone();
            int half = round % 2 * FILE_BYTES / 2;
            damaged[half + random.nextInt(700)] ^= (byte) (1 + random.nextInt(255));
            Files.write(path, damaged);
            Map<String, String> found = entries(path);
            for (int count = 0; count < found.size(); count++) {
                assertEquals("value", found.get("k" + count), "round " + round);
            }
            lost += found.size() < 10 ? 1 : 0;
        }
        assertTrue(lost > 10 && lost < 290, lost + " rounds lost something");
        // A record that was cut off is overwritten.
        Files.write(path, whole);
        KvStates next = open();
        view(next, NAME).set(bytes("more"), bytes("value"));
        next.end();
        assertEquals(11, found(NAME).size());
    }

    @Test
    void anyFileIsAGoodFile() throws Exception {
        byte[] junk = new byte[FILE_BYTES];
        new Random(1).nextBytes(junk);
        for (byte[] content : List.of(junk, new byte[0], new byte[1], new byte[39], new byte[41], new byte[4096])) {
            Files.write(path, content);
            assertEquals(Map.of(), found(NAME));
        }
        // What is too small to hold anything takes nothing, and says so.
        KvStates states = open();
        code(Code.QUOTA, () -> view(states, NAME).set(bytes("a"), bytes("1")));
        states.end();
        KvStates none = new KvStates(folder.resolve("none").toFile(), 0, new ModuleLog(node, -1));
        view(none, NAME).set(bytes("a"), bytes("1"));
        none.end();
        KvStates directory = new KvStates(folder.toFile(), 0, new ModuleLog(node, -1));
        view(directory, NAME).set(bytes("a"), bytes("1"));
        directory.end();
    }

    @Test
    void numbersAreCountedAndValuesCompared() throws Exception {
        KeyValueStore kv = new KvState().within(new ModuleLimits(0, 2, 100, 0, 0, 0));
        assertEquals(5, kv.increment(bytes("n"), 5));
        assertEquals(-2, kv.increment(bytes("n"), -7));
        assertArrayEquals(new byte[] {-2, -1, -1, -1, -1, -1, -1, -1}, kv.get(bytes("n")));
        kv.set(bytes("t"), bytes("text"));
        code(Code.INVALID, () -> kv.increment(bytes("t"), 1));
        code(Code.QUOTA, () -> kv.increment(bytes("other"), 1));
        code(Code.INVALID, () -> kv.increment(new byte[0], 1));

        assertFalse(kv.compareAndSet(bytes("t"), bytes("other"), bytes("x")));
        assertFalse(kv.compareAndSet(bytes("t"), null, bytes("x")));
        assertTrue(kv.compareAndSet(bytes("t"), bytes("text"), bytes("x")));
        assertArrayEquals(bytes("x"), kv.get(bytes("t")));
        assertTrue(kv.compareAndSet(bytes("t"), bytes("x"), null));
        assertNull(kv.get(bytes("t")));
        assertFalse(kv.compareAndSet(bytes("t"), bytes("x"), bytes("y")));
        assertTrue(kv.compareAndSet(bytes("t"), null, null));
        assertTrue(kv.compareAndSet(bytes("t"), null, bytes("y")));
        code(Code.QUOTA, () -> kv.compareAndSet(bytes("third"), null, bytes("y")));
        code(Code.INVALID, () -> kv.compareAndSet(new byte[0], null, bytes("y")));
    }

    @Test
    void threadsLoseNoIncrement() throws Exception {
        KvStates states = open();
        KvState state = states.open(NAME, 1);
        ModuleLimits limits = new ModuleLimits(0, 10, 1_000, 0, 0, 0);
        CountDownLatch done = new CountDownLatch(2);
        for (int thread = 0; thread < 2; thread++) {
            new Thread(() -> {
                try {
                    for (int count = 0; count < 20_000; count++) {
                        state.within(limits).increment(bytes("n"), 1);
                    }
                    done.countDown();
                } catch (BlockException impossible) {
                    throw new AssertionError(impossible);
                }
            }).start();
        }
        while (done.getCount() > 0) {
            states.write();
        }
        states.end();
        KvStates next = open();
        assertEquals(40_000, next.open(NAME, 1).within(limits).increment(bytes("n"), 0));
        next.end();
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.ISO_8859_1);
    }

    private static String text(byte[] bytes) {
        return new String(bytes, StandardCharsets.ISO_8859_1);
    }
}
