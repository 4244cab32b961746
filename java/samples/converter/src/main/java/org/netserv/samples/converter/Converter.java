// SPDX-License-Identifier: Apache-2.0
package org.netserv.samples.converter;

import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.netserv.block.BlockException;
import org.netserv.block.Media;
import org.netserv.block.Media.Corner;
import org.netserv.block.Media.Format;
import org.netserv.block.Media.Overlay;
import org.netserv.block.Media.Settings;
import org.netserv.block.Media.Source;

/**
 * Converts sound and pictures that are posted to it, by the node's ffmpeg, as the module of the same name in Rust does:
 * {@code POST /probe} tells what the body holds, {@code POST /convert/FORMAT?width=320&text=hello} answers with the body in
 * another format, scaled and with a text over it if the query says so, {@code POST /ladder?widths=320,160} with several sizes
 * of it ({@link Ladder}).
 */
final class Converter extends HttpServlet {
    private static final long serialVersionUID = 1L;
    private static final int PIECE = 65_536;
    private static final Map<String, Target> TARGETS = Map.of(
            "webm", new Target(Format.WEBM, "video/webm"),
            "mp4", new Target(Format.FRAGMENTED_MP4, "video/mp4"),
            "mpegts", new Target(Format.MPEGTS, "video/mp2t"),
            "mp3", new Target(Format.MP3, "audio/mpeg"),
            "wav", new Target(Format.WAV, "audio/wav"),
            "jpeg", new Target(Format.JPEG, "image/jpeg"),
            "png", new Target(Format.PNG, "image/png"));

    private final transient Media media;

    Converter(Media media) {
        this.media = media;
    }

    private record Target(Format format, String contentType) {
    }

    @Override
    protected void doPost(HttpServletRequest request, HttpServletResponse response) throws IOException {
        String path = request.getRequestURI();
        // The node bounds bodies.
        byte[] clip = request.getInputStream().readAllBytes();
        Target target = path.startsWith("/convert/") ? TARGETS.get(path.substring("/convert/".length())) : null;
        try {
            if (target != null) {
                response.setContentType(target.contentType());
                convert(clip, settings(target.format(), request), response.getOutputStream());
            } else if (path.equals("/ladder")) {
                new Ladder(media).answer(clip, request, response);
            } else if (path.equals("/probe")) {
                say(response, HttpServletResponse.SC_OK, described(media.probe(Source.ANY, clip)));
            } else {
                say(response, HttpServletResponse.SC_NOT_FOUND, "no such format\n");
            }
        } catch (BlockException failed) {
            say(response, status(failed.code()), failed.getMessage() + "\n");
        } catch (NumberFormatException odd) {
            say(response, HttpServletResponse.SC_BAD_REQUEST, "the width is no number\n");
        }
    }

    private static Settings settings(Format format, HttpServletRequest request) {
        Settings settings = new Settings(Source.ANY, format);
        String width = request.getParameter("width");
        if (width != null) {
            settings = settings.withSize(Integer.parseInt(width), 0);
        }
        String text = request.getParameter("text");
        return text == null ? settings : settings.withOverlay(Overlay.of(text, Corner.BOTTOM_LEFT));
    }

    /** Writes the input while it reads the output. Until there is output, it can still be said that there is none. */
    private void convert(byte[] clip, Settings settings, OutputStream to) throws BlockException, IOException {
        try (Media.Job job = media.transcode(settings)) {
            Thread feeder = new Thread(() -> feed(job, clip), "feeder");
            feeder.start();
            InputStream output = job.output();
            byte[] first = output.readNBytes(PIECE);
            if (first.length == 0) {
                job.finish();
                return;
            }
            to.write(first);
            output.transferTo(to);
            finish(job);
        }
    }

    static void feed(Media.Job job, byte[] clip) {
        try (OutputStream input = job.input()) {
            input.write(clip);
        } catch (IOException enough) {
            // How the job ends tells whether it had enough.
        }
    }

    /** What was sent cannot be taken back; but the client sees that it has no end. */
    private static void finish(Media.Job job) throws IOException {
        try {
            job.finish();
        } catch (BlockException failed) {
            throw new IOException(failed);
        }
    }

    private static String described(Media.Description found) {
        StringBuilder text = new StringBuilder(String.format("%s %d ms%n", found.format(), found.duration().toMillis()));
        for (Media.Video one : found.video()) {
            text.append(String.format("video %s %dx%d%n", one.codec(), one.width(), one.height()));
        }
        for (Media.Audio one : found.audio()) {
            text.append(String.format("audio %s %d Hz, %d channels%n", one.codec(), one.sampleRate(), one.channels()));
        }
        return text.toString();
    }

    private static int status(BlockException.Code code) {
        return switch (code) {
            case INVALID -> 422;
            case TOO_LARGE -> HttpServletResponse.SC_REQUEST_ENTITY_TOO_LARGE;
            case QUOTA, NOT_FOUND, UNAVAILABLE -> HttpServletResponse.SC_SERVICE_UNAVAILABLE;
        };
    }

    private static void say(HttpServletResponse response, int status, String text) throws IOException {
        response.setStatus(status);
        response.setContentType("text/plain;charset=utf-8");
        response.getOutputStream().write(text.getBytes(StandardCharsets.UTF_8));
    }
}
