// SPDX-License-Identifier: Apache-2.0
//! Names of programs and files that both sides use.

/// The name under which a program starts itself as launcher.
pub(crate) const LAUNCHER_NAME: &str = "netserv-launcher";
/// What the names of a compilation's inputs inside its container start with.
pub(crate) const COMPILE_INPUT: &str = "in";
/// A compilation's output inside its container.
pub(crate) const COMPILE_OUTPUT: &str = "out.cwasm";
/// The name of the archive of classes, in `/data` of the container that makes it and in the directory of archives.
pub const ARCHIVE_FILE: &str = "host.jsa";
