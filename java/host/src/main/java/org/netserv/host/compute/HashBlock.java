// SPDX-License-Identifier: Apache-2.0
package org.netserv.host.compute;

import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Objects;
import java.util.zip.CRC32;
import org.netserv.block.Hash;

/** The block {@code hash}. */
public final class HashBlock implements Hash {
    /** Makes the block. */
    public HashBlock() {
    }

    @Override
    public byte[] digest(Algorithm algorithm, byte[] bytes, int start, int length) {
        Objects.checkFromIndexSize(start, length, bytes.length);
        return switch (algorithm) {
            case SHA1 -> digest("SHA-1", bytes, start, length);
            case SHA256 -> digest("SHA-256", bytes, start, length);
            case SHA512 -> digest("SHA-512", bytes, start, length);
            case MD5 -> digest("MD5", bytes, start, length);
            case CRC32 -> {
                CRC32 crc = new CRC32();
                crc.update(bytes, start, length);
                yield ByteBuffer.allocate(Integer.BYTES).putInt((int) crc.getValue()).array();
            }
        };
    }

    private static byte[] digest(String name, byte[] bytes, int start, int length) {
        try {
            MessageDigest digest = MessageDigest.getInstance(name);
            digest.update(bytes, start, length);
            return digest.digest();
        } catch (NoSuchAlgorithmException impossible) {
            throw new IllegalStateException("every JDK has it", impossible);
        }
    }
}
