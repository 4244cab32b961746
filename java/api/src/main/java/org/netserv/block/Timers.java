// SPDX-License-Identifier: Apache-2.0
package org.netserv.block;

import java.time.Duration;
import org.osgi.annotation.versioning.ProviderType;

/**
 * Calls the module back on the packet thread, so that a callback never overlaps with packets or another callback. What
 * a callback throws ends the module. May be used on any thread.
 *
 * <p>Delays and periods are rounded up to 1 ms and are at most 2⁶² ns.
 *
 * <pre>{@code
 * Timer report = module.timers().every(Duration.ofSeconds(10), () -> log.info(seen + " packets"));
 * module.timers().once(Duration.ofMinutes(1), () -> {
 *     report.cancel();
 *     log.info("that was all");
 * });
 * }</pre>
 */
@ProviderType
public interface Timers {
    /**
     * Has something run once.
     *
     * @param delay how long from here
     * @param callback what is run
     * @return the timer, which is forgotten when it has run
     * @throws BlockException {@code QUOTA} beyond the module's {@code timers}, {@code INVALID} for a delay that is
     *     negative or too long
     */
    Timer once(Duration delay, Callback callback) throws BlockException;

    /**
     * Has something run again and again. Periods that were missed are skipped.
     *
     * @param period how long from here, and from one run to the next
     * @param callback what is run
     * @return the timer
     * @throws BlockException as for {@link #once}
     */
    Timer every(Duration period, Callback callback) throws BlockException;

    /** What a timer runs. */
    @FunctionalInterface
    interface Callback {
        /**
         * Runs. It has to be done within the module's {@code call-ms}.
         *
         * @throws Exception whatever goes wrong; it ends the module
         */
        void run() throws Exception;
    }
}
