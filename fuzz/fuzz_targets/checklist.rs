// SPDX-License-Identifier: Apache-2.0
#![no_main]
//! Runs [`netserv_fuzz::checklist`] under libFuzzer.

libfuzzer_sys::fuzz_target!(|data: &[u8]| netserv_fuzz::checklist(data));
