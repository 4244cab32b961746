// SPDX-License-Identifier: Apache-2.0
//! A machine of a lab with packages installed: its own `/etc`, `/run` and `/var/lib`, and services that run as their units say.
//!
//! No systemd runs in a lab. Of a unit, its user and groups, umask, capabilities, `NoNewPrivileges`, `ProtectSystem=strict` with
//! `ReadWritePaths`, and the folders that systemd makes are emulated, by unshare and setpriv; other settings are not.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};

use crate::netns::{Lab, program};
use crate::node::workspace;

/// The files of a machine on which something is installed.
pub struct Packaged {
    machine: String,
    root: PathBuf,
}

/// What a unit says.
pub struct Unit(String);

impl Unit {
    /// Reads a unit file.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(path: &Path) -> Result<Unit> {
        Ok(Unit(fs::read_to_string(path).with_context(|| format!("no unit {}", path.display()))?))
    }

    /// Reads one of ours.
    ///
    /// # Errors
    /// There is no such unit.
    pub fn shipped(name: &str) -> Result<Unit> {
        Unit::read(&workspace().join("dist").join(format!("{name}.service")))
    }

    fn all<'u, 'k>(&'u self, key: &'k str) -> impl Iterator<Item = &'u str> + use<'u, 'k> {
        self.0.lines().filter_map(move |line| line.strip_prefix(key)?.strip_prefix('='))
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.all(key).last()
    }

    fn is_on(&self, key: &str) -> bool {
        self.get(key) == Some("yes")
    }
}

/// The folders of which such a machine has its own.
const FOLDERS: [&str; 3] = ["/etc", "/run", "/var/lib"];

impl Packaged {
    /// Gives a machine of a lab folders of its own: `/etc` as it is here, and the others without what is in them. Our packages' users, groups
    /// and folders are there, as their maintainer scripts make them.
    ///
    /// # Errors
    /// A command fails.
    pub fn install(lab: &Lab, machine: &str) -> Result<Packaged> {
        let packaged = Packaged { machine: machine.to_owned(), root: lab.dir().join(format!("{machine}-root")) };
        fs::create_dir_all(packaged.path("/var/lib"))?;
        fs::create_dir_all(packaged.path("/run"))?;
        let copied = Command::new("cp").args(["-a", "/etc"]).arg(packaged.path("/etc")).status()?;
        ensure!(copied.success(), "cannot copy /etc");
        // What dist/sysusers.d and dist/tmpfiles.d say.
        packaged.run(
            lab,
            "groupadd --system netserv && \
             useradd --system --no-create-home --home-dir /var/lib/netserv-agent --shell /usr/sbin/nologin netserv-agent && \
             mkdir -p /etc/netserv && install -d -m 1775 -g netserv /run/netserv && install -d -m 0700 /var/lib/netserv && \
             install -d -m 0700 -o netserv-agent -g netserv /var/lib/netserv-agent",
        )?;
        Ok(packaged)
    }

    /// Returns where a file of the machine is.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// Runs a line of shell as root there.
    ///
    /// # Errors
    /// It fails; what it said is in the error.
    pub fn run(&self, lab: &Lab, line: &str) -> Result<Output> {
        let output = self.shell(lab, &format!("export PATH=$PATH:/usr/sbin\n{line}")).output()?;
        ensure!(
            output.status.success(),
            "{line}: {}",
            String::from_utf8_lossy(&[output.stdout, output.stderr].concat())
        );
        Ok(output)
    }

    /// Runs our command there, whatever it ends with.
    ///
    /// # Errors
    /// It is not built.
    pub fn netserv(&self, lab: &Lab, args: &[&str]) -> Result<Output> {
        let mut command = self.shell(lab, "exec \"$@\"");
        Ok(command.arg("sh").arg(program("netserv")?).args(args).env("NO_COLOR", "1").output()?)
    }

    /// Returns a command that runs a service there as its unit says.
    ///
    /// # Errors
    /// A folder of it cannot be made.
    pub fn service(&self, lab: &Lab, unit: &Unit, program: &Path, args: &[&str]) -> Result<Command> {
        let (user, group) = (unit.get("User").unwrap_or("root"), unit.get("Group"));
        for (key, below) in [("RuntimeDirectory", "/run"), ("StateDirectory", "/var/lib")] {
            let Some(name) = unit.get(key) else { continue };
            let mode = unit.get(&format!("{key}Mode")).unwrap_or("0755");
            let owner = group.map_or(user.to_owned(), |group| format!("{user}:{group}"));
            let line =
                format!("mkdir -p {below}/{name} && chown {owner} {below}/{name} && chmod {mode} {below}/{name}");
            self.run(lab, &line)?;
        }
        let mut line = String::new();
        if unit.get("ProtectSystem") == Some("strict") {
            let state = unit.get("StateDirectory").map(|name| format!("/var/lib/{name}"));
            let runtime = unit.get("RuntimeDirectory").map(|name| format!("/run/{name}"));
            let written = unit.all("ReadWritePaths").flat_map(str::split_whitespace).map(str::to_owned);
            for folder in written.chain(state).chain(runtime) {
                line += &format!("mount --bind {folder} {folder}\n");
            }
            for folder in ["/", "/etc", "/run", "/var/lib"] {
                line += &format!("mount -o remount,bind,ro {folder}\n");
            }
        }
        line += &format!("umask {}\ncd /\n", unit.get("UMask").unwrap_or("0022"));
        let groups: Vec<&str> = unit.all("SupplementaryGroups").flat_map(str::split_whitespace).collect();
        line += &format!("exec setpriv --reuid {user} --regid {} ", group.unwrap_or(user));
        // setpriv takes either; a unit has the groups of its user in any case.
        line += &match (user, groups.is_empty()) {
            ("root", true) => "--clear-groups ".to_owned(),
            (_, true) => "--init-groups ".to_owned(),
            (_, false) => format!("--groups {} ", groups.join(",")),
        };
        let set = |key: &str| {
            let all = unit.all(key).flat_map(str::split_whitespace);
            all.map(|cap| format!(",+{}", cap.trim_start_matches("CAP_").to_lowercase())).collect::<String>()
        };
        if unit.get("CapabilityBoundingSet").is_some() {
            line += &format!("--bounding-set=-all{} ", set("CapabilityBoundingSet"));
        }
        if unit.get("AmbientCapabilities").is_some() {
            let ambient = set("AmbientCapabilities");
            line += &format!("--inh-caps=-all{ambient} --ambient-caps=-all{ambient} ");
        }
        if unit.is_on("NoNewPrivileges") {
            line += "--no-new-privs ";
        }
        let mut command = self.shell(lab, &format!("{line}-- \"$@\""));
        command.arg("sh").arg(program).args(args);
        Ok(command)
    }

    /// Writes a file there, for root alone to write.
    ///
    /// # Errors
    /// It cannot.
    pub fn write(&self, path: &str, text: &str) -> Result<()> {
        let file = self.path(path);
        fs::write(&file, text)?;
        Ok(fs::set_permissions(file, fs::Permissions::from_mode(0o644))?)
    }

    /// Returns a shell on the machine, with its folders, that is given a script and then further arguments.
    fn shell(&self, lab: &Lab, script: &str) -> Command {
        let own = |folder: &str| format!("mount --rbind {} {folder}\n", self.path(folder).display());
        let binds: String = FOLDERS.map(own).concat();
        let mut command = lab.command(&self.machine, "unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-e", "-c", &format!("{binds}{script}")]);
        command
    }
}
