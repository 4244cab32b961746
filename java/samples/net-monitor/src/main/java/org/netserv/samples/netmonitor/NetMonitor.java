// SPDX-License-Identifier: Apache-2.0
package org.netserv.samples.netmonitor;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import org.netserv.block.BlockException;
import org.netserv.block.Control;
import org.netserv.block.Counter;
import org.netserv.block.NodeInfo;
import org.netserv.block.State;
import org.netserv.module.ModuleContext;
import org.netserv.packet.IpView;
import org.netserv.packet.PacketProcessor;
import org.netserv.packet.PacketView;

/**
 * Counts packets by source address, destination address and time to live, as the NetMonitor of the 2011 paper does.
 *
 * <p>The counts are kept in kv state under keys such as {@code 10.1.0.2 10.2.0.1 61} ({@link Sum}), beside an entry of
 * totals, so that they outlive an upgrade of the module, and are shown as counters of the same names as far as there are enough. Property {@code sample=100}
 * looks at one packet in a hundred and counts it as a hundred; {@code netserv tell … --topic sample 100} changes that
 * while it runs, and 0 switches it off until another number comes. Topic {@code where} has it say on which node it
 * runs. Its counts and its number go along when it moves to another node, also to one where it is WebAssembly.
 */
final class NetMonitor implements PacketProcessor, State.Carrier {
    private static final Duration FLUSH_PERIOD = Duration.ofSeconds(1);
    /** The key of the totals: packets seen, counted, bytes of these, without IP, without room, bytes of these; the sample. */
    private static final byte[] TOTALS = "total".getBytes(StandardCharsets.US_ASCII);
    private static final int TOTALS_NUMBERS = 7;
    /** The entry is always as long, so that it has room where nothing else has: numbers of 20 digits, spaces between. */
    private static final int TOTALS_BYTES = TOTALS_NUMBERS * 20 + TOTALS_NUMBERS - 1;

    private final ModuleContext module;
    /** One packet in how many is looked at; none for 0. */
    private long sample;
    private final Counter packets;
    private final Counter notKept;
    /**
     * What was counted since the last flush. Between flushes the kv state belongs to nobody, so that two versions of the
     * module can count at the same time.
     */
    private final Counts counts = new Counts();
    private final IpView ip = new IpView();
    private long untilSample;

    /** What was counted of all packets and is not in the totals yet. */
    private long seen;
    private long counted;
    private long countedBytes;
    private long notIp;
    private long noRoom;
    private long noRoomBytes;
    /** Packets that the counter has. */
    private long shown;

    /** The key of the last packet: packets come in runs. */
    private boolean hasLast;
    private int lastKind;
    private long lastSourceHigh;
    private long lastSourceLow;
    private long lastDestinationHigh;
    private long lastDestinationLow;
    private long lastPackets;
    private long lastBytes;

    /**
     * Gets ready.
     *
     * @throws BlockException if there are too few counters or timers
     * @throws IllegalArgumentException for a property that is not understood
     */
    NetMonitor(ModuleContext module) throws BlockException {
        this.module = module;
        sample = sample(module.property("sample", "1"));
        untilSample = sample;
        packets = module.counters().open("packets");
        notKept = module.counters().open("not-kept");
        showKeptCounts();
        module.timers().every(FLUSH_PERIOD, this::flush);
    }

    @Override
    public void process(PacketView packet) {
        seen++;
        if (--untilSample == 0) {
            untilSample = sample;
            if (ip.parse(packet)) {
                count();
            } else {
                notIp++;
            }
        }
    }

    /** Does what the module's user says, and answers. */
    void told(Control control, NodeInfo node, Control.Message message) {
        String text = Numbers.utf8(message.body());
        Long number = text == null ? null : Numbers.parse(text.trim());
        String answer;
        if (message.topic().equals("where")) {
            String uplink = node.fact("uplink");
            answer = node.id() + " in " + node.place() + ", uplink " + (uplink == null ? "" : uplink);
        } else if (!message.topic().equals("sample")) {
            answer = "nothing is known of " + message.topic();
        } else if (number == null) {
            answer = "sample is a number";
        } else {
            lookAtOneIn(number);
            answer = "sample is " + Long.toUnsignedString(number);
        }
        try {
            control.notify(message.topic(), answer.getBytes(StandardCharsets.UTF_8));
        } catch (BlockException tooMany) {
            // Its user may tell it more than it may answer.
        }
    }

    /** The counts are in kv; how much is looked at is said by whoever told it. */
    @Override
    public byte[] exportState() {
        flush();
        return ByteBuffer.allocate(Long.BYTES).putLong(sample).array();
    }

    @Override
    public void importState(byte[] state) {
        if (state.length != Long.BYTES) {
            throw new IllegalArgumentException("the state is no number of eight bytes");
        }
        lookAtOneIn(ByteBuffer.wrap(state).getLong());
    }

    /** Puts what was counted into the kv state and the counters. Is called once a second, and in the end. */
    void flush() {
        packets.add(seen - shown);
        shown = seen;
        putLastAway();
        // Before the counts, too, so that these leave it its room.
        flushTotals();
        flushCounts();
        flushTotals();
    }

    private void lookAtOneIn(long number) {
        putLastAway();
        sample = number;
        untilSample = number;
    }

    private void count() {
        int kind = Counts.kind(ip.version() == 6, ip.ttl());
        if (hasLast && lastKind == kind && lastSourceLow == ip.sourceLow()
                && lastDestinationLow == ip.destinationLow() && lastSourceHigh == ip.sourceHigh()
                && lastDestinationHigh == ip.destinationHigh()) {
            lastPackets++;
            lastBytes += ip.endOffset();
            return;
        }
        putLastAway();
        hasLast = true;
        lastKind = kind;
        lastSourceHigh = ip.sourceHigh();
        lastSourceLow = ip.sourceLow();
        lastDestinationHigh = ip.destinationHigh();
        lastDestinationLow = ip.destinationLow();
        lastPackets = 1;
        lastBytes = ip.endOffset();
    }

    private void putLastAway() {
        if (!hasLast) {
            return;
        }
        hasLast = false;
        if (!tryPutLastAway()) {
            flushCounts();
            tryPutLastAway();
        }
    }

    private boolean tryPutLastAway() {
        return counts.add(lastKind, lastSourceHigh, lastSourceLow, lastDestinationHigh, lastDestinationLow,
                lastPackets * sample, lastPackets, lastBytes);
    }

    private void flushCounts() {
        counts.drain((name, since) -> {
            byte[] key = name.getBytes(StandardCharsets.US_ASCII);
            Sum before = kept(key);
            Sum sum = before == null ? since : before.plus(since);
            try {
                module.kv().set(key, sum.toString().getBytes(StandardCharsets.US_ASCII));
            } catch (BlockException e) {
                notKept.add(since.estimate());
                noRoom += since.packets();
                noRoomBytes += since.bytes();
                return;
            }
            counted += since.packets();
            countedBytes += since.bytes();
            show(name, sum.estimate());
        });
    }

    private void flushTotals() {
        long[] totals = {seen, counted, countedBytes, notIp, noRoom, noRoomBytes, sample};
        if (Arrays.stream(totals, 0, TOTALS_NUMBERS - 1).allMatch(number -> number == 0)) {
            return;
        }
        byte[] value = module.kv().get(TOTALS);
        long[] before = value == null ? null : Numbers.parseAll(value);
        if (before != null && before.length == TOTALS_NUMBERS) {
            Arrays.setAll(totals, at -> at < TOTALS_NUMBERS - 1 ? before[at] + totals[at] : sample);
        }
        byte[] padded = new byte[TOTALS_BYTES];
        Arrays.fill(padded, (byte) ' ');
        byte[] text = Numbers.text(totals).getBytes(StandardCharsets.US_ASCII);
        System.arraycopy(text, 0, padded, 0, text.length);
        try {
            module.kv().set(TOTALS, padded);
        } catch (BlockException e) {
            return;
        }
        seen = 0;
        shown = 0;
        counted = 0;
        countedBytes = 0;
        notIp = 0;
        noRoom = 0;
        noRoomBytes = 0;
    }

    private void showKeptCounts() {
        byte[] key = module.kv().next(new byte[0]);
        for (; key != null; key = module.kv().next(key)) {
            String name = Numbers.utf8(key);
            Sum sum = kept(key);
            if (name != null && sum != null) {
                show(name, sum.estimate());
            }
        }
    }

    private Sum kept(byte[] key) {
        byte[] value = module.kv().get(key);
        return value == null ? null : Sum.parse(value);
    }

    /** Shows a count as a counter. What has no counter any more, or too long a name for one, is in the kv state. */
    private void show(String name, long count) {
        try {
            module.counters().open(name).set(count);
        } catch (BlockException e) {
            // It is in the kv state.
        }
    }

    private static long sample(String text) {
        Long sample = Numbers.parse(text);
        if (sample == null) {
            throw new IllegalArgumentException(
                    "property `sample` has the value `" + text + "`, which is not understood");
        }
        if (sample == 0) {
            throw new IllegalArgumentException("property `sample` is 0; write one packet in how many is looked at");
        }
        return sample;
    }
}
