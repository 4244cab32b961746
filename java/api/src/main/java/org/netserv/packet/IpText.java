// SPDX-License-Identifier: Apache-2.0
package org.netserv.packet;

/** IP addresses as text: dotted for IPv4, RFC 5952 for IPv6. */
public final class IpText {
    private IpText() {
    }

    /**
     * Returns an IPv4 address as text.
     *
     * @param address the four bytes, the first in the highest bits
     * @return for instance {@code 192.0.2.1}
     */
    public static String v4(int address) {
        return (address >>> 24) + "." + (address >>> 16 & 0xff) + "." + (address >>> 8 & 0xff) + "."
                + (address & 0xff);
    }

    /**
     * Returns an IPv6 address as text.
     *
     * @param high the first eight bytes
     * @param low the last eight bytes
     * @return for instance {@code 2001:db8::1}, or {@code ::ffff:192.0.2.1} for an IPv4 address inside
     */
    public static String v6(long high, long low) {
        if (high == 0 && low >>> 32 == 0xffff) {
            return "::ffff:" + v4((int) low);
        }
        int start = 8;
        int length = 1;
        for (int at = 0; at < 8; at++) {
            int run = 0;
            while (at + run < 8 && group(high, low, at + run) == 0) {
                run++;
            }
            if (run > length) {
                start = at;
                length = run;
            }
            at += run;
        }
        StringBuilder text = new StringBuilder(39);
        for (int at = 0; at < 8; at++) {
            if (at == start) {
                text.append("::");
                at += length - 1;
                continue;
            }
            if (at > 0 && at != start + length) {
                text.append(':');
            }
            text.append(Integer.toHexString(group(high, low, at)));
        }
        return text.toString();
    }

    private static int group(long high, long low, int at) {
        return (int) ((at < 4 ? high : low) >>> 48 - 16 * (at & 3)) & 0xffff;
    }
}
