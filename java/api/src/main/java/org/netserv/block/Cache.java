// SPDX-License-Identifier: Apache-2.0
package org.netserv.block;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.time.Duration;
import org.osgi.annotation.versioning.ProviderType;

/**
 * Things of any size that may be forgotten, on the node's disk; the least recently used go first. Each module has
 * entries of its own, which may fill its share of the disk's room, and which it finds again after the node's restart. May
 * be used on any thread but the packet thread, which a disk would hold up. A module that cannot do without says
 * {@code dependencies = ["cache>=1"]} in its manifest.
 *
 * <pre>{@code
 * Cache cache = context.getService(context.getServiceReference(Cache.class));
 * try (Cache.Writer writer = cache.put("/film", "video/mp4", "\"1\"", Duration.ofHours(1))) {
 *     upstream.transferTo(writer);
 *     // Without this, nothing is kept.
 *     writer.finish();
 * }
 * try (Cache.Entry part = cache.get("/film", 1000, 500)) {
 *     if (part != null && !part.stat().isStale()) {
 *         part.body().transferTo(client);
 *     }
 * }
 * }</pre>
 */
@ProviderType
public interface Cache {
    /** Bytes of a key at most, in UTF-8; a key has at least one. */
    int KEY_BYTES_MAX = 1024;
    /** Bytes of a media type or a validator at most, in UTF-8. */
    int METADATA_BYTES_MAX = 256;
    /** Bodies that a module may read or write at a time. */
    int OPEN_MAX = 64;

    /**
     * What is known of an entry.
     *
     * @param size bytes of the body
     * @param contentType the media type
     * @param etag the validator
     * @param age how long ago it was put
     * @param maxAge how old it may be until it counts as stale; it is returned all the same
     */
    record Stat(long size, String contentType, String etag, Duration age, Duration maxAge) {
        /**
         * Returns whether the entry is older than it should be.
         *
         * @return whether it is stale
         */
        public boolean isStale() {
            return age.compareTo(maxAge) > 0;
        }
    }

    /**
     * Returns what is known of a key.
     *
     * @param key the key
     * @return what is known, or null if there is no such entry
     */
    Stat stat(String key);

    /**
     * Returns an entry with its body. It stays readable until it is closed, whatever becomes of the key.
     *
     * @param key the key
     * @return the entry, or null if there is none
     * @throws BlockException {@code QUOTA} with {@link #OPEN_MAX} bodies open
     */
    default Entry get(String key) throws BlockException {
        return get(key, 0, Long.MAX_VALUE);
    }

    /**
     * Returns an entry with a part of its body.
     *
     * @param key the key
     * @param start the offset of the part's first byte; nothing is left behind the body's end
     * @param length how many bytes at most
     * @return the entry, or null if there is none
     * @throws BlockException {@code QUOTA} with {@link #OPEN_MAX} bodies open, {@code INVALID} for a negative offset or
     *     length
     */
    Entry get(String key, long start, long length) throws BlockException;

    /**
     * Begins an entry.
     *
     * @param key the key, 1 to {@link #KEY_BYTES_MAX} bytes
     * @param contentType the media type, at most {@link #METADATA_BYTES_MAX} bytes
     * @param etag the validator, at most {@link #METADATA_BYTES_MAX} bytes
     * @param maxAge how old it may be until it counts as stale, in whole seconds
     * @return what the body is written to
     * @throws BlockException {@code INVALID} for a key or metadata that is empty where it must not be or too long, or a
     *     negative age; {@code QUOTA} with {@link #OPEN_MAX} bodies open; {@code UNAVAILABLE} if the node has no room
     *     for a cache
     */
    Writer put(String key, String contentType, String etag, Duration maxAge) throws BlockException;

    /**
     * Forgets an entry.
     *
     * @param key the key
     * @return whether it was there
     */
    boolean remove(String key);

    /** An entry that is being read. Close it. */
    @ProviderType
    interface Entry extends AutoCloseable {
        /**
         * Returns what is known of it.
         *
         * @return what is known
         */
        Stat stat();

        /**
         * Returns the body, or the part of it that was asked for.
         *
         * @return the same for each call
         */
        InputStream body();

        @Override
        void close();
    }

    /** An entry that is being written. Closing it before {@link #finish} forgets it. */
    abstract class Writer extends OutputStream {
        /** For the node. */
        protected Writer() {
        }

        /**
         * Makes the entry visible, in place of an older one, and closes this.
         *
         * @throws IOException if it cannot be written, or is closed
         */
        public abstract void finish() throws IOException;
    }
}
