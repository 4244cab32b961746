// SPDX-License-Identifier: Apache-2.0
//! What a node that was killed left behind on the machine, and the file that keeps two nodes apart.

use std::path::Path;

use anyhow::{Context, Result};

use crate::config::{Config, Role};

/// Removes what a node of this configuration left behind when it was killed.
///
/// # Errors
/// The node runs, or something could not be removed.
pub fn cleanup(config_path: Option<&Path>, dry_run: bool) -> Result<()> {
    let config = Config::load_or_default(config_path)?;
    println!("instance {} (state directory {})", config.instance(), config.state_dir.display());
    if !config.state_dir.exists() {
        println!("there is no such state directory; nothing to do");
        return Ok(());
    }
    let _lock = lock(&config.state_dir)?;
    if dry_run {
        println!("would remove its filter rules, cgroups, links of containers and socket");
        return Ok(());
    }
    sweep(&config)?;
    println!("clean");
    Ok(())
}

/// Makes sure that this is the only node with this state directory, for as long as the file is held.
///
/// # Errors
/// Another node has it, or the file cannot be made.
pub fn lock(state_dir: &Path) -> Result<std::fs::File> {
    let path = state_dir.join("netservd.lock");
    let file = std::fs::File::options().create(true).truncate(false).write(true).open(&path)?;
    let locked = rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive);
    locked.with_context(|| format!("another netservd has {}; stop it, or set `state-dir`", path.display()))?;
    Ok(file)
}

/// Removes what an earlier node of this instance left behind.
///
/// # Errors
/// Something could not be removed.
pub fn sweep(config: &Config) -> Result<()> {
    let instance = config.instance();
    if config.role == Role::Node && is_root() {
        netserv_dataplane::cleanup_leftovers(&instance).context("rules of an earlier node")?;
        netserv_container::cleanup_leftovers(&config.state_dir, &instance).context("containers of an earlier node")?;
        // After the containers, which would keep their ends.
        let found = netserv_container::network::remove_networks(&instance).context("networks of an earlier node")?;
        if found > 0 {
            tracing::warn!(found, "removed links of containers that an earlier run left");
        }
    }
    Ok(())
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
