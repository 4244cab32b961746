// SPDX-License-Identifier: Apache-2.0
//! Origins that stand still. Once too many instances wait for one, requests that need it are answered at once, but for one now and then
//! that sees whether it is back.

use std::time::{SystemTime, UNIX_EPOCH};

use netserv_server_sdk::http::ErrorCode;
use netserv_server_sdk::kv;

/// Returns whether a request may wait for the origin of a site.
pub fn may_ask(label: &str) -> bool {
    let key = key(label);
    let Some(until) = until(&key) else { return true };
    let now = now_ms();
    // The clock may have been set.
    if now < until && until <= now + PAUSE_MS {
        return false;
    }
    note(&key, now);
    true
}

/// Takes note that too many wait for the origin of a site.
pub fn found(label: &str) {
    note(&key(label), now_ms());
}

/// Takes note of what came of asking the origin of a site.
pub fn asked<T>(label: &str, outcome: &Result<T, ErrorCode>) {
    match outcome {
        Err(ErrorCode::ConnectionLimitReached) => found(label),
        Err(_) => {}
        Ok(_) => {
            let key = key(label);
            if until(&key).is_some() {
                let _ = kv::delete(&key);
            }
        }
    }
}

fn until(key: &[u8]) -> Option<u128> {
    let value = kv::get(key).ok().flatten()?;
    Some(u64::from_le_bytes(value.try_into().ok()?).into())
}

fn note(key: &[u8], now: u128) {
    let until = u64::try_from(now + PAUSE_MS).unwrap_or_default();
    // Without room there, each is tried.
    let _ = kv::set(key, &until.to_le_bytes());
}

/// Returns where it stands. Sites are told by their counters' labels, so that they are few.
fn key(label: &str) -> Vec<u8> {
    format!("stall/{label}").into_bytes()
}

fn now_ms() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()
}

/// Milliseconds after which one request more is let through.
const PAUSE_MS: u128 = 2000;
