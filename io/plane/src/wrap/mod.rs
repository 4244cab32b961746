// SPDX-License-Identifier: Apache-2.0
//! Wrappers that fit around any driver, and around each other: [`trace`] remembers the last packets, [`fault`] makes
//! trouble on purpose, [`pcap`] writes packets to a file for Wireshark.

pub mod fault;
pub mod pcap;
pub mod trace;

pub use fault::{Fault, FaultPlan};
pub use pcap::Pcap;
pub use trace::{Trace, TraceEntry, TraceLog, Traced};
