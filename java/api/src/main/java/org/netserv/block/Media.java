// SPDX-License-Identifier: Apache-2.0
package org.netserv.block;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.time.Duration;
import java.util.List;
import org.osgi.annotation.versioning.ProviderType;

/**
 * Sound and pictures, by ffmpeg in a process and sandbox of its own. May be used on any thread but the packet thread,
 * which it would hold up. A module that cannot do without says {@code dependencies = ["media>=1"]} in its manifest.
 *
 * <pre>{@code
 * Media media = context.getService(context.getServiceReference(Media.class));
 * Media.Output small = new Media.Output(Media.Format.MPEGTS, Media.VideoCodec.H264, Media.AudioCodec.COPY, 320, 0,
 *         200_000, 0, false, Media.Segments.SOURCE, null);
 * Media.Live live = new Media.Live(300, true);
 * Media.Order order = new Media.Order(Media.Source.MPEGTS, Duration.ZERO, Duration.ZERO, live, List.of(small));
 * try (Media.Job job = media.begin(order)) {
 *     // Another thread reads, or writing waits for ever.
 *     reader.execute(() -> send(job.output(0)));
 *     try (OutputStream input = job.input()) {
 *         upstream.transferTo(input);
 *     }
 *     job.finish();
 * }
 * }</pre>
 */
@ProviderType
public interface Media {
    /** Jobs of a module at a time. */
    int JOBS_MAX = 8;
    /** Bytes of a text that is laid over pictures, in UTF-8. */
    int TEXT_BYTES_MAX = 256;
    /** Bytes of a picture that is laid over pictures. */
    int PICTURE_BYTES_MAX = 1 << 20;
    /** Outputs of a job. */
    int OUTPUTS_MAX = 4;
    /** Bytes of an input whose contents are told. */
    int PROBED_BYTES_MAX = 16 << 20;

    /** What an input is. */
    enum Source {
        /**
         * One of the others. It is kept until the job ends, at most as many bytes as the operator allows, so that it can
         * be read twice.
         */
        ANY,
        /** MP4 and QuickTime. Kept likewise. */
        MP4,
        /** Matroska and WebM. */
        MATROSKA,
        /** MPEG transport stream. */
        MPEGTS,
        /** Ogg. */
        OGG,
        /** FLV. */
        FLV,
        /** AVI. */
        AVI,
        /** MPEG audio. */
        MP3,
        /** AAC with ADTS headers. */
        AAC,
        /** RIFF WAVE. */
        WAV,
        /** FLAC. */
        FLAC,
        /** One picture. */
        JPEG,
        /** One picture. */
        PNG
    }

    /** What comes out. */
    enum Format {
        /** VP8 or VP9 with Opus or Vorbis. */
        WEBM,
        /** MP4 that needs no seeking: H.264 with AAC or MP3. */
        FRAGMENTED_MP4,
        /** H.264 with AAC or MP3. */
        MPEGTS,
        /** Every codec. */
        MATROSKA,
        /** Sound only: Vorbis or Opus. */
        OGG,
        /** MPEG audio layer 3. */
        MP3,
        /** 16-bit samples. */
        WAV,
        /** FLAC. */
        FLAC,
        /** The first picture. */
        JPEG,
        /** The first picture. */
        PNG
    }

    /** How moving pictures are coded. */
    enum VideoCodec {
        /** As the format usually has them. */
        STANDARD,
        /** As they are. */
        COPY,
        /** H.264. */
        H264,
        /** VP8. */
        VP8,
        /** VP9. */
        VP9,
        /** They are left out. */
        NONE
    }

    /** How sound is coded. */
    enum AudioCodec {
        /** As the format usually has it. */
        STANDARD,
        /** As it is. */
        COPY,
        /** AAC. */
        AAC,
        /** Opus. */
        OPUS,
        /** Vorbis. */
        VORBIS,
        /** MPEG audio layer 3. */
        MP3,
        /** It is left out. */
        NONE
    }

    /** Where an overlay goes. */
    enum Corner {
        /** At the left of the top. */
        TOP_LEFT,
        /** At the right of the top. */
        TOP_RIGHT,
        /** At the left of the bottom. */
        BOTTOM_LEFT,
        /** At the right of the bottom. */
        BOTTOM_RIGHT,
        /** In the middle. */
        CENTER
    }

    /**
     * What to make of an input.
     *
     * @param source what it is
     * @param format what comes out
     * @param video how pictures are coded
     * @param audio how sound is coded
     * @param width pixels in a row, at most 3840; 0 follows from the height
     * @param height rows, at most 2160; 0 follows from the width; both 0 as in the input
     * @param videoBitRate bits per second of pictures; 0 by quality
     * @param audioBitRate bits per second of sound; 0 as usual
     * @param duration how much of the input to take; zero for all of it
     * @param overlay what is laid over pictures; null for nothing
     */
    record Settings(Source source, Format format, VideoCodec video, AudioCodec audio, int width, int height,
            int videoBitRate, int audioBitRate, Duration duration, Overlay overlay) {
        /**
         * Makes settings with everything else as usual.
         *
         * @param source what the input is
         * @param format what comes out
         */
        public Settings(Source source, Format format) {
            this(source, format, VideoCodec.STANDARD, AudioCodec.STANDARD, 0, 0, 0, 0, Duration.ZERO, null);
        }

        /**
         * Returns the same with another size.
         *
         * @param newWidth pixels in a row
         * @param newHeight rows
         * @return the settings
         */
        public Settings withSize(int newWidth, int newHeight) {
            return new Settings(source, format, video, audio, newWidth, newHeight, videoBitRate, audioBitRate,
                    duration, overlay);
        }

        /**
         * Returns the same with something laid over the pictures.
         *
         * @param newOverlay what
         * @return the settings
         */
        public Settings withOverlay(Overlay newOverlay) {
            return new Settings(source, format, video, audio, width, height, videoBitRate, audioBitRate, duration,
                    newOverlay);
        }
    }

    /**
     * What is laid over pictures: a text or a picture.
     *
     * @param text one line of at most {@link #TEXT_BYTES_MAX} bytes, or null
     * @param picture PNG or JPEG of at most {@link #PICTURE_BYTES_MAX} bytes, or null
     * @param corner where
     */
    record Overlay(String text, byte[] picture, Corner corner) {
        /**
         * Makes an overlay of a text.
         *
         * @param text the text
         * @param corner where
         * @return the overlay
         */
        public static Overlay of(String text, Corner corner) {
            return new Overlay(text, null, corner);
        }

        /**
         * Makes an overlay of a picture.
         *
         * @param picture PNG or JPEG
         * @param corner where
         * @return the overlay
         */
        public static Overlay of(byte[] picture, Corner corner) {
            return new Overlay(null, picture, corner);
        }
    }

    /**
     * Where an output has key frames, with which a segment of it can begin: MPEG-TS has its tables there, fragments of MP4
     * begin there.
     *
     * @param kind how they are told
     * @param length how often they come, 200 ms to a minute; zero for other kinds
     */
    record Segments(Kind kind, Duration length) {
        /** Where the coder likes. */
        public static final Segments FREE = new Segments(Kind.FREE, Duration.ZERO);
        /**
         * Where the input has them, and nowhere else. The outputs of two jobs have them at the same pictures, so that one
         * can go on for the other.
         */
        public static final Segments SOURCE = new Segments(Kind.SOURCE, Duration.ZERO);

        /** How key frames are told. */
        public enum Kind {
            /** As {@link Segments#FREE}. */
            FREE,
            /** After a time each, and nowhere else. */
            EVERY,
            /** As {@link Segments#SOURCE}. */
            SOURCE
        }

        /**
         * Makes segments of one length.
         *
         * @param length how long they are, 200 ms to a minute
         * @return the segments
         */
        public static Segments every(Duration length) {
            return new Segments(Kind.EVERY, length);
        }
    }

    /**
     * One output of a job. Bounds are those of {@link Settings}.
     *
     * @param format what comes out
     * @param video how pictures are coded
     * @param audio how sound is coded
     * @param width pixels in a row; 0 follows from the height
     * @param height rows; 0 follows from the width; both 0 as in the input
     * @param videoBitRate bits per second of pictures; 0 by quality, which live jobs do not have
     * @param audioBitRate bits per second of sound; 0 as usual
     * @param isGrey whether pictures lose their colours
     * @param segments where key frames are
     * @param overlay what is laid over pictures, the same for all outputs that have one but for the corner; null for nothing
     */
    record Output(Format format, VideoCodec video, AudioCodec audio, int width, int height, int videoBitRate,
            int audioBitRate, boolean isGrey, Segments segments, Overlay overlay) {
        /**
         * Makes an output with everything else as usual.
         *
         * @param format what comes out
         */
        public Output(Format format) {
            this(format, VideoCodec.STANDARD, AudioCodec.STANDARD, 0, 0, 0, 0, false, Segments.FREE, null);
        }
    }

    /**
     * How a job whose input comes as it happens is done. It may take hours, by the operator's {@code live-time-s}, and takes
     * one of the places for such jobs. If the processor time is not enough, writing the input waits. No single
     * pictures come out, nothing is left out at the start, and the source is neither {@code ANY} nor {@code MP4}, which are kept.
     *
     * @param cpuPermille processor time in thousandths of a processor, 10 up to what the operator gives; 0 for that
     * @param keepTimes whether outputs have the time stamps of the input, as MPEG-TS has them, so that those of two jobs fit
     *     together
     */
    record Live(int cpuPermille, boolean keepTimes) {
    }

    /**
     * What to make of an input, in several ways at a time.
     *
     * @param source what it is
     * @param start how much to leave out at the start; inputs that are kept are sought in, others are decoded up to there
     * @param duration how much of the input to take; zero for all of it
     * @param live how it is done as it comes; null for a clip
     * @param outputs what comes out, at most {@link #OUTPUTS_MAX}, all from one decoding
     */
    record Order(Source source, Duration start, Duration duration, Live live, List<Output> outputs) {
    }

    /**
     * What an input holds.
     *
     * @param format ffmpeg's name of the format; several of one kind with commas between them
     * @param duration how long it is; zero if that is not known
     * @param video its pictures
     * @param audio its sound
     */
    record Description(String format, Duration duration, List<Video> video, List<Audio> audio) {
    }

    /**
     * Moving pictures, or a single one.
     *
     * @param codec how they are coded
     * @param width pixels in a row
     * @param height rows
     */
    record Video(String codec, int width, int height) {
    }

    /**
     * Sound.
     *
     * @param codec how it is coded
     * @param sampleRate samples a second
     * @param channels how many
     */
    record Audio(String codec, int sampleRate, int channels) {
    }

    /**
     * Begins a job; waits for its turn.
     *
     * @param settings what to make
     * @return the job; close it
     * @throws BlockException {@code INVALID} for settings that mean nothing, {@code QUOTA} with too many jobs,
     *     {@code UNAVAILABLE} if the operator does not offer it
     */
    Job transcode(Settings settings) throws BlockException;

    /**
     * Begins a job with several outputs, that begins in the middle of an input, or goes on as long as it comes; waits for
     * its turn.
     *
     * @param order what to make
     * @return the job; close it
     * @throws BlockException as for {@link #transcode}
     */
    Job begin(Order order) throws BlockException;

    /**
     * Tells what an input holds.
     *
     * @param source what it is
     * @param input the input, at most {@link #PROBED_BYTES_MAX} bytes
     * @return what it holds
     * @throws BlockException as for {@link #transcode}; {@code INVALID} also if the input is not understood
     */
    Description probe(Source source, byte[] input) throws BlockException;

    /** A job that runs. */
    @ProviderType
    interface Job extends AutoCloseable {
        /**
         * Returns where the input goes. Close it at the input's end. Writing waits while ffmpeg has enough, so that the
         * output has to be read meanwhile, by another thread. It throws {@link IOException} once ffmpeg takes no more.
         *
         * @return the stream, always the same
         */
        OutputStream input();

        /**
         * Returns where the output comes from, the first of several. It ends with the output, also if that ends early:
         * {@link #finish} tells.
         *
         * @return the stream, always the same
         */
        InputStream output();

        /**
         * Returns where an output comes from. Each has to be read, by a thread of its own: one that is not holds up the others.
         *
         * @param place its place in the order
         * @return the stream, always the same
         */
        InputStream output(int place);

        /**
         * Waits until the job has ended; the output must have been read to its end.
         *
         * @throws BlockException {@code INVALID} if the input is not understood, {@code QUOTA} if time, memory, input or
         *     output ran out
         */
        void finish() throws BlockException;

        /** Ends the job if it has not ended. */
        @Override
        void close();
    }
}
