// SPDX-License-Identifier: Apache-2.0
package org.netserv.block;

import org.osgi.annotation.versioning.ProviderType;

/**
 * SIP (RFC 3261). May be used on any thread.
 *
 * <pre>{@code
 * Sip sip = context.getService(context.getServiceReference(Sip.class));
 * SipMessage message = sip.message();
 * // For each packet:
 * if (message.parse(packet, ip.payloadOffset(), ip.payloadLength()) && message.isRequest("REGISTER")) {
 *     log.info(message.callId() + " from " + message.fromUri() + " expires " + message.header("expires"));
 * }
 * }</pre>
 */
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
