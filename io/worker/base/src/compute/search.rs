// SPDX-License-Identifier: Apache-2.0
//! Search for bytes: one string, or many at once.

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, AhoCorasickKind, MatchKind};
use memchr::memmem;

use crate::error::HostError;
use crate::limits;

/// Where a pattern was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The number of the pattern in its set.
    pub pattern: u32,
    /// The offset of its first byte.
    pub start: u32,
    /// The offset behind its last byte.
    pub end: u32,
}

/// Returns the offset of the first `needle`.
///
/// # Errors
/// [`HostError::Invalid`] for an empty needle, [`HostError::TooLarge`] for bytes over
/// [`limits::SEARCH_BYTES_MAX`], [`HostError::NotFound`].
pub fn find(haystack: &[u8], needle: &[u8]) -> Result<usize, HostError> {
    check_haystack(haystack)?;
    check_haystack(needle)?;
    match needle {
        [] => Err(HostError::Invalid),
        [byte] => memchr::memchr(*byte, haystack).ok_or(HostError::NotFound),
        _ => memmem::find(haystack, needle).ok_or(HostError::NotFound),
    }
}

/// Patterns that are looked for all at once.
#[derive(Debug)]
pub struct Patterns {
    automaton: AhoCorasick,
}

impl Patterns {
    /// Prepares patterns.
    ///
    /// # Errors
    /// [`HostError::Invalid`] for an empty pattern or none at all, [`HostError::TooLarge`] for one over
    /// [`limits::PATTERN_BYTES_MAX`], [`HostError::Quota`] for more than [`limits::PATTERNS_MAX`] or more than
    /// [`limits::PATTERNS_BYTES_MAX`] bytes of them.
    pub fn compile<P: AsRef<[u8]>>(patterns: &[P], ignore_ascii_case: bool) -> Result<Patterns, HostError> {
        let bytes = check(patterns)?;
        // A table of all states by all bytes is fastest, and too large for many states.
        let kind = match bytes {
            0..=limits::PATTERNS_TABLE_BYTES_MAX => AhoCorasickKind::DFA,
            _ => AhoCorasickKind::ContiguousNFA,
        };
        let automaton = AhoCorasickBuilder::new()
            .match_kind(MatchKind::LeftmostLongest)
            .ascii_case_insensitive(ignore_ascii_case)
            .kind(Some(kind))
            .build(patterns)
            .map_err(|_| HostError::Quota)?;
        Ok(Patterns { automaton })
    }

    /// Reads a set of patterns as packet modules give it: of each, its length as two little-endian bytes, then itself.
    ///
    /// # Errors
    /// As [`Patterns::compile`]; [`HostError::Invalid`], too, if a pattern is cut off.
    pub fn from_list(mut list: &[u8], ignore_ascii_case: bool) -> Result<Patterns, HostError> {
        let mut patterns = Vec::new();
        while !list.is_empty() {
            let (length, rest) = list.split_first_chunk::<2>().ok_or(HostError::Invalid)?;
            let length = usize::from(u16::from_le_bytes(*length));
            let (pattern, rest) = rest.split_at_checked(length).ok_or(HostError::Invalid)?;
            if patterns.len() >= limits::PATTERNS_MAX {
                return Err(HostError::Quota);
            }
            patterns.push(pattern);
            list = rest;
        }
        Patterns::compile(&patterns, ignore_ascii_case)
    }

    /// Returns the bytes of memory that they take.
    pub fn memory_bytes(&self) -> usize {
        self.automaton.memory_usage()
    }

    /// Returns whether one of the patterns is there.
    ///
    /// # Errors
    /// [`HostError::TooLarge`] for more than [`limits::SEARCH_BYTES_MAX`] bytes.
    pub fn is_match(&self, haystack: &[u8]) -> Result<bool, HostError> {
        check_haystack(haystack)?;
        Ok(self.automaton.is_match(haystack))
    }

    /// Returns hits that do not overlap, from left to right, and at one place the longest; at most
    /// [`limits::HITS_MAX`].
    ///
    /// # Errors
    /// [`HostError::TooLarge`] for more than [`limits::SEARCH_BYTES_MAX`] bytes.
    pub fn find<'a>(&'a self, haystack: &'a [u8]) -> Result<impl Iterator<Item = Hit> + 'a, HostError> {
        check_haystack(haystack)?;
        let offset = |at: usize| u32::try_from(at).expect("at most SEARCH_BYTES_MAX");
        let hits = self.automaton.find_iter(haystack).map(move |hit| Hit {
            pattern: hit.pattern().as_u32(),
            start: offset(hit.start()),
            end: offset(hit.end()),
        });
        Ok(hits.take(limits::HITS_MAX))
    }
}

/// The sets of patterns of one packet module, by number.
#[derive(Debug, Default)]
pub struct PatternSets {
    sets: Vec<Option<Patterns>>,
    memory_bytes: usize,
}

impl PatternSets {
    /// Takes a set, and returns its number.
    ///
    /// # Errors
    /// [`HostError::Quota`] for more than [`limits::PATTERN_SETS_MAX`] sets, or more than
    /// [`limits::PATTERNS_MEMORY_BYTES_MAX`] bytes of memory.
    pub fn insert(&mut self, patterns: Patterns) -> Result<usize, HostError> {
        let memory_bytes = self.memory_bytes + patterns.memory_bytes();
        let free = self.sets.iter().position(Option::is_none).unwrap_or(self.sets.len());
        if free >= limits::PATTERN_SETS_MAX || memory_bytes > limits::PATTERNS_MEMORY_BYTES_MAX {
            return Err(HostError::Quota);
        }
        self.memory_bytes = memory_bytes;
        if free == self.sets.len() {
            self.sets.push(None);
        }
        self.sets[free] = Some(patterns);
        Ok(free)
    }

    /// Returns a set.
    ///
    /// # Errors
    /// [`HostError::NotFound`] if there is none of this number.
    pub fn set(&self, number: usize) -> Result<&Patterns, HostError> {
        self.sets.get(number).and_then(Option::as_ref).ok_or(HostError::NotFound)
    }

    /// Forgets a set; its number may be another's later.
    ///
    /// # Errors
    /// [`HostError::NotFound`] if there is none of this number.
    pub fn remove(&mut self, number: usize) -> Result<(), HostError> {
        let patterns = self.sets.get_mut(number).and_then(Option::take).ok_or(HostError::NotFound)?;
        self.memory_bytes -= patterns.memory_bytes();
        Ok(())
    }
}

fn check_haystack(haystack: &[u8]) -> Result<(), HostError> {
    if haystack.len() > limits::SEARCH_BYTES_MAX { Err(HostError::TooLarge) } else { Ok(()) }
}

/// Checks patterns, and returns how many bytes they have.
fn check<P: AsRef<[u8]>>(patterns: &[P]) -> Result<usize, HostError> {
    if patterns.is_empty() || patterns.iter().any(|pattern| pattern.as_ref().is_empty()) {
        return Err(HostError::Invalid);
    }
    if patterns.iter().any(|pattern| pattern.as_ref().len() > limits::PATTERN_BYTES_MAX) {
        return Err(HostError::TooLarge);
    }
    let bytes = patterns.iter().map(|pattern| pattern.as_ref().len()).sum();
    if patterns.len() > limits::PATTERNS_MAX || bytes > limits::PATTERNS_BYTES_MAX {
        return Err(HostError::Quota);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hits(patterns: &[&str], ignore_ascii_case: bool, haystack: &str) -> Vec<(u32, u32, u32)> {
        let patterns = Patterns::compile(patterns, ignore_ascii_case).unwrap();
        let found = patterns.find(haystack.as_bytes()).unwrap();
        found.map(|hit| (hit.pattern, hit.start, hit.end)).collect()
    }

    #[test]
    fn the_first_needle_is_found() {
        assert_eq!(find(b"a needle in a needle", b"needle"), Ok(2));
        assert_eq!(find(b"abc", b"c"), Ok(2));
        assert_eq!(find(b"abc", b"abcd"), Err(HostError::NotFound));
        assert_eq!(find(b"", b"a"), Err(HostError::NotFound));
        assert_eq!(find(b"abc", b""), Err(HostError::Invalid));
        let long = vec![0; limits::SEARCH_BYTES_MAX + 1];
        assert_eq!(find(&long[1..], b"a"), Err(HostError::NotFound));
        assert_eq!(find(&long, b"a"), Err(HostError::TooLarge));
        assert_eq!(find(b"a", &long), Err(HostError::TooLarge));
    }

    #[test]
    fn the_leftmost_and_longest_is_a_hit() {
        assert_eq!(hits(&["abc", "ab", "bcd"], false, "xabcd ab"), [(0, 1, 4), (1, 6, 8)]);
        assert_eq!(hits(&["sip:", "ÄB"], true, "SIP:Äb"), [(0, 0, 4), (1, 4, 7)]);
        assert_eq!(hits(&["sip:"], false, "SIP:"), []);
    }

    #[test]
    fn patterns_are_bounded() {
        let refused = |patterns: &[Vec<u8>]| Patterns::compile(patterns, false).map(drop);
        assert_eq!(refused(&[]), Err(HostError::Invalid));
        assert_eq!(refused(&[vec![1], vec![]]), Err(HostError::Invalid));
        assert_eq!(refused(&[vec![1; limits::PATTERN_BYTES_MAX]]), Ok(()));
        assert_eq!(refused(&[vec![1; limits::PATTERN_BYTES_MAX + 1]]), Err(HostError::TooLarge));
        assert_eq!(refused(&vec![vec![1]; limits::PATTERNS_MAX]), Ok(()));
        assert_eq!(refused(&vec![vec![1]; limits::PATTERNS_MAX + 1]), Err(HostError::Quota));
        let many = limits::PATTERNS_BYTES_MAX / limits::PATTERN_BYTES_MAX;
        assert_eq!(refused(&vec![vec![1; limits::PATTERN_BYTES_MAX]; many + 1]), Err(HostError::Quota));
    }

    #[test]
    fn hits_are_bounded() {
        let patterns = Patterns::compile(&["a"], false).unwrap();
        assert_eq!(patterns.find(&[b'a'; limits::HITS_MAX + 1]).unwrap().count(), limits::HITS_MAX);
        let long = vec![0; limits::SEARCH_BYTES_MAX + 1];
        assert!(patterns.find(&long).is_err() && patterns.is_match(&long).is_err());
        assert_eq!(patterns.is_match(&long[1..]), Ok(false));
    }

    #[test]
    fn the_largest_set_fits_where_two_do_not() {
        let largest = || {
            let all: Vec<Vec<u8>> = (0..limits::PATTERNS_BYTES_MAX / 32).map(spread).collect();
            Patterns::compile(&all, true).unwrap()
        };
        let mut sets = PatternSets::default();
        assert_eq!(sets.insert(largest()), Ok(0));
        let fitting = (1..limits::PATTERN_SETS_MAX).take_while(|_| sets.insert(largest()).is_ok()).count();
        assert!(fitting < limits::PATTERN_SETS_MAX - 1, "all of {} bytes", largest().memory_bytes());
        assert!(sets.memory_bytes <= limits::PATTERNS_MEMORY_BYTES_MAX);
    }

    #[test]
    fn sets_are_bounded_and_their_numbers_used_again() {
        let small = || Patterns::compile(&["a"], false).unwrap();
        let mut sets = PatternSets::default();
        for number in 0..limits::PATTERN_SETS_MAX {
            assert_eq!(sets.insert(small()), Ok(number));
        }
        assert_eq!(sets.insert(small()), Err(HostError::Quota));
        assert_eq!(sets.remove(3), Ok(()));
        assert_eq!(sets.remove(3), Err(HostError::NotFound));
        assert!(sets.set(3).is_err() && sets.set(4).is_ok());
        assert_eq!(sets.insert(small()), Ok(3));
    }

    #[test]
    fn lists_are_read() {
        let patterns = Patterns::from_list(b"\x02\0ab\x01\0c", false).unwrap();
        assert_eq!(patterns.find(b"cab").unwrap().map(|hit| hit.pattern).collect::<Vec<_>>(), [1, 0]);
        for list in [&b""[..], b"\x01", b"\x02\0a", b"\0\0", b"\x01\0ab"] {
            assert_eq!(Patterns::from_list(list, false).map(drop), Err(HostError::Invalid), "{list:?}");
        }
        let many = b"\x01\0a".repeat(limits::PATTERNS_MAX + 1);
        assert_eq!(Patterns::from_list(&many, false).map(drop), Err(HostError::Quota));
    }

    proptest! {
        #[test]
        fn what_is_found_is_there(
            patterns in proptest::collection::vec("[ab]{1,4}", 1..8),
            haystack in "[abc]{0,60}",
        ) {
            let set = Patterns::compile(&patterns, false).unwrap();
            let mut end = 0;
            for hit in set.find(haystack.as_bytes()).unwrap() {
                let pattern = &patterns[hit.pattern as usize];
                prop_assert_eq!(&haystack[hit.start as usize..hit.end as usize], pattern);
                prop_assert!(hit.start >= end);
                end = hit.end;
            }
            let is_there = patterns.iter().any(|pattern| haystack.contains(pattern.as_str()));
            prop_assert_eq!(set.is_match(haystack.as_bytes()), Ok(is_there));
            prop_assert_eq!(find(haystack.as_bytes(), patterns[0].as_bytes()).ok(), haystack.find(&patterns[0]));
        }
    }

    /// Returns 32 bytes that have little in common with those of other numbers.
    fn spread(number: usize) -> Vec<u8> {
        crate::compute::hash::Algorithm::Sha256.digest(&number.to_le_bytes()).unwrap()
    }
}
