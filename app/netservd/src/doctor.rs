// SPDX-License-Identifier: Apache-2.0
//! What this machine can and cannot do for a node, and what to do about it.

use std::process::ExitCode;

use netserv_dataplane::choose::DriverKind;

/// Prints every check with its fix; fails if a node could not run modules here.
pub fn print() -> ExitCode {
    let mut usable = true;
    println!("containers");
    for check in netserv_container::doctor() {
        let mark = if check.ok { "ok     " } else { "missing" };
        println!("  {mark} {}: {}", check.what, check.found);
        if !check.ok {
            println!("          fix: {}", check.fix);
        }
    }
    println!("forwarding planes, the best first");
    let mut planes = 0;
    for kind in DriverKind::ALL.into_iter().filter(|kind| *kind != DriverKind::Dummy) {
        match kind.probe().usable {
            Ok(()) => {
                planes += 1;
                println!("  ok      {kind}");
            }
            Err(reason) => println!("  missing {kind}: {reason}"),
        }
    }
    if planes == 0 {
        usable = false;
        println!("          fix: no plane works; run as root with `iptables` installed, or use role = \"host\"");
    }
    if usable { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Returns what is missing, a line each, for the API.
pub fn missing() -> Vec<String> {
    let checks = netserv_container::doctor().into_iter().filter(|check| !check.ok);
    checks.map(|check| format!("{}: {}; fix: {}", check.what, check.found, check.fix)).collect()
}
