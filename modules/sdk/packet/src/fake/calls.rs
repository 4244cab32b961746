// SPDX-License-Identifier: Apache-2.0
//! The host calls on the fake node, with the numbers and codes of the ABI.

pub(crate) use super::sip::sip_parse;

use super::codes::{INVALID, NOT_FOUND};
use super::node::with;

pub(crate) fn log(level: i32, text: &[u8]) -> i32 {
    with(|node| node.log.push((level, String::from_utf8_lossy(text).into_owned())));
    0
}

pub(crate) fn monotonic_ns() -> u64 {
    with(|node| node.now_ns)
}

pub(crate) fn wall_ns() -> u64 {
    with(|node| node.now_ns)
}

pub(crate) fn random(into: &mut [u8]) -> i32 {
    for byte in into {
        *byte = with(|node| {
            node.seed = node.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            node.seed.to_be_bytes()[0]
        });
    }
    0
}

pub(crate) fn property_get(key: &[u8], into: &mut [u8]) -> i32 {
    with(|node| {
        let value = std::str::from_utf8(key).ok().and_then(|key| node.properties.get(key));
        value.map_or(NOT_FOUND, |value| put(value.as_bytes(), into))
    })
}

pub(crate) fn node_info(key: &[u8], into: &mut [u8]) -> i32 {
    with(|node| {
        let value = std::str::from_utf8(key).ok().and_then(|key| node.info.get(key));
        value.map_or(NOT_FOUND, |value| put(value.as_bytes(), into))
    })
}

pub(crate) fn counter_open(name: &[u8]) -> i32 {
    let Ok(name) = std::str::from_utf8(name) else { return INVALID };
    let number = with(|node| {
        let known = node.counters.iter().position(|(known, _)| known == name);
        known.unwrap_or_else(|| {
            node.counters.push((name.to_owned(), 0));
            node.counters.len() - 1
        })
    });
    length(number)
}

pub(crate) fn counter_add(counter: u32, amount: u64) -> i32 {
    change_counter(counter, |value| *value = value.wrapping_add(amount))
}

pub(crate) fn counter_set(counter: u32, new: u64) -> i32 {
    change_counter(counter, |value| *value = new)
}

pub(crate) fn kv_get(key: &[u8], into: &mut [u8]) -> i32 {
    with(|node| node.kv.get(key).map_or(NOT_FOUND, |value| put(value, into)))
}

pub(crate) fn kv_set(key: &[u8], value: &[u8]) -> i32 {
    if key.is_empty() {
        return INVALID;
    }
    with(|node| node.kv.insert(key.to_vec(), value.to_vec()));
    0
}

pub(crate) fn kv_delete(key: &[u8]) -> i32 {
    with(|node| node.kv.remove(key)).map_or(NOT_FOUND, |_| 0)
}

pub(crate) fn kv_next(key: &[u8], into: &mut [u8]) -> i32 {
    with(|node| {
        let next = node.kv.keys().find(|known| known.as_slice() > key);
        next.map_or(NOT_FOUND, |next| put(next, into))
    })
}

pub(crate) fn kv_increment(key: &[u8], delta: i64, sum: &mut [u8; 8]) -> i32 {
    let before = with(|node| node.kv.get(key).cloned()).unwrap_or_else(|| vec![0; 8]);
    let Ok(before) = <[u8; 8]>::try_from(before) else { return INVALID };
    *sum = i64::from_le_bytes(before).wrapping_add(delta).to_le_bytes();
    kv_set(key, sum)
}

pub(crate) fn kv_compare_and_set(key: &[u8], old: Option<&[u8]>, new: Option<&[u8]>) -> i32 {
    if with(|node| node.kv.get(key).cloned()).as_deref() != old {
        return 0;
    }
    let code = match new {
        Some(new) => kv_set(key, new),
        // One that is not there is forgotten already.
        None => kv_delete(key).max(0),
    };
    if code < 0 { code } else { 1 }
}

pub(crate) fn message_send(message: &[u8]) -> i32 {
    with(|node| node.sent.push(message.to_vec()));
    0
}

/// Messages come by [`super::message`] alone.
pub(crate) fn message_receive(_: &mut [u8]) -> i32 {
    NOT_FOUND
}

/// Control messages come by [`super::tell`] alone.
pub(crate) fn control_receive(_: &mut [u8]) -> i32 {
    NOT_FOUND
}

pub(crate) fn control_notify(topic: &[u8], body: &[u8]) -> i32 {
    let Ok(topic) = std::str::from_utf8(topic) else { return INVALID };
    with(|node| node.notified.push((topic.to_owned(), body.to_vec())));
    0
}

pub(crate) fn channel_publish(topic: &[u8], message: &[u8], key: &[u8]) -> i32 {
    let Ok(topic) = std::str::from_utf8(topic) else { return INVALID };
    with(|node| node.published.push((topic.to_owned(), message.to_vec(), key.to_vec())));
    0
}

pub(crate) fn timer_set(id: u32, delay_ns: u64, period_ns: u64) -> i32 {
    with(|node| node.timers.insert(id, (node.now_ns.saturating_add(delay_ns.max(1_000_000)), period_ns)));
    0
}

pub(crate) fn timer_cancel(id: u32) -> i32 {
    with(|node| node.timers.remove(&id)).map_or(NOT_FOUND, |_| 0)
}

pub(crate) fn inject(packet: &[u8]) -> i32 {
    with(|node| node.injected.push(packet.to_vec()));
    0
}

pub(crate) fn find(bytes: &[u8], needle: &[u8]) -> i32 {
    if needle.is_empty() {
        return INVALID;
    }
    bytes.windows(needle.len()).position(|window| window == needle).map_or(NOT_FOUND, length)
}

pub(crate) fn patterns_open(mut list: &[u8], flags: u32) -> i32 {
    let mut patterns = Vec::new();
    while let Some((count, rest)) = list.split_first_chunk::<2>() {
        let Some((pattern, rest)) = rest.split_at_checked(usize::from(u16::from_le_bytes(*count))) else {
            return INVALID;
        };
        patterns.push(pattern.to_vec());
        list = rest;
    }
    if patterns.is_empty() || patterns.iter().any(Vec::is_empty) || !list.is_empty() {
        return INVALID;
    }
    with(|node| {
        node.patterns.push((patterns, flags & 1 != 0));
        length(node.patterns.len() - 1)
    })
}

pub(crate) fn patterns_find(set: u32, bytes: &[u8], out: &mut [u8]) -> i32 {
    let found = with(|node| {
        let (patterns, ignore_case) = node.patterns.get(set as usize).filter(|(patterns, _)| !patterns.is_empty())?;
        Some(hits(patterns, *ignore_case, bytes))
    });
    let Some(hits) = found else { return NOT_FOUND };
    let places = out.as_chunks_mut::<12>().0;
    if places.is_empty() {
        return i32::from(!hits.is_empty());
    }
    for (place, hit) in places.iter_mut().zip(&hits) {
        for (word, number) in place.as_chunks_mut::<4>().0.iter_mut().zip(hit) {
            *word = u32::try_from(*number).unwrap_or(u32::MAX).to_le_bytes();
        }
    }
    length(hits.len().min(places.len()))
}

/// Returns number, start and end of each hit: the leftmost, and of those the longest.
fn hits(patterns: &[Vec<u8>], ignore_case: bool, bytes: &[u8]) -> Vec<[usize; 3]> {
    let is_at = |pattern: &[u8], at: usize| {
        let there = bytes[at..].get(..pattern.len());
        there.is_some_and(|there| there == pattern || ignore_case && there.eq_ignore_ascii_case(pattern))
    };
    let (mut hits, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let here = patterns.iter().enumerate().filter(|(_, pattern)| is_at(pattern, at));
        match here.rev().max_by_key(|(_, pattern)| pattern.len()) {
            Some((number, pattern)) => {
                hits.push([number, at, at + pattern.len()]);
                at += pattern.len();
            }
            None => at += 1,
        }
    }
    hits
}

pub(crate) fn patterns_close(set: u32) -> i32 {
    with(|node| {
        node.patterns.get_mut(set as usize).map_or(NOT_FOUND, |(patterns, _)| {
            patterns.clear();
            0
        })
    })
}

/// Returns a digest of the right length that depends on the bytes, and is none that anybody else knows.
pub(crate) fn hash(algorithm: i32, bytes: &[u8], out: &mut [u8]) -> i32 {
    let Some(digest_bytes) =
        usize::try_from(algorithm).ok().and_then(|number| [20, 32, 64, 16, 4, 8].get(number).copied())
    else {
        return INVALID;
    };
    let mut state = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    let digest: Vec<u8> = (0..digest_bytes)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state.to_be_bytes()[0]
        })
        .collect();
    put(&digest, out)
}

fn change_counter(counter: u32, change: impl FnOnce(&mut u64)) -> i32 {
    with(|node| match node.counters.get_mut(counter as usize) {
        Some((_, value)) => {
            change(value);
            0
        }
        None => NOT_FOUND,
    })
}

fn put(value: &[u8], into: &mut [u8]) -> i32 {
    if let Some(place) = into.get_mut(..value.len()) {
        place.copy_from_slice(value);
    }
    length(value.len())
}

fn length(length: usize) -> i32 {
    i32::try_from(length).unwrap_or(INVALID)
}
