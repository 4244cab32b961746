// SPDX-License-Identifier: Apache-2.0
//! Unix sockets of the node, for programs on the same machine.

use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use tokio::net::UnixListener;

/// For the owner and the group.
pub const OWNER_AND_GROUP: u32 = 0o660;
/// For the owner alone.
pub const OWNER: u32 = 0o600;

/// Binds a socket, in place of one that no process serves any more. Whoever may write to it may use it: `mode` says who. `key`
/// is what sets its path.
///
/// # Errors
/// Another process serves it, or it cannot be made.
pub fn bind(path: &Path, mode: u32, key: &str) -> Result<UnixListener> {
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        make_folder(parent).with_context(|| format!("cannot make {}", parent.display()))?;
    }
    if let Ok(found) = std::fs::symlink_metadata(path) {
        ensure!(found.file_type().is_socket(), "{} is there and is no socket", path.display());
        let served = std::os::unix::net::UnixStream::connect(path).is_ok();
        ensure!(!served, "another netservd serves {}; stop it, or set `{key}` to another path", path.display());
        std::fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path).with_context(|| format!("cannot bind {}", path.display()))?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
    Ok(listener)
}

/// Gives a socket to a group, by its name or number, and lets it use the socket.
///
/// # Errors
/// There is no such group, or the process is not in it and may not give files away.
pub fn give_to_group(path: &Path, group: &str) -> Result<()> {
    let groups = std::fs::read_to_string("/etc/group").unwrap_or_default();
    let gid = gid_of(group, &groups).with_context(|| format!("there is no group `{group}`"))?;
    std::os::unix::fs::chown(path, None, Some(gid))
        .with_context(|| format!("cannot give {} to group {group}; run netservd as a member of it", path.display()))?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(OWNER_AND_GROUP))?;
    Ok(())
}

fn gid_of(group: &str, groups: &str) -> Option<u32> {
    let named = groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(group)).then(|| fields.nth(1)?.parse().ok())?
    });
    named.or_else(|| group.parse().ok())
}

/// Makes the socket's folder if it is not there, one that the socket's group can pass.
fn make_folder(path: &Path) -> io::Result<()> {
    let missing: Vec<&Path> =
        path.ancestors().take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists()).collect();
    std::fs::create_dir_all(path)?;
    missing.iter().try_for_each(|folder| std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[tokio::test]
    async fn a_dead_socket_is_replaced_and_a_live_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run/netservd.sock");
        let bind = |path: &Path| bind(path, OWNER, "socket");
        drop(bind(&path).unwrap());
        let listener = bind(&path).unwrap();
        assert!(bind(&path).unwrap_err().to_string().contains("another netservd"));
        drop(listener);
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "precious").unwrap();
        assert!(bind(&path).unwrap_err().to_string().contains("no socket"));
    }

    #[tokio::test]
    async fn the_sockets_group_gets_to_it_and_nobody_else_does() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run/deep/netservd.sock");
        let _listener = bind(&path, OWNER_AND_GROUP, "socket").unwrap();
        assert_eq!(mode(&path), 0o660);
        assert_eq!((mode(path.parent().unwrap()), mode(&dir.path().join("run"))), (0o755, 0o755));
    }

    #[tokio::test]
    async fn a_socket_is_its_owners_until_a_group_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("gist.sock");
        let _listener = bind(&path, OWNER, "signaling.applications.socket").unwrap();
        assert_eq!(mode(&path), 0o600);
        let own = rustix::process::getgid().as_raw();
        give_to_group(&path, &own.to_string()).unwrap();
        assert_eq!(mode(&path), 0o660);
        assert!(give_to_group(&path, "no such group").unwrap_err().to_string().contains("no such group"));
    }

    #[test]
    fn groups_have_names_or_numbers() {
        let groups = "root:x:0:\nnetserv:x:977:jane\nbad:x:y:\n977:x:12:\n";
        for (group, gid) in [("netserv", Some(977)), ("5", Some(5)), ("977", Some(12)), ("bad", None), ("", None)] {
            assert_eq!(gid_of(group, groups), gid, "{group}");
        }
    }
}
