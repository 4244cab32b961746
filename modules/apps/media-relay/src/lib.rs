// SPDX-License-Identifier: Apache-2.0
//! Relays the media of calls: a SIP server with a client of rtpengine's ng protocol asks the server part for ports, and the packet part
//! sends RTP and RTCP on in the packet path.
//!
//! The server part ([`desk`]) reads requests, keeps the calls in kv, and tells the packet part which ports there are ([`table`]); the
//! answer goes out when the packet part has them. The packet part learns where parties are from what they send ([`port`]), and tells
//! what came each second. After a restart, and on another node, both begin with the calls that kv has; what was learned of parties goes
//! along as state.
//!
//! The property `control` has the addresses of the SIP servers, `ports` the range of ports, which the filter names as well:
//! `udp dst self port 30000-30999`.

pub mod bencode;
pub mod calls;
pub mod desk;
pub mod json;
pub mod limits;
pub mod ng;
pub mod options;
#[cfg(not(target_os = "wasi"))]
pub mod packets;
pub mod port;
#[cfg(not(target_os = "wasi"))]
mod rewrite;
pub mod sdp;
pub mod settings;
pub mod table;
pub mod value;
