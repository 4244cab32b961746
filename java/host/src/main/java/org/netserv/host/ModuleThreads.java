// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** The threads of one module: those that it starts, and those that the host lends it to start and to stop. */
final class ModuleThreads {
    private final Module module;
    private final Group group;

    /** What is run on a thread of the module's. */
    @FunctionalInterface
    interface Task {
        void run() throws Exception;
    }

    ModuleThreads(Module module) {
        this.module = module;
        group = new Group(module);
    }

    /**
     * Runs something on a thread of the module's. A thread that is late is interrupted.
     *
     * @return what it threw, or null
     * @throws Late if it is late
     * @throws Refusal {@link Refusal#MEMORY_LIMIT} if there is no thread to be had
     */
    Throwable run(String what, long millisMax, Task task) throws Refusal, Late {
        Lent lent = new Lent(group, module + " " + what, task);
        lent.setContextClassLoader(module.loader());
        try {
            lent.start();
        } catch (OutOfMemoryError none) {
            throw new Refusal(Refusal.MEMORY_LIMIT, "the container has no thread left to " + what + " the module");
        }
        if (lent.isDoneWithin(millisMax)) {
            return lent.thrown;
        }
        List<String> where = Text.frames(lent.getStackTrace());
        lent.interrupt();
        boolean ended = lent.isDoneWithin(Limits.THREADS_END_MILLIS);
        String first = where.isEmpty() ? "" : ", " + where.get(0);
        throw new Late(what + " took more than " + millisMax + " ms" + first, where, ended);
    }

    /** Returns the threads that are alive and belong to the module. */
    List<Thread> alive() {
        ThreadGroup root = group;
        while (root.getParent() != null) {
            root = root.getParent();
        }
        Thread[] threads = new Thread[root.activeCount() + 32];
        int count = root.enumerate(threads, true);
        List<Thread> own = new ArrayList<>();
        for (int index = 0; index < count; index++) {
            if (isOwn(threads[index])) {
                own.add(threads[index]);
            }
        }
        return own;
    }

    /** Interrupts the module's threads, and waits a short while. Returns those that are still there. */
    List<Thread> end() {
        List<Thread> threads = alive();
        interrupt(threads);
        long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(Limits.THREADS_END_MILLIS);
        for (Thread thread : threads) {
            long left = TimeUnit.NANOSECONDS.toMillis(until - System.nanoTime());
            try {
                thread.join(Math.max(left, 1));
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
                break;
            }
        }
        threads.removeIf(thread -> !thread.isAlive());
        group.discard();
        return threads;
    }

    /** Interrupts threads; those whose class may do so in its own way, on a thread of the module's. */
    private void interrupt(List<Thread> threads) {
        List<Thread> peculiar = new ArrayList<>();
        for (Thread thread : threads) {
            if (isPlain(thread)) {
                thread.interrupt();
            } else {
                peculiar.add(thread);
            }
        }
        if (peculiar.isEmpty()) {
            return;
        }
        try {
            run("end", Limits.THREADS_END_MILLIS, () -> peculiar.forEach(Thread::interrupt));
        } catch (Refusal | Late notDone) {
            module.log().error("the module's threads are not interrupted: " + notDone.getMessage());
        }
    }

    /** Returns whether a thread's class is of the JDK or the host, so that its methods do what they should. */
    private static boolean isPlain(Thread thread) {
        ClassLoader loader = thread.getClass().getClassLoader();
        return loader == null || loader == ModuleThreads.class.getClassLoader();
    }

    /** Returns whether a thread is of the module's. */
    boolean isOwn(Thread thread) {
        for (ThreadGroup at = thread.getThreadGroup(); at != null; at = at.getParent()) {
            if (at == group) {
                return true;
            }
        }
        ClassLoader loader = module.loader();
        return loader != null && (thread.getClass().getClassLoader() == loader
                || isPlain(thread) && thread.getContextClassLoader() == loader);
    }

    /** A module that was late; whether its thread ended when it was interrupted. */
    static final class Late extends Exception {
        private static final long serialVersionUID = 1L;

        private final transient List<String> where;
        private final boolean ended;

        Late(String message, List<String> where, boolean ended) {
            super(message, null, false, false);
            this.where = where;
            this.ended = ended;
        }

        /** Returns the refusal of a module that is late. */
        Refusal refusal() {
            return new Refusal(Refusal.STALLED, getMessage(), where);
        }

        boolean ended() {
            return ended;
        }
    }

    private static final class Lent extends Thread {
        private final Task task;
        private final CountDownLatch done = new CountDownLatch(1);
        private volatile Throwable thrown;

        Lent(ThreadGroup group, String name, Task task) {
            super(group, name);
            this.task = task;
            setDaemon(true);
        }

        @Override
        public void run() {
            try {
                task.run();
            } catch (Throwable any) {
                thrown = any;
            } finally {
                done.countDown();
            }
        }

        boolean isDoneWithin(long millis) {
            try {
                return done.await(millis, TimeUnit.MILLISECONDS);
            } catch (InterruptedException interrupted) {
                currentThread().interrupt();
                return false;
            }
        }
    }

    private static final class Group extends ThreadGroup {
        private volatile Module module;

        Group(Module module) {
            super(module.toString());
            this.module = module;
        }

        @Override
        public void uncaughtException(Thread thread, Throwable thrown) {
            Module owner = module;
            if (owner != null) {
                owner.log().error("thread " + thread.getName() + " ended", thrown);
            }
        }

        /** Has nothing of the module be held by its parent. */
        @SuppressWarnings({"removal", "deprecation"})
        void discard() {
            module = null;
            try {
                // Java 17 keeps groups until they are destroyed, Java 19 and later do not keep them.
                destroy();
            } catch (IllegalThreadStateException | LinkageError stillInUse) {
                // It has threads that do not end; those are counted.
            }
        }
    }
}
