// SPDX-License-Identifier: Apache-2.0
//! Tests of the whole codec, by topic.

mod errors;
mod messages;
mod objects;
mod roundtrip;
mod samples;
mod stream;
