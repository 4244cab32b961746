// SPDX-License-Identifier: Apache-2.0
package org.netserv.samples.converter;

import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.netserv.block.BlockException;
import org.netserv.block.Media;
import org.netserv.block.Media.AudioCodec;
import org.netserv.block.Media.Format;
import org.netserv.block.Media.Order;
import org.netserv.block.Media.Output;
import org.netserv.block.Media.Segments;
import org.netserv.block.Media.Source;
import org.netserv.block.Media.VideoCodec;

/**
 * One clip as MPEG-TS in several widths, one behind the other, all from one decoding: from {@code start-ms} on, grey if
 * {@code grey} is there. The header {@code lengths} tells the bytes of each.
 */
final class Ladder {
    private static final Duration SEGMENT = Duration.ofMillis(500);

    private final Media media;

    Ladder(Media media) {
        this.media = media;
    }

    void answer(byte[] clip, HttpServletRequest request, HttpServletResponse response)
            throws BlockException, IOException {
        boolean isGrey = request.getParameter("grey") != null;
        List<Output> outputs = new ArrayList<>();
        for (String width : parameter(request, "widths", "320,160").split(",")) {
            outputs.add(new Output(Format.MPEGTS, VideoCodec.H264, AudioCodec.STANDARD, Integer.parseInt(width), 0, 0, 0,
                    isGrey, Segments.every(SEGMENT), null));
        }
        Duration start = Duration.ofMillis(Long.parseLong(parameter(request, "start-ms", "0")));
        List<byte[]> sizes;
        try (Media.Job job = media.begin(new Order(Source.ANY, start, Duration.ZERO, null, outputs))) {
            new Thread(() -> Converter.feed(job, clip), "feeder").start();
            sizes = read(job, outputs.size());
            job.finish();
        }
        response.setContentType("video/mp2t");
        response.setHeader("lengths", sizes.stream().map(size -> "" + size.length).collect(Collectors.joining(",")));
        for (byte[] size : sizes) {
            response.getOutputStream().write(size);
        }
    }

    /** Reads all outputs at a time, since one that is not read holds up the others. */
    private static List<byte[]> read(Media.Job job, int outputs) {
        List<ByteArrayOutputStream> sizes = IntStream.range(0, outputs).mapToObj(place -> new ByteArrayOutputStream()).toList();
        List<Thread> readers = IntStream.range(0, outputs).mapToObj(place -> new Thread(() -> {
            try {
                job.output(place).transferTo(sizes.get(place));
            } catch (IOException broken) {
                throw new UncheckedIOException(broken);
            }
        }, "reader")).toList();
        readers.forEach(Thread::start);
        for (Thread reader : readers) {
            try {
                reader.join();
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
            }
        }
        return sizes.stream().map(ByteArrayOutputStream::toByteArray).toList();
    }

    private static String parameter(HttpServletRequest request, String name, String usual) {
        String value = request.getParameter(name);
        return value == null ? usual : value;
    }
}
