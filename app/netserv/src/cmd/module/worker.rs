// SPDX-License-Identifier: Apache-2.0
//! Where `netserv-worker` is.

use std::path::PathBuf;

use crate::exit::{Failure, OrFail};

/// Returns the worker's executable: `NETSERV_WORKER`, or the one beside this program.
///
/// # Errors
/// There is none.
pub fn find() -> Result<PathBuf, Failure> {
    let fix = "install netserv-worker beside netserv, or name it with NETSERV_WORKER";
    if let Some(named) = std::env::var_os("NETSERV_WORKER").map(PathBuf::from) {
        let missing = || Failure::new(format!("NETSERV_WORKER is {}, which is no file", named.display()), fix);
        return named.is_file().then(|| named.clone()).ok_or_else(missing);
    }
    let own = std::env::current_exe().or_fail("cannot find this program's own file", fix)?;
    let beside = own.with_file_name("netserv-worker");
    let missing = || Failure::new(format!("there is no {}", beside.display()), fix);
    beside.is_file().then(|| beside.clone()).ok_or_else(missing)
}
