// SPDX-License-Identifier: Apache-2.0
package org.netserv.packet;

/** What becomes of a packet. */
public enum Verdict {
    /** It goes on as it came, whatever was written over it. */
    PASS,
    /** It goes no further. */
    DROP,
    /** It goes on as it was left. */
    MODIFIED
}
