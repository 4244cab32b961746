// SPDX-License-Identifier: Apache-2.0
package org.netserv.block;

import org.osgi.annotation.versioning.ProviderType;

/**
 * What needs keys. May be used on any thread. Random bytes are in {@code org.netserv.module.ModuleContext}.
 *
 * <pre>{@code
 * Crypto crypto = context.getService(context.getServiceReference(Crypto.class));
 * byte[] key = new byte[Crypto.KEY_BYTES];
 * byte[] nonce = new byte[Crypto.NONCE_BYTES];
 * module.random(key);
 * // Never the same one twice with one key.
 * module.random(nonce);
 * byte[] sealed = crypto.seal(Crypto.Cipher.AES256_GCM, key, nonce, message, new byte[0]);
 * byte[] opened = crypto.open(Crypto.Cipher.AES256_GCM, key, nonce, sealed, new byte[0]);
 * boolean isTheirs = crypto.equal(crypto.hmacSha256(key, message), tag);
 * }</pre>
 */
@ProviderType
public interface Crypto {
    /** Bytes of a key of {@link #seal}. */
    int KEY_BYTES = 32;
    /** Bytes of a nonce. */
    int NONCE_BYTES = 12;
    /** Bytes that a sealed message is longer than the message. */
    int TAG_BYTES = 16;

    /** How to seal. */
    enum Cipher {
        /** RFC 8439. */
        CHACHA20_POLY1305,
        /** RFC 5116. */
        AES256_GCM
    }

    /**
     * Returns HMAC-SHA-256 (RFC 2104).
     *
     * @param key the key, of any length
     * @param message the message
     * @return 32 bytes
     */
    byte[] hmacSha256(byte[] key, byte[] message);

    /**
     * Returns HMAC-SHA-512 (RFC 2104).
     *
     * @param key the key, of any length
     * @param message the message
     * @return 64 bytes
     */
    byte[] hmacSha512(byte[] key, byte[] message);

    /**
     * Returns whether two arrays are equal, in a time that tells nothing of where they differ.
     *
     * @param a the one
     * @param b the other
     * @return whether they are
     */
    boolean equal(byte[] a, byte[] b);

    /**
     * Returns whether an Ed25519 signature (RFC 8032) is by a key.
     *
     * @param key 32 bytes
     * @param message the message
     * @param signature 64 bytes
     * @return whether it is
     * @throws BlockException {@code INVALID} for a key or signature of another length, or a key that is none
     */
    boolean verifyEd25519(byte[] key, byte[] message, byte[] signature) throws BlockException;

    /**
     * Encrypts.
     *
     * @param cipher how
     * @param key {@link #KEY_BYTES} bytes
     * @param nonce {@link #NONCE_BYTES} bytes that are used once with the key
     * @param message what to encrypt
     * @param associated what is not encrypted, but has to be the same when it is opened
     * @return the sealed message, {@link #TAG_BYTES} bytes longer
     * @throws BlockException {@code INVALID} for a key or nonce of another length
     */
    byte[] seal(Cipher cipher, byte[] key, byte[] nonce, byte[] message, byte[] associated) throws BlockException;

    /**
     * Decrypts what {@link #seal} made.
     *
     * @param cipher the same
     * @param key the same key
     * @param nonce the same nonce
     * @param sealed the sealed message
     * @param associated the same as well
     * @return the message, or null if it is not what was sealed
     * @throws BlockException {@code INVALID} for a key or nonce of another length
     */
    byte[] open(Cipher cipher, byte[] key, byte[] nonce, byte[] sealed, byte[] associated) throws BlockException;
}
