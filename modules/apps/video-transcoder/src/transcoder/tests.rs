// SPDX-License-Identifier: Apache-2.0
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::*;
use crate::limits::{KEPT_BYTES_MAX, RETRY_MS_MAX, SILENT_MS_MAX, UNMARKED_MS, WAITING_BYTES_MAX};
use crate::testing::{FIRST_OPENED, Node, clocked, packet};

#[test]
fn many_who_want_the_same_have_one_job_and_one_connection() {
    let mut all = All::with(&[]);
    (1..=5).for_each(|id| all.watch(id, "viewer=a"));
    all.live();
    assert_eq!((all.node.jobs.len(), all.node.opened.len()), (1, 1));
    all.picture();
    assert!((1..=5).all(|id| all.node.pictures(id, USUAL) == 1), "{}", all.node.to_client(1));
    // Who comes later has a picture at once.
    all.watch(6, "");
    assert_eq!(all.node.pictures(6, USUAL), 1);
    (1..=6).for_each(|id| all.of(|of, node, now| of.closed(node, now, id)));
    all.pass(LINGER_MS + 2 * 40);
    assert!(all.transcoder.is_idle() && all.node.jobs.is_empty() && all.node.closed.contains(&FIRST_OPENED));
}

#[test]
fn the_quality_changes_in_mid_stream_without_a_gap() {
    let mut all = All::with(&[]);
    all.watch(1, "viewer=a");
    all.live();
    all.picture();
    assert_eq!(all.post(2, "viewer=a&colours=grey"), (200, GREY.to_owned()));
    assert_eq!(all.node.jobs.len(), 2);
    // Until the other has one, it gets those of before.
    let other = |node: &mut Node| node.jobs.values_mut().for_each(|work| work.runs = work.quality.to_string() == USUAL);
    other(&mut all.node);
    all.picture();
    assert_eq!((all.node.pictures(1, USUAL), all.node.pictures(1, GREY)), (2, 0));
    all.node.jobs.values_mut().for_each(|work| work.runs = true);
    all.picture();
    all.picture();
    assert_eq!(all.node.pictures(1, GREY), 2);
    assert!(all.node.pictures(1, USUAL) <= 3, "one that came with the first of the others");
    assert_eq!(all.node.counter(Counter::Changed), 1);
    all.pass(LINGER_MS + 2 * 40);
    assert_eq!(all.node.jobs.len(), 1);
}

#[test]
fn with_a_place_for_one_job_the_other_ends_for_it() {
    let mut all = All::with(&[]);
    all.node.places = 1;
    all.watch(1, "viewer=a");
    all.live();
    all.picture();
    all.post(2, "viewer=a&colours=grey");
    all.pass(TURN_MS + 3 * 40);
    all.picture();
    assert_eq!((all.node.jobs.len(), all.node.pictures(1, GREY)), (1, 1));
    // One that is watched does not.
    all.watch(3, "viewer=b&colours=full");
    all.pass(2 * TURN_MS);
    all.picture();
    assert_eq!((all.node.pictures(1, GREY), all.node.pictures(3, USUAL)), (2, 0));
}

/// Goal: whoever comes later takes the place of nobody: not after an outage, nor when a viewer changes over.
#[test]
fn a_place_for_one_job_stays_with_those_who_had_it() {
    let mut all = All::with(&[]);
    all.node.places = 1;
    all.watch(1, "viewer=a");
    all.live();
    all.picture();
    // Of the two it comes first in each order but that of their coming.
    all.watch(2, "viewer=b&size=80x60&rate=1");
    all.keep_live(2 * TURN_MS);
    let first = all.node.opened[0];
    all.of(|of, node, now| of.closed(node, now, first));
    all.pass(400);
    all.live();
    all.picture();
    assert_eq!((all.node.pictures(1, USUAL), all.node.pictures(2, "size=80x60")), (2, 0));
    all.post(3, "viewer=a&colours=grey");
    all.keep_live(TURN_MS + 4 * 40);
    all.picture();
    assert_eq!((all.node.pictures(1, GREY), all.node.pictures(2, "size=80x60")), (1, 0));
    // Also if it changes its mind before it has seen any of the other.
    all.post(3, "viewer=a&colours=palette");
    all.post(3, "viewer=a&colours=grey&rate=1");
    all.keep_live(TURN_MS + 2 * BEGIN_MS);
    all.picture();
    assert_eq!((all.node.pictures(1, "rate=1&"), all.node.pictures(2, "size=80x60")), (1, 0));
    all.of(|of, node, now| of.closed(node, now, 1));
    all.keep_live(TURN_MS + 2 * BEGIN_MS);
    all.picture();
    assert_eq!(all.node.pictures(2, "size=80x60"), 1, "its turn has come");
}

#[test]
fn jobs_begin_no_faster_than_the_node_can_take() {
    let mut all = All::with(&[("qualities", "4")]);
    all.watch(1, "viewer=a");
    all.live();
    let rates = [1, 2, 5, 10, 15, 25];
    for round in 0..100 {
        all.post(2, &format!("viewer=a&colours=grey&rate={}", rates[round % 6]));
        all.keep_live(80);
    }
    let begun = all.node.counter(Counter::Jobs);
    let most = u64::from(BEGINS_MAX) + all.now_ms / BEGIN_MS;
    assert!((4..=most).contains(&begun), "{begun} in {} ms", all.now_ms);
    all.post(2, "viewer=a&colours=palette");
    all.keep_live(2 * BEGIN_MS);
    all.picture();
    assert_eq!(all.node.pictures(1, "colours=palette"), 1);
}

#[test]
fn qualities_and_viewers_are_bounded() {
    let mut all = All::with(&[("viewers", "3")]);
    all.watch(1, "viewer=a");
    all.watch(2, "viewer=b&rate=1");
    all.watch(3, "rate=2");
    assert!(all.node.to_client(3).starts_with("HTTP/1.1 503 ") && all.node.to_client(3).contains("rate=1&"));
    assert_eq!(all.post(4, "viewer=a&rate=5").0, 200, "its own quality ends for it");
    all.watch(5, "viewer=b&rate=1");
    assert_eq!(all.post(6, "viewer=b&rate=10").0, 200, "both of that name change over");
    all.watch(7, "rate=5");
    assert!(all.node.to_client(7).contains("as many watch as may"));
    assert_eq!(all.node.counter(Counter::Refused), 2);
    for (query, status) in [("viewer=x&rate=1", 404), ("rate=1", 400), ("viewer=a&rate=3", 400), ("viewer=a-b", 400)] {
        assert_eq!(all.post(8, query).0, status, "{query}");
    }
    let long = format!("viewer={}", "a".repeat(NAME_BYTES_MAX + 1));
    assert_eq!(all.post(9, &long).0, 400);
}

#[test]
fn jobs_that_are_left_behind_are_bounded() {
    let mut all = All::with(&[("qualities", "4")]);
    for (id, colours) in (1..=4).zip(["full", "grey", "palette", "grey&rate=1"]) {
        all.watch(id, &format!("viewer=v{id}&colours={colours}"));
    }
    all.live();
    all.picture();
    for round in [1, 2, 5, 10, 15, 25, 1, 2, 5] {
        for id in 1..=4 {
            all.post(100 + id, &format!("viewer=v{id}&rate={round}&size=80x60"));
        }
        assert!(all.node.jobs.len() <= JOBS_MAX, "{}", all.node.jobs.len());
    }
    all.pass(LINGER_MS * 3);
    all.picture();
    all.pass(LINGER_MS * 3);
    assert!(all.node.jobs.len() <= 4, "{}", all.node.jobs.len());
    assert!((1..=4).all(|id| all.node.to_client(id).contains("size=80x60&rate=5")));
}

#[test]
fn a_control_message_changes_it_for_those_who_chose_nothing() {
    let mut all = All::with(&[]);
    all.watch(1, "viewer=a");
    all.watch(2, "viewer=b&rate=10");
    all.live();
    let told = all.of(|of, node, now| of.told(node, now, "quality", "colours=grey"));
    assert_eq!(told.unwrap().to_string(), GREY);
    all.pass(80);
    all.picture();
    assert_eq!([all.node.pictures(1, GREY), all.node.pictures(2, GREY), all.node.pictures(2, USUAL)], [1, 0, 1]);
    let refused = all.of(|of, node, now| of.told(node, now, "quality", "colours=red"));
    assert!(refused.unwrap_err().contains("no such colours"));
    assert!(all.of(|of, node, now| of.told(node, now, "x", "")).is_err());
    all.watch(3, "");
    all.picture();
    assert!(all.node.pictures(3, GREY) > 0);
}

#[test]
fn who_takes_nothing_misses_pictures_and_is_cut_alone() {
    let mut all = All::with(&[]);
    all.watch(1, "");
    all.watch(2, "");
    all.live();
    all.node.queued.insert(1, 1);
    all.picture();
    all.node.queued.insert(1, QUEUED_BYTES_MAX);
    all.picture();
    assert_eq!((all.node.pictures(1, USUAL), all.node.pictures(2, USUAL)), (1, 2));
    all.node.queued.insert(1, 0);
    all.picture();
    assert_eq!((all.node.pictures(1, USUAL), all.node.counter(Counter::Skipped)), (2, 1));
    all.node.queued.insert(1, QUEUED_BYTES_MAX);
    for _ in 0..300 {
        all.picture();
        all.keep_live(40);
    }
    assert!(all.node.closed.contains(&1) && !all.node.closed.contains(&2));
    assert_eq!(all.node.counter(Counter::Cut), 1);
    assert_eq!(all.node.pictures(2, USUAL), 303);
}

#[test]
fn a_source_that_goes_away_is_asked_again_and_after_a_while_viewers_are_let_go() {
    let mut all = All::with(&[("outage-ms", "20000")]);
    all.watch(1, "");
    all.live();
    all.picture();
    let first = all.node.opened[0];
    all.of(|of, node, now| of.closed(node, now, first));
    all.pass(40);
    assert!(all.node.jobs.is_empty(), "there is nothing to make");
    all.pass(300);
    assert_eq!(all.node.opened.len(), 2);
    all.live();
    all.picture();
    assert_eq!(all.node.pictures(1, USUAL), 2);
    // One that goes away each time is asked less and less often.
    let mut asked = 0;
    for _ in 0..600 {
        let last = *all.node.opened.last().unwrap();
        all.of(|of, node, now| of.closed(node, now, last));
        all.pass(40);
        asked = all.node.opened.len();
    }
    assert!(asked <= 12, "{asked} times in 24 s");
    assert!(all.node.closed.contains(&1));
    all.pass(RETRY_MS_MAX * 2);
    assert!(all.transcoder.is_idle());
    assert_eq!(all.node.opened.len(), asked);
}

/// Goal: viewers of a camera that is off are let go, also where its server says `200` and nothing else.
#[test]
fn an_outage_that_answers_is_one() {
    let mut all = All::with(&[("outage-ms", "20000")]);
    all.watch(1, "");
    all.live();
    all.picture();
    for _ in 0..600 {
        let last = *all.node.opened.last().unwrap();
        all.of(|of, node, now| of.closed(node, now, last));
        all.pass(40);
        let last = *all.node.opened.last().unwrap();
        all.of(|of, node, now| of.data(node, now, last, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno"));
    }
    assert!(all.node.closed.contains(&1));
    assert_eq!(all.node.counter(Counter::Outages), 1);
}

/// Goal: a stream that says nowhere where a picture can be begun with reaches its job all the same.
#[test]
fn a_stream_without_marks_is_made_pictures_of() {
    let mut all = All::with(&[]);
    all.watch(1, "");
    all.live();
    all.keep_live(UNMARKED_MS - 400);
    assert!(all.node.jobs.values().all(|work| work.input.is_empty()), "it may still say so");
    all.keep_live(1000);
    assert!(all.node.jobs.values().all(|work| !work.input.is_empty()) && !all.node.jobs.is_empty());
}

/// Goal: who takes what it was sent is not cut in the silence behind that.
#[test]
fn a_viewer_is_not_cut_when_there_is_nothing_to_take() {
    let mut all = All::with(&[("outage-ms", "60000")]);
    all.watch(1, "");
    all.live();
    all.picture();
    all.node.queued.insert(1, 1 << 20);
    all.picture();
    all.node.queued.insert(1, 0);
    all.pass(15_000);
    assert!(!all.node.closed.contains(&1));
}

#[test]
fn sources_of_no_use_are_given_up() {
    let endless = format!("HTTP/1.1 200 OK\r\nx: {}", "a".repeat(20_000));
    let nothing = format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(2 << 20));
    let gif = format!("HTTP/1.1 200 OK\r\n\r\n{}", "GIF89a".repeat(200_000));
    for answer in
        ["HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n", "HTTP/1.1 500 No\r\n\r\n", "x\r\n\r\n", &endless, &nothing, &gif]
    {
        let mut all = All::with(&[]);
        all.watch(1, "");
        let source = all.node.opened[0];
        for piece in answer.as_bytes().chunks(64 * 1024) {
            all.of(|of, node, now| of.data(node, now, source, piece));
        }
        assert!(all.node.closed.contains(&source), "{answer:.40}");
        assert_eq!((all.node.counter(Counter::Bad), all.node.jobs.len()), (1, 0));
        all.pass(300);
        assert_eq!(all.node.opened.len(), 2, "it may have come to its senses");
    }
    let mut all = All::with(&[]);
    all.watch(1, "");
    all.pass(SILENT_MS_MAX - 40);
    assert_eq!(all.node.opened.len(), 1);
    all.pass(500);
    assert_eq!(all.node.opened.len(), 2, "it said nothing");
    all.node.is_cut_off = true;
    all.pass(60_000);
    assert_eq!(all.node.opened.len(), 2);
}

#[test]
fn a_source_with_a_length_that_is_wrong_ends_there() {
    let mut all = All::with(&[]);
    all.watch(1, "");
    let source = all.node.opened[0];
    let body = [clocked(0), packet(1), packet(2)].concat();
    let answer = [b"HTTP/1.1 200 OK\r\nContent-Length: 376\r\n\r\n", body.as_slice()].concat();
    all.of(|of, node, now| of.data(node, now, source, &answer));
    all.pass(80);
    assert!(all.node.closed.contains(&source) && all.node.counter(Counter::Bad) == 0);
    all.pass(300);
    assert_eq!(all.node.opened.len(), 2);
}

#[test]
fn a_source_that_is_too_fast_is_read_in_its_time() {
    let mut all = All::with(&[]);
    all.watch(1, "");
    let source = all.node.opened[0];
    all.of(|of, node, now| of.data(node, now, source, b"HTTP/1.1 200 OK\r\n\r\n"));
    all.pass(80);
    let mut clock_ms = 0;
    let mut fed = 0;
    for _ in 0..100 {
        while !all.node.paused.contains(&source) {
            let burst: Vec<u8> = (0..20).flat_map(|n| [clocked(clock_ms + 10 * n), packet(1)].concat()).collect();
            clock_ms += 200;
            fed += burst.len();
            all.of(|of, node, now| of.data(node, now, source, &burst));
        }
        all.pass(40);
    }
    // 4 s of it went on: a packet with a clock and another one each 10 ms. What comes is bounded.
    let missing = all.node.counter(Counter::Missed);
    assert!(fed <= 4_100 * 2 * 188 / 10 + crate::limits::EARLY_BYTES_MAX + 20 * 376 && missing == 0, "{fed}");
}

#[test]
fn a_job_that_is_too_slow_misses_some_and_one_that_fails_is_begun_again() {
    let mut all = All::with(&[]);
    all.watch(1, "");
    all.live();
    all.pass(80);
    let (job, work) = all.node.jobs.iter_mut().next().unwrap();
    let job = *job;
    // It takes a part of a packet, and no more.
    work.room = 100;
    all.of(|of, node, _| {
        let feed = of.feeds.first_mut().unwrap();
        feed.push(node, true, &packet(6).into());
        for _ in 0..3 * WAITING_BYTES_MAX / 18_800 {
            feed.push(node, false, &packet(7).repeat(100).into());
        }
        feed.push(node, true, &packet(8).into());
    });
    assert!(all.node.counter(Counter::Missed) == 1);
    all.node.jobs.get_mut(&job).unwrap().room = usize::MAX;
    all.pass(40);
    let input = all.node.jobs[&job].input.len();
    assert!(input.is_multiple_of(188) && input <= WAITING_BYTES_MAX + KEPT_BYTES_MAX, "{input}");
    assert!(all.node.jobs[&job].input.chunks(188).all(|packet| packet[0] == 0x47), "packets go whole");
    all.node.jobs.get_mut(&job).unwrap().ended = Some("broken".to_owned());
    all.keep_live(80);
    assert!(all.node.jobs.is_empty());
    all.keep_live(1_000);
    assert_eq!((all.node.jobs.len(), all.node.counter(Counter::Failed)), (1, 1));
    // One that gives no pictures has failed, too.
    all.node.jobs.get_mut(&job).unwrap().output.extend(b"GIF89a");
    all.keep_live(80);
    assert_eq!(all.node.counter(Counter::Failed), 2);
    for _ in 0..3_000 {
        if let Some(work) = all.node.jobs.values_mut().next() {
            work.ended = Some("again".to_owned());
        }
        all.keep_live(40);
    }
    let failed = all.node.counter(Counter::Failed);
    assert!((10..30).contains(&failed), "{failed} times in 120 s");
}

#[test]
fn clients_are_bounded_and_have_their_time() {
    let mut all = All::with(&[]);
    // Those who say nothing give way to those who come later.
    for id in 0..CLIENTS_MAX as u64 + 1 {
        all.of(|of, node, now| of.connect(node, now, id));
    }
    assert!(all.node.closed.contains(&0) && all.node.closed.len() == 1 && all.transcoder.clients.len() == CLIENTS_MAX);
    all.of(|of, node, now| of.data(node, now, 1, &vec![b'a'; REQUEST_HEAD_BYTES_MAX * 3]));
    assert!(all.node.to_client(1).starts_with("HTTP/1.1 431 "));
    all.of(|of, node, now| of.data(node, now, 2, b"GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n"));
    assert_eq!(all.node.to_client(2).matches("HTTP/1.1 200 OK").count(), 1);
    all.of(|of, node, now| of.data(node, now, 3, b"PUT / HTTP/1.1\r\n\r\n"));
    assert!(all.node.to_client(3).starts_with("HTTP/1.1 405 "));
    all.pass(REQUEST_MS_MAX + 80);
    assert_eq!(all.node.closed.len(), CLIENTS_MAX + 1);
    assert!(all.transcoder.clients.is_empty());
}

#[test]
fn without_a_source_it_is_said_why() {
    let mut all =
        All { transcoder: Transcoder::new(Settings::read(|_| None)), node: Node::with(9), now_ms: 0, clock_ms: 0 };
    all.watch(1, "");
    assert!(all.node.to_client(1).contains("the source begins with http://") && all.node.closed.contains(&1));
}

const USUAL: &str = "size=160x120&rate=10&colours=full&coarseness=8";
const GREY: &str = "size=160x120&rate=10&colours=grey&coarseness=8";

struct All {
    transcoder: Transcoder,
    node: Node,
    now_ms: u64,
    clock_ms: u64,
}

impl All {
    fn with(properties: &[(&str, &str)]) -> All {
        let of = |name: &str| {
            let given = properties.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
            given.or_else(|| (name == "source").then(|| "http://192.0.2.7/live.ts".to_owned()))
        };
        All { transcoder: Transcoder::new(Settings::read(of)), node: Node::with(9), now_ms: 0, clock_ms: 0 }
    }

    fn of<T>(&mut self, run: impl FnOnce(&mut Transcoder, &mut Node, u64) -> T) -> T {
        run(&mut self.transcoder, &mut self.node, self.now_ms)
    }

    fn watch(&mut self, id: Connection, query: &str) {
        self.of(|of, node, now| of.connect(node, now, id));
        let request = format!("GET /video?{query} HTTP/1.1\r\nHost: a\r\n\r\n");
        self.of(|of, node, now| of.data(node, now, id, request.as_bytes()));
    }

    fn post(&mut self, id: Connection, query: &str) -> (u16, String) {
        self.node.closed.remove(&id);
        self.node.sent.remove(&(id, false));
        self.of(|of, node, now| of.connect(node, now, id));
        let request = format!("POST /quality?{query} HTTP/1.1\r\nHost: a\r\n\r\n");
        self.of(|of, node, now| of.data(node, now, id, request.as_bytes()));
        let said = self.node.to_client(id);
        let status = said.split(' ').nth(1).unwrap().parse().unwrap();
        (status, said.split("\r\n\r\n").nth(1).unwrap().trim().to_owned())
    }

    /// The source answers, and sends something; jobs begin.
    fn live(&mut self) {
        let source = *self.node.opened.last().unwrap();
        self.of(|of, node, now| of.data(node, now, source, b"HTTP/1.1 200 OK\r\n\r\n"));
        self.keep_live(80);
    }

    /// Time passes, and the source goes on.
    fn keep_live(&mut self, ms: u64) {
        for _ in 0..ms / 40 {
            self.clock_ms += 40;
            let (source, bytes) = (*self.node.opened.last().unwrap(), clocked(self.clock_ms));
            self.of(|of, node, now| of.data(node, now, source, &bytes));
            self.pass(40);
        }
    }

    /// Each job that runs gives a picture, and viewers get it.
    fn picture(&mut self) {
        self.node.picture();
        self.of(|of, node, now| of.ready(node, now));
    }

    fn pass(&mut self, ms: u64) {
        for _ in 0..ms.div_ceil(40) {
            self.now_ms += 40;
            self.of(|of, node, now| of.tick(node, now));
        }
    }
}
