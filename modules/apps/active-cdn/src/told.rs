// SPDX-License-Identifier: Apache-2.0
//! What the module's user says by control messages: what goes out of the cache, and what is to be in it.

use std::time::{SystemTime, UNIX_EPOCH};

use netserv_server_sdk::control::{Message, inbox};
use netserv_server_sdk::kv;
use netserv_server_sdk::wasi::clocks::monotonic_clock;
use netserv_server_sdk::wasi::random::random::get_random_u64;

use crate::purge;

/// Does what was said, and waits for other instances that do. Afterwards, what was to be purged is gone.
pub fn obey() {
    if inbox::subscribe().ready() {
        // Whoever looks from here on sees that something is to be done, before the message is gone.
        let taken = Pending::note(b"");
        while let Some(message) = inbox::receive() {
            take(&message);
        }
        taken.done();
    }
    // Whoever has a message that came before has noted it by this time.
    let before = since_1970();
    while let Some(pending) = Pending::oldest(before) {
        match pending.claim() {
            Some(lines) => {
                purge::lines(&lines);
                pending.done();
            }
            None => monotonic_clock::subscribe_duration(PAUSE_NS).block(),
        }
    }
}

fn take(message: &Message) {
    match &*message.topic {
        "purge" => {
            let pending = Pending::note(&message.body);
            purge::lines(&String::from_utf8_lossy(&message.body));
            pending.done();
        }
        "warm" => queue(message),
        // Whoever lays it over something reads it there.
        "text" => {}
        other => eprintln!("nothing is known of the topic {other}"),
    }
}

/// What an instance does of what was told. Others wait for it, and do it themselves if that takes long: the instance may have ended, with its
/// client.
struct Pending {
    key: Vec<u8>,
    /// Until when others wait, and the lines of a purge.
    value: Vec<u8>,
}

impl Pending {
    /// Begins something, a purge or nothing yet.
    fn note(lines: &[u8]) -> Pending {
        let key = format!("{PENDING}{:020}-{:08x}", since_1970(), get_random_u64() >> 32).into_bytes();
        let pending = Pending { key, value: [&until(), lines].concat() };
        // Without room, others may answer a moment too soon.
        let _ = kv::set(&pending.key, &pending.value);
        pending
    }

    /// Returns what was begun first, by a time at the latest.
    fn oldest(before: u64) -> Option<Pending> {
        let latest = format!("{PENDING}{before:020}~").into_bytes();
        let key = first(PENDING).filter(|key| *key <= latest)?;
        // Another one may have done it meanwhile; then there is nothing to wait for, either.
        let value = kv::get(&key).ok().flatten().unwrap_or_default();
        Some(Pending { key, value })
    }

    /// Returns what is to be done by this instance, nothing while another one does it.
    fn claim(&self) -> Option<String> {
        let (said, lines) = self.value.split_at_checked(size_of::<u64>()).unwrap_or_default();
        let said = said.try_into().map_or(0, u64::from_le_bytes);
        let now = since_1970();
        // The clock may have been set.
        if (now..=now + TURN_NS_MAX).contains(&said) {
            return None;
        }
        let _ = kv::set(&self.key, &[&until(), lines].concat());
        Some(String::from_utf8_lossy(lines).into_owned())
    }

    fn done(self) {
        let _ = kv::delete(&self.key);
    }
}

fn until() -> [u8; size_of::<u64>()] {
    (since_1970() + TURN_NS_MAX).to_le_bytes()
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

/// What keys begin with of what is being done.
const PENDING: &str = "turn/";
/// What keys of messages begin with that say what is to be fetched.
const WARM: &str = "warm/";
/// Such messages that may wait.
const WARM_MAX: u32 = 64;
/// Nanoseconds after which another instance does what one has begun.
const TURN_NS_MAX: u64 = 2_000_000_000;
/// Nanoseconds between two looks at whether it is done.
const PAUSE_NS: u64 = 1_000_000;
