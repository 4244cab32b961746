// SPDX-License-Identifier: Apache-2.0
package org.netserv.samples.keepalive;

/** An IP address and a port, and their text. One object is used for packet after packet. */
final class Address {
    private static final ByteSet DECIMAL = ByteSet.of("0123456789");

    private boolean v6;
    private long high;
    private long low;
    private int port;
    private final AddressParser parser = new AddressParser();
    private final byte[] scratch = new byte[AddressText.TEXT_BYTES_MAX];

    /** Sets what this is: the 128 bits of an IPv6 address, or an IPv4 address as the lowest 32. */
    void set(boolean v6, long high, long low, int port) {
        this.v6 = v6;
        this.high = high;
        this.low = low;
        this.port = port;
    }

    /** Returns the port. */
    int port() {
        return port;
    }

    /** Returns whether a host name is this address, with or without brackets around it. */
    boolean isNamed(byte[] bytes, int from, int end) {
        boolean bracketed = end - from >= 2 && bytes[from] == '[' && bytes[end - 1] == ']';
        int start = bracketed ? from + 1 : from;
        int stop = bracketed ? end - 1 : end;
        // Most names of hosts are none, which the first byte tells soonest.
        if (start == stop || !v6 && !DECIMAL.has(bytes[start])) {
            return false;
        }
        return v6 ? parser.isV6(bytes, start, stop, high, low) : parser.isV4(bytes, start, stop, low);
    }

    /** Writes the address: in decimal, or as RFC 5952 says. */
    void write(TextWriter text) {
        text.put(scratch, 0, AddressText.write(v6, high, low, scratch, 0));
    }
}
