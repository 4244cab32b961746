// SPDX-License-Identifier: Apache-2.0
package org.netserv.host.compute;

import org.netserv.block.Sip;
import org.netserv.block.SipMessage;

/** The block {@code sip}. */
public final class SipBlock implements Sip {
    /** Makes the block. */
    public SipBlock() {
    }

    @Override
    public SipMessage message() {
        return new SipText();
    }
}
