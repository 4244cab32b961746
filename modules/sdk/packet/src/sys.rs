// SPDX-License-Identifier: Apache-2.0
//! The SDK's only unsafe code: host calls by pointer and length, the packet area, and vector loads.
#![allow(unsafe_code, reason = "the packet ABI passes addresses")]

/// The module, once it started: WebAssembly has one thread, and the node never calls into a call.
#[cfg(target_arch = "wasm32")]
pub(crate) struct OneThread<T>(pub(crate) T);

#[cfg(target_arch = "wasm32")]
// SAFETY: a module has one thread.
unsafe impl<T> Sync for OneThread<T> {}

#[cfg(target_arch = "wasm32")]
pub(crate) use self::wasm::*;

/// Returns a bit for each byte of the lane that is in the set: by its lower half, `upper_halves` has a bit for its upper.
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
#[inline]
pub(crate) fn members(upper_halves: &[u8; 16], lane: &[u8; 16]) -> u16 {
    use std::arch::wasm32::{
        i8x16_bitmask, i8x16_eq, i8x16_splat, i8x16_swizzle, u8x16, u8x16_shr, v128_and, v128_load,
    };

    // SAFETY: both are 16 bytes, and vector loads need no alignment.
    let (sets, bytes) = unsafe { (v128_load(upper_halves.as_ptr().cast()), v128_load(lane.as_ptr().cast())) };
    let known = i8x16_swizzle(sets, v128_and(bytes, i8x16_splat(0xf)));
    let bits = u8x16(1, 2, 4, 8, 16, 32, 64, 128, 0, 0, 0, 0, 0, 0, 0, 0);
    let wanted = i8x16_swizzle(bits, u8x16_shr(bytes, 4));
    !i8x16_bitmask(i8x16_eq(v128_and(known, wanted), i8x16_splat(0)))
}

/// Returns a bit for each byte of the lane that is in the set: by its lower half, `upper_halves` has a bit for its upper.
#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
#[inline]
pub(crate) fn members(upper_halves: &[u8; 16], lane: &[u8; 16]) -> u16 {
    let is_in = |byte: u8| byte.is_ascii() && upper_halves[usize::from(byte & 0xf)] >> (byte >> 4) & 1 != 0;
    lane.iter().rev().fold(0, |bits, byte| bits << 1 | u16::from(is_in(*byte)))
}

#[cfg(target_arch = "wasm32")]
mod wasm {
    /// Bytes of a page of WebAssembly memory.
    pub(crate) const PAGE_BYTES: usize = 65_536;

    mod raw {
        #[link(wasm_import_module = "netserv")]
        unsafe extern "C" {
            pub(super) fn log(level: i32, text: *const u8, length: usize) -> i32;
            pub(crate) safe fn monotonic_ns() -> u64;
            pub(crate) safe fn wall_ns() -> u64;
            pub(super) fn random(into: *mut u8, length: usize) -> i32;
            pub(super) fn property_get(key: *const u8, key_length: usize, out: *mut u8, out_length: usize) -> i32;
            pub(super) fn node_info(key: *const u8, key_length: usize, out: *mut u8, out_length: usize) -> i32;
            pub(super) fn counter_open(name: *const u8, length: usize) -> i32;
            pub(crate) safe fn counter_add(counter: u32, amount: u64) -> i32;
            pub(crate) safe fn counter_set(counter: u32, value: u64) -> i32;
            pub(super) fn kv_get(key: *const u8, key_length: usize, out: *mut u8, out_length: usize) -> i32;
            pub(super) fn kv_set(key: *const u8, key_length: usize, value: *const u8, value_length: usize) -> i32;
            pub(super) fn kv_delete(key: *const u8, key_length: usize) -> i32;
            pub(super) fn kv_next(key: *const u8, key_length: usize, out: *mut u8, out_length: usize) -> i32;
            pub(super) fn kv_increment(key: *const u8, key_length: usize, delta: i64, out: *mut u8) -> i32;
            pub(super) fn kv_compare_and_set(
                key: *const u8,
                key_length: usize,
                old: *const u8,
                old_length: usize,
                new: *const u8,
                new_length: usize,
            ) -> i32;
            pub(super) fn message_send(message: *const u8, length: usize) -> i32;
            pub(super) fn message_receive(out: *mut u8, out_length: usize) -> i32;
            pub(super) fn state_write(piece: *const u8, length: usize) -> i32;
            pub(super) fn state_read(out: *mut u8, out_length: usize) -> i32;
            pub(super) fn control_receive(out: *mut u8, out_length: usize) -> i32;
            pub(super) fn control_notify(topic: *const u8, topic_length: usize, body: *const u8, length: usize) -> i32;
            pub(super) fn channel_publish(
                topic: *const u8,
                topic_length: usize,
                message: *const u8,
                length: usize,
                key: *const u8,
                key_length: usize,
            ) -> i32;
            pub(crate) safe fn timer_set(id: u32, delay_ns: u64, period_ns: u64) -> i32;
            pub(crate) safe fn timer_cancel(id: u32) -> i32;
            pub(super) fn inject(packet: *const u8, length: usize) -> i32;
            pub(super) fn find(bytes: *const u8, length: usize, needle: *const u8, needle_length: usize) -> i32;
            pub(super) fn patterns_open(list: *const u8, length: usize, flags: u32) -> i32;
            pub(super) fn patterns_find(
                set: u32,
                bytes: *const u8,
                length: usize,
                out: *mut u8,
                out_length: usize,
            ) -> i32;
            pub(crate) safe fn patterns_close(set: u32) -> i32;
            pub(super) fn sip_parse(bytes: *const u8, length: usize, out: *mut u8, out_length: usize) -> i32;
            pub(super) fn hash(algorithm: i32, bytes: *const u8, length: usize, out: *mut u8, out_length: usize)
            -> i32;
        }
    }

    pub(crate) use raw::{counter_add, counter_set, monotonic_ns, patterns_close, timer_cancel, timer_set, wall_ns};

    pub(crate) fn log(level: i32, text: &[u8]) -> i32 {
        // SAFETY: the node reads `text` and nothing else.
        unsafe { raw::log(level, text.as_ptr(), text.len()) }
    }

    pub(crate) fn random(into: &mut [u8]) -> i32 {
        // SAFETY: the node writes `into` and nothing else.
        unsafe { raw::random(into.as_mut_ptr(), into.len()) }
    }

    pub(crate) fn property_get(key: &[u8], into: &mut [u8]) -> i32 {
        // SAFETY: the node reads `key`, writes `into` and nothing else.
        unsafe { raw::property_get(key.as_ptr(), key.len(), into.as_mut_ptr(), into.len()) }
    }

    pub(crate) fn node_info(key: &[u8], into: &mut [u8]) -> i32 {
        // SAFETY: the node reads `key`, writes `into` and nothing else.
        unsafe { raw::node_info(key.as_ptr(), key.len(), into.as_mut_ptr(), into.len()) }
    }

    pub(crate) fn counter_open(name: &[u8]) -> i32 {
        // SAFETY: the node reads `name` and nothing else.
        unsafe { raw::counter_open(name.as_ptr(), name.len()) }
    }

    pub(crate) fn kv_get(key: &[u8], into: &mut [u8]) -> i32 {
        // SAFETY: the node reads `key`, writes `into` and nothing else.
        unsafe { raw::kv_get(key.as_ptr(), key.len(), into.as_mut_ptr(), into.len()) }
    }

    pub(crate) fn kv_set(key: &[u8], value: &[u8]) -> i32 {
        // SAFETY: the node reads `key` and `value` and nothing else.
        unsafe { raw::kv_set(key.as_ptr(), key.len(), value.as_ptr(), value.len()) }
    }

    pub(crate) fn kv_delete(key: &[u8]) -> i32 {
        // SAFETY: the node reads `key` and nothing else.
        unsafe { raw::kv_delete(key.as_ptr(), key.len()) }
    }

    pub(crate) fn kv_next(key: &[u8], into: &mut [u8]) -> i32 {
        // SAFETY: the node reads `key`, writes `into` and nothing else.
        unsafe { raw::kv_next(key.as_ptr(), key.len(), into.as_mut_ptr(), into.len()) }
    }

    pub(crate) fn kv_increment(key: &[u8], delta: i64, sum: &mut [u8; 8]) -> i32 {
        // SAFETY: the node reads `key`, writes the eight bytes of `sum` and nothing else.
        unsafe { raw::kv_increment(key.as_ptr(), key.len(), delta, sum.as_mut_ptr()) }
    }

    pub(crate) fn kv_compare_and_set(key: &[u8], old: Option<&[u8]>, new: Option<&[u8]>) -> i32 {
        // The length of a value that is not there.
        let place = |value: Option<&[u8]>| value.map_or((std::ptr::null(), usize::MAX), |it| (it.as_ptr(), it.len()));
        let ((old, old_length), (new, new_length)) = (place(old), place(new));
        // SAFETY: the node reads `key` and the values that are there and nothing else.
        unsafe { raw::kv_compare_and_set(key.as_ptr(), key.len(), old, old_length, new, new_length) }
    }

    pub(crate) fn message_send(message: &[u8]) -> i32 {
        // SAFETY: the node reads `message` and nothing else.
        unsafe { raw::message_send(message.as_ptr(), message.len()) }
    }

    pub(crate) fn message_receive(into: &mut [u8]) -> i32 {
        // SAFETY: the node writes `into` and nothing else.
        unsafe { raw::message_receive(into.as_mut_ptr(), into.len()) }
    }

    pub(crate) fn state_write(piece: &[u8]) -> i32 {
        // SAFETY: the node reads `piece` and nothing else.
        unsafe { raw::state_write(piece.as_ptr(), piece.len()) }
    }

    pub(crate) fn state_read(into: &mut [u8]) -> i32 {
        // SAFETY: the node writes `into` and nothing else.
        unsafe { raw::state_read(into.as_mut_ptr(), into.len()) }
    }

    pub(crate) fn control_receive(into: &mut [u8]) -> i32 {
        // SAFETY: the node writes `into` and nothing else.
        unsafe { raw::control_receive(into.as_mut_ptr(), into.len()) }
    }

    pub(crate) fn control_notify(topic: &[u8], body: &[u8]) -> i32 {
        // SAFETY: the node reads `topic` and `body` and nothing else.
        unsafe { raw::control_notify(topic.as_ptr(), topic.len(), body.as_ptr(), body.len()) }
    }

    pub(crate) fn channel_publish(topic: &[u8], message: &[u8], key: &[u8]) -> i32 {
        let (address, length) = (message.as_ptr(), message.len());
        // SAFETY: the node reads `topic`, `message` and `key` and nothing else.
        unsafe { raw::channel_publish(topic.as_ptr(), topic.len(), address, length, key.as_ptr(), key.len()) }
    }

    pub(crate) fn inject(packet: &[u8]) -> i32 {
        // SAFETY: the node reads `packet` and nothing else.
        unsafe { raw::inject(packet.as_ptr(), packet.len()) }
    }

    pub(crate) fn find(bytes: &[u8], needle: &[u8]) -> i32 {
        // SAFETY: the node reads `bytes` and `needle` and nothing else.
        unsafe { raw::find(bytes.as_ptr(), bytes.len(), needle.as_ptr(), needle.len()) }
    }

    pub(crate) fn patterns_open(list: &[u8], flags: u32) -> i32 {
        // SAFETY: the node reads `list` and nothing else.
        unsafe { raw::patterns_open(list.as_ptr(), list.len(), flags) }
    }

    pub(crate) fn patterns_find(set: u32, bytes: &[u8], out: &mut [u8]) -> i32 {
        // SAFETY: the node reads `bytes`, writes `out` and nothing else.
        unsafe { raw::patterns_find(set, bytes.as_ptr(), bytes.len(), out.as_mut_ptr(), out.len()) }
    }

    pub(crate) fn sip_parse(bytes: &[u8], out: &mut [u8]) -> i32 {
        // SAFETY: the node reads `bytes`, writes `out` and nothing else.
        unsafe { raw::sip_parse(bytes.as_ptr(), bytes.len(), out.as_mut_ptr(), out.len()) }
    }

    pub(crate) fn hash(algorithm: i32, bytes: &[u8], out: &mut [u8]) -> i32 {
        // SAFETY: the node reads `bytes`, writes `out` and nothing else.
        unsafe { raw::hash(algorithm, bytes.as_ptr(), bytes.len(), out.as_mut_ptr(), out.len()) }
    }

    /// Returns the address of zeroed pages for the rest of the module's life; 0 if there are none. They come straight
    /// from the node: the heap would clear them, and touch them all.
    pub(crate) fn allocate_pages(pages: usize) -> usize {
        match std::arch::wasm32::memory_grow::<0>(pages) {
            usize::MAX => 0,
            first => first * PAGE_BYTES,
        }
    }

    /// Returns memory of the packet area.
    pub(crate) fn area_bytes(address: usize, length: usize) -> &'static mut [u8] {
        // SAFETY: the node gives addresses inside the area that the module set aside, uses it only between calls, and
        // the runtime holds one such slice of descriptors and one of a packet at a time, which do not overlap.
        unsafe { std::slice::from_raw_parts_mut(address as *mut u8, length) }
    }
}
