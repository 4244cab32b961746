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
    public Hasher hasher(Algorithm algorithm) {
        return switch (algorithm) {
            case SHA1 -> new Digest("SHA-1");
            case SHA256 -> new Digest("SHA-256");
            case SHA512 -> new Digest("SHA-512");
            case MD5 -> new Digest("MD5");
            case CRC32 -> new Crc();
        };
    }

    private static final class Digest implements Hasher {
        private final MessageDigest digest;

        Digest(String name) {
            try {
                digest = MessageDigest.getInstance(name);
            } catch (NoSuchAlgorithmException impossible) {
                throw new IllegalStateException("every JDK has it", impossible);
            }
        }

        @Override
        public void update(byte[] bytes, int start, int length) {
            Objects.checkFromIndexSize(start, length, bytes.length);
            digest.update(bytes, start, length);
        }

        @Override
        public byte[] digest() {
            return digest.digest();
        }
    }

    private static final class Crc implements Hasher {
        private final CRC32 crc = new CRC32();

        @Override
        public void update(byte[] bytes, int start, int length) {
            Objects.checkFromIndexSize(start, length, bytes.length);
            crc.update(bytes, start, length);
        }

        @Override
        public byte[] digest() {
            int value = (int) crc.getValue();
            crc.reset();
            return ByteBuffer.allocate(Integer.BYTES).putInt(value).array();
        }
    }
}
