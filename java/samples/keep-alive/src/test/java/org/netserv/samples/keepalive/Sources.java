// SPDX-License-Identifier: Apache-2.0
package org.netserv.samples.keepalive;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.ByteBuffer;

/** Sources for tests. */
final class Sources {
    private Sources() {
    }

    /** Returns an address such as {@code 10.0.0.1:5060} or {@code [2001:db8::1]:5060}. */
    static Address of(String text) {
        int colon = text.lastIndexOf(':');
        Address address = new Address();
        try {
            ByteBuffer bytes = ByteBuffer.wrap(InetAddress.getByName(text.substring(0, colon)).getAddress());
            int port = Integer.parseInt(text.substring(colon + 1));
            boolean v6 = bytes.capacity() == 16;
            address.set(v6, v6 ? bytes.getLong() : 0, v6 ? bytes.getLong() : bytes.getInt() & 0xffff_ffffL, port);
        } catch (UnknownHostException e) {
            throw new IllegalArgumentException(text, e);
        }
        return address;
    }
}
