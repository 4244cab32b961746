// SPDX-License-Identifier: Apache-2.0
package org.netserv.host.media;

import java.io.ByteArrayOutputStream;
import java.io.Closeable;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.netserv.block.BlockException;
import org.netserv.block.BlockException.Code;
import org.netserv.block.Media;

/** What one module has of the block. */
public final class ModuleMedia implements Media, Closeable {
    private static final int PIECE = 65_536;

    private final int slot;
    private final Jobs jobs;
    private final Set<MediaJob> open = new HashSet<>();
    private boolean isClosed;

    /**
     * Makes a module's block.
     *
     * @param slot the module's slot
     */
    public ModuleMedia(int slot) {
        this(slot, new MediaNative());
    }

    /** For tests, with other jobs. */
    ModuleMedia(int slot, Jobs jobs) {
        this.slot = slot;
        this.jobs = jobs;
    }

    @Override
    public Job transcode(Settings settings) throws BlockException {
        Output output = new Output(settings.format(), settings.video(), settings.audio(), settings.width(),
                settings.height(), settings.videoBitRate(), settings.audioBitRate(), false, Segments.FREE,
                settings.overlay());
        return begin(new Order(settings.source(), Duration.ZERO, settings.duration(), null, List.of(output)));
    }

    @Override
    public Job begin(Order order) throws BlockException {
        byte[] picture = null;
        for (Output output : order.outputs()) {
            byte[] its = output.overlay() == null ? null : output.overlay().picture();
            if (its != null && its.length > PICTURE_BYTES_MAX) {
                throw new BlockException(Code.TOO_LARGE, "the picture has more than 1,048,576 bytes");
            }
            if (its != null && picture != null && !Arrays.equals(its, picture)) {
                throw new BlockException(Code.INVALID, "outputs have different pictures laid over");
            }
            picture = its == null ? picture : its;
        }
        MediaJob job = start(OrderJson.of(order), order.outputs().size());
        if (picture != null) {
            job.sendPicture(picture.clone());
        }
        return job;
    }

    @Override
    public Description probe(Source source, byte[] input) throws BlockException {
        if (input.length > PROBED_BYTES_MAX) {
            throw new BlockException(Code.TOO_LARGE, "an input of more than 16,777,216 bytes");
        }
        try (MediaJob job = start("{\"probe\":{\"source\":" + OrderJson.word(source) + "}}", 1)) {
            try (var to = job.input()) {
                to.write(input);
            } catch (IOException enough) {
                // It has read what it wanted; how it ends tells the rest.
            }
            ByteArrayOutputStream told = new ByteArrayOutputStream();
            try {
                byte[] piece = new byte[PIECE];
                for (int read = 0; read >= 0 && told.size() < 4 * PIECE; read = job.output().read(piece)) {
                    told.write(piece, 0, read);
                }
            } catch (IOException broken) {
                // As above.
            }
            job.finish();
            String lines = jobs.describe(told.toByteArray(), told.size());
            if (lines == null) {
                throw new BlockException(Code.INVALID, "the input is not understood");
            }
            return description(lines);
        }
    }

    /** Ends all jobs; no further one can be begun. */
    @Override
    public void close() {
        List<MediaJob> left;
        synchronized (open) {
            isClosed = true;
            left = new ArrayList<>(open);
        }
        left.forEach(MediaJob::close);
    }

    /** Forgets a job. */
    void ended(MediaJob job) {
        synchronized (open) {
            open.remove(job);
        }
    }

    private MediaJob start(String task, int outputs) throws BlockException {
        synchronized (open) {
            if (isClosed) {
                throw new BlockException(Code.UNAVAILABLE, "the module is stopped");
            }
        }
        String answer = jobs.start(slot, task);
        if (answer == null) {
            throw new BlockException(Code.UNAVAILABLE, "there is no memory for it");
        }
        if (answer.isEmpty() || !Character.isDigit(answer.charAt(0))) {
            throw failure(answer);
        }
        MediaJob job = new MediaJob(this, jobs, Long.parseLong(answer), outputs);
        boolean isLate;
        synchronized (open) {
            isLate = isClosed;
            open.add(job);
        }
        if (isLate) {
            job.close();
            throw new BlockException(Code.UNAVAILABLE, "the module is stopped");
        }
        return job;
    }

    /** Returns what a line means that the native side says how a job ended in; null if all is well. */
    static BlockException failure(String line) {
        int space = line.indexOf(' ');
        String outcome = space < 0 ? line : line.substring(0, space);
        String detail = space < 0 ? "" : line.substring(space + 1);
        return switch (outcome) {
            case "done" -> null;
            case "failed", "invalid" -> new BlockException(Code.INVALID, detail);
            case "busy", "time", "memory", "input" -> new BlockException(Code.QUOTA, detail.isEmpty() ? outcome : detail);
            case "cancelled" -> new BlockException(Code.QUOTA, "it was given up, or its output was too large");
            default -> new BlockException(Code.UNAVAILABLE, detail);
        };
    }

    private static Description description(String text) {
        String[] lines = text.split("\n");
        List<Video> video = new ArrayList<>();
        List<Audio> audio = new ArrayList<>();
        for (int at = 2; at < lines.length; at++) {
            String[] words = lines[at].split(" ");
            int first = (int) Math.min(Long.parseLong(words[2]), Integer.MAX_VALUE);
            int second = (int) Math.min(Long.parseLong(words[3]), Integer.MAX_VALUE);
            if ("video".equals(words[0])) {
                video.add(new Video(words[1], first, second));
            } else {
                audio.add(new Audio(words[1], first, second));
            }
        }
        return new Description(lines[0], Duration.ofMillis(Long.parseLong(lines[1])), List.copyOf(video),
                List.copyOf(audio));
    }
}
