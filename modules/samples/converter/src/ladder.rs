// SPDX-License-Identifier: Apache-2.0
//! One clip in several sizes, by a job with several outputs.

use netserv_server_sdk::http::Response;
use netserv_server_sdk::jobs::{self, Job, Order, Output, Segments};
use netserv_server_sdk::media::{AudioCodec, Error, Format, Source, VideoCodec};
use netserv_server_sdk::mpegts::Cutter;
use netserv_server_sdk::wasi::io::streams::{InputStream, StreamError};

use crate::{Input, PIECE, value};

/// How long segments are, so that who plays one size can go on with another.
const SEGMENT_MS: u32 = 500;

/// Answers with a clip from `start-ms` on in each of `widths`, grey if `grey` is there. The header `lengths` tells the bytes of
/// each, and `segments` how many parts each can be cut into.
pub fn answer(query: &str, body: Vec<u8>) -> Result<Response, Error> {
    let number = |name| value(query, name).and_then(|value| value.parse().ok()).unwrap_or(0);
    let widths = value(query, "widths").unwrap_or("320,160").split(',').map(|width| width.parse().unwrap_or(0));
    let output = |width| Output {
        format: Format::Mpegts,
        video: VideoCodec::H264,
        audio: AudioCodec::Standard,
        width,
        height: 0,
        video_bit_rate: 0,
        audio_bit_rate: 0,
        grey: value(query, "grey").is_some(),
        segments: Segments::Every(SEGMENT_MS),
        overlay: None,
    };
    let outputs: Vec<Output> = widths.map(output).collect();
    let places = 0..u32::try_from(outputs.len()).unwrap_or(u32::MAX);
    let order = Order { source: Source::Any, start_ms: number("start-ms"), duration_ms: 0, live: None, outputs };
    let job = jobs::begin(&order)?;
    let mut input = Input::new(job.input()?, body);
    let mut sizes = places.map(|place| Size::new(&job, place)).collect::<Result<Vec<_>, _>>()?;
    while sizes.iter().any(|size| size.stream.is_some()) {
        input.write();
        sizes.iter_mut().for_each(Size::read);
        let open: Vec<&InputStream> = sizes.iter().filter_map(|size| size.stream.as_ref()).collect();
        if !open.is_empty() {
            input.wait(&open);
        }
    }
    Job::finish(job)?;
    let listed = |of: fn(&Size) -> usize| {
        let numbers: Vec<String> = sizes.iter().map(|size| of(size).to_string()).collect();
        numbers.join(",")
    };
    let (lengths, segments) = (listed(|size| size.bytes.len()), listed(|size| size.segments));
    let bytes: Vec<u8> = sizes.into_iter().flat_map(|size| size.bytes).collect();
    Ok(Response::new(200, bytes)
        .with("content-type", "video/mp2t")
        .with("lengths", &lengths)
        .with("segments", &segments))
}

/// An output as it comes.
struct Size {
    stream: Option<InputStream>,
    cutter: Cutter,
    bytes: Vec<u8>,
    segments: usize,
}

impl Size {
    fn new(job: &Job, place: u32) -> Result<Size, Error> {
        let stream = Some(job.output(place)?);
        Ok(Size { stream, cutter: Cutter::new(), bytes: vec![], segments: 0 })
    }

    /// Reads what is there.
    fn read(&mut self) {
        while let Some(stream) = &self.stream {
            match stream.read(PIECE) {
                Ok(read) if read.is_empty() => return,
                Ok(read) => self.cutter.push(&read, |begins, packets| {
                    self.segments += usize::from(begins);
                    self.bytes.extend(packets);
                }),
                Err(StreamError::Closed | StreamError::LastOperationFailed(_)) => self.stream = None,
            }
        }
    }
}
