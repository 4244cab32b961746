// SPDX-License-Identifier: Apache-2.0
//! Fetches, verifies and stores module packages.
//!
//! [`package`] makes, signs, reads and checks `.nsm` files; [`manifest`] reads their manifests; [`bundle`] looks at
//! OSGi bundles; [`Repository`] gets packages by URL and keeps them by digest. Every failure that a requester can see is a
//! refusal.

mod archive;
mod asker;
pub mod bundle;
mod compiled;
mod fetch;
pub mod limits;
mod lists;
pub mod manifest;
mod oci;
pub mod package;
mod parts;
pub mod push;
pub mod registry;
mod room;
mod source;
mod states;
mod store;

pub use asker::{Asker, WELL_KNOWN, url_of};
pub use compiled::{Compiled, engine_name};
pub use lists::{ListAsker, check_list_url};
pub use package::{Package, PackageSignature, Summary};
pub use parts::Part;
pub use room::Downloaded;
pub use source::{FetchLimits, IsOwn, Sources};
pub use store::{Config, Repository, Stored};
