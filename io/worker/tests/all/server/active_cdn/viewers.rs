// SPDX-License-Identifier: Apache-2.0
//! Pages that the origin makes for each viewer.

use std::io::Write as _;
use std::thread;
use std::time::Duration;

use super::super::talk;
use super::{Edge, Origin, header, path_of};

/// How a viewer says who it is; the last one does not.
const VIEWERS: [(&str, &str); 5] = [
    ("alice", "cookie: who=alice\r\n"),
    ("bob", "cookie: who=bob\r\n"),
    ("carol", "authorization: Bearer carol\r\n"),
    ("dave", "authorization: Bearer dave\r\n"),
    ("none", ""),
];
const NAMED: &str = "alice";
/// What answers say of how long they are fresh, and for how many seconds a shared cache takes them to be.
const CONTROLS: [(&str, u64); 22] = [
    ("", 0),
    ("cache-control: max-age=0\r\n", 0),
    ("cache-control: public, max-age=0\r\n", 0),
    ("cache-control: max-age=0, must-revalidate\r\n", 0),
    ("cache-control: s-maxage=0, must-revalidate\r\n", 0),
    ("cache-control: max-age=60, s-maxage=0\r\n", 0),
    ("cache-control: no-cache, max-age=60\r\n", 0),
    ("cache-control: private, max-age=60\r\n", 0),
    ("cache-control: max-age=60\r\ncache-control: private\r\n", 0),
    ("cache-control: no-store\r\n", 0),
    ("cache-control: max-age=0, stale-while-revalidate=60, stale-if-error=60\r\n", 0),
    ("expires: 0\r\n", 0),
    ("expires: Thu, 01 Jan 2015 00:00:00 GMT\r\n", 0),
    ("cache-control: max-age=60\r\n", 60),
    ("cache-control: public, max-age=60\r\n", 60),
    ("cache-control: s-maxage=60\r\n", 60),
    ("expires: Fri, 01 Jan 2100 00:00:00 GMT\r\n", u64::MAX),
    ("cdn-cache-control: max-age=60\r\n", 60),
    ("surrogate-control: max-age=60\r\n", 60),
    ("cache-control: private\r\ncdn-cache-control: max-age=60\r\n", 60),
    ("cache-control: max-age=60\r\ncdn-cache-control: private\r\n", 0),
    ("connection: cache-control\r\ncache-control: private\r\nexpires: Fri, 01 Jan 2100 00:00:00 GMT\r\n", 0),
];
const VALIDATORS: [&str; 4] =
    ["", "etag: \"{}\"\r\n", "etag: W/\"{}\"\r\n", "last-modified: Tue, 15 Nov 1994 12:45:26 GMT\r\n"];
const VARIES: [&str; 3] = ["", "vary: accept\r\n", "vary: cookie, authorization\r\n"];
const AGES: [(&str, u64); 2] = [("", 0), ("age: 100\r\n", 100)];
/// First lines that nobody understands, which may have said that the answer is for one viewer. They are beside the controls alone.
const ODDS: [&str; 4] = ["", " cache-control: private\r\n", "vary: cookie\u{1}\r\n", "vary cookie\r\n"];

/// Goal: of combinations of what an origin says, no viewer is given what was made for another, but by an answer that is fresh for all
/// (RFC 9111 §4): not who comes while the first one waits, not later, not by a 304, and not by who takes stale answers.
/// Method: five viewers ask for each page within the time that its origin takes, twice. The origin says of every date that nothing
/// changed since.
#[test]
fn nobody_is_given_what_was_made_for_another() {
    let origin = Origin::start(|request, stream| {
        let line = |name: &str| header(request, name).unwrap_or_default();
        let named = |text: &str| VIEWERS.iter().find(|(who, _)| text.contains(who)).map(|(who, _)| *who);
        let who = named(line("cookie")).or_else(|| named(line("authorization"))).unwrap_or("none");
        let says = Says::of(path_of(request));
        let head = says.head(who);
        let tag = header(&head, "etag").unwrap_or_default();
        let is_same = match line("if-none-match") {
            "" => !line("if-modified-since").is_empty(),
            tags => !tag.is_empty() && tags.contains(tag),
        };
        thread::sleep(Duration::from_millis(60));
        let answer = if is_same {
            format!("HTTP/1.1 304 Not Modified\r\n{head}\r\n")
        } else {
            format!("HTTP/1.1 200 OK\r\n{head}content-length: {}\r\n\r\n{who}", who.len())
        };
        let _ = stream.write_all(answer.as_bytes());
    });
    let edge = Edge::start_with(origin.port, super::CACHE_BYTES, |spec| spec.limits.requests = 512);
    let port = edge.port();
    let all: Vec<Says> = Says::all().collect();
    let wrong: Vec<String> = thread::scope(|scope| {
        let parts = all.chunks(all.len().div_ceil(PARTS)).map(|part| scope.spawn(move || wrong_of(port, part)));
        let parts: Vec<_> = parts.collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{} answers of {}: {wrong:#?}", wrong.len(), all.len() * 2 * VIEWERS.len());
}

/// Pages that are asked for side by side.
const PARTS: usize = 16;

/// Asks for pages, and returns what came that must not have come.
fn wrong_of(port: u16, pages: &[Says]) -> Vec<String> {
    let mut wrong = Vec::new();
    for says in pages {
        for stale in ["", "cache-control: max-stale\r\n"] {
            let answers = VIEWERS.map(|(who, line)| {
                let request = format!(
                    "GET {} HTTP/1.1\r\nhost: edge.test\r\n{line}{stale}connection: close\r\n\r\n",
                    says.path()
                );
                let asked = thread::spawn(move || talk(port, request.as_bytes()));
                thread::sleep(Duration::from_millis(10));
                (who, asked)
            });
            for (who, asked) in answers {
                let answer = asked.join().unwrap();
                let made_for = answer.split("\r\n\r\n").nth(1).unwrap_or_default();
                let made_for =
                    VIEWERS.iter().find(|(name, _)| made_for.contains(name)).map_or("nobody", |(name, _)| *name);
                let is_named = answer.contains("id=alice") && who != NAMED && !says.is_for_all(NAMED);
                if is_named || made_for != who && !says.is_for_all(made_for) {
                    wrong.push(format!("{who} has {made_for}'s of {}\n{answer}", says.head(made_for)));
                }
            }
        }
    }
    wrong
}

/// What the answers for one page say, by places in the lists.
#[derive(Clone, Copy)]
struct Says {
    control: usize,
    validator: usize,
    vary: usize,
    age: usize,
    odd: usize,
}

impl Says {
    fn all() -> impl Iterator<Item = Says> {
        let (controls, validators) = (0..CONTROLS.len(), 0..VALIDATORS.len());
        controls.flat_map(move |control| {
            let plain = Says { control, validator: 0, vary: 0, age: 0, odd: 0 };
            let varies = move |validator| (0..VARIES.len()).map(move |vary| Says { validator, vary, ..plain });
            let aged = validators.clone().map(move |validator| Says { validator, age: 1, ..plain });
            let odd = (1..ODDS.len()).map(move |odd| Says { odd, ..plain });
            validators.clone().flat_map(varies).chain(aged).chain(odd)
        })
    }

    fn numbered(number: usize) -> Says {
        let mut left = number;
        let mut next = |count: usize| {
            let at = left % count;
            left /= count;
            at
        };
        let (control, validator, vary) = (next(CONTROLS.len()), next(VALIDATORS.len()), next(VARIES.len()));
        Says { control, validator, vary, age: next(AGES.len()), odd: next(ODDS.len()) }
    }

    fn of(path: &str) -> Says {
        Says::numbered(path.trim_start_matches('/').parse().unwrap())
    }

    fn path(self) -> String {
        let Says { control, validator, vary, age, odd } = self;
        let number = ((odd * AGES.len() + age) * VARIES.len() + vary) * VALIDATORS.len() + validator;
        format!("/{}", number * CONTROLS.len() + control)
    }

    fn head(self, who: &str) -> String {
        let validator = VALIDATORS[self.validator].replace("{}", who);
        // One of them is given a name.
        let cookie = if who == NAMED { "set-cookie: id=alice\r\n" } else { "" };
        [ODDS[self.odd], CONTROLS[self.control].0, &validator, VARIES[self.vary], AGES[self.age].0, cookie].concat()
    }

    /// Returns whether others may be given what was made for a viewer.
    fn is_for_all(self, made_for: &str) -> bool {
        let (control, seconds) = CONTROLS[self.control];
        let of_one = VIEWERS.iter().any(|(who, line)| *who == made_for && line.starts_with("authorization"));
        let says_so = ["public", "s-maxage", "must-revalidate"].iter().any(|word| control.contains(word));
        // What is for nobody in particular may be guessed about, but not for who has a cookie.
        self.odd == 0 && seconds > AGES[self.age].1 && self.vary != 2 && (!of_one || says_so)
    }
}
