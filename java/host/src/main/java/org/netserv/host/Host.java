// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.io.File;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.netserv.block.Log;
import org.osgi.framework.BundleException;

/** A worker's Java side: the framework, the modules in it, and the packets that they see. One per process. */
final class Host {
    private final Native node;
    private final Dispatcher dispatcher;
    private final LifeCycle lifeCycle;
    private final BundleWatch watch;
    private final Restart restart;
    private final OsgiFramework framework;
    private final ExitWatch exitWatch;
    private final ModuleIndex modules = new ModuleIndex();
    private final Log log;
    private NodeFacts facts = NodeFacts.NONE;

    /** Memory that the native side shares. */
    record Buffers(ByteBuffer table, ByteBuffer slots, ByteBuffer injects, ByteBuffer header) {
    }

    /**
     * Where files are.
     *
     * @param blocks building blocks, to read
     * @param data a folder to write to that is empty at the start
     * @param store what outlives the process: the files {@code kv} and {@code cache}, if the node gives room for them
     */
    record Folders(File blocks, File data, File store) {
    }

    /** Starts the framework; the calling thread is the packet thread from here on. */
    Host(Native node, Buffers buffers, Folders folders, Restart restart) throws BundleException {
        this.node = node;
        this.restart = restart;
        log = new ModuleLog(node, -1);
        dispatcher = new Dispatcher(node, buffers.table(), buffers.slots(), buffers.injects(), buffers.header());
        BlockSettings settings = new BlockSettings(folders.blocks(), log);
        framework = OsgiFramework.start(folders.data(), settings.framework(), log);
        BlockBundles bundles = new BlockBundles(framework, folders.blocks(), settings, log);
        Configurations configurations = new Configurations(framework.context(), modules);
        Installer installer = new Installer(framework, modules, bundles, configurations, log);
        KvStates kv = new KvStates(new File(folders.store(), "kv"));
        lifeCycle = new LifeCycle(node, dispatcher, installer, kv, restart, log);
        watch = new BundleWatch(modules, lifeCycle, node, restart, log);
        framework.context().addBundleListener(watch);
        SharedBlocks shared = new SharedBlocks(folders.store(), log);
        new ModuleServices(framework.context(), modules, shared, log).open();
        configurations.open();
        exitWatch = new ExitWatch(modules, dispatcher, node, restart);
        Thread thread = new Thread(lifeCycle, "life-cycle");
        thread.setDaemon(true);
        thread.start();
    }

    /** Takes modules from here on. */
    void open() {
        Runtime.getRuntime().addShutdownHook(exitWatch);
        Thread.setDefaultUncaughtExceptionHandler(this::uncaught);
        node.ready(framework.describe());
    }

    /** Logs what ended a thread, to the module that started it in a call on the packet thread. */
    private void uncaught(Thread thread, Throwable thrown) {
        Log owner = log;
        for (Module module : modules.all()) {
            if (module.loader() != null && module.loader() == thread.getContextClassLoader()) {
                owner = module.log();
            }
        }
        owner.error("thread " + thread.getName() + " ended", thrown);
    }

    int process(int count) {
        return dispatcher.process(count);
    }

    long idle(long now) {
        restart.handleIdle();
        return dispatcher.idle(now);
    }

    int injected() {
        return dispatcher.injected();
    }

    /** Takes what modules are told of their node that are loaded from here on. */
    void tellNode(NodeFacts facts) {
        this.facts = facts;
    }

    void load(int slot, String name, String version, String jar, String[] keysAndValues, long[] limits, int schema,
            Set<String> blocks, long control) {
        if (slot < 0 || slot >= Limits.MODULES_MAX) {
            ControlNative.close(control);
            node.failed(slot, new Refusal(Refusal.NODE_FAILED, "there is no module slot " + slot));
            return;
        }
        Map<String, String> properties = new TreeMap<>();
        for (int at = 0; at + 1 < keysAndValues.length; at += 2) {
            properties.put(keysAndValues[at], keysAndValues[at + 1]);
        }
        lifeCycle.load(new Module.Order(slot, name, version, new File(jar), Map.copyOf(properties),
                ModuleLimits.of(limits), schema, blocks, control, facts));
    }

    /** Asks a module for its state, which the native side finds where it left it. */
    void export(int slot) {
        try {
            byte[] said = dispatcher.export(slot);
            if (said != null) {
                StateNative.say(said);
            }
        } catch (Refusal refusal) {
            StateNative.decline(refusal.kind(), refusal.getMessage());
        }
    }

    void unload(int slot) {
        lifeCycle.unload(slot);
    }

    void stats() {
        if (Boolean.getBoolean(Entropy.TEST_PROPERTY)) {
            // In turn, so that a test knows that what it unloaded is gone.
            lifeCycle.stats();
        } else {
            dispatcher.stats();
        }
    }

    void shutdown(long millisMax) {
        watch.end();
        lifeCycle.shutdown(millisMax);
    }
}
