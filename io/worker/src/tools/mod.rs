// SPDX-License-Identifier: Apache-2.0
//! What the programs do outside of containers: they compile modules, test and measure them, and serve one on a
//! developer's machine.

pub mod bench;
pub mod compile;
pub mod pcap;
pub mod serve_http;
pub mod test;
