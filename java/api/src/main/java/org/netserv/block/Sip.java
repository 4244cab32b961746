// SPDX-License-Identifier: Apache-2.0
package org.netserv.block;

import org.osgi.annotation.versioning.ProviderType;

/** SIP (RFC 3261). May be used on any thread. */
@ProviderType
public interface Sip {
    /** Bytes of a message at most. */
    int MESSAGE_BYTES_MAX = 65_535;
    /** Headers of a message at most. */
    int HEADERS_MAX = 128;

    /**
     * Returns what takes messages apart, one after the other. Make one and keep it.
     *
     * @return an empty message
     */
    SipMessage message();
}
