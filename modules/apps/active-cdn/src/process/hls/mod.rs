// SPDX-License-Identifier: Apache-2.0
//! A clip as a stream of segments in two qualities (RFC 8216), both from one decoding.
//!
//! `CLIP/hls.m3u8` names the two; each has a list, `CLIP/hls-high.m3u8` and `CLIP/hls-low.m3u8`, which grows while segments are
//! made. A segment's name has the digest of the clip's version, so that a list never leads to segments of another one.

mod making;
mod playlist;

use netserv_server_sdk::cache::{self, Opened, Reader};
use netserv_server_sdk::http::{self, Response};

use super::part::{Part, Quality};
use super::place::open;
use super::reason::{HEADER, Reason};
use super::result::Original;
use crate::answer::{sent, sent_bytes};
use making::Making;
use playlist::Lists;

/// Answers with a part of a stream.
pub fn answer(original: &Original<'_>, part: &Part, text: &str) -> Result<Response, Reason> {
    let digest = original.digest("hls", text);
    let quality = match part {
        Part::Segment(name) => return segment(original, name),
        Part::Master => None,
        Part::List(quality) => Some(*quality),
    };
    let (lists, making) = match open(&original.key_of(&digest))? {
        Opened::Reader(reader) => (read(&reader).ok_or(Reason::Failed)?, None),
        Opened::Writer(writer) => Making::begin(original, writer, &digest, text)?,
    };
    let name = quality.map_or("master", Quality::name);
    let mut head = original.head(&format!("{digest}-{name}"), Some("application/vnd.apple.mpegurl"));
    if !lists.is_whole && quality.is_some() {
        let grows = ["etag", "cache-control", "expires"];
        head.headers.retain(|(name, _)| !grows.iter().any(|own| name.eq_ignore_ascii_case(own)));
        head.headers.push(("cache-control".to_owned(), b"no-store".to_vec()));
    }
    let body = quality.map_or_else(playlist::master, |quality| lists.playlist(quality, &digest));
    let mut response = sent_bytes(original.site, body.as_bytes(), &head, original.status);
    let how = match (&making, lists.is_whole) {
        (Some(_), _) => "made",
        (None, false) => "joined",
        (None, true) => "hit",
    };
    response.headers.push((HEADER.to_owned(), format!("hls; {how}").into_bytes()));
    Ok(match making {
        None => response,
        Some(making) => response.then(move || making.run()),
    })
}

/// Answers in the place of a part of a clip's stream that there is not.
pub fn instead(clip: &str, part: &Part) -> Response {
    let response = match part {
        Part::Segment(_) => Response::text(404, "no such segment\n"),
        Part::Master | Part::List(_) => {
            Response::text(302, "the clip is not to be had as a stream\n").with("location", &from_below(clip))
        }
    };
    response.with("cache-control", "no-store")
}

/// Returns a reference to a clip from the parts of its stream, which are one level below. It names no host, whatever the clip's path
/// begins with.
fn from_below(clip: &str) -> String {
    let name = clip.rsplit_once('/').map_or(clip, |(_, name)| name);
    format!("../{name}")
}

fn segment(original: &Original<'_>, name: &str) -> Result<Response, Reason> {
    let reader = cache::get(&original.key_of(name)).ok().flatten().ok_or(Reason::Failed)?;
    let head = original.head(name, Some("video/mp2t"));
    let mut response = sent(original.site, &reader, &head, original.status);
    response.headers.push((HEADER.to_owned(), b"hls; hit".to_vec()));
    Ok(response)
}

fn read(reader: &Reader) -> Option<Lists> {
    let stream = reader.body(None).ok()?;
    let mut bytes = Vec::new();
    while let Some(piece) = http::read(&stream).ok()? {
        bytes.extend(piece);
    }
    Lists::decode(std::str::from_utf8(&bytes).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clip_is_at_the_same_host_whatever_its_path_is() {
        for (clip, reference) in [
            ("/videos/film.mp4", "../film.mp4"),
            ("//evil.example/film.mp4", "../film.mp4"),
            ("/\\evil.example/film.mp4", "../film.mp4"),
            ("//evil.example", "../evil.example"),
            ("/javascript:x.mp4", "../javascript:x.mp4"),
        ] {
            assert_eq!(from_below(clip), reference, "{clip}");
        }
    }
}
