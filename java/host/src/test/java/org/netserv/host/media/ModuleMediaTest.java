// SPDX-License-Identifier: Apache-2.0
package org.netserv.host.media;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.netserv.block.BlockException;
import org.netserv.block.BlockException.Code;
import org.netserv.block.Media;
import org.netserv.block.Media.AudioCodec;
import org.netserv.block.Media.Corner;
import org.netserv.block.Media.Format;
import org.netserv.block.Media.Live;
import org.netserv.block.Media.Order;
import org.netserv.block.Media.Output;
import org.netserv.block.Media.Overlay;
import org.netserv.block.Media.Segments;
import org.netserv.block.Media.Settings;
import org.netserv.block.Media.Source;
import org.netserv.block.Media.VideoCodec;

class ModuleMediaTest {
    private final FakeJobs jobs = new FakeJobs();
    private final ModuleMedia media = new ModuleMedia(3, jobs);

    @Test
    void aJobIsWrittenReadAndFinished() throws Exception {
        try (Media.Job job = media.transcode(new Settings(Source.ANY, Format.FRAGMENTED_MP4))) {
            job.input().write(new byte[200_000]);
            job.input().close();
            assertArrayEquals("output".getBytes(StandardCharsets.UTF_8), job.output().readAllBytes());
            job.output().close();
            job.finish();
        }
        assertEquals(200_000, jobs.input.size());
        assertEquals(List.of("close-input", "close-input", "release"), jobs.calls);
        assertEquals("{\"transcode\":{\"source\":\"any\",\"part\":{\"start-ms\":0,\"duration-ms\":0,"
                + "\"live\":null},\"outputs\":[{\"format\":\"fragmented-mp4\",\"video\":\"standard\","
                + "\"audio\":\"standard\",\"width\":0,\"height\":0,\"video-bit-rate\":0,\"audio-bit-rate\":0,"
                + "\"grey\":false,\"segments\":\"free\",\"overlay\":null}]}}", jobs.task);
    }

    @Test
    void settingsAreTold() throws Exception {
        Settings settings = new Settings(Source.MPEGTS, Format.WEBM, VideoCodec.VP9, AudioCodec.NONE, 640, 0, 1, 2,
                Duration.ofMillis(1500), Overlay.of("a\"b\\é", Corner.TOP_LEFT));
        media.transcode(settings).close();
        assertTrue(jobs.task.contains("\"video\":\"vp9\",\"audio\":\"none\",\"width\":640,\"height\":0,"
                + "\"video-bit-rate\":1,\"audio-bit-rate\":2,"), jobs.task);
        assertTrue(jobs.task.contains("\"duration-ms\":1500"), jobs.task);
        assertTrue(jobs.task.contains("{\"layer\":{\"text\":\"a\\u0022b\\u005c\\u00e9\"},\"corner\":\"top-left\"}"),
                jobs.task);
    }

    @Test
    void anOrderHasOutputsOfItsOwn() throws Exception {
        Output small = new Output(Format.MPEGTS, VideoCodec.H264, AudioCodec.NONE, 160, 0, 100_000, 0, true,
                Segments.every(Duration.ofSeconds(2)), null);
        Output same = new Output(Format.MPEGTS, VideoCodec.H264, AudioCodec.NONE, 0, 0, 500_000, 0, false,
                Segments.SOURCE, null);
        Order order = new Order(Source.MPEGTS, Duration.ZERO, Duration.ZERO, new Live(250, true), List.of(same, small));
        try (Media.Job job = media.begin(order)) {
            assertTrue(jobs.task.contains("\"live\":{\"cpu-permille\":250,\"keep-times\":true}}"), jobs.task);
            assertTrue(jobs.task.contains("\"grey\":false,\"segments\":\"source\""), jobs.task);
            assertTrue(jobs.task.contains("\"grey\":true,\"segments\":{\"every\":2000}"), jobs.task);
            assertArrayEquals("output".getBytes(StandardCharsets.UTF_8), job.output(1).readAllBytes());
            assertEquals(1, jobs.place);
            assertThrows(IndexOutOfBoundsException.class, () -> job.output(2));
        }
        assertCode(Code.INVALID, () -> media.begin(
                new Order(Source.ANY, Duration.ZERO, Duration.ZERO, null, Collections.nCopies(5, same))));
        Output with = new Output(Format.PNG, VideoCodec.STANDARD, AudioCodec.STANDARD, 0, 0, 0, 0, false, Segments.FREE,
                Overlay.of(new byte[] {(byte) 0xff, (byte) 0xd8, (byte) 0xff, 1}, Corner.CENTER));
        Output other = new Output(Format.PNG, VideoCodec.STANDARD, AudioCodec.STANDARD, 0, 0, 0, 0, false, Segments.FREE,
                Overlay.of(new byte[] {(byte) 0xff, (byte) 0xd8, (byte) 0xff, 2}, Corner.CENTER));
        assertCode(Code.INVALID, () -> media.begin(
                new Order(Source.ANY, Duration.ZERO, Duration.ZERO, null, List.of(with, other))));
    }

    @Test
    void picturesAreSentByThemselves() throws Exception {
        byte[] jpeg = new byte[100_000];
        jpeg[0] = (byte) 0xff;
        jpeg[1] = (byte) 0xd8;
        jpeg[2] = (byte) 0xff;
        Settings settings = new Settings(Source.ANY, Format.PNG).withOverlay(Overlay.of(jpeg, Corner.CENTER));
        Media.Job job = media.transcode(settings);
        assertTrue(jobs.task.contains("{\"layer\":\"jpeg\",\"corner\":\"center\"}"), jobs.task);
        assertTrue(jobs.pictureClosed.await(60, java.util.concurrent.TimeUnit.SECONDS));
        assertEquals(jpeg.length, jobs.picture.size());
        job.close();
        assertCode(Code.INVALID, () -> media.transcode(settings.withOverlay(Overlay.of(new byte[9], Corner.CENTER))));
        assertCode(Code.INVALID, () -> media.transcode(settings.withOverlay(new Overlay(null, null, Corner.CENTER))));
        byte[] large = new byte[Media.PICTURE_BYTES_MAX + 1];
        assertCode(Code.TOO_LARGE, () -> media.transcode(settings.withOverlay(Overlay.of(large, Corner.CENTER))));
        String text = "é".repeat(Media.TEXT_BYTES_MAX / 2 + 1);
        assertCode(Code.TOO_LARGE, () -> media.transcode(settings.withOverlay(Overlay.of(text, Corner.CENTER))));
    }

    @Test
    void anInputIsDescribed() throws Exception {
        jobs.described = "ogg\n1500\nvideo theora 64 48\naudio opus 48000 2";
        Media.Description found = media.probe(Source.ANY, new byte[5]);
        assertEquals(new Media.Description("ogg", Duration.ofMillis(1500), List.of(new Media.Video("theora", 64, 48)),
                List.of(new Media.Audio("opus", 48_000, 2))), found);
        assertEquals("{\"probe\":{\"source\":\"any\"}}", jobs.task);
        jobs.described = null;
        assertCode(Code.INVALID, () -> media.probe(Source.ANY, new byte[5]));
        assertCode(Code.TOO_LARGE, () -> media.probe(Source.ANY, new byte[Media.PROBED_BYTES_MAX + 1]));
    }

    @Test
    void eachEndHasItsCode() {
        assertNull(ModuleMedia.failure("done "));
        for (String word : List.of("busy", "time", "memory", "input", "cancelled")) {
            assertEquals(Code.QUOTA, ModuleMedia.failure(word + " why").code(), word);
        }
        assertEquals(Code.INVALID, ModuleMedia.failure("failed why it is").code());
        assertEquals("why it is", ModuleMedia.failure("failed why it is").getMessage());
        assertEquals(Code.UNAVAILABLE, ModuleMedia.failure("unavailable no").code());
        jobs.answer = "busy too many";
        assertCode(Code.QUOTA, () -> media.transcode(new Settings(Source.ANY, Format.WEBM)));
    }

    @Test
    void aModuleThatEndsTakesItsJobsAlong() throws Exception {
        Media.Job job = media.transcode(new Settings(Source.ANY, Format.WEBM));
        media.close();
        assertEquals(List.of("release"), jobs.calls);
        jobs.isBroken = true;
        assertThrows(IOException.class, () -> job.input().write(1));
        assertThrows(IOException.class, () -> job.output().read());
        assertCode(Code.UNAVAILABLE, () -> media.transcode(new Settings(Source.ANY, Format.WEBM)));
    }

    private static void assertCode(Code code, org.junit.jupiter.api.function.Executable call) {
        assertEquals(code, assertThrows(BlockException.class, call).code());
    }

    private static final class FakeJobs implements Jobs {
        final ByteArrayOutputStream input = new ByteArrayOutputStream();
        final ByteArrayOutputStream picture = new ByteArrayOutputStream();
        final java.util.concurrent.CountDownLatch pictureClosed = new java.util.concurrent.CountDownLatch(1);
        final List<String> calls = new ArrayList<>();
        String task;
        int place;
        String answer = "7";
        String described = "";
        boolean isBroken;
        private boolean isRead;

        @Override
        public String start(int slot, String wanted) {
            assertEquals(3, slot);
            task = wanted;
            isRead = false;
            return answer;
        }

        @Override
        public int write(long job, boolean isPicture, byte[] from, int start, int length) {
            (isPicture ? picture : input).write(from, start, length);
            return isBroken ? -2 : length;
        }

        @Override
        public void closeInput(long job, boolean isPicture) {
            if (isPicture) {
                pictureClosed.countDown();
            } else {
                calls.add("close-input");
            }
        }

        @Override
        public int read(long job, int output, byte[] into, int start, int length) {
            place = output;
            if (isBroken || isRead) {
                return isBroken ? -2 : -1;
            }
            isRead = true;
            byte[] bytes = "output".getBytes(StandardCharsets.UTF_8);
            System.arraycopy(bytes, 0, into, start, bytes.length);
            return bytes.length;
        }

        @Override
        public void cancel(long job) {
            calls.add("cancel");
        }

        @Override
        public String ended(long job) {
            return "done ";
        }

        @Override
        public void release(long job) {
            calls.add("release");
        }

        @Override
        public String describe(byte[] json, int length) {
            return described;
        }
    }
}
