// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.concurrent.locks.ReentrantLock;
import org.netserv.block.Control;
import org.netserv.block.State;
import org.netserv.block.Timers;
import org.netserv.packet.PacketProcessor;

/**
 * Shows packets to the modules in turn; each sees what the ones before it left.
 *
 * <p>{@link #process} and {@link #idle} run on the packet thread and hold the lock while they do. Whoever changes the
 * set of modules takes it too, so a module that is taken out has answered its last batch.
 */
final class Dispatcher {
    private final Native node;
    private final ByteBuffer table;
    private final SlotView[] views = new SlotView[Limits.BATCH_PACKETS_MAX];
    private final int lastPlace;
    private final Shown shown = new Shown();
    private final Activity activity;
    private final Injections injections;
    private final ReentrantLock lock = new ReentrantLock();
    private final Thread packetThread;

    // Guarded by the lock.
    private Module[] chain = {};
    private long loaded;
    private Module running;
    private FailedModules failed = (module, refusal) -> { };
    /** Modules that are gone, with packets that are still to be sent. */
    private final ArrayDeque<ModuleInjector> leaving = new ArrayDeque<>();

    /** When the packet thread comes back by itself. */
    private volatile long promisedNanos = Long.MAX_VALUE;

    /** Is told of modules that failed and are out of the chain; on the packet thread. */
    interface FailedModules {
        void accept(Module module, Refusal refusal);
    }

    /** Makes a dispatcher for the calling thread, which is the packet thread from here on. */
    Dispatcher(Native node, ByteBuffer table, ByteBuffer slots, ByteBuffer injects, ByteBuffer header) {
        this.node = node;
        this.table = table.duplicate().order(ByteOrder.LITTLE_ENDIAN);
        ByteBuffer packets = slots.duplicate().order(ByteOrder.BIG_ENDIAN);
        SlotView.Buffers buffers = new SlotView.Buffers(packets);
        SlotView.Saved saved = new SlotView.Saved();
        Arrays.setAll(views, index -> new SlotView(packets, buffers, saved, index));
        lastPlace = packets.capacity() - Limits.PACKET_BYTES_MAX;
        activity = new Activity(header);
        injections = new Injections(injects);
        packetThread = Thread.currentThread();
    }

    void onFailure(FailedModules failed) {
        this.failed = failed;
    }

    /** Shows a batch to the modules. Returns the number of packets that they injected. */
    int process(int count) {
        if (count < 0 || count > Limits.BATCH_PACKETS_MAX) {
            throw new IllegalArgumentException("a batch of " + count + " packets");
        }
        lock.lock();
        try {
            injections.cutTo(0);
            read(count);
            Module[] inTurn = chain;
            boolean isAlone = inTurn.length == 1;
            for (Module module : inTurn) {
                show(module, count, isAlone);
            }
            write(count);
            return injections.count();
        } finally {
            lock.unlock();
        }
    }

    /**
     * Calls the timers that are due, each once at most, hands over control messages, and takes what other threads
     * inject.
     *
     * @return when there is something to do next, {@link Long#MAX_VALUE} for never
     */
    long idle(long now) {
        lock.lock();
        try {
            promisedNanos = Long.MAX_VALUE;
            injections.cutTo(0);
            boolean isMore = false;
            for (Module module : chain) {
                isMore |= runTimers(module, now);
            }
            for (Module module : chain) {
                isMore |= handOver(module);
            }
            for (Module module : chain) {
                isMore |= module.moduleInjector().drain(injections);
            }
            isMore |= sendLast();
            long next = isMore ? now : nextNanos();
            promisedNanos = next;
            return next;
        } finally {
            lock.unlock();
        }
    }

    /**
     * Asks a module for its state. Returns null if it has nothing to say.
     *
     * @throws Refusal why it does not say it; it goes on
     */
    byte[] export(int slot) throws Refusal {
        lock.lock();
        try {
            injections.cutTo(0);
            int place = place(slot);
            if (place == chain.length || chain[place].isPaused()) {
                throw new Refusal(Refusal.NOT_RUNNING, "the module does not run at the moment");
            }
            State.Carrier carrier = chain[place].moduleState().carrier();
            return carrier == null ? null : export(chain[place], carrier);
        } finally {
            lock.unlock();
        }
    }

    private byte[] export(Module module, State.Carrier carrier) throws Refusal {
        byte[] said = null;
        Refusal refusal = null;
        shown.clear();
        begin(module);
        try {
            said = carrier.exportState();
        } catch (Throwable any) {
            // Looking at it calls the module's code again.
            refusal = Refusal.ofState("the module did not say its state", any);
        }
        end();
        module.countInjected(injections.count());
        if (refusal != null) {
            throw refusal;
        }
        if (said != null && said.length > State.BYTES_MAX) {
            throw new Refusal(Refusal.STATE_REFUSED,
                    "the module said " + said.length + " bytes of state, at most " + State.BYTES_MAX + " may move");
        }
        return said == null || said.length == 0 ? null : said;
    }

    /** Returns the number of packets that the last call injected. */
    int injected() {
        return injections.count();
    }

    Injections injections() {
        return injections;
    }

    /** Returns whether the calling thread is in a call of that module. */
    boolean runsHere(Module module) {
        return Thread.currentThread() == packetThread && running == module;
    }

    /** Returns the module that runs on the packet thread; for whoever was started by it or holds it up. */
    Module running() {
        return running;
    }

    Thread packetThread() {
        return packetThread;
    }

    /** Is told of a timer that was set; wakes the packet thread if it would come too late. */
    void timerSet(long due) {
        if (due < promisedNanos) {
            wake();
        }
    }

    /** Has the packet thread come back. */
    void wake() {
        node.wake();
    }

    /** Puts a module at the end of the chain, or in the place of the one in the same slot, which is returned. */
    Module insert(Module module) {
        lock.lock();
        try {
            int place = place(module.slot());
            Module old = place < chain.length ? chain[place] : null;
            Module[] changed = Arrays.copyOf(chain, Math.max(chain.length, place + 1));
            changed[place] = module;
            setChain(changed);
            return old;
        } finally {
            lock.unlock();
            wake();
        }
    }

    /** Takes a module out of the chain; null if there is none in that slot. */
    Module remove(int slot) {
        lock.lock();
        try {
            int place = place(slot);
            if (place == chain.length) {
                return null;
            }
            Module removed = chain[place];
            Module[] changed = new Module[chain.length - 1];
            System.arraycopy(chain, 0, changed, 0, place);
            System.arraycopy(chain, place + 1, changed, place, changed.length - place);
            setChain(changed);
            return removed;
        } finally {
            lock.unlock();
        }
    }

    /** Sends what a module injected while it stopped. */
    void sendLastOf(Module module) {
        lock.lock();
        try {
            leaving.add(module.moduleInjector());
        } finally {
            lock.unlock();
        }
        wake();
    }

    /** Returns the last module of a name in the chain; null if there is none. */
    Module latest(String name) {
        Module latest = null;
        for (Module module : modules()) {
            if (module.name().equals(name)) {
                latest = module;
            }
        }
        return latest;
    }

    /** Returns the modules in turn. */
    Module[] modules() {
        lock.lock();
        try {
            return chain.clone();
        } finally {
            lock.unlock();
        }
    }

    /** Hands the counts of every module over. */
    void stats() {
        lock.lock();
        try {
            for (Module module : chain) {
                stats(module);
            }
        } finally {
            lock.unlock();
        }
        node.statsDone();
    }

    /** Hands the counts of one module over, which need not be in the chain any more. */
    void stats(Module module) {
        var counters = module.moduleCounters().all();
        String[] names = counters.keySet().toArray(String[]::new);
        long[] values = counters.values().stream().mapToLong(Long::longValue).toArray();
        node.stats(module.slot(), module.counts(), names, values);
    }

    private void setChain(Module[] changed) {
        chain = changed;
        loaded = 0;
        for (Module module : changed) {
            loaded |= bit(module.slot());
        }
    }

    private int place(int slot) {
        int place = 0;
        while (place < chain.length && chain[place].slot() != slot) {
            place++;
        }
        return place;
    }

    private void read(int count) {
        for (int index = 0; index < count; index++) {
            int at = index * RingLayout.ENTRY_BYTES;
            int place = table.getInt(at + RingLayout.ENTRY_OFFSET);
            int length = table.getInt(at + RingLayout.ENTRY_LENGTH);
            SlotView view = views[index];
            if (place < 0 || place > lastPlace || length < 1 || length > Limits.PACKET_BYTES_MAX) {
                view.refuse();
                continue;
            }
            long modules = table.getLong(at + RingLayout.ENTRY_MODULES);
            view.take(place, length, table.getLong(at + RingLayout.ENTRY_TIME),
                    table.getInt(at + RingLayout.ENTRY_INTERFACE), modules);
            long absent = modules & ~loaded;
            if (absent != 0) {
                view.fail(Long.numberOfTrailingZeros(absent));
            }
        }
    }

    private void write(int count) {
        for (int index = 0; index < count; index++) {
            int at = index * RingLayout.ENTRY_BYTES;
            SlotView view = views[index];
            if (view.answer() == SlotView.MODIFIED) {
                table.putInt(at + RingLayout.ENTRY_LENGTH, view.lengthLeft());
            }
            table.putInt(at + RingLayout.ENTRY_VERDICT, view.answer());
            table.putInt(at + RingLayout.ENTRY_DECIDER, view.decider());
        }
    }

    private void show(Module module, int count, boolean isAlone) {
        PacketProcessor[] processors = module.processors().inTurn();
        long bit = bit(module.slot());
        shown.clear();
        for (int index = 0; index < count; index++) {
            SlotView view = views[index];
            if (view.isFor(bit)) {
                if (processors.length == 0) {
                    module.warnOfNoProcessor();
                    view.fail(module.slot());
                    continue;
                }
                view.open(isAlone);
                shown.add(view);
            }
        }
        if (shown.count() == 0) {
            return;
        }
        int before = injections.count();
        begin(module);
        Refusal refusal = null;
        try {
            processors[0].processBatch(shown);
            for (int turn = 1; turn < processors.length && shown.leaveOutDropped() > 0; turn++) {
                processors[turn].processBatch(shown);
            }
        } catch (Throwable any) {
            // Looking at it calls the module's code again.
            refusal = Refusal.trapped(any);
        }
        end();
        if (refusal == null) {
            settle(module, before);
        } else {
            fail(module, refusal, before);
        }
    }

    private void settle(Module module, int injectedBefore) {
        int dropped = 0;
        int modified = 0;
        int size = shown.count();
        for (int index = 0; index < size; index++) {
            switch (shown.any(index).close(module.slot())) {
                case PASS -> { }
                case DROP -> dropped++;
                case MODIFIED -> modified++;
            }
        }
        module.countSeen(size, size - dropped - modified, dropped, modified);
        module.countInjected(injections.count() - injectedBefore);
    }

    private void fail(Module module, Refusal refusal, int injectedBefore) {
        for (int index = 0; index < shown.count(); index++) {
            shown.any(index).fail(module.slot());
        }
        injections.cutTo(injectedBefore);
        remove(module.slot());
        failed.accept(module, refusal);
    }

    /** Runs the timers of a module that are due. Returns whether some are left, since there is no room to inject. */
    private boolean runTimers(Module module, long now) {
        while (injections.count() == 0 || module.moduleTimers().nextNanos() > now) {
            Timers.Callback callback = module.moduleTimers().pollDue(now);
            if (callback == null) {
                return false;
            }
            if (!call(module, callback)) {
                return false;
            }
        }
        return true;
    }

    /** Hands over the control messages of a module. Returns whether some may be left, for want of room to inject. */
    private boolean handOver(Module module) {
        Control.Listener listener = module.moduleControl().listener();
        if (listener == null) {
            return false;
        }
        while (injections.count() == 0) {
            Control.Message message = module.moduleControl().poll();
            if (message == null || !call(module, () -> listener.receive(message))) {
                return false;
            }
        }
        return true;
    }

    /** Calls a module without packets. Returns false if it failed. */
    private boolean call(Module module, Timers.Callback callback) {
        shown.clear();
        begin(module);
        Refusal refusal = null;
        try {
            callback.run();
        } catch (Throwable any) {
            refusal = Refusal.trapped(any);
        }
        end();
        if (refusal != null) {
            fail(module, refusal, 0);
            return false;
        }
        module.countInjected(injections.count());
        return true;
    }

    private void begin(Module module) {
        running = module;
        module.moduleInjector().beginCall();
        packetThread.setContextClassLoader(module.loader());
        activity.enter(module.slot());
    }

    private void end() {
        activity.leave();
        // An interrupt is the module's own affair, not that of the next one on this thread.
        Thread.interrupted();
        packetThread.setContextClassLoader(null);
        running = null;
    }

    private boolean sendLast() {
        while (!leaving.isEmpty()) {
            if (leaving.peek().drain(injections)) {
                return true;
            }
            leaving.remove();
        }
        return false;
    }

    private long nextNanos() {
        long next = Long.MAX_VALUE;
        for (Module module : chain) {
            next = Math.min(next, module.moduleTimers().nextNanos());
        }
        return next;
    }

    private static long bit(int slot) {
        return 1L << slot;
    }
}
