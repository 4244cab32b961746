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
        "GET /live.mp3?a=1 HTTP/1.1\r\nHost: Radio.test:8000\r\nUser-Agent: mpg123\r\nConnection: keep-alive\r\nAccept-Encoding: identity\r\nRange: bytes=0-\r\n\r\n",
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
        "GET / HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        "GET / HTTP/1.1\r\nConnection: keep-alive, X-Key\r\n\r\n",
        "GET / HTTP/1.1\r\nX-Api-Key: k\r\n\r\n",
        "GET / HTTP/1.1\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n",
        "GET / HTTP/1.1\r\nIf-None-Match: x\r\n\r\n",
        "GET / HTTP/1.1\r\nAccept: text/html\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
        "GET / HTTP/1.1\r\nUser-Agent: a\rHost: b\r\n\r\n",
        "GET /\rb HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nReferer: a\0b\r\n\r\n",
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
    let lines = |count: usize| -> String { (0..count).map(|number| format!("sec-ch-ua-{number}: a\r\n")).collect() };
    stream(&format!("GET / HTTP/1.1\r\n{}\r\n", lines(REQUEST_LINES_MAX)));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", lines(REQUEST_LINES_MAX + 1));
    assert_eq!(asked(many.as_bytes()), Asked::Other);
    let mut head = b"HTTP/1.0 200 OK\r\n".to_vec();
    head.resize(ANSWER_HEAD_BYTES_MAX - 1, b'a');
    assert_eq!(answered(&head, false), Answered::Incomplete);
    head.push(b'a');
    assert_eq!(answered(&head, false), Answered::Other { has_titles: false, is_media: false });
}

#[test]
fn an_answer_is_a_stream_if_its_frames_are_known() {
    let check = |text: &str, interval: usize, media_type: &str| match answered(text.as_bytes(), false) {
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
        ("HTTP/1.1 200 OK\r\nContent-Type: audio/mpeg\r\nLast-Modified: Thu, 26 Nov 2026 10:00:00 GMT\r\n\r\n", false),
        ("HTTP/1.1 200 OK\r\nContent-Type: audio/mpeg\r\nETag: \"x\"\r\n\r\n", false),
        ("HTTP/1.1 200 OK\r\nContent-Type: audio/mpeg\r\nAccept-Ranges: bytes\r\n\r\n", false),
        ("HTTP/1.1 200 OK\r\nContent-Type: audio/mpeg\r\nicy-name: a\r\nVary: Origin, X-Token\r\n\r\n", false),
        ("HTTP/1.1 200 OK\r\nContent-Type: audio/mpeg\r\nVary: *\r\n\r\n", false),
        ("HTTP/1.1 200 OK\r\nContent-Type: audio/mpeg\r\nContent-Length: 4000\r\n\r\n", false),
        ("HTTP/1.1 200 OK\r\nContent-Type: audio/mpegurl\r\n\r\n", false),
        ("HTTP/1.1 200 OK\r\nContent-Type: audio/mpeg\r\nTransfer-Encoding: chunked\r\n\r\n", false),
        ("HTTP/1.1 200 OK\r\nContent-Type: application/ogg\r\nicy-metaint: 100\r\n\r\n", true),
        ("HTTP/1.1 200 OK\r\nContent-Type: audio/mpeg\r\nicy-metaint: -5\r\n\r\n", true),
        ("\u{0}\n\n", false),
    ] {
        let is_media = text.contains(" 200 OK\r\nContent-Type: a");
        assert_eq!(answered(text.as_bytes(), false), Answered::Other { has_titles, is_media }, "{text}");
    }
}

/// Goal: two requests are for the same stream only if no server could tell them apart by a line that goes on to it, but for the player's name.
#[test]
fn keys_tell_apart_what_servers_may() {
    let key = |lines: &str| stream(&format!("GET /live HTTP/1.1\r\n{lines}\r\n")).key;
    let keys = [
        key(""),
        key("Host: a\r\n"),
        key("Host: b\r\n"),
        key("Host: a\r\nOrigin: http://a\r\n"),
        key("Host: a\r\nReferer: http://a\r\n"),
        key("Host: a\r\nReferer: http://b\r\n"),
        key("Host: a\r\nReferer:\r\n"),
        key("Host: a\r\nUser-Agent: Mozilla/5.0\r\n"),
    ];
    let all: std::collections::BTreeSet<&String> = keys.iter().collect();
    assert_eq!(all.len(), keys.len());
    let same = "host: A\r\nDNT: 1\r\nSec-Fetch-Mode: no-cors\r\nX-Playback-Session-Id: 7\r\nUser-Agent: vlc\r\n";
    assert_eq!(key(same), key("Host: a\r\n"));
}

/// Goal: what a server says to the first listener goes to others only as far as it is about the stream, and no byte of that is changed.
#[test]
fn lines_for_one_client_come_to_nobody() {
    let answer = b"HTTP/1.1 200 OK\r\nSet-Cookie: id=1\r\nAccess-Control-Allow-Origin: http://a\r\nDate: now\r\n\
        X-Request-Id: 7\r\nicy-name: Radio M\xfcnchen\r\nicy-metaint: 8192\r\nServer: Icecast\r\nCache-Control: no-cache\r\n\
        Content-Type: audio/mpeg\r\n\r\n";
    let onward = |has_origin| match answered(answer, has_origin) {
        Answered::Stream(answer) => answer.onward,
        other @ (Answered::Incomplete | Answered::Other { .. }) => panic!("{other:?}"),
    };
    let shared =
        b"icy-name: Radio M\xfcnchen\r\nServer: Icecast\r\nCache-Control: no-cache\r\nContent-Type: audio/mpeg\r\n";
    assert_eq!(onward(false), [b"HTTP/1.1 200 OK\r\n", &shared[..]].concat());
    let allowed = b"HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: http://a\r\n";
    assert_eq!(onward(true), [&allowed[..], shared].concat(), "all who listen named the same");
}

#[test]
fn an_answer_with_too_much_to_say_is_for_one_client() {
    let answer = |length: usize| format!("ICY 200 OK\r\nicy-name: {}\r\n\r\n", "a".repeat(length));
    let most = SHARED_HEAD_BYTES_MAX - "ICY 200 OK\r\nicy-name: \r\n".len();
    assert!(matches!(answered(answer(most).as_bytes(), false), Answered::Stream(_)));
    let too_much = Answered::Other { has_titles: false, is_media: true };
    assert_eq!(answered(answer(most + 1).as_bytes(), false), too_much);
}
