// SPDX-License-Identifier: Apache-2.0
use super::*;

fn stream(text: &str) -> Request {
    match asked(text.as_bytes()) {
        Asked::Stream(request) => request,
        other @ (Asked::Incomplete | Asked::Other) => panic!("{other:?}: {text}"),
    }
}

#[test]
fn a_request_for_a_stream_goes_on_by_http_1_0_and_asks_for_titles() {
    let player = stream(
        "GET /live.mp3?a=1 HTTP/1.1\r\nHost: Radio.test:8000\r\nUser-Agent: mpg123\r\nConnection: keep-alive\r\nX-Any: thing\r\nRange: bytes=0-\r\n\r\n",
    );
    assert!(!player.wants_titles);
    let onward = "GET /live.mp3?a=1 HTTP/1.0\r\nHost: Radio.test:8000\r\nUser-Agent: mpg123\r\nIcy-MetaData: 1\r\nConnection: close\r\n\r\n";
    assert_eq!(String::from_utf8(player.onward).unwrap(), onward);
    let other = stream("GET /live.mp3?a=1 HTTP/1.0\nicy-metadata:1\nhost: radio.test:8000\n\n");
    assert!(other.wants_titles);
    assert_eq!(other.key, player.key, "it is for the same stream");
    let browser = stream("GET /live.mp3?a=1 HTTP/1.1\r\nHost: radio.test:8000\r\nUser-Agent: Mozilla/5.0\r\n\r\n");
    assert_ne!(browser.key, player.key);
}

#[test]
fn what_is_for_one_client_goes_on_as_it_is() {
    for text in [
        "POST / HTTP/1.1\r\n\r\n",
        "SOURCE /live.mp3 HTTP/1.0\r\n\r\n",
        "GET http://a/ HTTP/1.1\r\n\r\n",
        "GET / HTTP/2.0\r\n\r\n",
        "GET / b HTTP/1.1\r\n\r\n",
        "GET /\r\n\r\n",
        "GET / HTTP/1.1\r\nAuthorization: Basic x\r\n\r\n",
        "GET / HTTP/1.1\r\nCookie: a\r\n\r\n",
        "GET / HTTP/1.1\r\nRange: bytes=5-\r\n\r\n",
        "GET / HTTP/1.1\r\nContent-Length: 1\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\nand more",
        "GET / HTTP/1.1\r\nno header\r\n\r\n",
        "\u{16}\u{3}\u{1}",
    ] {
        assert_eq!(asked(text.as_bytes()), Asked::Other, "{text}");
    }
    assert_eq!(asked(b"GET /\xff HTTP/1.1\r\n\r\n"), Asked::Other);
    let whole = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    assert!((0..whole.len()).all(|length| asked(&whole[..length]) == Asked::Incomplete));
}

#[test]
fn heads_without_end_are_none() {
    let mut head = b"GET / HTTP/1.1\r\n".to_vec();
    head.resize(REQUEST_HEAD_BYTES_MAX - 1, b'a');
    assert_eq!(asked(&head), Asked::Incomplete);
    head.push(b'a');
    assert_eq!(asked(&head), Asked::Other);
    let mut head = b"HTTP/1.0 200 OK\r\n".to_vec();
    head.resize(ANSWER_HEAD_BYTES_MAX - 1, b'a');
    assert_eq!(answered(&head), Answered::Incomplete);
    head.push(b'a');
    assert_eq!(answered(&head), Answered::Other { has_titles: false });
}

#[test]
fn an_answer_is_a_stream_if_its_frames_are_known() {
    let check = |text: &str, interval: usize, media_type: &str| match answered(text.as_bytes()) {
        Answered::Stream(answer) => {
            assert_eq!((answer.interval, &*answer.media_type, answer.length), (interval, media_type, text.len()));
            String::from_utf8(answer.onward).unwrap()
        }
        other @ (Answered::Incomplete | Answered::Other { .. }) => panic!("{other:?}: {text}"),
    };
    let onward = check("ICY 200 OK\r\nicy-name:A\r\nicy-metaint:8192\r\n\r\n", 8192, "audio/mpeg");
    assert_eq!(onward, "ICY 200 OK\r\nicy-name:A\r\n");
    assert_eq!(
        head_for(onward.as_bytes(), Some(16_000)),
        b"ICY 200 OK\r\nicy-name:A\r\nicy-metaint: 16000\r\nConnection: close\r\n\r\n"
    );
    check("HTTP/1.1 200 OK\r\nContent-Type: audio/aacp; a=b\r\n\r\n", 0, "audio/aacp");
    // Its length is of no use.
    let onward = check(
        "HTTP/1.0 200 OK\r\nicy-br: 128\r\nContent-Type: audio/mpeg\r\nContent-Length: 10\r\n\r\n",
        0,
        "audio/mpeg",
    );
    assert!(!onward.contains("Length"));
}

#[test]
fn other_answers_are_for_one_client() {
    for (text, has_titles) in [
        ("HTTP/1.1 302 Found\r\nLocation: http://b/\r\nContent-Type: audio/mpeg\r\n\r\n", false),
        ("ICY 401 Service Unavailable\r\n\r\n", false),
        ("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", false),
        ("HTTP/1.1 200 OK\r\nContent-Type: audio/mpeg\r\nContent-Length: 4000\r\n\r\n", false),
        ("HTTP/1.1 200 OK\r\nContent-Type: audio/mpegurl\r\n\r\n", false),
        ("HTTP/1.1 200 OK\r\nContent-Type: audio/mpeg\r\nTransfer-Encoding: chunked\r\n\r\n", false),
        ("HTTP/1.1 200 OK\r\nContent-Type: application/ogg\r\nicy-metaint: 100\r\n\r\n", true),
        ("HTTP/1.1 200 OK\r\nContent-Type: audio/mpeg\r\nicy-metaint: -5\r\n\r\n", true),
        ("\u{0}\n\n", false),
    ] {
        assert_eq!(answered(text.as_bytes()), Answered::Other { has_titles }, "{text}");
    }
}
