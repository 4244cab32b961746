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
import javax.crypto.Cipher;
import javax.crypto.Mac;
import javax.crypto.spec.IvParameterSpec;
import javax.crypto.spec.SecretKeySpec;
import org.netserv.block.BlockException;
import org.netserv.block.BlockException.Code;
import org.netserv.block.Crypto;

/** The block {@code crypto}, by what every JDK has. */
public final class CryptoBlock implements Crypto {
    private static final int ED25519_KEY_BYTES = 32;
    private static final int ED25519_SIGNATURE_BYTES = 64;
    private static final int HMAC_BLOCK_BYTES = 64;

    /** Makes the block. */
    public CryptoBlock() {
    }

    @Override
    public byte[] hmacSha256(byte[] key, byte[] message) {
        try {
            Mac mac = Mac.getInstance("HmacSHA256");
            // Java takes no empty key; RFC 2104 fills short keys up with zeros.
            mac.init(new SecretKeySpec(key.length == 0 ? new byte[HMAC_BLOCK_BYTES] : key, "HmacSHA256"));
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
        } catch (InvalidKeySpecException | SignatureException | InvalidKeyException damaged) {
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
    public byte[] seal(byte[] key, byte[] nonce, byte[] message, byte[] associated) throws BlockException {
        try {
            return cipher(Cipher.ENCRYPT_MODE, key, nonce, associated).doFinal(message);
        } catch (GeneralSecurityException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    @Override
    public byte[] open(byte[] key, byte[] nonce, byte[] sealed, byte[] associated) throws BlockException {
        if (sealed.length < TAG_BYTES) {
            cipherArguments(key, nonce);
            return null;
        }
        try {
            return cipher(Cipher.DECRYPT_MODE, key, nonce, associated).doFinal(sealed);
        } catch (AEADBadTagException forged) {
            return null;
        } catch (GeneralSecurityException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    private static Cipher cipher(int mode, byte[] key, byte[] nonce, byte[] associated)
            throws BlockException, GeneralSecurityException {
        cipherArguments(key, nonce);
        Cipher cipher = Cipher.getInstance("ChaCha20-Poly1305");
        cipher.init(mode, new SecretKeySpec(key, "ChaCha20"), new IvParameterSpec(nonce));
        cipher.updateAAD(associated);
        return cipher;
    }

    private static void cipherArguments(byte[] key, byte[] nonce) throws BlockException {
        if (key.length != KEY_BYTES || nonce.length != NONCE_BYTES) {
            throw new BlockException(Code.INVALID, "a key has 32 bytes, a nonce 12");
        }
    }
}
