// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.util.Objects;
import org.netserv.block.BlockException;
import org.netserv.block.State;

/** What one module carries to another node: the native side has what came with its load, until it has started. */
final class ModuleState implements State {
    private static final Refusal NOT_TAKEN = new Refusal(Refusal.STATE_REFUSED,
            "the state has what another instance said, and the bundle takes none: it has not called State.carry");
    private static final Refusal LATE = new Refusal(Refusal.STATE_REFUSED,
            "the bundle has started, and State.Carrier.importState has not returned on another thread");

    private final long load;
    private volatile Carrier carrier;
    /** Why the module has not what came with its load, if something came; null once it has. */
    private Refusal missing = NOT_TAKEN;
    private Refusal declined;

    ModuleState(long load) {
        this.load = load;
    }

    @Override
    public void carry(Carrier carrier) throws BlockException {
        this.carrier = Objects.requireNonNull(carrier);
        try {
            byte[] said = given();
            if (said != null) {
                carrier.importState(said);
                settle(null);
            }
        } catch (OutOfMemoryError none) {
            settle(Refusal.trapped(none));
            throw new BlockException(BlockException.Code.QUOTA, "there is no memory for the module's state");
        } catch (Throwable any) {
            // Looking at it calls the module's code again, so this is the place.
            Refusal refusal = Refusal.ofState("the module did not take its state", any);
            settle(refusal);
            throw new BlockException(BlockException.Code.INVALID, refusal.getMessage());
        }
    }

    /** Returns what another instance said, if the module has not started; null if nothing. */
    private synchronized byte[] given() {
        byte[] said = StateNative.given(load);
        if (said != null) {
            missing = LATE;
        }
        return said;
    }

    private synchronized void settle(Refusal refusal) {
        missing = refusal;
        declined = refusal;
    }

    /** Returns why the module did not start: its state, if that is what it did not take. */
    synchronized Refusal reason(Refusal otherwise) {
        return declined == null ? otherwise : declined;
    }

    /**
     * Ends the start of a module.
     *
     * @throws Refusal if it has not taken what came with its load
     */
    synchronized void started() throws Refusal {
        if (StateNative.forget(load) && missing != null) {
            throw missing;
        }
    }

    /** Returns what says the module's state, or null; on the packet thread. */
    Carrier carrier() {
        return carrier;
    }

    /** Lets go of what says the state. */
    void close() {
        carrier = null;
    }
}
