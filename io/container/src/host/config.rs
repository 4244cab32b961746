// SPDX-License-Identifier: Apache-2.0
//! What a node tells its launcher, and what the launcher says of the machine.

use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use netserv_model::policy::ContainerLimits;
use netserv_model::{Flavour, UserId};

use super::leftovers::{JAVA_ROOT, MEDIA_ROOT, ROOT, root_directory};
use super::storage::Storage;
use crate::error::ContainerError;
use crate::limits::UID_BASE;
use crate::network::ContainerNetwork;
use crate::protocol::files::MediaFiles;
use crate::protocol::{JvmSetup, MediaSetup, Setup};

/// What a launcher works with.
#[derive(Clone, Debug)]
pub struct LauncherConfig {
    /// The `netserv-worker` program. Everybody must be allowed to read and execute it.
    pub worker: PathBuf,
    /// A directory of the node's own; the launcher makes `containers/` and `launcher.lock` in it.
    pub state_dir: PathBuf,
    /// The node's name on this machine, part of cgroup names. No two nodes of a machine share one.
    pub instance: String,
    /// The first of the user ids that containers run as.
    pub uid_base: u32,
    /// The cgroup below which the node's own lies, as a path inside each hierarchy; nothing means the root.
    pub cgroup_parent: Option<PathBuf>,
    /// The program that becomes the launcher: it calls [`run_if_launcher`](crate::run_if_launcher) first.
    pub program: PathBuf,
    /// Whom Wasm modules ask for names, as far as their users are permitted to; the first three count.
    pub name_servers: Vec<IpAddr>,
    /// Certificate authorities in PEM that Wasm modules trust beside those of Mozilla's list, at most
    /// [`AUTHORITIES_BYTES_MAX`](netserv_model::limits::AUTHORITIES_BYTES_MAX). The file is read once.
    pub authorities: Option<PathBuf>,
    /// What Java workers are made of; nothing on a node that runs none.
    pub jvm: Option<JvmFiles>,
    /// What media jobs are made of; nothing on a node that takes none.
    pub media: Option<MediaFiles>,
}

/// What Java workers are made of. Everybody must be allowed to read all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JvmFiles {
    /// The `netserv-jvm` program.
    pub worker: PathBuf,
    /// The Java installation, version 17 or later.
    pub java_home: PathBuf,
    /// The directory with our own `host/*.jar` and `blocks/*.jar`.
    pub host: PathBuf,
    /// A directory of the node's own for the archive of classes; made if it is not there.
    pub archive: PathBuf,
    /// Whom modules ask for names, as far as their users are permitted to; the first three count.
    pub name_servers: Vec<IpAddr>,
}

/// A worker that is to be started.
#[derive(Clone, Copy, Debug)]
pub struct LaunchSpec<'a> {
    /// Whose.
    pub user: &'a UserId,
    /// Which kind.
    pub flavour: Flavour,
    /// What the user's container may use, both workers together. One that joins the other finds them set.
    pub limits: &'a ContainerLimits,
    /// The process number of the user's other worker, whose cgroup this one joins; one of its own if that has ended.
    pub beside: Option<i32>,
    /// The container's network, which the worker enters; without one it makes no sockets.
    pub network: Option<&'a ContainerNetwork>,
    /// What it may keep on disk, beyond its own end; without it nothing.
    pub storage: Option<Storage<'a>>,
    /// How many lanes of the node have packets for it, at least one and at most
    /// [`LANES_MAX`](netserv_model::limits::LANES_MAX).
    pub lanes: usize,
}

impl<'a> LaunchSpec<'a> {
    /// Returns a worker by itself, without a network, for a node of one lane.
    pub fn new(user: &'a UserId, flavour: Flavour, limits: &'a ContainerLimits) -> LaunchSpec<'a> {
        LaunchSpec { user, flavour, limits, beside: None, network: None, storage: None, lanes: 1 }
    }
}

impl LauncherConfig {
    /// Returns a configuration with everything else as usual: this very program becomes the launcher.
    pub fn new(worker: impl Into<PathBuf>, state_dir: impl Into<PathBuf>, instance: &str) -> LauncherConfig {
        LauncherConfig {
            worker: worker.into(),
            state_dir: state_dir.into(),
            instance: instance.to_owned(),
            uid_base: UID_BASE,
            cgroup_parent: None,
            program: PathBuf::from("/proc/self/exe"),
            name_servers: Vec::new(),
            authorities: None,
            jvm: None,
            media: None,
        }
    }

    /// Makes the directories that the launcher needs, and returns what it is told.
    pub(super) fn setup(&self) -> Result<Setup, ContainerError> {
        let authorities = self.authorities.as_ref().map(fs::canonicalize).transpose();
        Ok(Setup {
            worker: fs::canonicalize(&self.worker).map_err(ContainerError::launcher("find the worker"))?,
            root: root_directory(&self.state_dir, ROOT)?,
            name_servers: self.name_servers.clone(),
            authorities: authorities.map_err(ContainerError::launcher("find the authorities"))?,
            jvm: self.jvm.as_ref().map(|files| files.setup(&self.state_dir)).transpose()?,
            media: self.media.as_ref().map(|files| media_setup(files, &self.state_dir)).transpose()?,
            instance: self.instance.clone(),
            uid_base: self.uid_base,
            cgroup_parent: self.cgroup_parent.clone(),
        })
    }
}

/// What the launcher found that it can and cannot enforce here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LauncherReport {
    /// What is enforced, a line each.
    pub enforced: Vec<String>,
    /// What is not, each with the reason.
    pub missing: Vec<String>,
}

impl JvmFiles {
    fn setup(&self, state_dir: &Path) -> Result<JvmSetup, ContainerError> {
        fs::create_dir_all(&self.archive).map_err(ContainerError::launcher("make the archive's directory"))?;
        // Workers have users of their own.
        let readable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&self.archive, readable)
            .map_err(ContainerError::launcher("make the archive's directory"))?;
        let find = |path: &Path, step| fs::canonicalize(path).map_err(ContainerError::launcher(step));
        Ok(JvmSetup {
            worker: find(&self.worker, "find the Java worker")?,
            java_home: find(&self.java_home, "find Java")?,
            host: find(&self.host, "find the jars of the Java host")?,
            archive: find(&self.archive, "find the archive's directory")?,
            name_servers: self.name_servers.clone(),
            root: root_directory(state_dir, JAVA_ROOT)?,
        })
    }
}

fn media_setup(files: &MediaFiles, state_dir: &Path) -> Result<MediaSetup, ContainerError> {
    let find = |path: &Path, step| fs::canonicalize(path).map_err(ContainerError::launcher(step));
    let font = files.font.as_ref().map(|font| find(font, "find the font")).transpose()?;
    let (ffmpeg, ffprobe) = (find(&files.ffmpeg, "find ffmpeg")?, find(&files.ffprobe, "find ffprobe")?);
    Ok(MediaSetup { files: MediaFiles { ffmpeg, ffprobe, font }, root: root_directory(state_dir, MEDIA_ROOT)? })
}
