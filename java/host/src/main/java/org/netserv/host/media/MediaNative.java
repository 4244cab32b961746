// SPDX-License-Identifier: Apache-2.0
package org.netserv.host.media;

/** The native side of the worker, which binds these methods. */
final class MediaNative implements Jobs {
    @Override
    public native String start(int slot, String task);

    @Override
    public native int write(long job, boolean picture, byte[] from, int start, int length);

    @Override
    public native void closeInput(long job, boolean picture);

    @Override
    public native int read(long job, int place, byte[] into, int start, int length);

    @Override
    public native void cancel(long job);

    @Override
    public native String ended(long job);

    @Override
    public native void release(long job);

    @Override
    public native String describe(byte[] json, int length);
}
