// SPDX-License-Identifier: Apache-2.0
//! Which control group hierarchies a machine has.

use std::fmt;
use std::fs;
use std::path::PathBuf;

/// Something that control groups limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Controller {
    /// Memory.
    Memory,
    /// Processor time.
    Cpu,
    /// Processes and threads.
    Pids,
}

impl Controller {
    pub(crate) const ALL: [Controller; 3] = [Controller::Memory, Controller::Cpu, Controller::Pids];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Controller::Memory => "memory",
            Controller::Cpu => "cpu",
            Controller::Pids => "pids",
        }
    }
}

/// The version of a hierarchy's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    V1,
    V2,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Version::V1 => "cgroup v1",
            Version::V2 => "cgroup v2",
        })
    }
}

/// One mounted hierarchy with those of its controllers that containers need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hierarchy {
    pub(crate) version: Version,
    pub(crate) mount: PathBuf,
    pub(crate) controllers: Vec<Controller>,
}

/// Returns the hierarchies that `mounts`, the text of `/proc/self/mountinfo`, names and that have a controller of
/// interest.
pub(crate) fn detect(mounts: &str) -> Vec<Hierarchy> {
    let mut found: Vec<Hierarchy> = vec![];
    for hierarchy in mounts.lines().filter_map(parse_mount) {
        let taken = |one: &Controller| found.iter().any(|other| other.controllers.contains(one));
        let controllers: Vec<Controller> = hierarchy.controllers.iter().copied().filter(|one| !taken(one)).collect();
        if !controllers.is_empty() {
            found.push(Hierarchy { controllers, ..hierarchy });
        }
    }
    found
}

fn parse_mount(line: &str) -> Option<Hierarchy> {
    let (place, kind) = line.split_once(" - ")?;
    let mount = PathBuf::from(unescape(place.split(' ').nth(4)?));
    let mut kind = kind.split(' ');
    let (name, options) = (kind.next()?, kind.nth(1)?);
    let (version, names) = match name {
        "cgroup" => (Version::V1, options.replace(',', " ")),
        "cgroup2" => (Version::V2, fs::read_to_string(mount.join("cgroup.controllers")).ok()?),
        _ => return None,
    };
    let has = |one: &Controller| names.split_whitespace().any(|name| name == one.as_str());
    Some(Hierarchy { version, mount, controllers: Controller::ALL.into_iter().filter(has).collect() })
}

/// Undoes the octal escapes of mountinfo.
fn unescape(text: &str) -> String {
    text.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
}
