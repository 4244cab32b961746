// SPDX-License-Identifier: Apache-2.0
package org.netserv.host.compute;

import java.math.BigInteger;
import java.security.GeneralSecurityException;
import java.security.InvalidKeyException;
import java.security.KeyFactory;
import java.security.MessageDigest;
import java.security.PublicKey;
import java.security.Signature;
import java.security.SignatureException;
import java.security.spec.EdECPoint;
import java.security.spec.EdECPublicKeySpec;
import java.security.spec.InvalidKeySpecException;
import java.security.spec.NamedParameterSpec;
import javax.crypto.AEADBadTagException;
import javax.crypto.Mac;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.IvParameterSpec;
import javax.crypto.spec.SecretKeySpec;
import org.netserv.block.BlockException;
import org.netserv.block.BlockException.Code;
import org.netserv.block.Crypto;

/** The block {@code crypto}, by what every JDK has. */
public final class CryptoBlock implements Crypto {
    private static final int ED25519_KEY_BYTES = 32;
    private static final int ED25519_SIGNATURE_BYTES = 64;

    /** Makes the block. */
    public CryptoBlock() {
    }

    @Override
    public byte[] hmacSha256(byte[] key, byte[] message) {
        return hmac("HmacSHA256", key, message);
    }

    @Override
    public byte[] hmacSha512(byte[] key, byte[] message) {
        return hmac("HmacSHA512", key, message);
    }

    private static byte[] hmac(String name, byte[] key, byte[] message) {
        try {
            Mac mac = Mac.getInstance(name);
            // Java takes no empty key; RFC 2104 fills short keys up with zeros.
            mac.init(new SecretKeySpec(key.length == 0 ? new byte[1] : key, name));
            return mac.doFinal(message);
        } catch (GeneralSecurityException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    @Override
    public boolean equal(byte[] a, byte[] b) {
        return MessageDigest.isEqual(a, b);
    }

    @Override
    public boolean verifyEd25519(byte[] key, byte[] message, byte[] signature) throws BlockException {
        if (key.length != ED25519_KEY_BYTES || signature.length != ED25519_SIGNATURE_BYTES) {
            throw new BlockException(Code.INVALID, "an Ed25519 key has 32 bytes, a signature 64");
        }
        try {
            Signature verifier = Signature.getInstance("Ed25519");
            verifier.initVerify(ed25519(key));
            verifier.update(message);
            return verifier.verify(signature);
        } catch (InvalidKeySpecException | InvalidKeyException none) {
            throw new BlockException(Code.INVALID, "this is no Ed25519 key");
        } catch (SignatureException damaged) {
            return false;
        } catch (GeneralSecurityException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    /** Reads a point as RFC 8032 §5.1.2 writes it: y, least significant byte first, with the sign of x on top. */
    private static PublicKey ed25519(byte[] key) throws GeneralSecurityException {
        byte[] y = new byte[key.length];
        for (int at = 0; at < key.length; at++) {
            y[at] = key[key.length - 1 - at];
        }
        boolean isOdd = y[0] < 0;
        y[0] &= 0x7f;
        EdECPoint point = new EdECPoint(isOdd, new BigInteger(1, y));
        return KeyFactory.getInstance("Ed25519")
                .generatePublic(new EdECPublicKeySpec(NamedParameterSpec.ED25519, point));
    }

    @Override
    public byte[] seal(Cipher cipher, byte[] key, byte[] nonce, byte[] message, byte[] associated)
            throws BlockException {
        try {
            return ready(cipher, javax.crypto.Cipher.ENCRYPT_MODE, key, nonce, associated).doFinal(message);
        } catch (GeneralSecurityException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    @Override
    public byte[] open(Cipher cipher, byte[] key, byte[] nonce, byte[] sealed, byte[] associated)
            throws BlockException {
        if (sealed.length < TAG_BYTES) {
            cipherArguments(key, nonce);
            return null;
        }
        try {
            return ready(cipher, javax.crypto.Cipher.DECRYPT_MODE, key, nonce, associated).doFinal(sealed);
        } catch (AEADBadTagException forged) {
            return null;
        } catch (GeneralSecurityException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    private static javax.crypto.Cipher ready(Cipher cipher, int mode, byte[] key, byte[] nonce, byte[] associated)
            throws BlockException, GeneralSecurityException {
        cipherArguments(key, nonce);
        javax.crypto.Cipher ready = switch (cipher) {
            case CHACHA20_POLY1305 -> {
                javax.crypto.Cipher made = javax.crypto.Cipher.getInstance("ChaCha20-Poly1305");
                made.init(mode, new SecretKeySpec(key, "ChaCha20"), new IvParameterSpec(nonce));
                yield made;
            }
            case AES256_GCM -> {
                javax.crypto.Cipher made = javax.crypto.Cipher.getInstance("AES/GCM/NoPadding");
                made.init(mode, new SecretKeySpec(key, "AES"), new GCMParameterSpec(TAG_BYTES * Byte.SIZE, nonce));
                yield made;
            }
        };
        ready.updateAAD(associated);
        return ready;
    }

    private static void cipherArguments(byte[] key, byte[] nonce) throws BlockException {
        if (key.length != KEY_BYTES || nonce.length != NONCE_BYTES) {
            throw new BlockException(Code.INVALID, "a key has 32 bytes, a nonce 12");
        }
    }
}
