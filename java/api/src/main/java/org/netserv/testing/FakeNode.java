// SPDX-License-Identifier: Apache-2.0
package org.netserv.testing;

import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;
import org.netserv.block.BlockException;
import org.netserv.block.Control;
import org.netserv.block.Counter;
import org.netserv.block.Counters;
import org.netserv.block.Injector;
import org.netserv.block.KeyValueStore;
import org.netserv.block.Log;
import org.netserv.block.NodeInfo;
import org.netserv.block.State;
import org.netserv.block.Timer;
import org.netserv.block.Timers;
import org.netserv.module.ModuleContext;
import org.netserv.packet.PacketProcessor;

/** A node in memory, on one thread. Its clocks stand until {@link #advance} moves them. */
public final class FakeNode implements ModuleContext, Control, NodeInfo, State, Counters, Timers,
        Injector, Log {
    private final Map<String, String> properties;
    private final Map<String, FakeCounter> counters = new TreeMap<>();
    private final List<FakeTimer> timers = new ArrayList<>();
    private final List<byte[]> injected = new ArrayList<>();
    private final List<String> lines = new ArrayList<>();
    private final List<String> notified = new ArrayList<>();
    private final Map<String, Message> told = new TreeMap<>();
    private final FakeStore kv = new FakeStore();
    private final SplittableRandom random = new SplittableRandom(1);
    private Control.Listener listener;
    private State.Carrier carrier;
    private byte[] given = {};
    private String place = "";
    private Map<String, String> facts = Map.of();
    private long messages;
    private long nowNanos;

    /**
     * Makes a node.
     *
     * @param properties what the module can read
     */
    public FakeNode(Map<String, String> properties) {
        this.properties = Map.copyOf(properties);
    }

    /**
     * Has a processor look at one packet.
     *
     * @param processor the processor
     * @param packet the packet
     * @return the packet as it goes on, or null if it goes no further
     * @throws Exception what the processor throws
     */
    public byte[] process(PacketProcessor processor, byte[] packet) throws Exception {
        FakePacket shown = new FakePacket(packet, nowNanos);
        processor.process(shown);
        return shown.outcome();
    }

    /**
     * Moves the clocks on, and calls the timers that come due, in order.
     *
     * @param by how far
     * @throws Exception what a timer's callback throws
     */
    public void advance(Duration by) throws Exception {
        long until = nowNanos + by.toNanos();
        while (true) {
            FakeTimer next = timers.stream().min(Comparator.comparingLong(timer -> timer.dueNanos)).orElse(null);
            if (next == null || next.dueNanos > until) {
                break;
            }
            nowNanos = next.dueNanos;
            if (next.periodNanos > 0) {
                next.dueNanos += next.periodNanos;
            } else {
                timers.remove(next);
            }
            next.callback.run();
        }
        nowNanos = until;
    }

    /**
     * Returns the value of a counter.
     *
     * @param name its name
     * @return its value, 0 if there is none
     */
    public long counter(String name) {
        FakeCounter counter = counters.get(name);
        return counter == null ? 0 : counter.value;
    }

    /**
     * Returns the packets that were injected, in order.
     *
     * @return the packets
     */
    public List<byte[]> injected() {
        return injected;
    }

    /**
     * Tells the module something, whose listener takes it at once. Numbers count from 1.
     *
     * @param topic the topic
     * @param text the message
     * @throws Exception what the listener throws
     */
    public void tell(String topic, String text) throws Exception {
        Message message = new Message(topic, ++messages, text.getBytes(StandardCharsets.UTF_8));
        told.put(topic, message);
        if (listener != null) {
            listener.receive(message);
        }
    }

    /**
     * Says what the module begins with, which another instance said: what is carried from here on is given that.
     *
     * @param state the bytes; none for nothing
     */
    public void beginWith(byte[] state) {
        given = state.clone();
    }

    /**
     * Asks the module for its state, which the next one of a node can {@link #beginWith}.
     *
     * @return the bytes; none if it has nothing to say
     * @throws Exception what the module throws
     */
    public byte[] exportState() throws Exception {
        byte[] said = carrier == null ? null : carrier.exportState();
        if (said != null && said.length > State.BYTES_MAX) {
            throw new BlockException(BlockException.Code.TOO_LARGE, "a state is too large");
        }
        return said == null ? new byte[0] : said.clone();
    }

    /**
     * Says where the node is, whose name is {@code n1}.
     *
     * @param place the place
     * @param facts what else its operator says
     */
    public void isAt(String place, Map<String, String> facts) {
        this.place = place;
        this.facts = Map.copyOf(facts);
    }

    /**
     * Returns what the module told the requester of its SETUP, each behind its topic.
     *
     * @return for instance {@code sample: sample is 10}
     */
    public List<String> notified() {
        return notified;
    }

    /**
     * Returns the log, each line behind its level.
     *
     * @return for instance {@code INFO: started}
     */
    public List<String> lines() {
        return lines;
    }

    @Override
    public String name() {
        return "example.org/tested";
    }

    @Override
    public String version() {
        return "1.0.0";
    }

    @Override
    public Map<String, String> properties() {
        return properties;
    }

    @Override
    public long monotonicNanos() {
        return nowNanos;
    }

    @Override
    public long wallNanos() {
        return nowNanos;
    }

    @Override
    public void random(byte[] into) {
        random.nextBytes(into);
    }

    @Override
    public long randomNumber() {
        return random.nextLong();
    }

    @Override
    public Log log() {
        return this;
    }

    @Override
    public KeyValueStore kv() {
        return kv;
    }

    @Override
    public Counters counters() {
        return this;
    }

    @Override
    public Timers timers() {
        return this;
    }

    @Override
    public Injector injector() {
        return this;
    }

    @Override
    public Counter open(String name) throws BlockException {
        if (name.isEmpty() || name.chars().anyMatch(Character::isISOControl)) {
            throw new BlockException(BlockException.Code.INVALID, "not a counter's name");
        }
        if (name.getBytes(StandardCharsets.UTF_8).length > NAME_BYTES_MAX) {
            throw new BlockException(BlockException.Code.TOO_LARGE, "a counter's name is too long");
        }
        return counters.computeIfAbsent(name, unknown -> new FakeCounter());
    }

    @Override
    public Timer once(Duration delay, Callback callback) {
        return timer(delay, 0, callback);
    }

    @Override
    public Timer every(Duration period, Callback callback) {
        return timer(period, Math.max(period.toNanos(), 1_000_000), callback);
    }

    @Override
    public void inject(byte[] from, int start, int length) {
        injected.add(Arrays.copyOfRange(from, start, start + length));
    }

    @Override
    public void inject(ByteBuffer packet) {
        byte[] copy = new byte[packet.remaining()];
        packet.get(packet.position(), copy);
        injected.add(copy);
    }

    @Override
    public String id() {
        return "n1";
    }

    @Override
    public String place() {
        return place;
    }

    @Override
    public Map<String, String> facts() {
        return facts;
    }

    @Override
    public List<InetAddress> addresses() {
        return List.of();
    }

    @Override
    public void listen(Control.Listener listener) {
        this.listener = listener;
    }

    @Override
    public Message last(String topic) {
        return told.get(topic);
    }

    @Override
    public void notify(String topic, byte[] body) throws BlockException {
        boolean isVisible = topic.chars().allMatch(one -> one > ' ' && one <= '~');
        if (topic.isEmpty() || topic.length() > TOPIC_CHARS_MAX || !isVisible) {
            throw new BlockException(BlockException.Code.INVALID, "not a topic");
        }
        if (body.length > NOTIFY_BYTES_MAX) {
            throw new BlockException(BlockException.Code.TOO_LARGE, "a message is too long");
        }
        notified.add(topic + ": " + new String(body, StandardCharsets.UTF_8));
    }

    @Override
    public void carry(State.Carrier carrier) throws BlockException {
        this.carrier = carrier;
        try {
            if (given.length > 0) {
                carrier.importState(given.clone());
            }
        } catch (Exception declined) {
            throw new BlockException(BlockException.Code.INVALID, "the module did not take its state: " + declined);
        }
    }

    @Override
    public boolean write(Level level, String text) {
        return lines.add(level + ": " + text);
    }

    @Override
    public void error(String text, Throwable cause) {
        error(text + ": " + cause);
    }

    private Timer timer(Duration delay, long periodNanos, Callback callback) {
        long due = nowNanos + Math.max(delay.toNanos(), 1_000_000);
        FakeTimer timer = new FakeTimer(due, periodNanos, callback);
        timers.add(timer);
        return () -> timers.remove(timer);
    }

    private static final class FakeTimer {
        private final long periodNanos;
        private final Callback callback;
        private long dueNanos;

        FakeTimer(long dueNanos, long periodNanos, Callback callback) {
            this.dueNanos = dueNanos;
            this.periodNanos = periodNanos;
            this.callback = callback;
        }
    }

    private static final class FakeCounter implements Counter {
        private long value;

        @Override
        public void add(long amount) {
            value += amount;
        }

        @Override
        public void set(long value) {
            this.value = value;
        }

        @Override
        public long value() {
            return value;
        }
    }

    private static final class FakeStore implements KeyValueStore {
        private final TreeMap<byte[], byte[]> entries = new TreeMap<>(Arrays::compareUnsigned);

        @Override
        public byte[] get(byte[] key) {
            byte[] value = entries.get(key);
            return value == null ? null : value.clone();
        }

        @Override
        public int get(byte[] key, byte[] into) {
            byte[] value = entries.get(key);
            if (value != null && value.length <= into.length) {
                System.arraycopy(value, 0, into, 0, value.length);
            }
            return value == null ? -1 : value.length;
        }

        @Override
        public void set(byte[] key, byte[] value) throws BlockException {
            if (key.length == 0) {
                throw new BlockException(BlockException.Code.INVALID, "an empty key");
            }
            entries.put(key.clone(), value.clone());
        }

        @Override
        public boolean delete(byte[] key) {
            return entries.remove(key) != null;
        }

        @Override
        public long increment(byte[] key, long delta) throws BlockException {
            byte[] old = entries.getOrDefault(key, new byte[Long.BYTES]);
            if (old.length != Long.BYTES) {
                throw new BlockException(BlockException.Code.INVALID, "no number of eight bytes");
            }
            ByteBuffer sum = ByteBuffer.wrap(old.clone()).order(ByteOrder.LITTLE_ENDIAN);
            set(key, sum.putLong(0, sum.getLong(0) + delta).array());
            return sum.getLong(0);
        }

        @Override
        public boolean compareAndSet(byte[] key, byte[] expected, byte[] value) throws BlockException {
            if (!Arrays.equals(entries.get(key), expected)) {
                return false;
            }
            if (value == null) {
                delete(key);
            } else {
                set(key, value);
            }
            return true;
        }

        @Override
        public byte[] next(byte[] key) {
            byte[] next = entries.higherKey(key);
            return next == null ? null : next.clone();
        }

        @Override
        public int size() {
            return entries.size();
        }
    }
}
