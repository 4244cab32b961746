// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.io.File;

/** The kv state of all modules of the container, which the native side keeps. */
final class KvStates {
    private final long number;

    /** State that lasts as long as a file, which has to be there; without it, as long as the process. */
    KvStates(File path) {
        number = KvNative.openFile(path.getPath());
    }

    /** Returns the state of a module, which all versions of the same schema share. */
    KvState open(String name, int schema, ModuleLimits limits) {
        return new KvState(KvNative.open(number, name, schema, limits.kvEntries(), limits.kvBytes()));
    }

    /** Writes what is not on the disk, and closes the file. */
    void end() {
        KvNative.closeFile(number);
    }
}
