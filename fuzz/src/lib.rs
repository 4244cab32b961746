// SPDX-License-Identifier: Apache-2.0
//! What is done with bytes from outside in each fuzz target, and what must hold for all of them.
//!
//! The targets in `fuzz_targets/` run these functions under libFuzzer. `tests/replay.rs` runs them over the corpus, and
//! over damaged copies of it, with a stable compiler.

mod authority;
mod bundle;
pub mod checklist;
mod container;
mod engine;
mod filters;
mod frame;
mod gist;
mod input;
mod ip;
mod manifest;
mod network;
mod node;
mod nslp;
mod ring;
mod sip;
mod xdp;

pub use authority::{grant_chain, revocation_list};
pub use bundle::bundle_jar;
pub use checklist::checklist;
pub use container::container_frames;
pub use engine::gist_engine;
pub use filters::filter_index;
pub use frame::ethernet_frame;
pub use gist::{gist_message, gist_stream};
pub use ip::ip_view;
pub use manifest::package_manifest;
pub use node::node;
pub use nslp::nslp_text;
pub use ring::packet_ring;
pub use sip::sip_text;
pub use xdp::{xdp_classify, xdp_forward};

/// What is done with one input; it panics if something does not hold.
pub type Target = fn(&[u8]);

/// Every target by name.
pub const TARGETS: [(&str, Target); 18] = [
    ("gist_message", gist_message),
    ("gist_stream", gist_stream),
    ("gist_engine", gist_engine),
    ("node", node),
    ("ip_view", ip_view),
    ("nslp_text", nslp_text),
    ("sip_text", sip_text),
    ("container_frames", container_frames),
    ("packet_ring", packet_ring),
    ("ethernet_frame", ethernet_frame),
    ("xdp_classify", xdp_classify),
    ("xdp_forward", xdp_forward),
    ("filter_index", filter_index),
    ("bundle_jar", bundle_jar),
    ("package_manifest", package_manifest),
    ("grant_chain", grant_chain),
    ("revocation_list", revocation_list),
    ("checklist", checklist),
];
