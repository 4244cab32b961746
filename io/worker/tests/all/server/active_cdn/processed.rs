// SPDX-License-Identifier: Apache-2.0
//! What is answered in the place of what cannot be made of an original.

use std::io::{Read as _, Write as _};
use std::time::Instant;

use super::super::connect;
use super::{CACHE_BYTES, Edge, LONG, Origin, body, header, kept, path_of, status};

/// Goal: where there is no stream of a clip, clients are sent to the clip, at the same host, and not to one that the clip's path begins with;
/// nobody gets a clip in the place of a playlist or a segment, also if it is none that is stored.
#[test]
fn who_wants_a_stream_gets_none_from_elsewhere_and_no_clip_in_its_place() {
    let origin = Origin::start(|request, stream| {
        let lines = "content-type: video/mp4\r\n";
        let answer = match path_of(request) {
            "/none.mp4" => "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned(),
            "/private.mp4" => kept(lines, "a clip").replace("max-age=600", "private"),
            _ => kept(lines, "a clip").replace("max-age=600", "max-age=600, no-transform"),
        };
        let _ = stream.write_all(answer.as_bytes());
    });
    let edge = Edge::start_with(origin.port, CACHE_BYTES, |spec| {
        *spec = spec.clone().property("process", "*.mp4 hls");
    });
    let segment = "hls-low-0-0123456789abcdef.ts";
    for (path, location) in [
        ("/a/film.mp4", "../film.mp4"),
        ("/private.mp4", "../private.mp4"),
        ("//evil.example/film.mp4", "../film.mp4"),
        ("/\\evil.example/film.mp4", "../film.mp4"),
    ] {
        for name in ["hls.m3u8", "hls-high.m3u8"] {
            let answer = edge.ask(&format!("{path}/{name}"), "");
            assert_eq!((status(&answer), header(&answer, "location")), (302, Some(location)), "{path}: {answer}");
            assert_eq!(header(&answer, "cache-control"), Some("no-store"), "{path}: {answer}");
        }
        let answer = edge.ask(&format!("{path}/{segment}"), "");
        assert!(status(&answer) == 404 && !body(&answer).contains("a clip"), "{path}: {answer}");
    }
    assert_eq!(status(&edge.ask("/none.mp4/hls.m3u8", "")), 404);
}

/// Goal: an original that is too long to be processed is answered as it comes, and not once all of it is there.
#[test]
fn what_is_too_long_is_not_waited_for() {
    let bytes = (16 << 20) + 1;
    let origin = Origin::start(move |request, stream| {
        let head = "HTTP/1.1 200 OK\r\ncache-control: max-age=600\r\ncontent-type: image/png\r\n";
        let (lines, sent) = match path_of(request) {
            "/length" => (format!("content-length: {bytes}\r\n\r\n"), 1000),
            _ => (format!("transfer-encoding: chunked\r\n\r\n{:x}\r\n", 2 * bytes), bytes + 100_000),
        };
        let _ = stream.write_all(format!("{head}{lines}").as_bytes());
        let _ = stream.write_all(&vec![b'a'; sent]);
        // The rest does not come until the other side gives up.
        let _ = stream.read(&mut [0]);
    });
    let edge = Edge::start_with(origin.port, CACHE_BYTES, |spec| {
        *spec = spec.clone().property("process", "* overlay").property("overlay", "here");
    });
    for path in ["/length", "/chunks"] {
        let begun = Instant::now();
        let mut stream = connect(edge.port());
        stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: edge.test\r\n\r\n").as_bytes()).unwrap();
        let mut begin = vec![0; 1200];
        stream.read_exact(&mut begin).unwrap();
        let begin = String::from_utf8_lossy(&begin);
        assert_eq!(header(&begin, "netserv-process"), Some("original; too-long"), "{begin}");
        assert!(begun.elapsed() < LONG, "{path}: {:?}", begun.elapsed());
    }
}
