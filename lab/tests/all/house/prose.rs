// SPDX-License-Identifier: Apache-2.0
//! Prose: the long sentences and the pet words of each page, whose numbers only fall.

use std::fmt::Write as _;

use super::promises::LIST;
use super::tidy::{extension, root, tracked};

/// Lines of a page, its long sentences and its pet words. Pages without either have no line.
const COUNTS: &str = "lab/guards/prose";
const HEAD: &str =
    "# Pages with their sentences of more than 30 words and their pet words; lab/tests/all/house/prose.rs has both.\n";
/// A sentence with more words has to be read twice.
const WORDS_MAX: usize = 30;
/// A history, and pages that programs write.
const PAGES_LEFT_OUT: [&str; 3] = ["CHANGELOG.md", "docs/flakes.md", "docs/soak.md"];
/// The page of the help texts, which stand in its blocks of `text`.
const HELP: &str = "docs/cli.md";
/// Words that only this project uses so, and the field's.
const PETS: [(&str, &str); 13] = [
    ("station, stations", "MAC address, host"),
    ("the way, its way, their way, ways", "path, route, next hop, direction"),
    ("stands still, stand still, stood still", "is paused, stalls"),
    ("goes on, go on, went on, going on, gone on", "continues, resumes, passes"),
    ("begins, begin, began, begun", "starts"),
    ("is there, are there", "exists, is installed"),
    ("coarse tuple", "mask"),
    ("seat, seats, bell, bells, nap, naps", "worker slot, eventfd, idle sleep"),
    ("errand, errands, taker, takers", "request, modules in line"),
    ("carrier, carriers", "state transfer"),
    ("desk, desks", "signaling endpoint"),
    ("nobody, whoever, that which", "a noun"),
    ("anew", "again"),
];
/// Words that are no subject where a noun exists.
const NO_SUBJECTS: [&str; 3] = ["what", "who", "none"];
/// Shorter sentences, such as heads of tables, may begin with them.
const SUBJECT_WORDS_MIN: usize = 5;

/// Goal: no page gets more sentences that have to be read twice, or more pet words, than it has.
#[test]
fn pages_get_no_more_long_sentences_or_pet_words() {
    let file = root().join(COUNTS);
    let there = std::fs::read_to_string(&file).unwrap_or_default();
    let (mut wanted, mut worse) = (HEAD.to_owned(), String::new());
    for path in tracked().into_iter().filter(|path| extension(path) == "md") {
        let page = path.display().to_string();
        if PAGES_LEFT_OUT.contains(&page.as_str()) || page.contains("third-party") {
            continue;
        }
        let text = std::fs::read_to_string(root().join(&path)).unwrap_or_default();
        // What tests say of themselves is counted in no page.
        let by_hand = text.split(LIST).next().unwrap_or_default();
        let faults = Faults::of(by_hand, page == HELP);
        let (long_max, pets_max) = allowed(&there, &page);
        let (long, pets) = (faults.long.len(), faults.pets.len());
        if long > long_max || pets > pets_max {
            writeln!(worse, "{page}: {long} long sentences, not {long_max}; {pets} pet words, not {pets_max}").unwrap();
            faults.long.iter().chain(&faults.pets).for_each(|fault| writeln!(worse, "    {fault}").unwrap());
        }
        if long + pets > 0 {
            writeln!(wanted, "{page} {long} {pets}").unwrap();
        }
    }
    assert!(worse.is_empty(), "name the actor, and say one thing in a sentence of at most 25 words:\n{worse}");
    if std::env::var_os("NETSERV_REWRITE").is_some_and(|value| !value.is_empty()) {
        std::fs::write(&file, &wanted).unwrap();
    } else {
        assert!(there == wanted, "pages got better: NETSERV_REWRITE=1 lowers their numbers in {COUNTS} to\n{wanted}");
    }
}

/// Returns how many long sentences and pet words a page may have.
fn allowed(counts: &str, page: &str) -> (usize, usize) {
    let numbers = counts.lines().find_map(|line| line.strip_prefix(page)?.strip_prefix(' ')?.split_once(' '));
    numbers.map_or((0, 0), |(long, pets)| (long.parse().unwrap(), pets.parse().unwrap()))
}

/// What a text has of both.
struct Faults {
    long: Vec<String>,
    pets: Vec<String>,
}

impl Faults {
    fn of(text: &str, has_help: bool) -> Faults {
        let (mut long, mut pets) = (Vec::new(), Vec::new());
        for sentence in blocks(text, has_help).iter().flat_map(|block| sentences(block)) {
            let Sentence { words, asks } = sentence;
            if words.len() > WORDS_MAX {
                long.push(format!("{} words: {} …", words.len(), words[..12].join(" ")));
            }
            for (pet, instead) in
                PETS.iter().flat_map(|(pets, instead)| pets.split(", ").map(move |pet| (pet, instead)))
            {
                let pet: Vec<&str> = pet.split(' ').collect();
                let found = words.windows(pet.len()).filter(|words| *words == pet.as_slice()).count();
                pets.extend(std::iter::repeat_n(format!("{}: {instead}", pet.join(" ")), found));
            }
            if words.len() >= SUBJECT_WORDS_MIN && !asks && NO_SUBJECTS.contains(&words[0].as_str()) {
                pets.push(format!("a subject: {} …", words[..SUBJECT_WORDS_MIN].join(" ")));
            }
        }
        Faults { long, pets }
    }
}

/// Returns the paragraphs, items of lists and cells of tables of a page, without headings and code.
fn blocks(text: &str, has_help: bool) -> Vec<String> {
    let mut blocks = vec![String::new()];
    let mut fence = None;
    for line in text.lines().map(str::trim) {
        if let Some(kind) = line.strip_prefix("```") {
            fence = if fence.is_some() { None } else { Some(has_help && kind == "text") };
            blocks.push(String::new());
        } else if fence == Some(true) {
            blocks.extend(line.split("  ").map(str::to_owned));
        } else if fence == Some(false) || line.is_empty() || line.starts_with('#') {
            blocks.push(String::new());
        } else if line.starts_with('|') {
            blocks.extend(plain(line).split('|').map(str::to_owned));
            blocks.push(String::new());
        } else {
            if line.starts_with("- ") || line.starts_with("* ") || is_numbered(line) {
                blocks.push(String::new());
            }
            let block = blocks.last_mut().unwrap();
            block.push_str(line);
            block.push(' ');
        }
    }
    blocks.iter().map(|block| plain(block)).collect()
}

fn is_numbered(line: &str) -> bool {
    line.split_once(". ")
        .is_some_and(|(number, _)| !number.is_empty() && number.chars().all(|digit| digit.is_ascii_digit()))
}

/// Returns a text with a word for each piece of code, and without the targets of links.
fn plain(block: &str) -> String {
    let parts = block.split('`').enumerate();
    let text: String = parts.map(|(place, part)| if place % 2 == 0 { part } else { "code" }).collect();
    let mut parts = text.split("](");
    let begin = parts.next().unwrap_or_default().to_owned();
    parts.fold(begin, |text, part| text + part.split_once(')').map_or("", |(_, rest)| rest))
}

/// Words in lower case, and whether they end by a question mark.
struct Sentence {
    words: Vec<String>,
    asks: bool,
}

fn sentences(block: &str) -> Vec<Sentence> {
    let mut sentences = Vec::new();
    let mut words = Vec::new();
    for token in block.split_whitespace() {
        let word = token.trim_matches(|letter: char| !letter.is_alphanumeric());
        if !word.is_empty() {
            words.push(word.to_lowercase());
        }
        let end = token.trim_end_matches([')', '"', '*', '_']);
        if end.ends_with(['.', '!', '?']) {
            sentences.push(Sentence { words: std::mem::take(&mut words), asks: end.ends_with('?') });
        }
    }
    sentences.push(Sentence { words, asks: false });
    sentences
}

#[test]
fn faults_of_prose_are_found_and_code_is_left_out() {
    let long = "word ".repeat(31);
    let head = "# Goes on\n\nIt goes\non. `goes on` [a](goes on) b.\n```text\nwhat goes on\n```\n";
    let text = format!("{head}- {long}\n- Who begins has it all.\n");
    let faults = Faults::of(&text, false);
    assert_eq!((faults.long.len(), faults.pets.len()), (1, 3), "{:?}", faults.pets);
    let faults = Faults::of(&text, true);
    assert_eq!((faults.long.len(), faults.pets.len()), (1, 4), "{:?}", faults.pets);
    assert_eq!(["a.md", "docs/a.md"].map(|page| allowed("# x\na.md 1 2\n", page)), [(1, 2), (0, 0)]);
}
