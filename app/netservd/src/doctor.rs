// SPDX-License-Identifier: Apache-2.0
//! What this machine can and cannot do for a node, and what to do about it.

use std::process::ExitCode;

use netserv_dataplane::choose::{self, Fitness};

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
    let survey = choose::survey();
    for Fitness { kind, fits, notes } in &survey {
        match fits {
            Ok(()) => println!("  ok      {kind}"),
            Err(reason) => println!("  missing {kind}: {reason}"),
        }
        for line in notes {
            println!("          {line}");
        }
    }
    if let Err(error) = choose::choose("auto", &survey) {
        usable = false;
        println!("          {error}");
        println!("          fix: run as root with `iptables` installed, or use role = \"host\"");
    }
    if usable { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Returns what is missing, a line each, for the API.
pub fn missing() -> Vec<String> {
    let checks = netserv_container::doctor().into_iter().filter(|check| !check.ok);
    checks.map(|check| format!("{}: {}; fix: {}", check.what, check.found, check.fix)).collect()
}
