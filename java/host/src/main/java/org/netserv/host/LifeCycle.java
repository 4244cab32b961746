// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.netserv.block.Log;
import org.osgi.framework.Bundle;

/**
 * Loads and unloads modules, one after the other, on a thread of its own. A module that replaces another one is started
 * first; both see packets through the same place of the chain.
 */
final class LifeCycle implements Runnable {
    private final Native node;
    private final Dispatcher dispatcher;
    private final Installer installer;
    private final Restart restart;
    private final Log log;
    private final KvStates kv;
    private final LoaderWatch loaders = new LoaderWatch();
    private final LinkedBlockingQueue<Runnable> commands = new LinkedBlockingQueue<>(Limits.COMMANDS_MAX);
    /** Held while the node is told that a module is loaded, or that it failed. */
    private final Object answers = new Object();
    private int threadsLeft;
    private volatile boolean isEnding;

    LifeCycle(Native node, Dispatcher dispatcher, Installer installer, KvStates kv, Restart restart, Log log) {
        this.node = node;
        this.dispatcher = dispatcher;
        this.installer = installer;
        this.kv = kv;
        this.restart = restart;
        this.log = log;
        dispatcher.onFailure(this::failed);
    }

    /** Queues a load. */
    void load(Module.Order order) {
        if (!commands.offer(() -> doLoad(order))) {
            node.failed(order.slot(), new Refusal(Refusal.NODE_FAILED, "the worker has too much to do"));
            ControlNative.close(order.control());
            Installer.delete(order.jar(), log);
        }
    }

    /** Queues an unload. */
    void unload(int slot) {
        submit(() -> {
            Module module = dispatcher.remove(slot);
            if (module != null) {
                discard(module, true);
                // What it counted while it stopped is counted too.
                dispatcher.stats(module);
            }
        });
    }

    /** Queues a report of all counts, behind what was queued before. */
    void stats() {
        submit(dispatcher::stats);
    }

    /** Stops everything, and waits at most so long. */
    void shutdown(long millisMax) {
        if (isEnding) {
            return;
        }
        CountDownLatch done = new CountDownLatch(1);
        long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millisMax);
        submit(() -> {
            doShutdown(until);
            done.countDown();
        });
        try {
            done.await(millisMax, TimeUnit.MILLISECONDS);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /** Is told of a bundle of a module's that stopped, by whomever. */
    void bundleStopped(Module module) {
        submit(() -> {
            Bundle bundle = module.bundle();
            boolean isLoaded = List.of(dispatcher.modules()).contains(module);
            if (isLoaded && !module.isPaused() && bundle.getState() != Bundle.ACTIVE) {
                dispatcher.remove(module.slot());
                failed(module, new Refusal(Refusal.TRAPPED, "the bundle was stopped by a bundle"));
            }
        });
    }

    @Override
    public void run() {
        while (!isEnding) {
            try {
                // What is run is not held while the next one is waited for.
                commands.take().run();
                lookForLeaks();
            } catch (OutOfMemoryError none) {
                restart.now("the container has no more memory for its life cycle");
            } catch (InterruptedException | RuntimeException | Error broken) {
                log.error("the life cycle of modules stumbled", broken);
            }
        }
    }

    private void submit(Runnable command) {
        if (!commands.offer(command)) {
            restart.now("more than " + Limits.COMMANDS_MAX + " commands wait for the life cycle thread");
        }
    }

    private void doLoad(Module.Order order) {
        KvState state = kv.open(order.name(), order.stateSchema(), order.limits());
        Module module = new Module(order, state, dispatcher, node, Entropy.ofSystem());
        try {
            start(module);
        } catch (Refusal refusal) {
            refuse(module, module.moduleState().reason(refusal));
            return;
        } catch (ModuleThreads.Late late) {
            tellRefused(module, late.refusal());
            late(module, late);
            withdraw(module);
            return;
        } catch (RuntimeException | Error broken) {
            refuse(module, Refusal.trapped(broken));
            return;
        }
        Module old = dispatcher.insert(module);
        if (old != null) {
            discard(old, true);
        }
        answer(module);
    }

    /** Answers the load of a module that is in the chain, and may have failed there before the old one was gone. */
    private void answer(Module module) {
        synchronized (answers) {
            Refusal refusal = module.answer();
            if (refusal == null) {
                node.loaded(module.slot());
                module.moduleControl().begin();
            } else {
                node.failed(module.slot(), refusal);
            }
        }
    }

    /** Starts a module. One that wants a port of the version that it replaces gets it. */
    private void start(Module module) throws Refusal, ModuleThreads.Late {
        try {
            installer.start(module);
            module.moduleState().started();
        } catch (Refusal refusal) {
            Module old = refusal.isAddressInUse() ? dispatcher.latest(module.name()) : null;
            if (old == null) {
                throw refusal;
            }
            old.setPaused(true);
            boolean isStarted = false;
            try {
                installer.stop(old);
                installer.startAgain(module);
                module.moduleState().started();
                isStarted = true;
            } finally {
                if (!isStarted) {
                    stopAgain(module);
                    resume(old);
                }
            }
        }
    }

    /** Stops a module that another one made way for in vain. */
    private void stopAgain(Module module) {
        try {
            installer.stop(module);
        } catch (ModuleThreads.Late late) {
            late(module, late);
        }
    }

    /** Starts a module again that made way for another one in vain. */
    private void resume(Module module) {
        try {
            installer.startAgain(module);
            module.setPaused(false);
        } catch (Refusal refusal) {
            dispatcher.remove(module.slot());
            failed(module, refusal);
        } catch (ModuleThreads.Late late) {
            dispatcher.remove(module.slot());
            failed(module, late.refusal());
            late(module, late);
        }
    }

    private void refuse(Module module, Refusal refusal) {
        tellRefused(module, refusal);
        withdraw(module);
    }

    /** Tells the node of a module that did not start, and changes nothing of what the node then puts back. */
    private void tellRefused(Module module, Refusal refusal) {
        module.kvState().close();
        node.failed(module.slot(), refusal);
    }

    /** Forgets a module that did not start, and the one that it was to replace. */
    private void withdraw(Module module) {
        Module old = dispatcher.remove(module.slot());
        if (old != null) {
            discard(old, true);
        }
        discard(module, false);
    }

    /** Is told on the packet thread of a module that failed. */
    private void failed(Module module, Refusal refusal) {
        module.moduleLog().noteLeftOut();
        module.moduleControl().close();
        synchronized (answers) {
            if (!module.failsEarly(refusal)) {
                node.failed(module.slot(), refusal);
            }
        }
        submit(() -> discard(module, false));
    }

    /**
     * Ends a module that is out of the chain, and forgets it. What it injects while it stops is sent if it did well.
     */
    private void discard(Module module, boolean isWell) {
        ClassLoader loader = module.loader();
        try {
            installer.stop(module);
        } catch (ModuleThreads.Late late) {
            late(module, late);
        }
        module.moduleTimers().close();
        module.moduleControl().close();
        module.moduleState().close();
        if (isWell) {
            module.moduleInjector().close();
            dispatcher.sendLastOf(module);
        } else {
            module.moduleInjector().closeNow();
        }
        installer.uninstall(module);
        endThreads(module);
        module.closeBlocks();
        module.setLoader(null);
        module.processors().clear();
        module.moduleLog().close();
        module.kvState().close();
        loaders.add(module.toString(), loader);
    }

    private void late(Module module, ModuleThreads.Late late) {
        module.log().error(late.getMessage());
        if (!late.ended() && !isEnding) {
            restart.now("module " + module + " does not end: " + late.getMessage());
        }
    }

    private void endThreads(Module module) {
        List<Thread> left = module.threads().end();
        if (left.isEmpty()) {
            return;
        }
        threadsLeft += left.size();
        List<String> names = left.stream().map(Thread::getName).limit(Limits.MISSING_NAMED_MAX).toList();
        log.warn("module " + module + " left " + left.size() + " threads behind: " + String.join(", ", names));
        if (threadsLeft > Limits.THREADS_LEFT_MAX && !isEnding) {
            restart.now("unloaded modules left " + threadsLeft + " threads behind, the last one " + module);
        }
    }

    private void lookForLeaks() {
        if (!loaders.look()) {
            return;
        }
        log.warn(loaders.leaked() + " class loaders of unloaded modules are still held: "
                + String.join(", ", loaders.names()));
        if (loaders.leaked() >= Limits.LOADERS_LEAKED_MAX && !isEnding) {
            restart.now("unloaded modules leak " + loaders.leaked() + " class loaders: "
                    + String.join(", ", loaders.names()));
        }
    }

    private void doShutdown(long until) {
        isEnding = true;
        for (Module module : dispatcher.modules()) {
            dispatcher.remove(module.slot());
            discard(module, true);
        }
        kv.end();
        installer.framework().stop(Math.max(TimeUnit.NANOSECONDS.toMillis(until - System.nanoTime()), 1));
    }
}
