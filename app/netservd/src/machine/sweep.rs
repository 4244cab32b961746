// SPDX-License-Identifier: Apache-2.0
//! What a node that was killed left behind on the machine, and the file that keeps two nodes apart.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::io::Errno;

use crate::config::{Config, Role};

/// Removes what a node of this configuration left behind when it was killed.
///
/// # Errors
/// The node runs, or something could not be removed.
pub fn cleanup(config_path: Option<&Path>, dry_run: bool) -> Result<()> {
    let config = Config::load_or_default(config_path)?;
    say!("instance {} (state directory {})", config.instance(), config.state_dir.display());
    if !config.state_dir.exists() {
        say!("there is no such state directory; nothing to do");
        return Ok(());
    }
    let _lock = lock(&config.state_dir)?;
    if dry_run {
        say!("would remove its cgroups, links of containers and socket");
        return Ok(());
    }
    sweep(&config)?;
    say!("clean");
    Ok(())
}

/// Makes sure that this is the only node with this state directory, for as long as the file is held.
///
/// # Errors
/// Another node has it, or the file cannot be made.
pub fn lock(state_dir: &Path) -> Result<std::fs::File> {
    let path = state_dir.join("netservd.lock");
    let file = std::fs::File::options().create(true).truncate(false).write(true).open(&path)?;
    // A node that was killed holds it until the last of its processes is gone.
    let until = Instant::now() + LOCK_WAIT_MAX;
    let locked = loop {
        match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) if Instant::now() < until => std::thread::sleep(LOCK_LOOK_EVERY),
            locked => break locked,
        }
    };
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

/// How long a node that starts waits for one to be gone that was killed,
const LOCK_WAIT_MAX: Duration = Duration::from_secs(3);
/// and how often it looks.
const LOCK_LOOK_EVERY: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: who starts while one that was killed is not gone yet waits for it, and who starts beside one that runs is told so.
    #[test]
    fn the_lock_of_one_that_is_going_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let first = lock(dir.path()).unwrap();
        let begun = Instant::now();
        let ends = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(200));
            drop(first);
        });
        let second = lock(dir.path()).unwrap();
        assert!(begun.elapsed() >= Duration::from_millis(200));
        ends.join().unwrap();
        let error = format!("{:#}", lock(dir.path()).unwrap_err());
        assert!(error.contains("another netservd has"), "{error}");
        drop(second);
    }
}
