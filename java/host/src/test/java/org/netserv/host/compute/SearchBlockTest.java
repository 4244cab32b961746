// SPDX-License-Identifier: Apache-2.0
package org.netserv.host.compute;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.netserv.block.BlockException;
import org.netserv.block.BlockException.Code;
import org.netserv.block.Search;
import org.netserv.testing.Allocations;
import org.netserv.testing.FakePacket;

class SearchBlockTest {
    private final SearchBlock search = new SearchBlock();

    @Test
    void theFirstNeedleIsFound() {
        byte[] hay = bytes("xx needle needle");
        FakePacket packet = new FakePacket(hay);
        int[][] cases = {{0, 16, 3}, {4, 16, 10}, {11, 16, -1}, {3, 9, 3}, {3, 8, -1}, {16, 16, -1}};
        for (int[] one : cases) {
            assertEquals(one[2], search.find(hay, one[0], one[1], bytes("needle")));
            assertEquals(one[2], search.find(packet, one[0], one[1], bytes("needle")));
        }
        assertEquals(2, search.find(hay, 2, 16, new byte[0]));
        assertEquals(2, search.find(packet, 2, 16, new byte[0]));
        assertThrows(IndexOutOfBoundsException.class, () -> search.find(hay, 0, 17, bytes("x")));
        assertThrows(IndexOutOfBoundsException.class, () -> search.find(packet, 0, 17, bytes("x")));
    }

    @Test
    void theLeftmostAndLongestIsFound() throws BlockException {
        check(false, "abcx bcx", "2@1 2@5", "abcd", "bc", "bcx");
        check(false, "ushers", "1@1", "he", "she", "hers", "his");
        check(false, "xhers", "2@1", "he", "she", "hers", "his");
        check(false, "aaaaa", "1@0 1@2 0@4", "a", "aa");
        check(true, "A GeT b", "0@2", "get", "GET");
        check(false, "A GeT b", "", "get", "GET");
        check(false, "get", "0@0", "get", "get");
        check(false, "abab\u00ff", "1@4", "x", "\u00ff");
    }

    private void check(boolean ignoreCase, String hay, String expected, String... patterns)
            throws BlockException {
        List<byte[]> list = new ArrayList<>();
        for (String pattern : patterns) {
            list.add(bytes(pattern));
        }
        try (Search.Patterns set = search.compile(list, ignoreCase)) {
            assertEquals(expected, hits(set, bytes(hay)), hay);
        }
    }

    private static String hits(Search.Patterns set, byte[] hay) {
        List<String> hits = new ArrayList<>();
        for (int at = 0; set.find(hay, at, hay.length); at = set.end()) {
            hits.add(set.pattern() + "@" + set.start());
        }
        return String.join(" ", hits);
    }

    @Test
    void itFindsWhatSearchingOneByOneFinds() throws BlockException {
        Random random = new Random(3);
        for (int round = 0; round < 2_000; round++) {
            List<byte[]> patterns = new ArrayList<>();
            for (int count = 1 + random.nextInt(8); count > 0; count--) {
                patterns.add(text(random, 1 + random.nextInt(5)));
            }
            byte[] hay = text(random, 30);
            try (Search.Patterns set = search.compile(patterns, false)) {
                assertEquals(slowHits(patterns, hay), hits(set, hay));
                FakePacket packet = new FakePacket(hay);
                if (set.find(hay, 3, 25)) {
                    String hit = set.pattern() + " " + set.start() + " " + set.end();
                    assertTrue(set.find(packet, 3, 25));
                    assertEquals(hit, set.pattern() + " " + set.start() + " " + set.end());
                } else {
                    assertFalse(set.find(packet, 3, 25));
                }
            }
        }
    }

    @Test
    void hitsAreFoundWhereverTheyLie() throws BlockException {
        byte[] hay = new byte[3 << 20];
        byte[] longest = new byte[Search.PATTERN_BYTES_MAX];
        java.util.Arrays.fill(longest, (byte) 1);
        longest[0] = 2;
        try (Search.Patterns set = search.compile(List.of(longest, new byte[] {1, 1}), false)) {
            for (int at : new int[] {0, 4095 - 500, 4095, 4096, 70_000, (1 << 20) - 7, hay.length - longest.length}) {
                System.arraycopy(longest, 0, hay, at, longest.length);
                assertTrue(set.find(hay, 0, hay.length));
                assertEquals("0 " + at + " " + (at + longest.length), set.pattern() + " " + set.start() + " " + set.end());
                java.util.Arrays.fill(hay, (byte) 0);
            }
            assertFalse(set.find(hay, 0, hay.length));
            hay[hay.length - 2] = 1;
            hay[hay.length - 1] = 1;
            assertTrue(set.find(hay, 5, hay.length));
            assertEquals(hay.length - 2, set.start());
        }
    }

    private String slowHits(List<byte[]> patterns, byte[] hay) {
        List<String> hits = new ArrayList<>();
        int at = 0;
        while (at < hay.length) {
            int best = -1;
            for (int number = 0; number < patterns.size(); number++) {
                byte[] pattern = patterns.get(number);
                boolean isHere = search.find(hay, at, Math.min(at + pattern.length, hay.length), pattern) == at;
                if (isHere && (best < 0 || pattern.length > patterns.get(best).length)) {
                    best = number;
                }
            }
            if (best >= 0) {
                hits.add(best + "@" + at);
            }
            at += best < 0 ? 1 : patterns.get(best).length;
        }
        return String.join(" ", hits);
    }

    private static byte[] text(Random random, int length) {
        byte[] text = new byte[length];
        for (int at = 0; at < length; at++) {
            text[at] = (byte) ('a' + random.nextInt(3));
        }
        return text;
    }

    @Test
    void patternsAreBounded() throws BlockException {
        code(Code.INVALID, List.of(new byte[0]));
        code(Code.QUOTA, Collections.nCopies(Search.PATTERNS_MAX + 1, bytes("a")));
        code(Code.INVALID, List.of());
        code(Code.TOO_LARGE, List.of(new byte[Search.PATTERN_BYTES_MAX + 1]));
        search.compile(Collections.nCopies(Search.PATTERNS_MAX, bytes("a")), false).close();
        List<byte[]> largest = new ArrayList<>();
        for (int number = 0; number < Search.SET_BYTES_MAX / Search.PATTERN_BYTES_MAX; number++) {
            byte[] pattern = new byte[Search.PATTERN_BYTES_MAX];
            pattern[number] = 1;
            largest.add(pattern);
        }
        byte[] longest = largest.get(5);
        Search.Patterns set = search.compile(largest, false);
        assertTrue(set.find(longest, 0, longest.length));
        assertEquals(5, set.pattern());
        largest.add(new byte[1]);
        code(Code.QUOTA, largest);
        set.close();
        set.close();
        assertThrows(IllegalStateException.class, () -> set.find(longest, 0, 1));
        List<Search.Patterns> open = new ArrayList<>();
        for (int count = 0; count < Search.SETS_MAX; count++) {
            open.add(search.compile(List.of(bytes("x")), true));
        }
        assertFalse(open.get(0).find(longest, 0, 9));
        code(Code.QUOTA, List.of(bytes("x")));
        open.get(0).close();
        search.compile(List.of(bytes("x")), true);
        search.close();
        assertThrows(IllegalStateException.class, () -> open.get(1).find(longest, 0, 9));
        code(Code.QUOTA, List.of(bytes("x")));
    }

    private void code(Code code, List<byte[]> patterns) {
        assertEquals(code, assertThrows(BlockException.class, () -> search.compile(patterns, false)).code());
    }

    @Test
    void nothingIsAllocatedPerPacket() throws Exception {
        Search.Patterns set = search.compile(List.of(bytes("needle"), bytes("needless")), false);
        byte[] needle = bytes("needle");
        long[] found = new long[2];
        long bytes = Allocations.bytesOf(packet -> {
            found[0] += search.find(packet, 0, packet.length(), needle);
            found[1] += set.find(packet, 0, packet.length()) ? set.start() : 0;
        }, List.of(bytes("x".repeat(200) + "needless"), bytes("x".repeat(20))));
        assertEquals(0, bytes);
        assertEquals(found[0] + 5_000, found[1]);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.ISO_8859_1);
    }
}
