// SPDX-License-Identifier: Apache-2.0
//! A node's state directory: its lock, and what an earlier run left in it and on the machine.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

use crate::error::ContainerError;
use crate::sandbox::cgroup;

/// Removes what an earlier run of the instance left on the machine: processes, cgroups, directories. Returns how many
/// cgroups it found. [`Launcher::start`] does it too.
///
/// # Errors
/// [`ContainerError::InUse`] if a node with this state directory runs.
pub fn cleanup_leftovers(state_dir: &Path, instance: &str) -> Result<usize, ContainerError> {
    check_instance(instance)?;
    if !state_dir.exists() {
        return Ok(remove_leftovers(state_dir, instance, None));
    }
    let _lock = lock(state_dir)?;
    Ok(remove_leftovers(state_dir, instance, None))
}

/// The directory, in the state directory, over which the launcher mounts the root for itself.
pub(super) const ROOT: &str = "containers";
/// Likewise for Java workers.
pub(super) const JAVA_ROOT: &str = "java-containers";
/// Likewise for media jobs.
pub(super) const MEDIA_ROOT: &str = "media-jobs";
const LOCK: &str = "launcher.lock";

pub(super) fn remove_leftovers(state_dir: &Path, instance: &str, cgroup_parent: Option<&Path>) -> usize {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let found = cgroup::cleanup(&mounts, instance, cgroup_parent);
    if found > 0 {
        tracing::warn!(found, instance, "removed cgroups that an earlier run left");
    }
    for root in [ROOT, JAVA_ROOT, MEDIA_ROOT] {
        let _ = fs::remove_dir(state_dir.join(root));
    }
    found
}

pub(super) fn root_directory(state_dir: &Path, name: &str) -> Result<PathBuf, ContainerError> {
    let root = state_dir.join(name);
    fs::create_dir_all(&root).map_err(ContainerError::launcher("make the root's directory"))?;
    fs::canonicalize(&root).map_err(ContainerError::launcher("find the root's directory"))
}

pub(super) fn lock(state_dir: &Path) -> Result<File, ContainerError> {
    let path = state_dir.join(LOCK);
    let options = File::options().create(true).truncate(false).write(true).open(&path);
    let file = options.map_err(ContainerError::launcher("open the lock file"))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(ContainerError::InUse(state_dir.to_owned())),
        Err(error) => Err(ContainerError::launcher("lock the state directory")(error.into())),
    }
}

pub(super) fn check_instance(instance: &str) -> Result<(), ContainerError> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let good = (1..=64).contains(&instance.len()) && instance.bytes().all(allowed);
    if good { Ok(()) } else { Err(ContainerError::BadInstance(instance.chars().take(80).collect())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instance_names_cannot_leave_their_directory() {
        for bad in ["", "a/b", "../x", "a b", &"x".repeat(65)] {
            assert!(matches!(check_instance(bad), Err(ContainerError::BadInstance(_))), "{bad}");
        }
        assert!(check_instance("node-1.example").is_ok());
    }

    #[test]
    fn a_state_directory_has_one_launcher() {
        let directory = tempfile::tempdir().unwrap();
        let held = lock(directory.path()).unwrap();
        assert!(matches!(cleanup_leftovers(directory.path(), "x"), Err(ContainerError::InUse(_))));
        drop(held);
        assert_eq!(cleanup_leftovers(directory.path(), "ns-container-none").unwrap(), 0);
    }
}
