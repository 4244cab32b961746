// SPDX-License-Identifier: Apache-2.0
package odd;

import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CountDownLatch;
import org.netserv.block.BlockException;
import org.netserv.block.Control;
import org.netserv.block.Counter;
import org.netserv.block.NodeInfo;
import org.netserv.block.State;
import org.netserv.module.ModuleContext;
import org.netserv.packet.PacketProcessor;
import org.netserv.packet.PacketView;
import org.osgi.framework.BundleActivator;
import org.osgi.framework.BundleContext;

/** A bundle that does what its property {@code do} says, for tests of the native side with the real host. */
public final class Odd implements BundleActivator {
    private static final int WARM_PACKETS = 500_000;

    private ModuleContext module;
    private String what;

    /** Builds an activator. */
    public Odd() {
    }

    @Override
    public void start(BundleContext bundle) throws Exception {
        module = bundle.getService(bundle.getServiceReference(ModuleContext.class));
        what = module.property("do", "pass");
        if (what.equals("hang-at-start")) {
            hang();
        }
        if (what.equals("where")) {
            NodeInfo node = bundle.getService(bundle.getServiceReference(NodeInfo.class));
            module.log().info(node.id() + " " + node.place() + " " + node.facts() + " " + node.fact("tariff") + " "
                    + node.addresses());
        }
        if (what.startsWith("carry")) {
            carry(bundle.getService(bundle.getServiceReference(State.class)), what, module);
        }
        if (what.equals("listen")) {
            Control control = bundle.getService(bundle.getServiceReference(Control.class));
            control.listen(message -> told(control, message));
        }
        bundle.registerService(PacketProcessor.class, processor(what, module), null);
    }

    @Override
    public void stop(BundleContext bundle) throws Exception {
        if (what.equals("keep-at-stop")) {
            module.kv().set("stopped".getBytes(StandardCharsets.UTF_8), new byte[] {1});
        }
    }

    private static void carry(State state, String what, ModuleContext module) throws Exception {
        CountDownLatch begun = new CountDownLatch(1);
        Carried carried = new Carried(what, module, begun);
        switch (what) {
            case "carry-swallow" -> {
                try {
                    state.carry(carried);
                } catch (BlockException declined) {
                    module.log().info("swallowed " + declined.code());
                }
            }
            case "carry-late" -> {
                new Thread(() -> {
                    try {
                        state.carry(carried);
                    } catch (BlockException declined) {
                        // It is refused for being late.
                    }
                }).start();
                begun.await();
            }
            default -> state.carry(carried);
        }
    }

    private static PacketProcessor processor(String what, ModuleContext module) throws Exception {
        switch (what) {
            case "measure" -> {
                return new Measuring(module.counters().open("allocated"));
            }
            case "hang" -> {
                return packet -> hang();
            }
            case "exit" -> {
                return packet -> System.exit(0);
            }
            case "halt" -> {
                return packet -> Runtime.getRuntime().halt(3);
            }
            case "throw" -> {
                return packet -> {
                    throw new IllegalStateException("as it is told to");
                };
            }
            default -> {
                return packet -> packet.pass();
            }
        }
    }

    /** Answers a message with its topic, its number, and what was last told of the topic that it holds. */
    private static void told(Control control, Control.Message message) throws Exception {
        String text = new String(message.body(), StandardCharsets.UTF_8);
        switch (message.topic()) {
            case "throw" -> throw new IllegalStateException(text);
            case "sleep" -> Thread.sleep(Long.parseLong(text));
            default -> { }
        }
        try {
            Control.Message last = control.last(text);
            String answer = Long.toUnsignedString(message.seq()) + " " + (last == null ? "none" : last.seq());
            control.notify(message.topic(), answer.getBytes(StandardCharsets.UTF_8));
        } catch (BlockException tooMany) {
            // It answers as many as it may.
        }
    }

    /** Says its name, and logs what it takes. */
    private record Carried(String what, ModuleContext module, CountDownLatch begun) implements State.Carrier {
        @Override
        public byte[] exportState() throws Exception {
            switch (what) {
                case "carry-throw" -> throw new IllegalStateException("not now");
                case "carry-hang" -> hang();
                case "carry-nothing" -> {
                    return null;
                }
                case "carry-too-much" -> {
                    return new byte[State.BYTES_MAX + 1];
                }
                case "carry-much" -> {
                    module.kv().set("n".getBytes(StandardCharsets.UTF_8), new byte[] {7});
                    return new byte[1 << 20];
                }
                default -> { }
            }
            return what.getBytes(StandardCharsets.UTF_8);
        }

        @Override
        public void importState(byte[] state) throws Exception {
            begun.countDown();
            switch (what) {
                case "carry-refuse", "carry-swallow" -> {
                    module.kv().set("n".getBytes(StandardCharsets.UTF_8), new byte[] {9});
                    throw new Exception("never");
                }
                case "carry-error" -> throw new AssertionError("not at all");
                case "carry-late" -> Thread.sleep(600_000);
                default -> { }
            }
            module.log().info("took " + new String(state, StandardCharsets.UTF_8));
        }
    }

    private static void hang() {
        while (true) {
            Thread.onSpinWait();
        }
    }

    /** Passes packets, and counts the bytes that the packet thread allocates once everything is compiled. */
    private static final class Measuring implements PacketProcessor {
        private final com.sun.management.ThreadMXBean threads =
                (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        private final Counter allocated;
        private long packets;
        private long before;

        Measuring(Counter allocated) {
            this.allocated = allocated;
        }

        @Override
        public void process(PacketView packet) {
            packets++;
            if (packets == WARM_PACKETS) {
                before = threads.getCurrentThreadAllocatedBytes();
            } else if (packets == WARM_PACKETS + 2_000_000) {
                allocated.set(threads.getCurrentThreadAllocatedBytes() - before);
            }
        }
    }
}
