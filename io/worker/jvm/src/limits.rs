// SPDX-License-Identifier: Apache-2.0
//! Named bounds of what Java has of the native side.

use std::time::Duration;

/// Bytes of a bundle that the JVM's worker copies into its container.
pub const BUNDLE_BYTES_MAX: u64 = netserv_model::limits::PACKAGE_BYTES_MAX;
/// Reports of Java threads that wait for the packet thread; further ones are counted and lost.
pub const JAVA_EVENTS_WAITING_MAX: usize = 4096;
/// Things of one kind that all bundles of a JVM have of the native side: states, shares, entries, sets or streams.
pub const JAVA_HANDLES_MAX: usize = 4096;
/// Bytes of the cache that cross between Java and the native side at a time.
pub const JAVA_PIECE_BYTES_MAX: usize = 64 * 1024;
/// UTF-16 units of a path that the Java host gives.
pub const JAVA_PATH_UNITS_MAX: usize = 4096;
/// Counters of one module that are taken from Java; further ones are left out.
pub const JAVA_COUNTERS_MAX: usize = 4096;
/// How long bundles have to stop when the node shuts a worker down.
pub const JAVA_SHUTDOWN_MAX: Duration = Duration::from_secs(2);
