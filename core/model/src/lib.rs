// SPDX-License-Identifier: Apache-2.0
//! Plain data that every other crate shares: identifiers, filters, verdicts, requests, commands, manifests, limits.
//!
//! Nothing here does I/O, reads a clock or keeps state. A value that could be built is a valid value.
#![forbid(unsafe_code)]

#[macro_use]
mod counts;
#[macro_use]
mod words;

pub mod api;
pub mod application;
pub mod audit;
pub mod container_link;
pub mod control;
pub mod dependency;
pub mod domain;
pub mod effect;
pub mod error;
pub mod evidence;
pub mod exposition;
pub mod filter;
pub mod filter_index;
pub mod flavour;
pub mod floating;
pub mod ids;
pub mod limits;
pub mod manifest;
pub mod node_info;
pub mod notify;
pub mod off_path;
pub mod policy;
pub mod prefix;
pub mod request;
pub mod route;
pub mod share;
pub mod target;
pub mod text;
pub mod time;
pub mod trace;
pub mod usage;
pub mod verdict;

pub use error::{Refusal, RefusalKind};
pub use filter::{Filter, Flow, PortRange, Protocol, WantedFilter};
pub use filter_index::FilterIndex;
pub use flavour::{Flavour, WorkerId};
pub use ids::{
    Digest, DomainName, ModuleName, ModuleRef, NodeId, Nonce, PublicKey, SessionId, Signature, Topic, UserId,
};
pub use time::{Instant, Now, UnixTime};
pub use verdict::{DropReason, Verdict};
