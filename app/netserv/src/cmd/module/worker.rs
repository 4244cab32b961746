// SPDX-License-Identifier: Apache-2.0
//! Where the programs are that run modules.

use std::path::PathBuf;

use netserv_model::Flavour;

use crate::exit::{Failure, OrFail};

/// Returns the name of the program that runs modules of a flavour.
pub fn name(flavour: Flavour) -> &'static str {
    match flavour {
        Flavour::Wasm => "netserv-worker",
        Flavour::Osgi => "netserv-jvm",
    }
}

/// Returns the worker's executable: `NETSERV_WORKER` or `NETSERV_JVM`, or the one beside this program.
///
/// # Errors
/// There is none.
pub fn find(flavour: Flavour) -> Result<PathBuf, Failure> {
    let (name, variable) = match flavour {
        Flavour::Wasm => (name(flavour), "NETSERV_WORKER"),
        Flavour::Osgi => (name(flavour), "NETSERV_JVM"),
    };
    let fix = format!("install {name} beside netserv, or name it with {variable}");
    if let Some(named) = std::env::var_os(variable).map(PathBuf::from) {
        let missing = || Failure::new(format!("{variable} is {}, which is no file", named.display()), &fix);
        return named.is_file().then(|| named.clone()).ok_or_else(missing);
    }
    let own = std::env::current_exe().or_fail("cannot find this program's own file", &fix)?;
    let beside = own.with_file_name(name);
    let missing = || Failure::new(format!("there is no {}", beside.display()), &fix);
    beside.is_file().then(|| beside.clone()).ok_or_else(missing)
}
