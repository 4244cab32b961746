// SPDX-License-Identifier: Apache-2.0
package org.netserv.block;

import org.osgi.annotation.versioning.ProviderType;

/**
 * Digests. May be used on any thread.
 *
 * <pre>{@code
 * Hash hash = context.getService(context.getServiceReference(Hash.class));
 * byte[] digest = hash.digest(Hash.Algorithm.SHA256, text);
 * Hash.Hasher hasher = hash.hasher(Hash.Algorithm.CRC32);
 * hasher.update(text, 0, 10);
 * hasher.update(text, 10, text.length - 10);
 * log.info(HexFormat.of().formatHex(digest) + " " + HexFormat.of().formatHex(hasher.digest()));
 * }</pre>
 */
@ProviderType
public interface Hash {
    /** How to digest. */
    enum Algorithm {
        /** 20 bytes; for protocols that want it. */
        SHA1,
        /** 32 bytes. */
        SHA256,
        /** 64 bytes. */
        SHA512,
        /** 16 bytes; for protocols that want it. */
        MD5,
        /** 4 bytes, the most significant one first. */
        CRC32
    }

    /**
     * Begins a digest of bytes that come one after the other.
     *
     * @param algorithm how
     * @return what takes them; for one thread at a time
     */
    Hasher hasher(Algorithm algorithm);

    /**
     * Returns the digest of some bytes.
     *
     * @param algorithm how
     * @param bytes where they are
     * @param start where they begin
     * @param length how many they are
     * @return the digest
     * @throws IndexOutOfBoundsException beyond the array
     */
    default byte[] digest(Algorithm algorithm, byte[] bytes, int start, int length) {
        Hasher hasher = hasher(algorithm);
        hasher.update(bytes, start, length);
        return hasher.digest();
    }

    /**
     * Returns the digest of an array.
     *
     * @param algorithm how
     * @param bytes what
     * @return the digest
     */
    default byte[] digest(Algorithm algorithm, byte[] bytes) {
        return digest(algorithm, bytes, 0, bytes.length);
    }

    /** A digest of bytes that come one after the other. */
    @ProviderType
    interface Hasher {
        /**
         * Takes further bytes.
         *
         * @param bytes where they are
         * @param start where they begin
         * @param length how many they are
         * @throws IndexOutOfBoundsException beyond the array
         */
        void update(byte[] bytes, int start, int length);

        /**
         * Returns the digest of what was taken so far, and begins anew.
         *
         * @return the digest
         */
        byte[] digest();
    }
}
