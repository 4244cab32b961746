// SPDX-License-Identifier: Apache-2.0
//! Where things are inside a container.

/// The worker's path inside a container.
pub(crate) const WORKER: &str = "/worker";
/// The writable directory inside a container.
pub(crate) const DATA: &str = "/data";
/// Where the files are that outlive a container ([`storage`](super::storage)).
pub(crate) const STORE: &str = "/store";
/// Where certificate authorities are that the operator added.
pub(crate) const AUTHORITIES: &str = "/etc/authorities.pem";
/// What a container may write to beside its directory, if it is there.
pub(crate) const NULL: &str = "/dev/null";
/// The file of kv state inside a container.
pub const STORE_KV: &str = "/store/kv";
/// The file of the cache inside a container.
pub const STORE_CACHE: &str = "/store/cache";
/// The font inside the sandbox.
pub(crate) const FONT: &str = "/font";
