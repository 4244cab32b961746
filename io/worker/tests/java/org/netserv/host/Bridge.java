// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Queue;

/**
 * Stands in for the real host in tests of the native side. What a module is to do is its name, and for some of them the
 * first byte of a packet's payload; it can also do what the real host never would.
 */
public final class Bridge {
    private static final int ENTRY = 64;
    private static final int SLOT = 2048;
    private static final int PACKET = 64;
    private static final String NULL = "example.org/null";

    private static ByteBuffer table;
    private static ByteBuffer slots;
    private static ByteBuffer injects;
    private static ByteBuffer header;
    private static final String[] names = new String[64];
    private static final long[] seen = new long[64];
    private static final Queue<Runnable> later = new ArrayDeque<>();
    private static int injected;
    private static long due = Long.MAX_VALUE;
    private static long allocatedBefore;
    private static int steps;

    private Bridge() {}

    static native void ready(String engine);
    static native void loaded(int slot);
    static native void failed(int slot, String kind, String detail, String[] context);
    static native void log(int slot, int level, String text);
    static native void stats(int slot, long[] counts, String[] names, long[] values);
    static native void statsDone();
    static native void wake();
    static native long now();

    static void start(ByteBuffer t, ByteBuffer s, ByteBuffer i, ByteBuffer h, String blocksDir, String dataDir) {
        table = t.order(ByteOrder.LITTLE_ENDIAN);
        slots = s.order(ByteOrder.LITTLE_ENDIAN);
        injects = i.order(ByteOrder.LITTLE_ENDIAN);
        header = h.order(ByteOrder.LITTLE_ENDIAN);
        ready("stand-in on Java " + Runtime.version().feature() + ", blocks " + blocksDir + ", data " + dataDir);
    }

    static int process(int count) {
        injected = 0;
        for (int index = 0; index < count; index++) {
            int at = index * ENTRY;
            long mask = table.getLong(at + 32);
            for (; mask != 0; mask &= mask - 1) {
                int slot = Long.numberOfTrailingZeros(mask);
                enter(slot);
                packet(slot, at);
                enter(-1);
            }
        }
        return injected;
    }

    static void export(int slot) {}

    private static void enter(int slot) {
        steps++;
        header.putLong(7 * 128, (long) steps << 8 | slot + 1);
    }

    private static void packet(int slot, int at) {
        String name = names[slot];
        seen[slot]++;
        if (name == NULL) {
            table.putInt(at + 12, 0);
            return;
        }
        if (name == null) {
            verdict(at, 3, slot);
            return;
        }
        int packet = table.getInt(at);
        switch (name) {
            case "example.org/adder" -> {
                slots.put(packet, (byte) (slots.get(packet) + 1));
                verdict(at, 2, slot);
            }
            case "example.org/drop" -> verdict(at, 1, slot);
            case "example.org/cut" -> {
                table.putInt(at + 4, 20);
                verdict(at, 2, slot);
            }
            case "example.org/long" -> {
                table.putInt(at + 4, 1985);
                verdict(at, 2, slot);
            }
            case "example.org/verdict" -> verdict(at, 77, slot);
            case "example.org/slot" -> verdict(at, 1, 200);
            case "example.org/inject" -> inject(slot, slots.get(packet), 20);
            case "example.org/inject-badly" -> {
                inject(slot, 1, 19);
                inject(slot, 1, 1985);
                inject(64, 1, 20);
                inject(slot, 1, 20);
                injected += 1000;
            }
            case "example.org/timer" -> due = now() + 5_000_000;
            case "example.org/endless" -> {
                while (true) {
                    Thread.onSpinWait();
                }
            }
            case "example.org/exit" -> System.exit(0);
            case "example.org/halt" -> Runtime.getRuntime().halt(3);
            case "example.org/throws" -> throw new IllegalStateException("thrown by the bridge");
            case "example.org/nonsense" -> nonsense();
            case "example.org/flood" -> {
                for (int line = 0; line < 1000; line++) {
                    log(slot, 2, "line " + line);
                }
            }
            case "example.org/reports" -> {
                for (int report = 0; report < 10_000; report++) {
                    failed(slot, "trapped", "report " + report, null);
                }
            }
            default -> verdict(at, 3, slot);
        }
    }

    private static void verdict(int at, int verdict, int slot) {
        table.putInt(at + 12, verdict);
        table.putInt(at + 28, slot + 1);
    }

    private static void inject(int slot, int first, int length) {
        int at = injected++ * SLOT;
        injects.putInt(at, length);
        injects.putInt(at + 4, slot);
        injects.put(at + PACKET, (byte) first);
    }

    /** Hands the native side all that it must not stumble over. */
    private static void nonsense() {
        String huge = "x".repeat(1_000_000);
        for (int slot : new int[] {-2, 64, 255, 256, Integer.MAX_VALUE, Integer.MIN_VALUE}) {
            loaded(slot);
            failed(slot, "trapped", "of no slot", null);
            stats(slot, new long[5], new String[0], new long[0]);
            log(slot, slot, "line of no slot");
        }
        ready(null);
        ready(huge);
        failed(1, null, null, null);
        failed(1, huge, huge, new String[] {null, huge, "a\nb"});
        failed(1, "no-such-kind", "a\nb\u001b[31m\ud800", new String[100_000]);
        log(1, 0, null);
        log(1, -7, huge);
        stats(1, null, null, null);
        stats(1, new long[4], null, null);
        stats(1, new long[5], null, null);
        String[] odd = {null, "", "a\nb", "x".repeat(64), "x".repeat(65), huge, "good", "more"};
        stats(1, new long[] {1, 2, 3, 4, -1, 6}, odd, new long[] {1, 2, 3, 4, 5, 6, -1});
        String[] many = new String[100_000];
        Arrays.fill(many, "same");
        stats(1, new long[5], many, new long[100_000]);
    }

    static long idle(long now) {
        injected = 0;
        if (due <= now) {
            due = Long.MAX_VALUE;
            inject(0, 7, 40);
        }
        synchronized (later) {
            for (Runnable next = later.poll(); next != null; next = later.poll()) {
                next.run();
            }
        }
        return due;
    }

    static int injected() {
        return injected;
    }

    static void node(String id, String place, String[] facts, String[] addresses) {
        log(-1, 2, id + " " + place + " " + Arrays.toString(facts) + " " + Arrays.toString(addresses));
    }

    static void load(int slot, String name, String version, String jar, String[] properties, long[] limits,
            int schema, String[] blocks, long control) {
        names[slot] = name.equals(NULL) ? NULL : name;
        if (name.equals("example.org/refused")) {
            failed(slot, "bad-code", "no bundle", new String[] {"in a.B.c:1"});
        } else if (name.equals("example.org/told")) {
            log(slot, 2, version + " " + jar + " " + Arrays.toString(properties) + " " + Arrays.toString(limits) + " "
                    + schema);
            loaded(slot);
        } else if (name.equals("example.org/media")) {
            new Thread(() -> log(slot, 2, org.netserv.host.media.MediaNative.run(slot))).start();
            loaded(slot);
        } else if (name.equals("example.org/thread")) {
            new Thread(() -> {
                synchronized (later) {
                    later.add(() -> inject(slot, 9, 30));
                }
                wake();
            }).start();
            loaded(slot);
        } else {
            loaded(slot);
        }
    }

    static void unload(int slot) {
        names[slot] = null;
    }

    static void stats() {
        for (int slot = 0; slot < names.length; slot++) {
            if (names[slot] != null) {
                long allocated = allocated();
                long[] values = {allocated - allocatedBefore};
                allocatedBefore = allocated();
                stats(slot, new long[] {seen[slot], 0, 0, 0, 0}, new String[] {"allocated"}, values);
            }
        }
        statsDone();
    }

    private static long allocated() {
        var threads = (com.sun.management.ThreadMXBean) java.lang.management.ManagementFactory.getThreadMXBean();
        return threads.getCurrentThreadAllocatedBytes();
    }

    static void shutdown(long millis) {
        for (int slot = 0; slot < names.length; slot++) {
            if (names[slot] != null) {
                log(slot, 2, "bye");
            }
        }
    }
}
