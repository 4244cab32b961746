// SPDX-License-Identifier: Apache-2.0
//! FORT, as a relying party whose cache a node reads.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use netserv_model::UnixTime;
use netserv_model::evidence::Holder;
use netserv_rpki::{Cache, Invalid};
use netserv_rpki_tree::{HOST, write};
use netserv_skips::skipped;

use crate::scene::{Staged, grant};

const AGE_MAX: Duration = Duration::from_secs(60);

/// Goal: FORT's cache is read as it is, and its results are the stamp of each of its runs: also of one that finds nothing new, and of one that
/// reaches no server, as by rpki-client. Method: Debian's FORT, with a program in the place of rsync that copies files.
#[test]
fn the_results_of_fort_say_when_it_ran() {
    if Command::new("fort").arg("--version").output().is_err() {
        return skipped("the_results_of_fort_say_when_it_ran", "fort is not installed");
    }
    let relying_party = Fort::new(&Staged::good());
    assert!(matches!(relying_party.check(), Err(Invalid::Unreadable { .. })), "it has not run");
    relying_party.run();
    let found = relying_party.check().unwrap();
    for servers in ["answer", "are away"] {
        relying_party.age();
        assert!(matches!(relying_party.check(), Err(Invalid::OldCache { .. })));
        if servers == "are away" {
            std::fs::remove_dir_all(relying_party.path("servers")).unwrap();
        }
        relying_party.run();
        assert_eq!(relying_party.check().unwrap(), found, "{servers}");
    }
}

struct Fort {
    folder: tempfile::TempDir,
    checklist: Vec<u8>,
}

impl Fort {
    /// Puts what is published on servers.
    fn new(staged: &Staged) -> Fort {
        let fort = Fort { folder: tempfile::tempdir().unwrap(), checklist: staged.checklist.clone() };
        let host = fort.path("servers").join(HOST);
        write(&staged.files, &fort.path("servers")).unwrap();
        // rpki-client has it in a folder of its own.
        std::fs::create_dir(host.join("ta")).unwrap();
        std::fs::rename(fort.path("servers/ta/lab/lab.cer"), host.join("ta/lab.cer")).unwrap();
        std::fs::create_dir(fort.path("cache")).unwrap();
        std::fs::write(fort.path("lab.tal"), &staged.locator).unwrap();
        let rsync = fort.path("rsync");
        let script = format!(
            "#!/bin/sh\nmkdir -p \"${{2%/*}}\"\nexec cp -rT {:?}/\"${{1#rsync://}}\" \"$2\"\n",
            fort.path("servers")
        );
        std::fs::write(&rsync, script).unwrap();
        std::fs::set_permissions(&rsync, Permissions::from_mode(0o755)).unwrap();
        let ends = serde_json::json!(["$REMOTE", "$LOCAL"]);
        let config = serde_json::json!({
            "tal": fort.path("lab.tal"), "local-repository": fort.path("cache"), "mode": "standalone",
            "rsync": {
                "program": rsync, "arguments-recursive": ends, "arguments-flat": ends,
                "retry": { "count": 0, "interval": 0 },
            },
            "http": { "enabled": false },
            "output": { "roa": fort.results() },
        });
        std::fs::write(fort.path("fort.json"), config.to_string()).unwrap();
        fort
    }

    fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(name)
    }

    fn results(&self) -> PathBuf {
        self.path("results.csv")
    }

    fn run(&self) {
        let config = format!("--configuration-file={}", self.path("fort.json").display());
        let output = Command::new("fort").arg(config).output().unwrap();
        let results = std::fs::read_to_string(self.results()).unwrap_or_default();
        assert!(output.status.success() && results.contains("10.1.0.0/24"), "{output:?}");
    }

    /// Has the last run be as long ago as is not allowed.
    fn age(&self) {
        let before = SystemTime::now() - 2 * AGE_MAX;
        std::fs::File::options().write(true).open(self.results()).unwrap().set_modified(before).unwrap();
    }

    fn check(&self) -> Result<Holder, Invalid> {
        let cache = Cache::open(self.path("cache"), &[self.path("lab.tal")], AGE_MAX).unwrap();
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
        cache.stamped_by(self.results()).check(&self.checklist, &grant(), UnixTime::from_secs(now))
    }
}
