// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

/** Where things are in the buffers that the native side shares. Numbers are little-endian. */
final class RingLayout {
    /** Bytes of a slot. */
    static final int SLOT_BYTES = 2048;
    /** Where in a slot the packet starts. */
    static final int PACKET_OFFSET = 64;
    /** Bytes of an entry of the batch table. */
    static final int ENTRY_BYTES = 64;
    /** Entry: u32, where in the slots the packet starts. */
    static final int ENTRY_OFFSET = 0;
    /** Entry: u32, the packet's length, in and out. */
    static final int ENTRY_LENGTH = 4;
    /** Entry: u32, the answer, out. */
    static final int ENTRY_VERDICT = 12;
    /** Entry: u64, nanoseconds. */
    static final int ENTRY_TIME = 16;
    /** Entry: u32, the interface. */
    static final int ENTRY_INTERFACE = 24;
    /** Entry: u32, the slot of the module that decided plus one, out. */
    static final int ENTRY_DECIDER = 28;
    /** Entry: u64, the bit mask of modules that see the packet. */
    static final int ENTRY_MODULES = 32;
    /** Injected packet: u32, its length. */
    static final int INJECT_LENGTH = 0;
    /** Injected packet: u32, the slot of the module that made it. */
    static final int INJECT_MODULE = 4;
    /** Ring header: u64, what the worker is doing. */
    static final int HEADER_ACTIVITY = 7 * 128;

    private RingLayout() {
    }
}
