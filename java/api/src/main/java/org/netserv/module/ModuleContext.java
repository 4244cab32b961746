// SPDX-License-Identifier: Apache-2.0
package org.netserv.module;

import java.util.Map;
import org.netserv.block.Counters;
import org.netserv.block.Injector;
import org.netserv.block.KeyValueStore;
import org.netserv.block.Log;
import org.netserv.block.Timers;
import org.osgi.annotation.versioning.ProviderType;

/**
 * What a bundle is on this node, with everything that the node offers it. A service: each bundle that asks for it gets
 * its own. May be used on any thread.
 */
@ProviderType
public interface ModuleContext {
    /**
     * Returns the module's name, for instance {@code example.org/net-monitor}.
     *
     * @return the name
     */
    String name();

    /**
     * Returns the module's version, for instance {@code 1.2.0}.
     *
     * @return the version
     */
    String version();

    /**
     * Returns the properties of the manifest and the SETUP.
     *
     * @return the properties, which cannot be changed
     */
    Map<String, String> properties();

    /**
     * Returns one property.
     *
     * @param key the key
     * @return the value, or null if there is none
     */
    default String property(String key) {
        return properties().get(key);
    }

    /**
     * Returns one property.
     *
     * @param key the key
     * @param otherwise what is returned if there is none
     * @return the value
     */
    default String property(String key, String otherwise) {
        return properties().getOrDefault(key, otherwise);
    }

    /**
     * Returns the time on a clock that never steps.
     *
     * @return nanoseconds since an arbitrary start
     */
    long monotonicNanos();

    /**
     * Returns the time of day.
     *
     * @return nanoseconds since 1970-01-01T00:00:00Z
     */
    long wallNanos();

    /**
     * Fills an array with random bytes that nobody can guess.
     *
     * @param into the array
     */
    void random(byte[] into);

    /**
     * Returns a random number that nobody can guess.
     *
     * @return 64 random bits
     */
    long randomNumber();

    /**
     * Returns the module's log.
     *
     * @return the same for each call
     */
    Log log();

    /**
     * Returns the module's state.
     *
     * @return the same for each call
     */
    KeyValueStore kv();

    /**
     * Returns the module's counters.
     *
     * @return the same for each call
     */
    Counters counters();

    /**
     * Returns the module's timers.
     *
     * @return the same for each call
     */
    Timers timers();

    /**
     * Returns what sends the module's own packets.
     *
     * @return the same for each call
     */
    Injector injector();
}
