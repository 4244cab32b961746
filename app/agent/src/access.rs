// SPDX-License-Identifier: Apache-2.0
//! Why a file or a socket cannot be reached, and what to do about it: the first folder on its path that is missing, or closed to who wants it.

use std::fs::{self, Metadata};
use std::io::{Error, ErrorKind};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;

use crate::ids::{group_name, groups_of, user_name};

/// What stands in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What was found, in one line.
    pub found: String,
    /// What to do about it, in one line.
    pub fix: String,
}

impl Fault {
    /// Returns one of two texts.
    pub fn new(found: impl Into<String>, fix: impl Into<String>) -> Fault {
        Fault { found: found.into(), fix: fix.into() }
    }
}

/// What somebody wants of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// To read a file.
    Read,
    /// To write to a file or a socket.
    Write,
    /// To make files in a folder, and to replace them.
    Fill,
}

impl Want {
    /// Returns the bits of a mode that allow it, for others.
    fn bits(self) -> u32 {
        match self {
            Want::Read => 0o4,
            Want::Write => 0o2,
            Want::Fill => 0o3,
        }
    }

    fn access(self) -> Access {
        match self {
            Want::Read => Access::READ_OK,
            Want::Write => Access::WRITE_OK,
            Want::Fill => Access::WRITE_OK | Access::EXEC_OK,
        }
    }
}

/// Who wants it.
#[derive(Clone, Debug)]
pub enum Who {
    /// This process, as the kernel judges it, with what systemd hides from it.
    Agent,
    /// A user of this machine, with its groups, by the modes of files alone.
    Other {
        /// Its number.
        user: u32,
        /// Its groups' numbers.
        groups: Vec<u32>,
    },
}

impl Who {
    /// Returns the user and the group that something is of, with the groups that the user has beside.
    pub fn owner_of(found: &Metadata) -> Who {
        let mut groups = groups_of(&user_name(found.uid()));
        groups.push(found.gid());
        Who::Other { user: found.uid(), groups }
    }

    /// Returns the user's name.
    pub fn name(&self) -> String {
        match self {
            Who::Agent => user_name(rustix::process::geteuid().as_raw()),
            Who::Other { user, .. } => user_name(*user),
        }
    }

    /// Returns the name of its own group.
    pub fn group_name(&self) -> String {
        match self {
            Who::Agent => group_name(rustix::process::getegid().as_raw()),
            Who::Other { groups, .. } => groups.last().map_or_else(String::new, |group| group_name(*group)),
        }
    }

    /// Returns why it may not.
    fn is_refused(&self, part: &Path, found: &Metadata, bits: u32, access: Access) -> Option<Errno> {
        match self {
            Who::Agent => accessat(CWD, part, access, AtFlags::EACCESS).err(),
            Who::Other { user: 0, .. } => None,
            Who::Other { user, groups } => {
                let shift = match (found.uid() == *user, groups.contains(&found.gid())) {
                    (true, _) => 6,
                    (false, true) => 3,
                    (false, false) => 0,
                };
                (found.mode() >> shift & bits != bits).then_some(Errno::ACCESS)
            }
        }
    }
}

/// Returns what keeps somebody from a path; nothing if there is nothing to be seen.
pub fn fault(path: &Path, want: Want, who: &Who) -> Option<Fault> {
    let mut parts: Vec<&Path> = path.ancestors().filter(|part| !part.as_os_str().is_empty()).collect();
    parts.reverse();
    for part in parts {
        let is_last = part == path;
        let found = match fs::metadata(part) {
            Ok(found) => found,
            Err(error) => return Some(missing(part, &error, who)),
        };
        let (bits, access) = if is_last { (want.bits(), want.access()) } else { (0o1, Access::EXEC_OK) };
        if let Some(refused) = who.is_refused(part, &found, bits, access) {
            return Some(closed(part, &found, (want, is_last), who, refused));
        }
    }
    None
}

/// Returns what keeps this process from a socket that another program serves.
pub fn socket_fault(path: &Path) -> Option<Fault> {
    let fault = fault(path, Want::Write, &Who::Agent);
    let is_other = |found: Metadata| !found.file_type().is_socket();
    let other = || Fault::new(format!("{} is no socket", path.display()), "name the socket, or remove what is there");
    fault.or_else(|| fs::metadata(path).ok().is_some_and(is_other).then(other))
}

fn missing(part: &Path, error: &Error, who: &Who) -> Fault {
    let part = part.display();
    let is_missing = error.kind() == ErrorKind::NotFound;
    let found = if is_missing { format!("there is no {part}") } else { format!("{part}: {error}") };
    match (who, hidden_by(&part.to_string())) {
        (Who::Agent, Some(setting)) => hidden(&found, setting),
        (Who::Agent | Who::Other { .. }, _) => {
            Fault::new(found, format!("start the program that makes {part}, or name another path"))
        }
    }
}

fn closed(part: &Path, found: &Metadata, (want, is_last): (Want, bool), who: &Who, refused: Errno) -> Fault {
    let name = who.name();
    let (owner, group, mode) = (user_name(found.uid()), group_name(found.gid()), found.mode() & 0o7777);
    let shown = part.display();
    if refused == Errno::ROFS {
        let fix = format!("let the unit write there, by a drop-in with `ReadWritePaths={shown}`");
        return Fault::new(format!("{shown} is read-only for the agent"), fix);
    }
    let text = format!("{shown} is closed to the user {name}: it is {owner}:{group}'s, mode {mode:04o}");
    if let (Who::Agent, Some(setting)) = (who, hidden_by(&shown.to_string())) {
        return hidden(&text, setting);
    }
    let bits = if is_last { want.bits() } else { 0o1 };
    let may_group = found.mode() >> 3 & bits == bits && found.gid() != 0;
    let fix = match (who, may_group, is_last, want) {
        (Who::Agent, true, ..) => {
            format!("usermod --append --groups {group} {name}; systemctl restart netserv-agent")
        }
        (Who::Agent, false, true, Want::Read) if found.is_file() => format!("chown {name} {shown}"),
        (Who::Agent, false, true, Want::Fill) => format!("chown {name} {shown}"),
        (Who::Other { .. }, true, ..) => format!("usermod --append --groups {group} {name}, and restart what it runs"),
        (Who::Agent | Who::Other { .. }, ..) => {
            let mode = match (is_last, want) {
                (false, _) => "g+x",
                (true, Want::Read) => "g+r",
                (true, Want::Write) => "g+w",
                (true, Want::Fill) => "g+wx",
            };
            format!("chmod {mode} {shown}, and have {name} be in the group {group}")
        }
    };
    Fault::new(text, fix)
}

/// Returns the setting of the agent's unit that hides a path (systemd.exec(5)).
fn hidden_by(path: &str) -> Option<&'static str> {
    let is_in =
        |folders: &[&str]| folders.iter().any(|folder| path == *folder || path.starts_with(&format!("{folder}/")));
    if is_in(&["/home", "/root", "/run/user"]) {
        return Some("ProtectHome=yes");
    }
    is_in(&["/tmp", "/var/tmp"]).then_some("PrivateTmp=yes")
}

fn hidden(found: &str, setting: &str) -> Fault {
    Fault::new(
        format!("{found} (the agent's unit has {setting})"),
        "have it in another folder, such as /run/netserv or /etc/netserv",
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// Goal: the first folder that is closed is named with the group that may pass, as of Debian's `/run/kamailio`. Method: a user that is no
    /// owner of anything, since these tests may run as root.
    #[test]
    fn the_first_closed_part_is_named_with_its_way_out() {
        let dir = tempfile::tempdir().unwrap();
        let [closed, inner] = ["closed", "closed/inner"].map(|name| dir.path().join(name));
        fs::create_dir_all(&inner).unwrap();
        let file = inner.join("file");
        fs::write(&file, "").unwrap();
        let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        let group = fs::metadata(&closed).unwrap().gid();
        for path in [dir.path(), &closed, &inner] {
            mode(path, 0o755);
        }
        let stranger = |groups: &[u32]| Who::Other { user: 61_234, groups: groups.to_vec() };
        mode(&file, 0o644);
        assert_eq!(fault(&file, Want::Read, &stranger(&[])), None);
        let found = |want, groups: &[u32]| fault(&file, want, &stranger(groups)).map(|fault| fault.found);
        assert!(found(Want::Write, &[]).unwrap().contains("/file is closed to the user 61234"));
        mode(&closed, 0o770);
        let said = found(Want::Read, &[]).unwrap();
        assert!(said.contains("/closed is closed to the user 61234") && said.ends_with("mode 0770"), "{said}");
        assert_eq!(found(Want::Read, &[group]), None, "who is in the group passes");
        mode(&closed, 0o700);
        assert!(found(Want::Read, &[group]).is_some());
        assert_eq!(fault(&file, Want::Write, &Who::Other { user: 0, groups: vec![] }), None, "root may");
        let own = Who::owner_of(&fs::metadata(&file).unwrap());
        assert_eq!(fault(&file, Want::Write, &own), None);
        let gone = dir.path().join("gone/file");
        assert!(fault(&gone, Want::Read, &own).unwrap().found.ends_with("/gone"));
    }

    #[test]
    fn what_systemd_hides_is_named() {
        for (path, expected) in [
            ("/home/x/key.pem", Some("ProtectHome=yes")),
            ("/root", Some("ProtectHome=yes")),
            ("/tmp/a.sock", Some("PrivateTmp=yes")),
            ("/homes/x", None),
            ("/run/netserv/a.sock", None),
        ] {
            assert_eq!(hidden_by(path), expected, "{path}");
        }
        let fault = fault(Path::new("/home/no-such-user/x"), Want::Read, &Who::Agent).unwrap();
        assert!(fault.found.contains("ProtectHome=yes"), "{fault:?}");
    }

    #[test]
    fn what_is_no_socket_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rpc.sock");
        fs::write(&path, "").unwrap();
        assert!(socket_fault(&path).unwrap().found.ends_with("is no socket"));
        fs::remove_file(&path).unwrap();
        let _served = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
        assert_eq!(socket_fault(&path), None);
    }
}
