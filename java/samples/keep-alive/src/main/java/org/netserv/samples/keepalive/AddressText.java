// SPDX-License-Identifier: Apache-2.0
package org.netserv.samples.keepalive;

/** Text forms of IP addresses: decimal for version 4, as RFC 5952 says for version 6. Allocates nothing. */
final class AddressText {
    /** Bytes of the longest text. */
    static final int TEXT_BYTES_MAX = 39;

    private static final byte[] DIGITS = Ascii.bytes("0123456789abcdef");
    private static final int GROUPS = 8;

    private AddressText() {
    }

    /**
     * Writes an address as ASCII text, and returns the index behind its last byte. An IPv4 address is in {@code low}.
     */
    static int write(boolean v6, long high, long low, byte[] into, int start) {
        if (!v6) {
            return writeV4(low, into, start);
        }
        if (high == 0 && low >>> 32 == 0xffff) {
            int at = writeColons(into, start);
            at = writeHexadecimal(0xffff, into, at);
            into[at] = ':';
            return writeV4(low, into, at + 1);
        }
        return writeV6(high, low, into, start);
    }

    private static int writeV4(long address, byte[] into, int start) {
        int at = start;
        for (int shift = 24; shift >= 0; shift -= 8) {
            int octet = (int) (address >>> shift) & 0xff;
            if (octet >= 100) {
                into[at++] = DIGITS[octet / 100];
            }
            if (octet >= 10) {
                into[at++] = DIGITS[octet / 10 % 10];
            }
            into[at++] = DIGITS[octet % 10];
            if (shift > 0) {
                into[at++] = '.';
            }
        }
        return at;
    }

    /** The longest run of groups that are 0 is left out, the first of several, if it is more than one group. */
    private static int writeV6(long high, long low, byte[] into, int start) {
        int longest = 0;
        int gap = GROUPS;
        int run = 0;
        for (int group = 0; group < GROUPS; group++) {
            run = group(high, low, group) == 0 ? run + 1 : 0;
            if (run > longest) {
                longest = run;
                gap = group + 1 - run;
            }
        }
        if (longest < 2) {
            return writeGroups(high, low, 0, GROUPS, into, start);
        }
        int at = writeGroups(high, low, 0, gap, into, start);
        at = writeColons(into, at);
        return writeGroups(high, low, gap + longest, GROUPS, into, at);
    }

    private static int writeGroups(long high, long low, int from, int end, byte[] into, int start) {
        int at = start;
        for (int group = from; group < end; group++) {
            if (group > from) {
                into[at++] = ':';
            }
            at = writeHexadecimal(group(high, low, group), into, at);
        }
        return at;
    }

    private static int writeColons(byte[] into, int at) {
        into[at] = ':';
        into[at + 1] = ':';
        return at + 2;
    }

    private static int writeHexadecimal(int group, byte[] into, int start) {
        int at = start;
        for (int shift = 12; shift >= 0; shift -= 4) {
            if (group >>> shift != 0 || shift == 0) {
                into[at++] = DIGITS[group >>> shift & 0xf];
            }
        }
        return at;
    }

    private static int group(long high, long low, int at) {
        long half = at < GROUPS / 2 ? high : low;
        return (int) (half >>> 16 * (3 - at % 4)) & 0xffff;
    }
}
