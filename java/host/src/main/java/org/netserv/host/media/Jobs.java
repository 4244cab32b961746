// SPDX-License-Identifier: Apache-2.0
package org.netserv.host.media;

/** What the native side does with jobs. May be called on any thread; what is said to wait does. */
interface Jobs {
    /** Asks for a job, and waits until it runs. Returns its number, or a word and why it does not run. */
    String start(int slot, String task);

    /** Writes bytes of a job's input or picture, and waits until there is room. Returns how many, or a number below 0. */
    int write(long job, boolean picture, byte[] from, int start, int length);

    /** Says that an input or a picture is at its end. */
    void closeInput(long job, boolean picture);

    /**
     * Reads bytes of the output in a place, and waits until there are some. Returns how many, -1 at the end, another number
     * below 0 if broken.
     */
    int read(long job, int place, byte[] into, int start, int length);

    /** Ends a job, so that nobody waits for it. */
    void cancel(long job);

    /** Waits until a job has ended. Returns a word, and why it ended. */
    String ended(long job);

    /** Forgets a job, and ends it if it has not ended. */
    void release(long job);

    /** Returns what ffprobe wrote as lines, or null if it is something else. */
    String describe(byte[] json, int length);
}
