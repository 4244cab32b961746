// SPDX-License-Identifier: Apache-2.0
//! What `ffprobe` says of an input. It has read a stranger's bytes, so what it says is taken as such.

use serde::Deserialize;

use crate::limits::{MEDIA_NAME_BYTES_MAX, MEDIA_STREAMS_TOLD_MAX};

/// What an input holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// ffmpeg's name of the format.
    pub format: String,
    /// Milliseconds; 0 if not known.
    pub duration_ms: u64,
    /// Moving pictures, or single ones: codec, width, height.
    pub video: Vec<(String, u32, u32)>,
    /// Sound: codec, samples a second, channels.
    pub audio: Vec<(String, u32, u32)>,
}

impl Description {
    /// Reads what `ffprobe` wrote.
    ///
    /// # Errors
    /// It wrote something else.
    pub fn parse(json: &[u8]) -> Result<Description, String> {
        let told: Told = serde_json::from_slice(json).map_err(|error| format!("ffprobe wrote no JSON: {error}"))?;
        let mut found = Description { format: name(&told.format.format_name), ..Description::default() };
        let seconds = told.format.duration.as_deref().and_then(|text| text.parse::<f64>().ok());
        found.duration_ms = seconds.and_then(milliseconds).unwrap_or(0);
        for stream in told.streams.into_iter().take(MEDIA_STREAMS_TOLD_MAX) {
            let codec = name(&stream.codec_name);
            match stream.codec_type.as_str() {
                "video" => found.video.push((codec, stream.width, stream.height)),
                "audio" => {
                    let rate = stream.sample_rate.as_deref().and_then(|text| text.parse().ok()).unwrap_or(0);
                    found.audio.push((codec, rate, stream.channels));
                }
                // Subtitles and data.
                _ => {}
            }
        }
        Ok(found)
    }
}

#[derive(Deserialize)]
struct Told {
    #[serde(default)]
    streams: Vec<Stream>,
    #[serde(default)]
    format: Format,
}

#[derive(Default, Deserialize)]
struct Format {
    #[serde(default)]
    format_name: String,
    duration: Option<String>,
}

#[derive(Deserialize)]
struct Stream {
    #[serde(default)]
    codec_name: String,
    #[serde(default)]
    codec_type: String,
    #[serde(default)]
    width: u32,
    #[serde(default)]
    height: u32,
    sample_rate: Option<String>,
    #[serde(default)]
    channels: u32,
}

/// Keeps the letters of a name that ffmpeg's own names have.
fn name(text: &str) -> String {
    let known = |c: &char| c.is_ascii_alphanumeric() || "_-,".contains(*c);
    text.chars().filter(known).take(MEDIA_NAME_BYTES_MAX).collect()
}

fn milliseconds(seconds: f64) -> Option<u64> {
    let time = std::time::Duration::try_from_secs_f64(seconds).ok()?;
    u64::try_from(time.as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ffprobe_writes_is_read() {
        let json = br#"{"streams":[
            {"index":0,"codec_name":"h264","codec_type":"video","width":640,"height":360,"extra":{}},
            {"codec_name":"aac","codec_type":"audio","sample_rate":"44100","channels":2},
            {"codec_type":"data"}],
            "format":{"format_name":"mov,mp4,m4a","duration":"4.040000"}}"#;
        let expected = Description {
            format: "mov,mp4,m4a".to_owned(),
            duration_ms: 4040,
            video: vec![("h264".to_owned(), 640, 360)],
            audio: vec![("aac".to_owned(), 44_100, 2)],
        };
        assert_eq!(Description::parse(json), Ok(expected));
        assert_eq!(Description::parse(b"{}"), Ok(Description::default()));
    }

    #[test]
    fn nonsense_is_an_error_or_nothing() {
        for json in ["", "null", "5", r#"{"streams":5}"#, r#"{"streams":[{"width":-1}]}"#] {
            assert!(Description::parse(json.as_bytes()).is_err(), "{json}");
        }
        for duration in ["-1", "NaN", "inf", "1e300", "x"] {
            let json = format!(r#"{{"format":{{"format_name":"a\u001b[2J","duration":"{duration}"}}}}"#);
            let found = Description::parse(json.as_bytes()).unwrap();
            assert_eq!((found.format.as_str(), found.duration_ms), ("a2J", 0), "{duration}");
        }
        let many = format!(r#"{{"streams":[{}]}}"#, vec![r#"{"codec_type":"audio"}"#; 1000].join(","));
        assert_eq!(Description::parse(many.as_bytes()).unwrap().audio.len(), MEDIA_STREAMS_TOLD_MAX);
        let long = format!(r#"{{"format":{{"format_name":"{}"}}}}"#, "x".repeat(10_000));
        assert_eq!(Description::parse(long.as_bytes()).unwrap().format.len(), MEDIA_NAME_BYTES_MAX);
    }
}
