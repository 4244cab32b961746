// SPDX-License-Identifier: Apache-2.0
//! Whether the sources of a module have changed, and why they do not run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::cmd::module::source::Source;
use crate::exit::Failure;
use crate::output::{Output, Style};

/// How often the sources are looked at.
pub(super) const WATCH_EVERY: Duration = Duration::from_millis(300);
/// Files of one folder that are watched.
const FILES_MAX: usize = 20_000;
/// Folders and files that builds make.
const MADE: [&str; 6] = ["target", "node_modules", ".git", "Cargo.lock", "package-lock.json", "dist"];

/// The sources of a module as they were last seen.
pub(super) struct Watch {
    dir: PathBuf,
    /// What the build makes, outside of the usual folders.
    made: BTreeSet<PathBuf>,
    known: Snapshot,
    /// What was different, until it stays so from one look to the next.
    unsettled: Option<Snapshot>,
}

type Snapshot = BTreeMap<PathBuf, (Option<SystemTime>, u64)>;

impl Watch {
    /// Begins with the sources as they are.
    pub(super) fn new(source: &Source) -> Watch {
        let made = source.parts().into_iter().flatten().map(|file| file.path).collect();
        let dir = if source.dir.as_os_str().is_empty() { PathBuf::from(".") } else { source.dir.clone() };
        let known = snapshot(&dir, &made);
        Watch { dir, made, known, unsettled: None }
    }

    /// Returns whether sources have changed and then stayed as they are for one look.
    pub(super) fn has_changed(&mut self) -> bool {
        let seen = snapshot(&self.dir, &self.made);
        if seen == self.known {
            self.unsettled = None;
            return false;
        }
        if self.unsettled.as_ref() != Some(&seen) {
            self.unsettled = Some(seen);
            return false;
        }
        true
    }

    /// Takes what was changed as known. What changed since is a change of its own.
    pub(super) fn settle(&mut self) {
        if let Some(seen) = self.unsettled.take() {
            self.known = seen;
        }
    }
}

/// Tells that changed sources are not run.
pub(super) fn show_failure(failure: &Failure, output: &mut Output) -> Result<(), Failure> {
    if output.is_json() {
        return output.json_line(&json!({ "event": "failed", "cause": failure.cause, "fix": failure.fix }));
    }
    let word = output.paint(Style::Bad, "not replaced");
    output.line(format!("{word}  {}", failure.cause));
    output.line(format!("fix           {}", failure.fix));
    Ok(())
}

fn snapshot(dir: &Path, made: &BTreeSet<PathBuf>) -> Snapshot {
    let (mut found, mut folders) = (Snapshot::new(), vec![dir.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let is_package = path.extension().is_some_and(|end| end == "nsm" || end == "part");
            if MADE.iter().any(|made| name == *made) || is_package || made.contains(&path) {
                continue;
            }
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                folders.push(path);
            } else if found.len() < FILES_MAX {
                found.insert(path, (metadata.modified().ok(), metadata.len()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_counts_when_it_has_settled() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        write("netserv.toml", "a");
        let known = snapshot(dir.path(), &BTreeSet::new());
        let mut watch =
            Watch { dir: dir.path().to_owned(), made: [dir.path().join("out.wasm")].into(), known, unsettled: None };
        assert!(!watch.has_changed());
        for made in ["module-0.1.0.nsm", "Cargo.lock", "out.wasm"] {
            write(made, "made");
        }
        assert!(!watch.has_changed() && !watch.has_changed(), "what a build makes is no change");
        write("module.js", "one");
        assert!(!watch.has_changed(), "somebody may still be writing");
        write("module.js", "one and more");
        assert!(!watch.has_changed());
        assert!(watch.has_changed());
        // A change during the build is not forgotten.
        write("module.js", "one, two and more");
        watch.settle();
        assert!(!watch.has_changed() && watch.has_changed());
        watch.settle();
        assert!(!watch.has_changed() && !watch.has_changed());
    }
}
