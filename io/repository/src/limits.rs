// SPDX-License-Identifier: Apache-2.0
//! Bounds of packages and of the store; those that others share are in `netserv_model::limits`.

use std::time::Duration;

/// Bytes of a package's manifest.
pub const MANIFEST_BYTES_MAX: usize = 64 * 1024;
/// Bytes of one JSON document of an image layout.
pub const JSON_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a package kept free for its frame: tar headers, JSON documents and every signature.
pub const FRAME_BYTES_MAX: u64 = 128 * 1024;
/// Signatures of one package.
pub const SIGNATURES_MAX: usize = 16;
/// Bytes of a certificate chain with its key.
pub const PEM_BYTES_MAX: usize = 64 * 1024;
/// Layers of one package: one per part.
pub const LAYERS_MAX: usize = 8;
/// Entries of a bundle's jar.
pub const JAR_ENTRIES_MAX: usize = 16 * 1024;
/// Bytes of the manifest in a bundle's jar.
pub const JAR_MANIFEST_BYTES_MAX: usize = 256 * 1024;
/// Bytes of a URL.
pub const URL_BYTES_MAX: usize = 2048;
/// Redirects that one fetch follows.
pub const REDIRECTS_MAX: u32 = 5;
/// Bytes of compiled code in one directory.
pub const CODE_DIR_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// Bytes of all that is being downloaded and of states that wait to be loaded, on disk; each user has a share.
pub const DOWNLOADS_BYTES_MAX: u64 = 2 * 1024 * 1024 * 1024;
/// Keys whose signatures of one package are kept beside it.
pub const SIGNERS_MAX: usize = 1024;
/// Bytes of the file with them.
pub const SIGNERS_BYTES_MAX: u64 = 512 * SIGNERS_MAX as u64;
/// Bytes that stored packages take unless the operator says otherwise.
pub const STORE_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// Bytes of what an address says of a user.
pub const ADDRESS_ANSWER_BYTES_MAX: u64 = 256;
/// How long it may take to answer, with the connection.
pub const ADDRESS_ANSWER_TIME_MAX: Duration = Duration::from_secs(5);
/// Bytes of a revocation list, with white space around it.
pub const LIST_BYTES_MAX: u64 = 64 * 1024 + 128;
/// How long it may take to come, with the connection.
pub const LIST_TIME_MAX: Duration = Duration::from_secs(10);
/// Bytes of a server's name for a version of what it gives.
pub const ETAG_BYTES_MAX: usize = 256;
