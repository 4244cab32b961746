// SPDX-License-Identifier: Apache-2.0
package org.netserv.samples.bad;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.netserv.block.BlockException;
import org.osgi.framework.Bundle;

/** What bundles must not do. */
enum Behaviour {
    /** Nothing bad. */
    NOTHING {
        @Override
        void act(Surroundings surroundings) {
        }
    },
    /** Spawns threads until there are no more. */
    THREADS {
        @Override
        void act(Surroundings surroundings) {
            while (true) {
                Threads.sleeping("bad").start();
            }
        }
    },
    /** Spawns threads from a thread that does not give up when there are no more. */
    THREADS_HIDDEN {
        @Override
        void act(Surroundings surroundings) {
            Threads.running("bad-parent", () -> {
                while (true) {
                    try {
                        Threads.sleeping("bad").start();
                    } catch (OutOfMemoryError e) {
                        Thread.onSpinWait();
                    }
                }
            }).start();
        }
    },
    /** Allocates heap until there is no more. */
    HEAP {
        @Override
        void act(Surroundings surroundings) {
            while (true) {
                KEPT.add(new byte[MEBIBYTE]);
            }
        }
    },
    /** Allocates heap from a thread that keeps what it has, and goes on when there is no more. */
    HEAP_HIDDEN {
        @Override
        void act(Surroundings surroundings) {
            Threads.running("bad-hoard", () -> {
                while (true) {
                    try {
                        KEPT.add(new byte[KIBIBYTE]);
                    } catch (OutOfMemoryError e) {
                        Thread.onSpinWait();
                    }
                }
            }).start();
        }
    },
    /** Allocates memory outside the heap until there is no more. */
    DIRECT {
        @Override
        void act(Surroundings surroundings) {
            while (true) {
                ByteBuffer buffer = ByteBuffer.allocateDirect(MEBIBYTE);
                for (int at = 0; at < MEBIBYTE; at += PAGE) {
                    buffer.put(at, (byte) 1);
                }
                KEPT.add(buffer);
            }
        }
    },
    /** Ends the JVM in good order. */
    EXIT {
        @Override
        void act(Surroundings surroundings) {
            System.exit(0);
        }
    },
    /** Ends the JVM at once. */
    HALT {
        @Override
        void act(Surroundings surroundings) {
            Runtime.getRuntime().halt(0);
        }
    },
    /** Writes to an address where nothing is. */
    CRASH {
        @Override
        void act(Surroundings surroundings) throws Exception {
            Escapes.writeToNowhere();
        }
    },
    /** Runs a program. */
    EXEC {
        @Override
        void act(Surroundings surroundings) throws Exception {
            Escapes.exec(surroundings);
        }
    },
    /** Loads a native library of its own. */
    LIBRARY {
        @Override
        void act(Surroundings surroundings) throws Exception {
            Escapes.loadLibrary(surroundings);
        }
    },
    /** Connects, sends and listens. */
    SOCKETS {
        @Override
        void act(Surroundings surroundings) throws Exception {
            Escapes.openSockets(surroundings);
        }
    },
    /** Reads and writes files that are none of its business. */
    FILES {
        @Override
        void act(Surroundings surroundings) throws Exception {
            Escapes.openFiles(surroundings);
        }
    },
    /** Reaches into the host by reflection. */
    REFLECT {
        @Override
        void act(Surroundings surroundings) throws Exception {
            Escapes.reflect(surroundings);
        }
    },
    /** Stops the other bundles and the framework. */
    FRAMEWORK {
        @Override
        void act(Surroundings surroundings) throws BlockException {
            for (Bundle other : surroundings.bundle().getBundles()) {
                if (other.getBundleId() != surroundings.bundle().getBundle().getBundleId()) {
                    surroundings.attempt("stopping " + other.getSymbolicName(), other::stop);
                }
            }
        }
    },
    /** Interrupts every thread that it finds. */
    INTERRUPT {
        @Override
        void act(Surroundings surroundings) {
            Thread.getAllStackTraces().keySet().forEach(Thread::interrupt);
        }
    },
    /** Waits for a lock whose holder waits for this call to end. */
    DEADLOCK {
        @Override
        void act(Surroundings surroundings) throws InterruptedException {
            CountDownLatch held = new CountDownLatch(1);
            Threads.running("bad-holder", () -> {
                synchronized (KEPT) {
                    held.countDown();
                    Threads.sleepForEver();
                }
            }).start();
            held.await();
            synchronized (KEPT) {
                surroundings.module().log().error("got a lock that is never let go");
            }
        }
    },
    /** Never comes back, and burns the processor. */
    LOOP {
        @Override
        void act(Surroundings surroundings) {
            while (true) {
                Thread.onSpinWait();
            }
        }
    },
    /** Never comes back, and takes no hint. */
    BLOCK {
        @Override
        void act(Surroundings surroundings) {
            Threads.sleepForEver();
        }
    },
    /** Throws an exception. */
    THROW {
        @Override
        void act(Surroundings surroundings) throws Exception {
            throw new Exception("thrown on purpose");
        }
    },
    /** Throws an error. */
    ERROR {
        @Override
        void act(Surroundings surroundings) {
            throw new AssertionError("thrown on purpose");
        }
    },
    /** Throws something whose message throws. */
    RUDE {
        @Override
        void act(Surroundings surroundings) {
            throw new IllegalStateException() {
                private static final long serialVersionUID = 1L;

                @Override
                public String getMessage() {
                    throw new IllegalStateException("even the message");
                }
            };
        }
    },
    /** Calls itself until there is no stack. */
    STACK {
        @Override
        void act(Surroundings surroundings) throws Exception {
            act(surroundings);
        }
    },
    /** Leaves a thread, a thread's local value and a shutdown hook behind that hold the bundle's classes. */
    LEAK {
        @Override
        void act(Surroundings surroundings) {
            Threads.leak(surroundings);
        }
    },
    /** Writes lines to the log, and to both output streams, without end. */
    FLOOD {
        @Override
        void act(Surroundings surroundings) {
            Threads.running("bad-flood", () -> {
                while (true) {
                    surroundings.module().log().error("flood ".repeat(KIBIBYTE));
                    System.out.println("flood");
                    System.err.println("flood");
                }
            }).start();
        }
    },
    /** Writes over packets that are none of this call's. */
    SCRIBBLE {
        @Override
        void act(Surroundings surroundings) throws BlockException {
            Scribbler.scribble(surroundings);
        }

        @Override
        boolean isForEachPacket() {
            return true;
        }
    },
    /** Fills the kv state, opens counters and sets timers without end. */
    QUOTAS {
        @Override
        void act(Surroundings surroundings) throws BlockException {
            Scribbler.exhaustQuotas(surroundings);
        }
    };

    private static final int KIBIBYTE = 1024;
    private static final int MEBIBYTE = 1024 * KIBIBYTE;
    private static final int PAGE = 4096;
    /** What is never given back. */
    private static final List<Object> KEPT = new ArrayList<>();

    /** Does it. */
    abstract void act(Surroundings surroundings) throws Exception;

    /** Returns whether it is done for each packet, not only for the first. */
    boolean isForEachPacket() {
        return false;
    }
}
