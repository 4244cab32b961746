// SPDX-License-Identifier: Apache-2.0
//! The probe as a node: starts containers, prints their process numbers, and waits to be killed.

use std::process::ExitCode;

use netserv_container::{LaunchSpec, Launcher, LauncherConfig};
use netserv_model::Flavour;
use netserv_model::policy::ContainerLimits;

pub(crate) fn hold(state_dir: &str, instance: &str, count: &str) -> ExitCode {
    let worker = std::env::current_exe().expect("the probe is a file");
    let launcher = Launcher::start(&LauncherConfig::new(worker, state_dir, instance)).expect("the launcher starts");
    let user = "janedoe".parse().expect("a user name");
    let limits = ContainerLimits::default();
    let spec = LaunchSpec::new(&user, Flavour::Wasm, &limits);
    let launch = |_| launcher.launch(&spec).expect("a container starts").split();
    let containers: Vec<_> = (0..count.parse().expect("a count")).map(launch).collect();
    for line in &launcher.report().missing {
        println!("missing: {line}");
    }
    for (_, _, process) in &containers {
        println!("{}", process.pid());
    }
    println!("ready");
    loop {
        std::thread::park();
    }
}
