// SPDX-License-Identifier: Apache-2.0
//! rpki-client, asked about the same files.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use netserv_skips::skipped;

use crate::scene::{Staged, Written, grant};

/// What rpki-client says.
#[derive(Debug)]
pub(crate) struct Verdict {
    /// Whether the checklist is valid and lists the grant, and what the holder publishes is valid.
    pub(crate) is_good: bool,
    /// What it says about the checklist, and to standard error.
    pub(crate) said: String,
}

/// Returns whether rpki-client is installed.
pub(crate) fn is_installed(test: &str) -> bool {
    let is_installed = program().is_some();
    if !is_installed {
        skipped(test, "rpki-client is not installed");
    }
    is_installed
}

/// Debian has it where only root looks.
fn program() -> Option<&'static str> {
    ["rpki-client", "/usr/sbin/rpki-client"]
        .into_iter()
        .find(|program| Command::new(program).arg("-V").output().is_ok())
}

/// Asks about the checklist, and about the ROA that the holder publishes: the first question does not look at manifests.
pub(crate) fn ask(staged: &Staged, written: &Written) -> Verdict {
    let folder = written.folder.path();
    let (out, file) = (folder.join("out"), folder.join("checklist.sig"));
    std::fs::create_dir(&out).unwrap();
    std::fs::write(&file, &staged.checklist).unwrap();
    // As root, it becomes another user.
    std::fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
    std::fs::set_permissions(&out, Permissions::from_mode(0o777)).unwrap();
    let run = |arguments: &[&std::ffi::OsStr]| -> Output {
        let mut command = Command::new(program().unwrap());
        command.args(["-n", "-j", "-d"]).arg(&written.cache).arg("-t").arg(&written.tal).args(arguments);
        command.output().unwrap()
    };
    let all = run(&[out.as_os_str()]);
    let routes = std::fs::read_to_string(out.join("json")).unwrap_or_default();
    let one = run(&["-f".as_ref(), file.as_os_str()]);
    let said = String::from_utf8_lossy(&one.stdout).into_owned();
    let is_valid = said.contains(r#""validation": "OK""#) && said.contains(&BASE64.encode(grant().0));
    let is_good = is_valid && routes.contains("10.1.0.0/24");
    let errors = [&all.stderr, &one.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat();
    Verdict { is_good, said: said + &errors }
}
