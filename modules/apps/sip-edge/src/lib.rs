// SPDX-License-Identifier: Apache-2.0
//! Stands in front of a SIP server, close to its phones: answers what only keeps something alive, and rejects what the server could
//! not bear (2011 paper, §6.2 and §6.3). The packet part does so for UDP, the server part for TCP.
//!
//! Answered in the server's place, each by a property of its own (`on` by default):
//! - `notify`: NOTIFY with `Event: keep-alive`; `options`: OPTIONS outside a dialog whose request URI names no user;
//! - `crlf`: a double CRLF with a single one (RFC 5626 §3.5.1, over TCP §4.4.1); `stun`: a binding request (§4.4.2, RFC 8489);
//! - `register`: a REGISTER that only goes on with a registration that the server has confirmed here, with more than half of its time
//!   left: same source, and alike but for CSeq and Via. One with credentials is never answered, and whoever is unknown gets the
//!   server's answer.
//!
//! All of them only while the server itself answers: [`edge::Edge`] listens to it.
//!
//! `overload`: while the module's user says so by a control message of the topic `overload` (`rate=170 validity-ms=2000`,
//! `loss=40`, `off`), sources have equal shares of what the server can take, and the rest is rejected with 503. If the property `oc` is
//! `on`, the edge asks the server for its load in the Vias of clients that do not ask, and each has what the server says to it (RFC
//! 7339, RFC 7415). ACK, CANCEL, PRACK, what belongs to a dialog, and [calls of an emergency](emergency) always go on: to
//! `urn:service:sos`, to a user of the property `emergency`, with `Priority: emergency`, or with a `Resource-Priority` of the namespaces of
//! `emergency-namespaces`.
//!
//! Everything else passes untouched, whatever is wrong with it. The property `server` has the server's addresses, and the filters name
//! them: `udp dst 192.0.2.7 port 5060`, and `udp src 192.0.2.7 sport 5060` by which the module learns what the server confirms.

pub mod bindings;
pub mod control;
pub mod edge;
pub mod emergency;
pub mod framing;
pub mod limits;
pub mod oc;
#[cfg(not(target_os = "wasi"))]
pub mod packets;
pub mod phone;
mod proof;
mod serving;
mod soundness;
#[cfg(target_os = "wasi")]
mod stream;
pub mod stun;
