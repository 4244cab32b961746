// SPDX-License-Identifier: Apache-2.0
package org.netserv.block;

import org.osgi.annotation.versioning.ProviderType;

/**
 * State that belongs to the module's name and its {@code state-schema}: a new version with the same schema finds what
 * the old one left, and both see the same state while one replaces the other.
 *
 * <p>It is on the node's disk within a second, and outlives the service container and the node's restart. When the
 * module is removed, it is kept until its room is needed; on a node that keeps none on its disk, for a minute. Keys are
 * in byte order. May be used on any thread, and never waits for the disk.
 *
 * <pre>{@code
 * KeyValueStore kv = module.kv();
 * byte[] key = "calls".getBytes(UTF_8);
 * long calls = kv.increment(key, 1);
 * kv.set("last".getBytes(UTF_8), new byte[] {4, 2});
 * if (!kv.compareAndSet("owner".getBytes(UTF_8), null, "me".getBytes(UTF_8))) {
 *     log.info("somebody was faster");
 * }
 * for (byte[] each = kv.next(new byte[0]); each != null; each = kv.next(each)) {
 *     log.info(new String(each, UTF_8) + " has " + kv.get(each).length + " bytes");
 * }
 * }</pre>
 */
@ProviderType
public interface KeyValueStore {
    /** Bytes of a key at most; a key has at least one. */
    int KEY_BYTES_MAX = 256;
    /** Bytes of a value at most. */
    int VALUE_BYTES_MAX = 65_536;

    /**
     * Returns a copy of a key's value.
     *
     * @param key the key
     * @return the value, or null if there is none
     */
    byte[] get(byte[] key);

    /**
     * Reads a key's value without making an array. The value is written only if it fits.
     *
     * @param key the key
     * @param into where it goes, from index 0
     * @return the value's length in bytes, or -1 if there is none
     */
    int get(byte[] key, byte[] into);

    /**
     * Stores a value. Both arrays are copied.
     *
     * @param key the key, 1 to {@link #KEY_BYTES_MAX} bytes
     * @param value the value, at most {@link #VALUE_BYTES_MAX} bytes
     * @throws BlockException {@code QUOTA} beyond the module's {@code kv-entries} or {@code kv-bytes}, or the
     *     user's room on the disk, {@code TOO_LARGE} for a long key or value, {@code INVALID} for an empty key
     */
    void set(byte[] key, byte[] value) throws BlockException;

    /**
     * Forgets a key.
     *
     * @param key the key
     * @return whether there was such a key
     */
    boolean delete(byte[] key);

    /**
     * Adds to an entry of eight little-endian bytes, wrapping. One that is not there counts as 0.
     *
     * @param key the key, 1 to {@link #KEY_BYTES_MAX} bytes
     * @param delta how much
     * @return the sum
     * @throws BlockException {@code INVALID} for an entry of another length, else as for {@link #set}
     */
    long increment(byte[] key, long delta) throws BlockException;

    /**
     * Stores a value, or forgets the key, if the key has the value that is expected.
     *
     * @param key the key, 1 to {@link #KEY_BYTES_MAX} bytes
     * @param expected the value that it has to have, or null if it must not be there
     * @param value the new value, or null to forget the key
     * @return whether it had
     * @throws BlockException as for {@link #set}
     */
    boolean compareAndSet(byte[] key, byte[] expected, byte[] value) throws BlockException;

    /**
     * Returns the first key after another one, so that all keys can be walked through while they come and go.
     *
     * @param key a key that need not be there; empty for the first key of all
     * @return a copy of the next key, or null behind the last one
     */
    byte[] next(byte[] key);

    /**
     * Returns the number of entries.
     *
     * @return the number
     */
    int size();
}
