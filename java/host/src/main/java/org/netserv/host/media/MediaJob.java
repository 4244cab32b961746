// SPDX-License-Identifier: Apache-2.0
package org.netserv.host.media;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.List;
import java.util.Objects;
import java.util.stream.IntStream;
import org.netserv.block.BlockException;
import org.netserv.block.Media;

/** A job that runs. Its streams are pipes, at whose other ends is ffmpeg. */
final class MediaJob implements Media.Job {
    private static final int PIECE = 65_536;

    private final ModuleMedia owner;
    private final Jobs jobs;
    private final long number;
    private final OutputStream input = new Input();
    private final List<InputStream> outputs;
    private boolean isReleased;

    MediaJob(ModuleMedia owner, Jobs jobs, long number, int outputs) {
        this.owner = owner;
        this.jobs = jobs;
        this.number = number;
        this.outputs = IntStream.range(0, outputs).<InputStream>mapToObj(Output::new).toList();
    }

    @Override
    public OutputStream input() {
        return input;
    }

    @Override
    public InputStream output() {
        return output(0);
    }

    @Override
    public InputStream output(int place) {
        return outputs.get(place);
    }

    @Override
    public void finish() throws BlockException {
        jobs.closeInput(number, false);
        BlockException failure = ModuleMedia.failure(Objects.requireNonNullElse(jobs.ended(number), "unavailable "));
        close();
        if (failure != null) {
            throw failure;
        }
    }

    @Override
    public void close() {
        synchronized (this) {
            if (isReleased) {
                return;
            }
            isReleased = true;
        }
        jobs.release(number);
        owner.ended(this);
    }

    /** Sends a picture beside everything else, since ffmpeg reads it when it likes. */
    void sendPicture(byte[] picture) {
        Thread thread = new Thread(() -> {
            int written = 0;
            while (written < picture.length) {
                int length = jobs.write(number, true, picture, written, Math.min(PIECE, picture.length - written));
                if (length <= 0) {
                    break;
                }
                written += length;
            }
            jobs.closeInput(number, true);
        }, "media picture");
        thread.setDaemon(true);
        thread.start();
    }

    private final class Input extends OutputStream {
        @Override
        public void write(int one) throws IOException {
            write(new byte[] {(byte) one}, 0, 1);
        }

        @Override
        public void write(byte[] from, int start, int length) throws IOException {
            Objects.checkFromIndexSize(start, length, from.length);
            int written = 0;
            while (written < length) {
                int now = jobs.write(number, false, from, start + written, Math.min(PIECE, length - written));
                if (now <= 0) {
                    throw new IOException("the job takes no more input");
                }
                written += now;
            }
        }

        @Override
        public void close() {
            jobs.closeInput(number, false);
        }
    }

    private final class Output extends InputStream {
        private final int place;
        private volatile boolean isAtEnd;

        Output(int place) {
            this.place = place;
        }

        @Override
        public int read() throws IOException {
            byte[] one = new byte[1];
            return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
        }

        @Override
        public int read(byte[] into, int start, int length) throws IOException {
            Objects.checkFromIndexSize(start, length, into.length);
            if (length == 0) {
                return 0;
            }
            int read = jobs.read(number, place, into, start, Math.min(PIECE, length));
            if (read < -1) {
                throw new IOException("the job is closed, or its output is too large");
            }
            isAtEnd |= read < 0;
            return read;
        }

        @Override
        public void close() {
            if (!isAtEnd) {
                jobs.cancel(number);
            }
        }
    }
}
