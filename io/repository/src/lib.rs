// SPDX-License-Identifier: Apache-2.0
//! Fetches, verifies and stores module packages.
//!
//! [`package`] makes, signs, reads and checks `.nsm` files; [`manifest`] reads their manifests; [`bundle`] looks at
//! OSGi bundles; [`Repository`] gets packages by URL and keeps them by digest. Every failure that a requester can see is a
//! refusal.

mod archive;
pub mod bundle;
mod compiled;
mod fetch;
pub mod limits;
pub mod manifest;
mod oci;
pub mod package;
mod parts;
pub mod push;
pub mod registry;
mod revocation_lists;
mod room;
mod source;
mod states;
mod store;
mod well_known;

pub use compiled::{Compiled, engine_name};
pub use package::{Package, PackageSignature, Summary};
pub use parts::Part;
pub use revocation_lists::{ListAsker, check_list_url};
pub use room::Downloaded;
pub use source::{FetchLimits, IsOwn, Sources};
pub use store::{Config, Repository, Stored};
pub use well_known::{AddressAsker, WELL_KNOWN, url_of};
