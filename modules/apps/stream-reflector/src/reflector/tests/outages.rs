// SPDX-License-Identifier: Apache-2.0
use super::*;

/// Has a first listener and some seconds of a stream.
fn playing(at: &mut usize) -> Bench {
    let mut bench = Bench::new();
    bench.listen(1, "");
    bench.server(FIRST, HEAD);
    bench.play(FIRST, 0..380, at);
    bench.wait(250);
    bench
}

/// Goal: while a source is away listeners get what is kept, and stay; when it is back, they get what they lack, once.
#[test]
fn a_source_that_comes_back_goes_on_where_it_went_away() {
    let mut at = 0;
    let mut bench = playing(&mut at);
    bench.listen(2, "");
    let before = bench.node.body(2).len();
    bench.closed(FIRST);
    bench.wait(3000);
    assert!(bench.node.body(2).len() > before + 2 * 38 * MP3_BYTES, "it is fed from what is kept");
    bench.listen(3, "");
    assert!(!bench.node.to_client(3).is_empty(), "one that comes meanwhile, too");
    // The server answers that there is nothing, and then what it sent last once more.
    let second = bench.node.opened.last().unwrap().0;
    assert!(second > FIRST);
    bench.server(second, b"HTTP/1.0 404 Not Found\r\n\r\nno source");
    assert!(bench.node.closed.contains(&second));
    bench.wait(3000);
    let third = bench.node.opened.last().unwrap().0;
    bench.server(third, HEAD);
    let mut at = 0;
    bench.play(third, 350..500, &mut at);
    bench.wait(8000);
    bench.play(third, 500..600, &mut at);
    bench.wait(9000);
    assert_eq!((bench.node.count(Counter::Outages), bench.node.count(Counter::Continued)), (1, 1));
    for id in [1, 2, 3] {
        assert!(!bench.node.closed.contains(&id));
        let (body, all) = (bench.node.body(id), mp3s(0..599));
        assert!(all.ends_with(body), "{id}: not a frame is lost or comes twice");
    }
    assert_eq!(bench.node.body(1).len(), 599 * MP3_BYTES);
}

/// Goal: a source that begins anew goes on behind what was there, at a frame that needs none before it.
#[test]
fn a_source_that_begins_anew_goes_on_behind() {
    let mut at = 0;
    let mut bench = playing(&mut at);
    bench.reflector.end(&mut bench.node, 0, FIRST);
    bench.wait(500);
    let second = bench.node.opened.last().unwrap().0;
    bench.server(second, HEAD);
    // Its first frame begins in one before it.
    let mut frames = mp3s(1000..1100);
    frames[5] = 0x80;
    bench.server(second, &frames[..8000]);
    bench.server(second, &[0]);
    bench.server(second, &frames[8000..16_000]);
    bench.wait(2000);
    bench.server(second, &[0]);
    bench.server(second, &frames[16_000..24_000]);
    bench.wait(9000);
    let got = [mp3s(0..379), mp3s(1001..1057)].concat();
    assert!(bench.node.body(1) == got, "{} frames", bench.node.body(1).len() / MP3_BYTES);
}

#[test]
fn a_source_that_stays_away_ends_its_listeners() {
    let mut at = 0;
    let mut bench = playing(&mut at);
    bench.node.is_cut_off = true;
    bench.closed(FIRST);
    bench.wait(59_000);
    assert!(!bench.node.closed.contains(&1));
    bench.wait(2000);
    assert!(bench.node.closed.contains(&1) && bench.reflector.is_idle());
}

#[test]
fn a_source_that_says_nothing_is_asked_anew() {
    let mut at = 0;
    let mut bench = playing(&mut at);
    bench.wait(11_000);
    assert!(bench.node.closed.contains(&FIRST) && bench.node.opened.len() == 2);
    let second = bench.node.opened[1].0;
    bench.wait(11_000);
    assert!(bench.node.closed.contains(&second), "nor does it say anything");
}

/// Goal: a source that comes back with sound of another type ends its listeners, who get the new one when they come back.
#[test]
fn one_of_another_kind_is_no_way_to_go_on() {
    let mut at = 0;
    let mut bench = playing(&mut at);
    bench.closed(FIRST);
    bench.wait(500);
    let second = bench.node.opened.last().unwrap().0;
    bench.server(second, b"HTTP/1.0 200 OK\r\nContent-Type: audio/aac\r\n\r\n");
    assert!(bench.node.closed.contains(&second) && bench.node.closed.contains(&1) && bench.reflector.is_idle());
    bench.listen(2, "");
    let third = bench.node.opened.last().unwrap().0;
    bench.server(third, b"HTTP/1.0 200 OK\r\nContent-Type: audio/aac\r\n\r\n");
    bench.server(third, &(0..9).flat_map(|number| adts(300 + number, 0x21)).collect::<Vec<u8>>());
    bench.wait(250);
    assert!(String::from_utf8_lossy(bench.node.to_client(2)).to_lowercase().contains("content-type: audio/aac"));
}

/// Goal: a source that comes back as what the reflector cannot pass on ends its listeners as well: who asks again has what the server has then
/// (`github.com/karlheyes/icecast-kh/issues/331`).
#[test]
fn one_whose_kind_is_not_known_is_no_way_to_go_on() {
    for media_type in ["application/ogg", "audio/ogg", "audio/flac", "video/webm"] {
        let mut at = 0;
        let mut bench = playing(&mut at);
        bench.closed(FIRST);
        bench.wait(500);
        let second = bench.node.opened.last().unwrap().0;
        bench.server(second, format!("HTTP/1.0 200 OK\r\nContent-Type: {media_type}\r\n\r\nOggS").as_bytes());
        assert!(bench.node.closed.contains(&1) && bench.reflector.is_idle(), "{media_type}");
        bench.listen(2, "");
        let third = bench.node.opened.last().unwrap().0;
        let said = format!("HTTP/1.0 200 OK\r\nContent-Type: {media_type}\r\n\r\nOggS");
        bench.server(third, said.as_bytes());
        assert_eq!(bench.node.to_client(2), said.as_bytes());
    }
}

/// Goal: nor do listeners go on with sound of the same type whose frames are others: players stop at these, but begin anew with them.
#[test]
fn one_whose_frames_are_others_is_no_way_to_go_on() {
    // MPEG-2 of layer III: 22.05 kHz, and 44.1 kHz with one channel.
    let slower = [&[0xff, 0xf3, 0x80, 0][..], &[0; 204]].concat();
    let mono = [&[0xff, 0xfb, 0x90, 0xc4][..], &[0; MP3_BYTES - 4]].concat();
    for frame in [slower, mono] {
        for at_a_time in [1, 400] {
            let mut at = 0;
            let mut bench = playing(&mut at);
            bench.closed(FIRST);
            bench.wait(500);
            let second = bench.node.opened.last().unwrap().0;
            bench.server(second, b"HTTP/1.0 200 OK\r\nContent-Type: audio/mpeg\r\n\r\n");
            for _ in 0..3 {
                bench.server(second, &frame.repeat(at_a_time));
            }
            assert!(bench.node.closed.contains(&1) && bench.reflector.is_idle(), "{:x?}", &frame[..4]);
        }
    }
}

/// Goal: who comes when the source is back is told what its server says then, and not what it said at first.
#[test]
fn later_listeners_are_told_what_the_server_says_now() {
    let mut at = 0;
    let mut bench = playing(&mut at);
    bench.closed(FIRST);
    bench.wait(500);
    let second = bench.node.opened.last().unwrap().0;
    bench.server(second, b"HTTP/1.0 200 OK\r\nContent-Type: audio/mpeg\r\nicy-name: other\r\nicy-br: 64\r\n\r\n");
    bench.server(second, &mp3s(360..400));
    bench.listen(2, "Icy-MetaData: 1\r\n");
    let told = String::from_utf8_lossy(bench.node.to_client(2)).into_owned();
    assert!(told.contains("icy-name: other\r\nicy-br: 64\r\n"), "{told:.200}");
    assert!(!told.contains("icy-metaint"), "it has no titles: {told:.200}");
    assert!(!bench.node.closed.contains(&1), "who listens goes on");
}

/// Goal: what is live is asked for anew where the way may lead elsewhere by now, and no listener misses a frame or has one twice; a file is not.
#[test]
fn a_source_that_is_asked_for_anew_goes_on_where_it_was() {
    let mut at = 0;
    let mut bench = playing(&mut at);
    bench.listen(2, "");
    bench.reflector.reopen(&mut bench.node, bench.now_ms);
    assert!(bench.node.closed.contains(&FIRST) && !bench.node.closed.contains(&1) && !bench.node.closed.contains(&2));
    bench.wait(1000);
    let second = bench.node.opened.last().unwrap().0;
    assert!(second > FIRST);
    bench.server(second, HEAD);
    let mut at = 0;
    bench.play(second, 350..500, &mut at);
    bench.wait(8000);
    assert_eq!((bench.node.count(Counter::Outages), bench.node.count(Counter::Continued)), (1, 1));
    for id in [1, 2] {
        let (body, all) = (bench.node.body(id), mp3s(0..499));
        let is_part = (0..all.len()).step_by(MP3_BYTES).any(|at| all[at..].starts_with(body));
        assert!(is_part && body.len() > 300 * MP3_BYTES, "{id}: not a frame is lost or comes twice");
    }
    assert_eq!(bench.node.body(1).len(), 499 * MP3_BYTES);

    // Another reflector begins by ten seconds, of which it sends four at once.
    let mut at = 0;
    let mut bench = Bench::new();
    bench.listen(1, "");
    bench.server(FIRST, HEAD);
    bench.play(FIRST, 0..150, &mut at);
    for from in (150..600).step_by(2) {
        bench.play(FIRST, from..from + 2, &mut at);
        bench.wait(50);
    }
    bench.reflector.reopen(&mut bench.node, bench.now_ms);
    bench.wait(500);
    let second = bench.node.opened.last().unwrap().0;
    bench.server(second, HEAD);
    let mut at = 0;
    bench.play(second, 220..380, &mut at);
    for from in (380..640).step_by(2) {
        bench.play(second, from..from + 2, &mut at);
        bench.wait(50);
    }
    bench.wait(12_000);
    assert_eq!(bench.node.count(Counter::Continued), 1);
    assert!(mp3s(0..639).starts_with(bench.node.body(1)), "{}", bench.node.body(1).len() / MP3_BYTES);
    assert!(bench.node.body(1).len() > 630 * MP3_BYTES, "{}", bench.node.body(1).len() / MP3_BYTES);

    let mut bench = Bench::new();
    bench.listen(1, "");
    bench.server(FIRST, &[b"HTTP/1.0 200 OK\r\nContent-Type: audio/mpeg\r\n\r\n", mp3s(0..100).as_slice()].concat());
    bench.wait(250);
    bench.reflector.reopen(&mut bench.node, bench.now_ms);
    assert!(!bench.node.closed.contains(&FIRST));
}
