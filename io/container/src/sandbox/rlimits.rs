// SPDX-License-Identifier: Apache-2.0
//! Limits of the process itself, beside those of its control groups.

use std::io;

use netserv_model::Flavour;
use rustix::process::{Resource, Rlimit};

use crate::limits::{JAVA_OPEN_FILES_MAX, NETWORK_OPEN_FILES_MAX, OPEN_FILES_MAX};

/// Sets the limits of this process: open files by what it runs, the length of each file, and none of what it needs not.
///
/// After `cpu_seconds` of processor time, of all threads together, the kernel kills the process.
pub(crate) fn set(flavour: Flavour, network: bool, file_bytes: u64, cpu_seconds: Option<u64>) -> io::Result<()> {
    let open_files = match flavour {
        Flavour::Wasm if network => NETWORK_OPEN_FILES_MAX,
        Flavour::Wasm => OPEN_FILES_MAX,
        Flavour::Osgi => JAVA_OPEN_FILES_MAX,
    };
    let limits = [
        (Resource::Core, 0),
        (Resource::Nofile, open_files),
        (Resource::Fsize, file_bytes),
        (Resource::Memlock, 0),
        (Resource::Msgqueue, 0),
        (Resource::Sigpending, 64),
    ];
    for (resource, limit) in limits {
        let now = rustix::process::getrlimit(resource);
        let limit = now.maximum.map_or(limit, |maximum| maximum.min(limit));
        rustix::process::setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })?;
    }
    if let Some(seconds) = cpu_seconds {
        // The first process of a pid namespace does not get the signal of a lower limit.
        rustix::process::setrlimit(Resource::Cpu, Rlimit { current: Some(seconds), maximum: Some(seconds) })?;
    }
    Ok(())
}
