// SPDX-License-Identifier: Apache-2.0
package org.netserv.host.media;

import java.io.ByteArrayOutputStream;
import java.io.Closeable;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
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
        Overlay overlay = settings.overlay();
        byte[] picture = overlay == null ? null : overlay.picture();
        if (picture != null && picture.length > PICTURE_BYTES_MAX) {
            throw new BlockException(Code.TOO_LARGE, "the picture has more than 1,048,576 bytes");
        }
        MediaJob job = start("{\"transcode\":{\"source\":" + word(settings.source()) + ",\"settings\":"
                + json(settings) + "}}");
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
        try (MediaJob job = start("{\"probe\":{\"source\":" + word(source) + "}}")) {
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

    private MediaJob start(String task) throws BlockException {
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
        MediaJob job = new MediaJob(this, jobs, Long.parseLong(answer));
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

    private static String json(Settings settings) throws BlockException {
        Overlay overlay = settings.overlay();
        return "{\"format\":" + word(settings.format()) + ",\"video\":" + word(settings.video()) + ",\"audio\":"
                + word(settings.audio()) + ",\"width\":" + settings.width() + ",\"height\":" + settings.height()
                + ",\"video-bit-rate\":" + settings.videoBitRate() + ",\"audio-bit-rate\":" + settings.audioBitRate()
                + ",\"duration-ms\":" + settings.duration().toMillis() + ",\"overlay\":"
                + (overlay == null ? "null" : json(overlay)) + "}";
    }

    private static String json(Overlay overlay) throws BlockException {
        return "{\"layer\":" + layer(overlay) + ",\"corner\":" + word(overlay.corner()) + "}";
    }

    private static String layer(Overlay overlay) throws BlockException {
        byte[] picture = overlay.picture();
        if ((overlay.text() == null) == (picture == null)) {
            throw new BlockException(Code.INVALID, "an overlay is a text or a picture");
        }
        if (picture == null) {
            return "{\"text\":" + quoted(overlay.text()) + "}";
        }
        if (startsWith(picture, 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n')) {
            return "\"png\"";
        }
        if (startsWith(picture, 0xff, 0xd8, 0xff)) {
            return "\"jpeg\"";
        }
        throw new BlockException(Code.INVALID, "the picture is neither PNG nor JPEG");
    }

    private static boolean startsWith(byte[] bytes, int... start) {
        if (bytes.length < start.length) {
            return false;
        }
        for (int at = 0; at < start.length; at++) {
            if ((bytes[at] & 0xff) != start[at]) {
                return false;
            }
        }
        return true;
    }

    /** Returns a text as JSON has it: everything but plain letters as an escape, so that nothing of it can mean more. */
    static String quoted(String text) throws BlockException {
        if (text.getBytes(StandardCharsets.UTF_8).length > TEXT_BYTES_MAX) {
            throw new BlockException(Code.TOO_LARGE, "a text has at most 256 bytes");
        }
        StringBuilder json = new StringBuilder("\"");
        for (int at = 0; at < text.length(); at++) {
            char one = text.charAt(at);
            boolean isPlain = one < 128 && (Character.isLetterOrDigit(one) || one == ' ');
            json.append(isPlain ? String.valueOf(one) : String.format("\\u%04x", (int) one));
        }
        return json.append('"').toString();
    }

    private static String word(Enum<?> value) {
        return "\"" + value.name().toLowerCase(Locale.ROOT).replace('_', '-') + "\"";
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
