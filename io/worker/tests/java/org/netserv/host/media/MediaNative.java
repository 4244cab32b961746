// SPDX-License-Identifier: Apache-2.0
package org.netserv.host.media;

import java.nio.charset.StandardCharsets;

/** Stands in for the real class in tests of the native side. */
public final class MediaNative {
    private native String start(int slot, String task);

    private native int write(long job, boolean picture, byte[] from, int start, int length);

    private native void closeInput(long job, boolean picture);

    private native int read(long job, int place, byte[] into, int start, int length);

    private native void cancel(long job);

    private native String ended(long job);

    private native void release(long job);

    private native String describe(byte[] json, int length);

    /** Uses each method, and returns what came of it. */
    public static String run(int slot) {
        MediaNative media = new MediaNative();
        String noTask = media.start(slot, "{}").split(" ")[0];
        String noModule = media.start(64, "{\"probe\":{\"source\":\"any\"}}");
        long job = Long.parseLong(media.start(slot, "{\"probe\":{\"source\":\"any\"}}"));
        byte[] hello = "hello".getBytes(StandardCharsets.UTF_8);
        int written = media.write(job, false, hello, 1, 4);
        int beyond = media.write(job, false, hello, 2, 4);
        int none = media.write(job, false, null, 0, 1);
        int picture = media.write(job, true, hello, 0, 5);
        media.closeInput(job, false);
        media.closeInput(job, true);
        byte[] into = new byte[10];
        int read = media.read(job, 0, into, 1, 9);
        String output = new String(into, 1, Math.max(read, 0), StandardCharsets.UTF_8);
        int end = media.read(job, 0, into, 0, 10);
        int noOutput = media.read(job, 1, into, 0, 10);
        String ended = media.ended(job);
        media.cancel(job);
        media.release(job);
        int gone = media.read(job, 0, into, 0, 10);
        byte[] json = "{\"format\":{\"format_name\":\"ogg\"}}".getBytes(StandardCharsets.UTF_8);
        String described = media.describe(json, json.length).replace('\n', '/');
        String nonsense = media.describe(hello, 5);
        return String.join("|", noTask, noModule, written + " " + beyond + " " + none + " " + picture, output,
                end + " " + noOutput + " " + gone, ended, described, String.valueOf(nonsense));
    }
}
