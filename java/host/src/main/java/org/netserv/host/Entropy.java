// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.security.SecureRandom;

/** Where modules' random bytes come from. */
interface Entropy {
    /** The system property that says that recorded tests are run: random bytes and the wall clock are the test's. */
    String TEST_PROPERTY = "netserv.test";
    /** What a test's random bytes start from. */
    long TEST_SEED = 1;

    /** Fills an array. */
    void fill(byte[] into);

    /** Returns the kernel's random bytes, or those of a test. */
    static Entropy ofSystem() {
        return Boolean.getBoolean(TEST_PROPERTY) ? new Seeded(TEST_SEED) : new System();
    }

    /** The kernel. */
    final class System implements Entropy {
        @Override
        public void fill(byte[] into) {
            Holder.RANDOM.nextBytes(into);
        }

        /** Loads the classes of the generator only when it is used. */
        private static final class Holder {
            static final SecureRandom RANDOM = new SecureRandom();
        }
    }

    /** SplitMix64, as in tests of Wasm modules. */
    final class Seeded implements Entropy {
        private long state;

        Seeded(long seed) {
            state = seed;
        }

        @Override
        public synchronized void fill(byte[] into) {
            ByteBuffer word = ByteBuffer.allocate(Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
            for (int at = 0; at < into.length; at += Long.BYTES) {
                word.putLong(0, next());
                word.get(0, into, at, Math.min(Long.BYTES, into.length - at));
            }
        }

        private long next() {
            state += 0x9e37_79b9_7f4a_7c15L;
            long mixed = (state ^ state >>> 30) * 0xbf58_476d_1ce4_e5b9L;
            mixed = (mixed ^ mixed >>> 27) * 0x94d0_49bb_1331_11ebL;
            return mixed ^ mixed >>> 31;
        }
    }
}
