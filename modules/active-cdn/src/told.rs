// SPDX-License-Identifier: Apache-2.0
//! What the module's user says by control messages: what goes out of the cache, and what is to be in it.

use std::time::{SystemTime, UNIX_EPOCH};

use netserv_server_sdk::control::{Message, inbox};
use netserv_server_sdk::kv;
use netserv_server_sdk::wasi::clocks::monotonic_clock;

use crate::purge;

/// Does what was said, and waits for other instances that do. Afterwards, what was to be purged is gone.
pub fn obey() {
    if inbox::subscribe().ready() {
        let turn = Turn::begin();
        while let Some(message) = inbox::receive() {
            handle(&message);
        }
        drop(turn);
    }
    // Whoever has a message that came before has begun by this time.
    let (before, until) = (since_1970(), monotonic_clock::now() + TURN_NS_MAX);
    while Turn::is_anyones(before) && monotonic_clock::now() < until {
        monotonic_clock::subscribe_duration(PAUSE_NS).block();
    }
}

fn handle(message: &Message) {
    let text = String::from_utf8_lossy(&message.body);
    match &*message.topic {
        "purge" => purge::lines(&text),
        "warm" => queue(message),
        // Whoever lays it over something reads it there.
        "text" => {}
        other => eprintln!("nothing is known of the topic {other}"),
    }
}

/// An instance that has taken messages and not done what they say. Others wait for it: it is known before a message is gone.
struct Turn(Vec<u8>);

impl Turn {
    fn begin() -> Turn {
        let now = since_1970();
        let key = format!("{TURN}{now:020}").into_bytes();
        // Without room, others may answer a moment too soon.
        let _ = kv::set(&key, &(now + TURN_NS_MAX).to_le_bytes());
        Turn(key)
    }

    /// Returns whether there is one that began by a time. What an instance left that ended in the middle goes.
    fn is_anyones(before: u64) -> bool {
        let latest = format!("{TURN}{before:020}").into_bytes();
        let Some(key) = first(TURN).filter(|key| *key <= latest) else { return false };
        let until = kv::get(&key).ok().flatten().and_then(|value| Some(u64::from_le_bytes(value.try_into().ok()?)));
        // The clock may have been set.
        let now = since_1970();
        let is_over = until.is_none_or(|until| until < now || until > now + TURN_NS_MAX);
        if is_over {
            let _ = kv::delete(&key);
        }
        !is_over
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let _ = kv::delete(&self.0);
    }
}

/// Returns the nanoseconds since 1970: what is monotonic begins anew with each instance.
fn since_1970() -> u64 {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(time.as_nanos()).unwrap_or_default()
}

/// Puts what is to be fetched behind what is waiting, for the resident program.
fn queue(message: &Message) {
    let waiting = kv::keys(Some(WARM.as_bytes()), WARM_MAX).unwrap_or_default();
    let count = waiting.iter().filter(|key| key.starts_with(WARM.as_bytes())).count();
    let key = format!("{WARM}{:020}", message.seq);
    if count >= usize::try_from(WARM_MAX).unwrap_or(usize::MAX) || kv::set(key.as_bytes(), &message.body).is_err() {
        eprintln!("{count} messages wait that say what is to be fetched; one more is left out");
    }
}

/// Takes what is to be fetched and waits for longest, a line each.
pub fn next_to_warm() -> Option<String> {
    let key = first(WARM)?;
    let body = kv::get(&key).ok().flatten().unwrap_or_default();
    let _ = kv::delete(&key);
    Some(String::from_utf8_lossy(&body).into_owned())
}

/// Returns the first key that begins so.
fn first(prefix: &str) -> Option<Vec<u8>> {
    let keys = kv::keys(Some(prefix.as_bytes()), 1).ok()?;
    keys.into_iter().next().filter(|key| key.starts_with(prefix.as_bytes()))
}

/// What keys of turns begin with.
const TURN: &str = "turn/";
/// What keys of messages begin with that say what is to be fetched.
const WARM: &str = "warm/";
/// Such messages that may wait.
const WARM_MAX: u32 = 64;
/// Nanoseconds after which nobody waits for an instance that has taken a message.
const TURN_NS_MAX: u64 = 2_000_000_000;
/// Nanoseconds between two looks at whether it is done.
const PAUSE_NS: u64 = 1_000_000;
