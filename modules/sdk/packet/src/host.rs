// SPDX-License-Identifier: Apache-2.0
//! Host calls with Rust types: on the node in WebAssembly, on the fake node elsewhere.

#[cfg(not(target_arch = "wasm32"))]
use crate::fake::calls;
#[cfg(target_arch = "wasm32")]
use crate::sys as calls;

use crate::error::Error;

pub(crate) use calls::{monotonic_ns, wall_ns};

pub(crate) fn log(level: i32, text: &str) -> Result<(), Error> {
    done(calls::log(level, text.as_bytes()))
}

pub(crate) fn random(into: &mut [u8]) -> Result<(), Error> {
    done(calls::random(into))
}

pub(crate) fn property(key: &str) -> Option<Vec<u8>> {
    value(|into| calls::property_get(key.as_bytes(), into)).ok()
}

pub(crate) fn node_info(key: &str) -> Option<Vec<u8>> {
    value(|into| calls::node_info(key.as_bytes(), into)).ok()
}

pub(crate) fn counter_open(name: &str) -> Result<u32, Error> {
    let code = calls::counter_open(name.as_bytes());
    u32::try_from(code).map_err(|_| Error::from_code(code))
}

pub(crate) fn counter_add(counter: u32, amount: u64) -> Result<(), Error> {
    done(calls::counter_add(counter, amount))
}

pub(crate) fn counter_set(counter: u32, value: u64) -> Result<(), Error> {
    done(calls::counter_set(counter, value))
}

pub(crate) fn kv_value(key: &[u8]) -> Result<Vec<u8>, Error> {
    value(|into| calls::kv_get(key, into))
}

pub(crate) fn kv_set(key: &[u8], value: &[u8]) -> Result<(), Error> {
    done(calls::kv_set(key, value))
}

pub(crate) fn kv_delete(key: &[u8]) -> Result<(), Error> {
    done(calls::kv_delete(key))
}

pub(crate) fn kv_next(key: &[u8]) -> Result<Vec<u8>, Error> {
    value(|into| calls::kv_next(key, into))
}

pub(crate) fn kv_increment(key: &[u8], delta: i64) -> Result<i64, Error> {
    let mut sum = [0; 8];
    done(calls::kv_increment(key, delta, &mut sum))?;
    Ok(i64::from_le_bytes(sum))
}

pub(crate) fn kv_compare_and_set(key: &[u8], old: Option<&[u8]>, new: Option<&[u8]>) -> Result<bool, Error> {
    number(calls::kv_compare_and_set(key, old, new)).map(|swapped| swapped != 0)
}

pub(crate) fn message_send(message: &[u8]) -> Result<(), Error> {
    done(calls::message_send(message))
}

pub(crate) fn message_receive(into: &mut [u8]) -> Result<usize, Error> {
    number(calls::message_receive(into))
}

#[cfg(target_arch = "wasm32")]
pub(crate) fn state_write(piece: &[u8]) -> Result<(), Error> {
    done(calls::state_write(piece))
}

#[cfg(target_arch = "wasm32")]
pub(crate) fn state_read(into: &mut [u8]) -> Result<usize, Error> {
    number(calls::state_read(into))
}

pub(crate) fn control_receive(into: &mut [u8]) -> Result<usize, Error> {
    number(calls::control_receive(into))
}

pub(crate) fn control_notify(topic: &str, body: &[u8]) -> Result<(), Error> {
    done(calls::control_notify(topic.as_bytes(), body))
}

pub(crate) fn channel_publish(topic: &str, message: &[u8], key: &[u8]) -> Result<(), Error> {
    done(calls::channel_publish(topic.as_bytes(), message, key))
}

pub(crate) fn timer_set(id: u32, delay_ns: u64, period_ns: u64) -> Result<(), Error> {
    done(calls::timer_set(id, delay_ns, period_ns))
}

pub(crate) fn timer_cancel(id: u32) -> Result<(), Error> {
    done(calls::timer_cancel(id))
}

pub(crate) fn inject(packet: &[u8]) -> Result<(), Error> {
    done(calls::inject(packet))
}

pub(crate) fn find(bytes: &[u8], needle: &[u8]) -> Result<usize, Error> {
    number(calls::find(bytes, needle))
}

pub(crate) fn patterns_open(list: &[u8], flags: u32) -> Result<u32, Error> {
    let code = calls::patterns_open(list, flags);
    u32::try_from(code).map_err(|_| Error::from_code(code))
}

pub(crate) fn patterns_find(set: u32, bytes: &[u8], out: &mut [u8]) -> Result<usize, Error> {
    number(calls::patterns_find(set, bytes, out))
}

pub(crate) fn patterns_close(set: u32) {
    // A set that was opened is there.
    let _ = calls::patterns_close(set);
}

pub(crate) fn sip_parse(bytes: &[u8], out: &mut [u8]) -> Result<usize, Error> {
    number(calls::sip_parse(bytes, out))
}

pub(crate) fn hash(algorithm: i32, bytes: &[u8], out: &mut [u8]) -> Result<usize, Error> {
    number(calls::hash(algorithm, bytes, out))
}

fn number(code: i32) -> Result<usize, Error> {
    usize::try_from(code).map_err(|_| Error::from_code(code))
}

fn done(code: i32) -> Result<(), Error> {
    if code >= 0 { Ok(()) } else { Err(Error::from_code(code)) }
}

/// Fetches a value of unknown length: into a short buffer first, which holds most.
fn value(fetch: impl Fn(&mut [u8]) -> i32) -> Result<Vec<u8>, Error> {
    let mut value = vec![0; SHORT_VALUE_BYTES];
    loop {
        let code = fetch(&mut value);
        let length = usize::try_from(code).map_err(|_| Error::from_code(code))?;
        let fits = length <= value.len();
        value.resize(length, 0);
        if fits {
            return Ok(value);
        }
    }
}

const SHORT_VALUE_BYTES: usize = 128;
