// SPDX-License-Identifier: Apache-2.0
//! Fetching by URL, whatever its scheme.

use std::io::Write;
use std::time::Instant;

use netserv_model::Refusal;

use crate::limits::URL_BYTES_MAX;
use crate::registry;
use crate::source::{FetchLimits, Fetcher, bad_url};

/// Writes what is at a URL, of a server, a file or a registry.
pub(crate) fn fetch(fetcher: &Fetcher, url: &str, limits: &FetchLimits, out: &mut dyn Write) -> Result<(), Refusal> {
    let deadline = Instant::now() + limits.time;
    if url.len() > URL_BYTES_MAX {
        return Err(bad_url(format!("{} bytes, at most {URL_BYTES_MAX}", url.len())));
    }
    if url.starts_with(registry::SCHEME) {
        return registry::fetch(fetcher, url, deadline, limits, out);
    }
    fetcher.get(url, deadline, limits, out)
}
