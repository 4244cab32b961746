// SPDX-License-Identifier: Apache-2.0
package org.netserv.host.compute;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.netserv.block.BlockException;
import org.netserv.block.BlockException.Code;
import org.netserv.block.Crypto.Cipher;
import org.netserv.block.Hash;
import org.netserv.block.Hash.Algorithm;

/** Digests and ciphers, by the examples of their specifications. */
class CryptoBlockTest {
    private final CryptoBlock crypto = new CryptoBlock();

    @Test
    void digestsAreThoseOfTheirSpecifications() {
        digest(Algorithm.SHA1, "a9993e364706816aba3e25717850c26c9cd0d89d");
        digest(Algorithm.SHA256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        digest(Algorithm.SHA512, "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
                + "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f");
        digest(Algorithm.MD5, "900150983cd24fb0d6963f7d28e17f72");
        digest(Algorithm.CRC32, "352441c2");
        assertThrows(IndexOutOfBoundsException.class,
                () -> new HashBlock().digest(Algorithm.MD5, new byte[3], 1, 3));
    }

    private static void digest(Algorithm algorithm, String expected) {
        assertEquals(expected, hex(new HashBlock().digest(algorithm, bytes("abc"))));
        assertEquals(expected, hex(new HashBlock().digest(algorithm, bytes("xabcx"), 1, 3)));
        Hash.Hasher hasher = new HashBlock().hasher(algorithm);
        for (int round = 0; round < 2; round++) {
            hasher.update(bytes("xab"), 1, 2);
            hasher.update(bytes("c"), 0, 1);
            assertEquals(expected, hex(hasher.digest()));
        }
    }

    @Test
    void hmacIsThatOfRfc4231() {
        assertEquals("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
                hex(crypto.hmacSha256(bytes("Jefe"), bytes("what do ya want for nothing?"))));
        assertEquals("b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad",
                hex(crypto.hmacSha256(new byte[0], new byte[0])));
        assertEquals("164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554"
                + "9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737",
                hex(crypto.hmacSha512(bytes("Jefe"), bytes("what do ya want for nothing?"))));
        assertTrue(crypto.equal(bytes("a"), bytes("a")));
        assertFalse(crypto.equal(bytes("a"), bytes("b")));
        assertFalse(crypto.equal(bytes("a"), bytes("aa")));
    }

    @Test
    void signaturesAreThoseOfRfc8032() throws BlockException {
        byte[] key = unhex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
        byte[] signature = unhex("92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
                + "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00");
        assertTrue(crypto.verifyEd25519(key, new byte[] {0x72}, signature));
        assertFalse(crypto.verifyEd25519(key, new byte[] {0x73}, signature));
        signature[63] = (byte) 0xff;
        assertFalse(crypto.verifyEd25519(key, new byte[] {0x72}, signature));
        byte[] noPoint = new byte[32];
        noPoint[0] = 2;
        invalid(() -> crypto.verifyEd25519(noPoint, new byte[0], signature));
        invalid(() -> crypto.verifyEd25519(new byte[31], new byte[0], signature));
        invalid(() -> crypto.verifyEd25519(key, new byte[0], new byte[63]));
    }

    @Test
    void sealingIsThatOfRfc8439() throws BlockException {
        byte[] key = unhex("808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f");
        byte[] nonce = unhex("070000004041424344454647");
        byte[] associated = unhex("50515253c0c1c2c3c4c5c6c7");
        byte[] message = bytes("Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the "
                + "future, sunscreen would be it.");
        byte[] sealed = crypto.seal(Cipher.CHACHA20_POLY1305, key, nonce, message, associated);
        assertTrue(hex(sealed).startsWith("d31a8d34648e60db7b86afbc53ef7ec2"), hex(sealed));
        assertTrue(hex(sealed).endsWith("1ae10b594f09e26a7e902ecbd0600691"), hex(sealed));
        assertArrayEquals(message, crypto.open(Cipher.CHACHA20_POLY1305, key, nonce, sealed, associated));
        assertNull(crypto.open(Cipher.CHACHA20_POLY1305, key, nonce, sealed, new byte[0]));
        sealed[3] ^= 1;
        assertNull(crypto.open(Cipher.CHACHA20_POLY1305, key, nonce, sealed, associated));
        assertNull(crypto.open(Cipher.CHACHA20_POLY1305, key, nonce, new byte[15], associated));
        invalid(() -> crypto.seal(Cipher.AES256_GCM, new byte[31], nonce, message, associated));
        invalid(() -> crypto.seal(Cipher.CHACHA20_POLY1305, key, new byte[13], message, associated));
        invalid(() -> crypto.open(Cipher.CHACHA20_POLY1305, key, new byte[13], new byte[0], associated));
    }

    @Test
    void sealingIsThatOfAesGcm() throws BlockException {
        // Test case 14 of McGrew and Viega's specification, with a block of zeros.
        byte[] sealed = crypto.seal(Cipher.AES256_GCM, new byte[32], new byte[12], new byte[16], new byte[0]);
        assertEquals("cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919", hex(sealed));
        assertArrayEquals(new byte[16], crypto.open(Cipher.AES256_GCM, new byte[32], new byte[12], sealed, new byte[0]));
        assertNull(crypto.open(Cipher.AES256_GCM, new byte[32], new byte[12], sealed, new byte[1]));
        assertNull(crypto.open(Cipher.CHACHA20_POLY1305, new byte[32], new byte[12], sealed, new byte[0]));
    }

    private static void invalid(Executable call) {
        assertEquals(Code.INVALID, assertThrows(BlockException.class, call).code());
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }

    private static byte[] unhex(String text) {
        return HexFormat.of().parseHex(text);
    }

    private static String hex(byte[] bytes) {
        return HexFormat.of().formatHex(bytes);
    }
}
