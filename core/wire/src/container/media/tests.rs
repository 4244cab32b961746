// SPDX-License-Identifier: Apache-2.0
use super::*;

#[test]
fn every_format_has_usual_codecs_that_fit() {
    for format in MediaFormat::ALL {
        let usual = if format.is_pictures() { pictures(format) } else { MediaSettings::new(format) };
        assert_eq!(usual.check(), Ok(()), "{format:?}");
        let spelled = MediaSettings { video: usual.video(), audio: usual.audio(), ..usual };
        assert_eq!(spelled.check(), Ok(()), "{format:?}");
    }
}

#[test]
fn what_is_out_of_bounds_is_named() {
    let webm = || MediaSettings::new(MediaFormat::Webm);
    let text = |text: &str| {
        let layer = MediaLayer::Text(text.to_owned());
        MediaSettings { overlay: Some(MediaOverlay { layer, corner: Corner::Center }), ..webm() }
    };
    check(&MediaSettings { width: WIDTH_MAX, height: HEIGHT_MAX, ..webm() }, None);
    check(&MediaSettings { width: WIDTH_MAX + 1, ..webm() }, Some("width"));
    check(&MediaSettings { height: HEIGHT_MAX + 1, ..webm() }, Some("height"));
    check(&MediaSettings { video_bit_rate: VIDEO_BIT_RATE_MAX + 1, ..webm() }, Some("video-bit-rate"));
    check(&MediaSettings { audio_bit_rate: AUDIO_BIT_RATE_MAX + 1, ..webm() }, Some("audio-bit-rate"));
    check(&MediaSettings { video: VideoCodec::H264, ..webm() }, Some("H264"));
    check(&MediaSettings { audio: AudioCodec::Aac, ..webm() }, Some("Aac"));
    check(&MediaSettings { video: VideoCodec::None, audio: AudioCodec::None, ..webm() }, Some("nothing"));
    check(&MediaSettings { video: VideoCodec::Copy, width: 2, ..webm() }, Some("copied"));
    check(&MediaSettings { video: VideoCodec::None, ..text("x") }, Some("overlay"));
    check(&text(&"x".repeat(TEXT_BYTES_MAX)), None);
    check(&text(&"x".repeat(TEXT_BYTES_MAX + 1)), Some("bytes"));
    check(&text(""), Some("bytes"));
    check(&text("a\nb"), Some("control"));
    check(&text("a':[in]%{pts}\\,;"), None);
}

#[test]
fn segments_are_of_coded_pictures_and_neither_short_nor_long() {
    let of = |format, segments| MediaSettings { segments, ..MediaSettings::new(format) };
    for (ms, named) in [(199, Some("segment")), (200, None), (60_000, None), (60_001, Some("segment"))] {
        check(&of(MediaFormat::Mpegts, MediaSegments::Every(ms)), named);
    }
    check(&of(MediaFormat::Webm, MediaSegments::Source), None);
    for format in [MediaFormat::Wav, MediaFormat::Png] {
        check(&of(format, MediaSegments::Source), Some("coded"));
    }
    let copy = MediaSettings { video: VideoCodec::Copy, ..of(MediaFormat::Mpegts, MediaSegments::Source) };
    check(&copy, Some("coded"));
    check(&MediaSettings { grey: true, segments: MediaSegments::Free, ..copy }, Some("copied"));
    check(&MediaSettings { grey: true, ..MediaSettings::new(MediaFormat::Mp3) }, Some("grey"));
}

#[test]
fn a_job_has_some_outputs_whose_overlays_are_one() {
    let text = |text: &str, corner| Some(MediaOverlay { layer: MediaLayer::Text(text.to_owned()), corner });
    let output = |overlay| MediaSettings { overlay, ..MediaSettings::new(MediaFormat::Webm) };
    let job = |outputs| MediaTask::Transcode { source: MediaSource::Any, part: MediaPart::default(), outputs };
    let of = |count| job(vec![output(None); count]);
    assert!(of(0).check().is_err() && of(1).check().is_ok());
    assert!(of(OUTPUTS_MAX).check().is_ok() && of(OUTPUTS_MAX + 1).check().is_err());
    let [left, right] = [Corner::TopLeft, Corner::TopRight];
    let same = job(vec![output(None), output(text("a", left)), output(text("a", right))]);
    assert!(same.check().is_ok() && same.layer() == Some(&MediaLayer::Text("a".to_owned())));
    let other = job(vec![output(text("a", left)), output(text("b", left))]);
    assert!(other.check().unwrap_err().contains("overlays"));
    assert_eq!((same.outputs(), same.has_picture()), (3, false));
}

#[test]
fn sound_with_headers_of_its_own_is_not_copied_into_mp4() {
    let copy = |format| MediaSettings { audio: AudioCodec::Copy, ..MediaSettings::new(format) };
    let job = |source, format| {
        MediaTask::Transcode { source, part: MediaPart::default(), outputs: vec![copy(format)] }.check()
    };
    for source in [MediaSource::Any, MediaSource::Mpegts, MediaSource::Aac] {
        assert!(job(source, MediaFormat::FragmentedMp4).unwrap_err().contains("not copied"));
        assert_eq!(job(source, MediaFormat::Mpegts), Ok(()));
    }
    assert_eq!(job(MediaSource::Matroska, MediaFormat::FragmentedMp4), Ok(()));
}

#[test]
fn a_live_job_has_a_rate_and_begins_where_it_is() {
    let job = |part: MediaPart, settings: MediaSettings| {
        MediaTask::Transcode { source: MediaSource::Mpegts, part, outputs: vec![settings] }.check()
    };
    let live =
        |cpu_permille| MediaPart { live: Some(MediaLive { cpu_permille, keep_times: true }), ..MediaPart::default() };
    let rated = |format| MediaSettings { video_bit_rate: 300_000, ..MediaSettings::new(format) };
    let webm = || rated(MediaFormat::Webm);
    assert!([0, LIVE_CPU_PERMILLE_MIN].iter().all(|cpu| job(live(*cpu), webm()).is_ok()));
    assert!(job(live(LIVE_CPU_PERMILLE_MIN - 1), webm()).unwrap_err().contains("cpu-permille"));
    assert!(job(MediaPart { start_ms: 1, ..live(0) }, webm()).unwrap_err().contains("begins"));
    assert!(job(live(0), rated(MediaFormat::Jpeg)).unwrap_err().contains("picture"));
    let unrated = MediaSettings::new(MediaFormat::Webm);
    assert!(job(live(0), unrated.clone()).unwrap_err().contains("video-bit-rate"));
    assert!(job(MediaPart { start_ms: 1, ..MediaPart::default() }, unrated.clone()).is_ok());
    assert!(job(live(0), MediaSettings { video: VideoCodec::Copy, ..unrated }).is_ok());
    assert!(job(live(0), MediaSettings::new(MediaFormat::Ogg)).is_ok());
    for source in [MediaSource::Any, MediaSource::Mp4] {
        let outputs = vec![MediaSettings::new(MediaFormat::Ogg)];
        let kept = MediaTask::Transcode { source, part: live(0), outputs };
        assert!(kept.check().unwrap_err().contains("kept"));
    }
}

#[test]
fn pictures_one_behind_the_other_have_a_number_a_frame_and_a_look() {
    let with = |format, change: fn(&mut MediaSettings, &mut MediaPictures)| {
        let (mut settings, mut of) = (pictures(format), pictures(format).pictures.unwrap());
        change(&mut settings, &mut of);
        MediaSettings { pictures: settings.pictures.map(|_| of), ..settings }
    };
    let [jpeg, png] = [MediaFormat::JpegPictures, MediaFormat::PngPictures];
    for format in [jpeg, png] {
        check(&with(format, |settings, _| settings.grey = true), None);
        check(&with(format, |settings, _| settings.pictures = None), Some("how many"));
        check(&with(format, |settings, _| settings.width = 0), Some("width"));
        check(&with(format, |settings, _| settings.height = 0), Some("height"));
        check(&with(format, |_, of| of.per_s = 0), Some("per-s"));
        check(&with(format, |_, of| of.per_s = 60), None);
        check(&with(format, |_, of| of.per_s = 61), Some("per-s"));
    }
    check(&with(jpeg, |_, of| of.coarseness = 0), Some("coarseness"));
    check(&with(jpeg, |_, of| of.coarseness = 32), Some("coarseness"));
    check(&with(jpeg, |_, of| of.palette = true), Some("palette"));
    check(&with(png, |_, of| (of.palette, of.coarseness) = (true, 0)), None);
    check(&with(png, |settings, of| (settings.grey, of.palette) = (true, true)), Some("palette"));
    let other = MediaSettings { pictures: pictures(png).pictures, ..MediaSettings::new(MediaFormat::Png) };
    check(&other, Some("behind the other"));
    let live = MediaPart { live: Some(MediaLive { cpu_permille: 0, keep_times: false }), ..MediaPart::default() };
    let task = MediaTask::Transcode { source: MediaSource::Mpegts, part: live, outputs: vec![pictures(jpeg)] };
    assert_eq!(task.check(), Ok(()), "they have no bit rate");
    // As it was before there were such outputs.
    assert!(!serde_json::to_string(&MediaSettings::new(MediaFormat::Webm)).unwrap().contains("pictures"));
}

#[test]
fn unknown_words_are_no_jobs() {
    let good = r#"{"transcode":{"source":"any","part":{"start-ms":0,"duration-ms":0,"live":null},"outputs":[
        {"format":"webm","video":"standard","audio":"none","width":0,"height":0,"video-bit-rate":0,
        "audio-bit-rate":0,"grey":false,"segments":{"every":2000},"overlay":null}]}}"#;
    assert!(serde_json::from_str::<MediaTask>(good).is_ok());
    for (from, to) in [("any", "concat"), ("webm", "hls"), ("standard", "rawvideo"), ("width", "filter")] {
        assert!(serde_json::from_str::<MediaTask>(&good.replacen(from, to, 1)).is_err(), "{to}");
    }
}

fn pictures(format: MediaFormat) -> MediaSettings {
    let pictures = Some(MediaPictures { per_s: 10, coarseness: 5, palette: false });
    MediaSettings { width: 160, height: 120, pictures, ..MediaSettings::new(format) }
}

fn check(settings: &MediaSettings, named: Option<&str>) {
    match (settings.check(), named) {
        (Ok(()), None) => {}
        (Err(text), Some(named)) => assert!(text.contains(named), "{text}"),
        (outcome, named) => panic!("{settings:?}: {outcome:?}, not {named:?}"),
    }
}
