// SPDX-License-Identifier: Apache-2.0
//! What this machine can and cannot do for a node, and what to do about it.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use netserv_container::Check;
use netserv_dataplane::choose::{self, Fitness};
use netserv_model::Flavour;

use super::jvm::Jvm;
use crate::config::{Config, Role};

/// Prints every check with its fix, also of what a configuration asks for; fails if a node could not run modules here.
///
/// # Errors
/// The configuration cannot be read.
pub fn print(config: Option<&Path>) -> Result<ExitCode> {
    let config = config.map(Config::load).transpose()?;
    let mut usable = true;
    say!("containers");
    netserv_container::doctor().iter().for_each(print_check);
    say!("networks of containers, for servers");
    match &config {
        Some(config) if !config.has_network() => {
            say!("  none    neither network.prefixes nor addresses of users are set");
        }
        Some(config) => network(config).iter().for_each(print_check),
        None => netserv_container::network::doctor(&[4, 6]).iter().for_each(print_check),
    }
    let config = config.unwrap_or_default();
    say!("OSGi modules");
    print_osgi(&config);
    say!("media jobs");
    print_media(&config);
    say!("forwarding planes, the best first");
    if config.dataplane.real_time {
        print_check(&netserv_container::real_time());
    }
    let survey = choose::survey();
    for Fitness { kind, fits, notes } in &survey {
        match fits {
            Ok(()) => say!("  ok      {kind}"),
            Err(reason) => say!("  missing {kind}: {reason}"),
        }
        for line in notes {
            say!("          {line}");
        }
    }
    if let Err(error) = choose::choose("auto", &survey) {
        usable = false;
        say!("          {error}");
        say!("          fix: run as root, or use role = \"host\"");
    }
    Ok(if usable { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns what is missing, a line each, for the API.
pub fn missing(config: &Config) -> Vec<String> {
    let networks = if config.role == Role::Node { network(config) } else { Vec::new() };
    let real_time = config.dataplane.real_time.then(netserv_container::real_time);
    let checks = netserv_container::doctor().into_iter().chain(networks).chain(real_time).filter(|check| !check.ok);
    checks.map(|check| format!("{}: {}; fix: {}", check.what, check.found, check.fix)).collect()
}

/// Looks at what the networks of the configuration need; at nothing if there are none.
fn network(config: &Config) -> Vec<Check> {
    let prefixes = config.network.prefixes.iter().map(|prefix| prefix.addr());
    let addresses = config.users.iter().flat_map(|user| user.addresses.iter().copied());
    let versions: BTreeSet<u8> =
        prefixes.chain(addresses).map(|address| if address.is_ipv4() { 4 } else { 6 }).collect();
    if versions.is_empty() {
        return Vec::new();
    }
    netserv_container::network::doctor(&Vec::from_iter(versions))
}

fn print_osgi(config: &Config) {
    match Jvm::find(config) {
        _ if !config.osgi.enabled => say!("  none    osgi.enabled is false"),
        _ if !config.flavours.contains(&Flavour::Osgi) => say!("  none    `flavours` does not name osgi"),
        Ok(jvm) => say!("  ok      {} in {}", jvm.engine, jvm.files.java_home.display()),
        Err(missing) => say!("  missing {}\n          fix: {}", missing.what, missing.fix),
    }
}

fn print_media(config: &Config) {
    match config.blocks.media.files() {
        _ if !config.blocks.has("media") => say!("  none    blocks.enabled does not name media"),
        Ok(files) => {
            let text = if files.font.is_some() { "" } else { ", but no font: no texts are laid over pictures" };
            say!("  ok      {}{text}", files.ffmpeg.display());
        }
        Err(missing) => say!("  missing {}", missing.replace("; fix: ", "\n          fix: ")),
    }
}

fn print_check(check: &Check) {
    let mark = if check.ok { "ok     " } else { "missing" };
    say!("  {mark} {}: {}", check.what, check.found);
    if !check.ok {
        say!("          fix: {}", check.fix);
    }
}
