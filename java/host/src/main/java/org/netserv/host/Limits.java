// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

/** Named bounds of the host. What a module may use beyond these is in its own {@link ModuleLimits}. */
final class Limits {
    /** Modules in a container. */
    static final int MODULES_MAX = 64;
    /** Packets in a batch. */
    static final int BATCH_PACKETS_MAX = 64;
    /** Bytes of one log line; longer ones are cut. */
    static final int LOG_LINE_BYTES_MAX = 1024;
    /** Log lines that a module may write at once. */
    static final int LOG_LINES_BURST = 256;
    /** Nanoseconds after which a module may write one more log line. */
    static final long LOG_LINE_NANOS = 10_000_000;
    /** Bytes of a counter's name. */
    static final int COUNTER_NAME_BYTES_MAX = 64;
    /** The shortest delay and period of a timer. */
    static final long TIMER_NANOS_MIN = 1_000_000;
    /** The longest delay and period of a timer. */
    static final long TIMER_NANOS_MAX = 1L << 62;
    /** Packets that a module may inject in one call, and packets of its other threads that may wait. */
    static final int INJECTS_PER_CALL_MAX = 64;
    /** Packets that go to the node at a time. */
    static final int INJECTS_MAX = 64;
    /** Bytes of the shortest packet that a module may leave or inject: an IPv4 header. */
    static final int PACKET_BYTES_MIN = 20;
    /** Bytes of the longest packet. */
    static final int PACKET_BYTES_MAX = 1984;
    /** Processors of one module. */
    static final int PROCESSORS_MAX = 64;
    /** Bytes of a bundle's manifest. */
    static final int MANIFEST_BYTES_MAX = 1 << 20;
    /** Requirements that a refusal names. */
    static final int MISSING_NAMED_MAX = 16;
    /** Characters of a refusal's detail. */
    static final int DETAIL_CHARS_MAX = 2000;
    /** Frames of a stack trace that a log line shows. */
    static final int STACK_FRAMES_SHOWN = 6;
    /** Lines of a refusal's context. */
    static final int CONTEXT_LINES_MAX = 16;
    /** Causes of something thrown that are looked at. */
    static final int CAUSES_SEEN = 16;
    /** Commands of the node that wait. */
    static final int COMMANDS_MAX = 1024;
    /** How many of a module's calls its start or its stop may take. */
    static final long CALLS_PER_START = 10;
    /** Milliseconds that the threads of a module get to end after its stop. */
    static final long THREADS_END_MILLIS = 200;
    /** Threads of unloaded modules that may be left behind before the worker asks to be restarted. */
    static final int THREADS_LEFT_MAX = 16;
    /** Unloaded modules whose class loaders may still be there before the collector is asked to look for them. */
    static final int LOADERS_UNSEEN_MAX = 16;
    /** Class loaders of unloaded modules that may be held by something before the worker asks to be restarted. */
    static final int LOADERS_LEAKED_MAX = 32;
    /** Milliseconds that the packet thread gets to send what is queued before the process ends. */
    static final long LAST_WORDS_MILLIS = 250;
    /** PIDs of one bundle that get its module's properties. */
    static final int CONFIGURATIONS_MAX = 64;
    /** Bytes of a component's description that are looked at. */
    static final int COMPONENT_BYTES_MAX = 1 << 16;
    /** Bundles that a module may install besides its own. */
    static final int BUNDLES_PER_MODULE_MAX = 16;

    private Limits() {
    }
}
