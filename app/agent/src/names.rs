// SPDX-License-Identifier: Apache-2.0
//! A name for each node at which a module takes connections, in a file of the form of hosts(5), for a DNS server.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::{File, Permissions};
use std::io::Write as _;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use netserv_model::NodeId;
use netserv_placement::{Deployment, DeploymentId, Health};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::ids::give;

/// Where the names go.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct NamesFile {
    /// The file, which the agent writes anew when a node comes or goes, for everybody; dnsmasq reads it with `--hostsdir`.
    pub file: PathBuf,
    /// What stands behind the node's own name, such as `edge.example.org`.
    pub domain: String,
}

impl NamesFile {
    /// Checks what the shape of a file does not hold.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn check(&self) -> Result<()> {
        ensure!(is_host_name(&self.domain), "`domain` is no name of a domain");
        ensure!(self.file.file_name().is_some(), "`file` is no file's path");
        Ok(())
    }
}

/// The names as they are in the file.
#[derive(Debug)]
pub struct Names {
    goes_to: Option<NamesFile>,
    known: BTreeMap<DeploymentId, Vec<(NodeId, Vec<IpAddr>)>>,
    /// Whether the file is another one than it should be.
    is_dirty: bool,
    /// When it is tried again to write it, after that failed.
    not_before: Option<Instant>,
}

impl Names {
    /// Returns names that go to a file, if there is one. It is written at the next [`Names::write`], also if there are none.
    pub fn new(goes_to: Option<NamesFile>) -> Names {
        Names { is_dirty: goes_to.is_some(), goes_to, known: BTreeMap::new(), not_before: None }
    }

    /// Has the names go to another file from here on. One that is not theirs any more stays as it is.
    pub fn go_to(&mut self, goes_to: Option<NamesFile>) {
        self.is_dirty |= self.goes_to != goes_to;
        self.goes_to = goes_to;
    }

    /// Takes note of a deployment as it is from here on.
    pub fn put(&mut self, id: DeploymentId, deployment: &Deployment) {
        let is_there = matches!(deployment.health, Health::Running | Health::Ailing);
        let takes = deployment.nodes.iter().filter(|node| is_there && !node.addresses.is_empty());
        let nodes: Vec<_> = takes.map(|node| (node.name.clone(), node.addresses.clone())).collect();
        if nodes.is_empty() {
            return self.forget(id);
        }
        let is_same = self.known.get(&id) == Some(&nodes);
        self.is_dirty |= !is_same;
        self.known.insert(id, nodes);
    }

    /// Takes note that a deployment is gone.
    pub fn forget(&mut self, id: DeploymentId) {
        self.is_dirty |= self.known.remove(&id).is_some();
    }

    /// Writes the file, if it is not what it should be: another one takes its place.
    ///
    /// # Errors
    /// It cannot be written; the first call after [`RETRY_EVERY`] tries again.
    pub fn write(&mut self, now: Instant) -> Result<()> {
        let is_time = self.is_dirty && self.not_before.is_none_or(|at| now >= at);
        let Some(goes_to) = self.goes_to.as_ref().filter(|_| is_time) else { return Ok(()) };
        self.not_before = Some(now + RETRY_EVERY);
        let written =
            make_folder(&goes_to.file).and_then(|()| replace(&goes_to.file, &self.text(&goes_to.domain), Readers::All));
        written.with_context(|| format!("cannot write {}", goes_to.file.display()))?;
        (self.is_dirty, self.not_before) = (false, None);
        Ok(())
    }

    fn text(&self, domain: &str) -> String {
        let nodes = self.known.values().flatten().filter(|(node, _)| is_label(node.as_str()));
        // Case says nothing in DNS: of several nodes with one name there, it is that of the one which writes it so.
        let lower = |node: &NodeId| node.as_str().to_ascii_lowercase();
        let own: BTreeSet<&str> = nodes.clone().map(|(node, _)| node.as_str()).collect();
        let nodes = nodes.filter(|(node, _)| lower(node) == node.as_str() || !own.contains(&*lower(node)));
        let lines: BTreeSet<(&NodeId, IpAddr)> =
            nodes.flat_map(|(node, addresses)| addresses.iter().map(move |address| (node, *address))).collect();
        let mut text = "# written by netserv-agent\n".to_owned();
        for (node, address) in lines {
            // A string takes all there is.
            let _ = writeln!(text, "{address} {}.{domain}", lower(node));
        }
        text
    }
}

/// Who may read a file, whatever the umask of this process.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Readers<'a> {
    /// Everybody.
    All,
    /// The agent's user and a group, by name or number, if there is one.
    Group(Option<&'a str>),
}

/// Puts a file in the place of another one, under a name meanwhile that DNS servers leave alone.
pub(crate) fn replace(path: &Path, text: &str, readers: Readers<'_>) -> Result<()> {
    let name = path.file_name().context("it is no file's path")?.to_string_lossy();
    let new = path.with_file_name(format!(".{name}.new"));
    let mut file = File::create(&new)?;
    let mode = match readers {
        Readers::All => 0o644,
        Readers::Group(Some(group)) => {
            give(&new, group)?;
            0o640
        }
        Readers::Group(None) => 0o600,
    };
    file.set_permissions(Permissions::from_mode(mode))?;
    file.write_all(text.as_bytes())?;
    drop(file);
    Ok(std::fs::rename(&new, path)?)
}

/// Makes the folder of a file that all may read, unless it is there.
fn make_folder(file: &Path) -> Result<()> {
    let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists()) else {
        return Ok(());
    };
    std::fs::create_dir_all(folder)?;
    Ok(std::fs::set_permissions(folder, Permissions::from_mode(0o755))?)
}

/// Returns whether a text is one label of a host's name (RFC 1123 §2.1), of at most 63 characters.
fn is_label(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (1..=63).contains(&text.len()) && text.bytes().all(is_inner) && !text.starts_with('-') && !text.ends_with('-')
}

fn is_host_name(text: &str) -> bool {
    text.len() <= DOMAIN_BYTES_MAX && text.split('.').all(is_label)
}

/// How long it takes until a file that could not be written is tried again.
const RETRY_EVERY: Duration = Duration::from_secs(5);
/// Bytes of a domain, in front of which a node's name has room.
const DOMAIN_BYTES_MAX: usize = 189;

#[cfg(test)]
mod tests {
    use netserv_placement::{Node, RuleId};

    use super::*;

    fn deployment(nodes: &[(&str, &[&str])], health: Health) -> Deployment {
        let node = |(name, addresses): &(&str, &[&str])| {
            let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
            Node::new(name.parse().unwrap(), addresses)
        };
        Deployment {
            rule: RuleId(0),
            client: "192.0.2.1".parse().unwrap(),
            session: None,
            nodes: nodes.iter().map(node).collect(),
            health,
            seen: netserv_model::Instant::default(),
            lease_until: netserv_model::Instant::default(),
            lease: Duration::ZERO,
            address: None,
            moving: None,
            edge: "n1".parse().unwrap(),
            epoch: 1,
            failures: 0,
        }
    }

    /// Goal: the file has each node that takes viewers, once, and no others; it is written only when that changes.
    #[test]
    fn a_node_has_a_name_while_it_takes_connections() {
        let dir = tempfile::tempdir().unwrap();
        let (path, domain) = (dir.path().join("names/edge"), "edge.example.org".to_owned());
        let file = NamesFile { file: path.clone(), domain };
        file.check().unwrap();
        let (mut names, begun) = (Names::new(Some(file.clone())), Instant::now());
        let lines = |names: &mut Names| {
            names.write(begun).unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
        };
        assert!(lines(&mut names).is_empty(), "what was there before is not");
        // A DNS server is another user.
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o644, 0o755));
        let both =
            deployment(&[("N1", &["10.0.0.1", "fd00::1"]), ("a_b", &["10.0.0.9"]), ("n3", &[])], Health::Running);
        names.put(DeploymentId(1), &both);
        names.put(DeploymentId(2), &deployment(&[("N1", &["10.0.0.1"]), ("n2", &["10.0.0.2"])], Health::Ailing));
        names.put(DeploymentId(3), &deployment(&[("n4", &["10.0.0.4"])], Health::New));
        let all = ["10.0.0.1 n1.edge.example.org", "fd00::1 n1.edge.example.org", "10.0.0.2 n2.edge.example.org"];
        assert_eq!(lines(&mut names), all);
        std::fs::remove_file(&path).unwrap();
        names.put(DeploymentId(1), &both);
        names.write(begun).unwrap();
        assert!(!path.exists(), "nothing changed");
        names.forget(DeploymentId(1));
        names.put(DeploymentId(2), &deployment(&[("n2", &["10.0.0.2"])], Health::Leaving));
        assert!(lines(&mut names).is_empty());
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing else is left there");
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        names.put(DeploymentId(1), &both);
        assert!(names.write(begun).is_err());
        std::fs::remove_dir(&path).unwrap();
        names.write(begun).unwrap();
        assert!(!path.exists(), "not at once");
        names.write(begun + RETRY_EVERY).unwrap();
        assert_eq!(lines(&mut names), all[..2]);
        names.go_to(None);
        names.write(begun).unwrap();
    }

    /// Another node that has a node's name in another case takes no viewers from it.
    #[test]
    fn a_name_in_another_case_is_no_name() {
        let mut names = Names::new(None);
        names.put(DeploymentId(1), &deployment(&[("N1", &["10.0.0.9"]), ("N2", &["10.0.0.2"])], Health::Running));
        assert!(names.text("x").contains("10.0.0.9 n1.x\n") && names.text("x").contains("10.0.0.2 n2.x\n"));
        names.put(DeploymentId(2), &deployment(&[("n1", &["10.0.0.1"])], Health::Running));
        assert_eq!(names.text("x").lines().skip(1).collect::<Vec<_>>(), ["10.0.0.2 n2.x", "10.0.0.1 n1.x"]);
    }

    #[test]
    fn domains_are_names() {
        let is_right = |domain: &str| NamesFile { file: "/a".into(), domain: domain.to_owned() }.check().is_ok();
        assert!(is_right("edge.example.org") && is_right("x"));
        let long = ["x".repeat(63), "y".repeat(63), "z".repeat(61)].join(".");
        assert!(is_right(&long) && !is_right(&format!("{long}z")));
        for wrong in ["", ".example.org", "example.org.", "a b", "a\n192.0.2.1 b", "-a", "a_b", &"x".repeat(64)] {
            assert!(!is_right(wrong), "{wrong}");
        }
    }
}
