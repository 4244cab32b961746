// SPDX-License-Identifier: Apache-2.0
#![no_main]
//! Runs [`netserv_fuzz::grant_chain`] under libFuzzer.

libfuzzer_sys::fuzz_target!(|data: &[u8]| netserv_fuzz::grant_chain(data));
