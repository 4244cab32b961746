// SPDX-License-Identifier: Apache-2.0
//! Converts sound and pictures that are posted to it, by the node's ffmpeg.
//!
//! `POST /probe` tells what the body holds. `POST /convert/FORMAT?width=320&text=hello` answers with the body in another
//! format (`webm`, `mp4`, `mpegts`, `mp3`, `wav`, `jpeg` or `png`), scaled and with a text over it if the query says so.
//! `POST /stream/FORMAT` does the same, and has the node send it while the body is still being converted.
//! `POST /ladder?widths=320,160` answers with the body as MPEG-TS in several widths, one behind the other, all from one
//! decoding ([`ladder`]).

mod ladder;

use netserv_server_sdk::http::{BodyError, Bounds, HttpModule, Request, Response};
use netserv_server_sdk::http_module;
use netserv_server_sdk::media::{self, AudioCodec, Corner, Error, Format, Job, Overlay, Settings, Source, VideoCodec};
use netserv_server_sdk::wasi::io::poll::{Pollable, poll};
use netserv_server_sdk::wasi::io::streams::{InputStream, OutputStream, StreamError};

const INPUT_BYTES_MAX: usize = 8 << 20;
const PIECE: u64 = 65_536;
/// For converted clips on their way.
const BOUNDS: Bounds = Bounds { idle_ms: 10_000, total_ms: 0, least_rate: 0 };

struct Converter;

impl HttpModule for Converter {
    fn handle(request: Request) -> Response {
        if request.method != "POST" {
            return Response::text(405, "post a clip to /probe or /convert/FORMAT\n");
        }
        let Ok(body) = request.body(INPUT_BYTES_MAX) else { return Response::text(413, "the clip is too long\n") };
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        match path.strip_prefix("/convert/").and_then(format) {
            Some((format, content_type)) => match convert(format, query, body) {
                Ok(response) => response.with("content-type", content_type),
                Err(error) => failed(&error),
            },
            None if path.starts_with("/stream/") => match path.strip_prefix("/stream/").and_then(format) {
                Some((format, content_type)) => match stream(format, query, body) {
                    Ok(response) => response.with("content-type", content_type),
                    Err(error) => failed(&error),
                },
                None => Response::text(404, "no such format\n"),
            },
            None if path == "/ladder" => ladder::answer(query, body).unwrap_or_else(|error| failed(&error)),
            None if path == "/probe" => media::probe(Source::Any, &body).map_or_else(|error| failed(&error), described),
            None => Response::text(404, "no such format\n"),
        }
    }
}

fn format(name: &str) -> Option<(Format, &'static str)> {
    Some(match name {
        "webm" => (Format::Webm, "video/webm"),
        "mp4" => (Format::FragmentedMp4, "video/mp4"),
        "mpegts" => (Format::Mpegts, "video/mp2t"),
        "mp3" => (Format::Mp3, "audio/mpeg"),
        "wav" => (Format::Wav, "audio/wav"),
        "jpeg" => (Format::Jpeg, "image/jpeg"),
        "png" => (Format::Png, "image/png"),
        _ => return None,
    })
}

fn described(found: media::Description) -> Response {
    let mut text = format!("{} {} ms\n", found.format, found.duration_ms);
    for one in found.video {
        text += &format!("video {} {}x{}\n", one.codec, one.width, one.height);
    }
    for one in found.audio {
        text += &format!("audio {} {} Hz, {} channels\n", one.codec, one.sample_rate, one.channels);
    }
    Response::text(200, text)
}

fn begin(format: Format, query: &str) -> Result<Job, Error> {
    let value = |name: &str| value(query, name);
    let text = value("text").map(|text| (Overlay::Text(text.replace('+', " ")), Corner::BottomLeft));
    media::transcode(&Settings {
        source: Source::Any,
        format,
        video: VideoCodec::Standard,
        audio: AudioCodec::Standard,
        width: value("width").and_then(|width| width.parse().ok()).unwrap_or(0),
        height: 0,
        video_bit_rate: 0,
        audio_bit_rate: 0,
        duration_ms: 0,
        overlay: text,
    })
}

/// The output is the node's to send; the instance goes on until the input is written.
fn stream(format: Format, query: &str, body: Vec<u8>) -> Result<Response, Error> {
    let job = begin(format, query)?;
    let mut input = Input::new(job.input()?, body);
    Ok(Response::stream(200, job.output()?, BOUNDS).then(move || {
        input.write();
        while input.stream.is_some() {
            input.wait(&[]);
            input.write();
        }
        drop(job);
    }))
}

fn convert(format: Format, query: &str, body: Vec<u8>) -> Result<Response, Error> {
    let job = begin(format, query)?;
    let mut pump = Pump { input: Input::new(job.input()?, body), output: job.output()? };
    // Until there is output, it can still be said that there is none.
    let first = pump.next();
    let Some(first) = first else { return Err(Job::finish(job).err().unwrap_or(Error::Failed("no output".into()))) };
    let (mut first, mut job) = (Some(first), Some(job));
    Ok(Response::chunks(200, move || {
        if let Some(bytes) = first.take().or_else(|| pump.next()) {
            return Ok(Some(bytes));
        }
        match job.take().map(Job::finish) {
            Some(Err(_)) => Err(BodyError::Broken),
            Some(Ok(())) | None => Ok(None),
        }
    }))
}

fn value<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

/// Writes input as there is room, and reads output as there is some.
struct Pump {
    input: Input,
    output: InputStream,
}

impl Pump {
    fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            self.input.write();
            match self.output.read(PIECE) {
                Ok(bytes) if bytes.is_empty() => {}
                Ok(bytes) => return Some(bytes),
                Err(StreamError::Closed | StreamError::LastOperationFailed(_)) => return None,
            }
            self.input.wait(&[&self.output]);
        }
    }
}

/// A clip on its way to a job.
struct Input {
    stream: Option<OutputStream>,
    body: Vec<u8>,
    written: usize,
}

impl Input {
    fn new(stream: OutputStream, body: Vec<u8>) -> Input {
        Input { stream: Some(stream), body, written: 0 }
    }

    /// Dropping the stream is the input's end; ffmpeg may have enough before.
    fn write(&mut self) {
        while let Some(stream) = &self.stream {
            let Ok(room) = stream.check_write() else { return self.stream = None };
            let rest = &self.body[self.written..];
            let piece = &rest[..rest.len().min(usize::try_from(room).unwrap_or(usize::MAX))];
            if rest.is_empty() || (!piece.is_empty() && stream.write(piece).is_err()) {
                return self.stream = None;
            }
            if piece.is_empty() {
                return;
            }
            self.written += piece.len();
        }
    }

    /// Waits for room, or for one of the outputs.
    fn wait(&self, outputs: &[&InputStream]) {
        let waiting: Vec<Pollable> = outputs.iter().map(|output| output.subscribe()).collect();
        let room = self.stream.as_ref().map(OutputStream::subscribe);
        poll(&waiting.iter().chain(&room).collect::<Vec<_>>());
    }
}

fn failed(error: &Error) -> Response {
    let (status, text) = match error {
        Error::Invalid(text) => (400, text.as_str()),
        Error::Failed(text) => (422, text.as_str()),
        Error::Limit(text) => (413, text.as_str()),
        Error::Busy => (503, "too many clips at a time"),
        Error::Unavailable(text) => (503, text.as_str()),
    };
    Response::text(status, format!("{text}\n"))
}

http_module!(Converter);
