// SPDX-License-Identifier: Apache-2.0
//! NetServ inside a lab: daemons, users, packages, the CLI.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, bail, ensure};
use netserv_api::{ModuleList, NodeInfo};
use netserv_model::Flavour;
use netserv_model::api::RequestResult;

use crate::netns::{Lab, program};

/// A user with its key, known to nodes that are told.
#[derive(Clone, Debug)]
pub struct LabUser {
    /// The user's name.
    pub name: String,
    /// The file with its private key.
    pub key: PathBuf,
    /// Its public key as text.
    pub public: String,
    /// Its prefixes as text.
    pub prefixes: Vec<String>,
    /// Further lines for its `[[user]]` table.
    pub extra: String,
}

/// What a file of a module's code is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The packet part in Wasm.
    Packet,
    /// The server part in Wasm.
    Component,
    /// The bundle, of whatever parts.
    Bundle,
}

impl Part {
    /// Returns the option of `netserv module build` that names the file.
    fn option(self) -> &'static str {
        match self {
            Part::Packet => "--wasm",
            Part::Component => "--component",
            Part::Bundle => "--bundle",
        }
    }
}

/// A signed package.
#[derive(Clone, Debug)]
pub struct LabPackage {
    /// The file.
    pub path: PathBuf,
    /// The package's digest as text.
    pub digest: String,
    /// Name and version as text.
    pub module: String,
}

impl Lab {
    /// Makes a user with a new key.
    ///
    /// # Errors
    /// The CLI is not built.
    pub fn user(&self, name: &str, prefixes: &[&str]) -> Result<LabUser> {
        let key = self.dir().join(format!("{name}.pem"));
        let output = cli(&["-j", "key", "new", "--out", &key.to_string_lossy()])?;
        let json: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        let public = json["public"].as_str().context("`netserv key new -j` shows no public key")?.to_owned();
        let prefixes = prefixes.iter().map(ToString::to_string).collect();
        Ok(LabUser { name: name.to_owned(), key, public, prefixes, extra: String::new() })
    }

    /// Packs and signs one of our sample modules, in Wasm.
    ///
    /// # Errors
    /// The modules are not built, or the package is refused.
    pub fn package(&self, module: &str, user: &LabUser) -> Result<LabPackage> {
        let project = project(module)?;
        let path = self.dir().join(format!("{module}-{}.nsm", user.name));
        self.package_of(&project, &module_parts(module, Flavour::Wasm)?, &path, user)
    }

    /// Packs and signs one of our sample modules in the flavours that are named.
    ///
    /// # Errors
    /// The modules are not built, or the package is refused.
    pub fn package_in(&self, module: &str, flavours: &[Flavour], user: &LabUser) -> Result<LabPackage> {
        let project = project(module)?;
        let names: Vec<&str> = flavours.iter().map(|flavour| flavour.as_str()).collect();
        let path = self.dir().join(format!("{module}-{}-{}.nsm", names.join("-"), user.name));
        let parts = flavours.iter().map(|flavour| module_parts(module, *flavour)).collect::<Result<Vec<_>>>()?;
        self.package_of(&project, &parts.concat(), &path, user)
    }

    /// Packs and signs a module from its project's file and WebAssembly code.
    ///
    /// # Errors
    /// The package is refused.
    pub fn package_from(&self, project: &Path, wasm: &Path, path: &Path, user: &LabUser) -> Result<LabPackage> {
        self.package_of(project, &[(Part::Packet, wasm.to_owned())], path, user)
    }

    /// Packs and signs a module from its project's file and the files of its code.
    ///
    /// # Errors
    /// The package is refused.
    pub fn package_of(
        &self,
        project: &Path,
        parts: &[(Part, PathBuf)],
        path: &Path,
        user: &LabUser,
    ) -> Result<LabPackage> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let (project, out) = (text(project), text(path));
        let mut args = vec!["module", "build", "--project", &project, "--out", &out];
        let files: Vec<(&str, String)> = parts.iter().map(|(part, file)| (part.option(), text(file))).collect();
        args.extend(files.iter().flat_map(|(option, file)| [*option, file.as_str()]));
        cli(&args)?;
        cli(&["module", "sign", &out, "--key", &text(&user.key)])?;
        let output = cli(&["-j", "module", "inspect", &out])?;
        let json: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        let field =
            |name: &str| json[name].as_str().map(str::to_owned).with_context(|| format!("inspect shows no {name}"));
        Ok(LabPackage { path: path.to_owned(), digest: field("digest")?, module: field("module")? })
    }

    /// Writes a daemon's configuration and starts it; returns when its socket answers.
    ///
    /// # Errors
    /// It ends or does not answer; its log is in the error.
    pub fn start_netservd(&mut self, machine: &str, role: &str, users: &[LabUser], extra: &str) -> Result<()> {
        let config = self.dir().join(format!("{machine}.toml"));
        std::fs::write(&config, self.netservd_config(machine, role, users, extra))?;
        self.restart_netservd(machine)
    }

    /// Starts a daemon again with the configuration that it had.
    ///
    /// # Errors
    /// As [`Lab::start_netservd`].
    pub fn restart_netservd(&mut self, machine: &str) -> Result<()> {
        let config = self.dir().join(format!("{machine}.toml"));
        let netservd = program("netservd")?;
        let mut command = match self.wrapper() {
            [] => self.command(machine, netservd),
            [wrapper, arguments @ ..] => {
                let mut command = self.command(machine, wrapper);
                command.args(arguments).arg(netservd);
                command
            }
        };
        command.arg("run").arg("--config").arg(&config).env("RUST_LOG", log_level());
        self.start(machine, "netservd", &mut command)?;
        let answers = |lab: &Lab| lab.info(machine).is_ok();
        self.wait_for_start((machine, "netservd"), "answer", answers)
    }

    /// Returns the API socket of a machine's daemon.
    pub fn socket(&self, machine: &str) -> PathBuf {
        self.dir().join(format!("{machine}.sock"))
    }

    /// Returns the state directory of a machine's daemon.
    pub fn state_dir(&self, machine: &str) -> PathBuf {
        self.dir().join(format!("{machine}-state"))
    }

    /// Runs the CLI against a machine's daemon.
    ///
    /// # Errors
    /// It ends with another code than 0.
    pub fn netserv(&self, machine: &str, args: &[&str]) -> Result<Output> {
        let output = self.try_netserv(machine, args)?;
        if !output.status.success() {
            let text = [output.stdout, output.stderr].concat();
            bail!("netserv {}: {}: {}", args.join(" "), output.status, String::from_utf8_lossy(&text).trim());
        }
        Ok(output)
    }

    /// Runs the CLI against a machine's daemon, whatever it ends with.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn try_netserv(&self, machine: &str, args: &[&str]) -> Result<Output> {
        let mut command = Command::new(program("netserv")?);
        command.arg("--socket").arg(self.socket(machine)).args(args).env("NO_COLOR", "1");
        command.output().context("cannot run netserv")
    }

    /// Runs a CLI command that yields a response stack.
    ///
    /// # Errors
    /// The output is no response stack.
    pub fn request(&self, machine: &str, args: &[&str]) -> Result<RequestResult> {
        let mut all = vec!["-j"];
        all.extend(args);
        let output = self.try_netserv(machine, &all)?;
        let shown = || {
            format!(
                "netserv {}: {}",
                all.join(" "),
                String::from_utf8_lossy(&[&*output.stdout, &*output.stderr].concat())
            )
        };
        serde_json::from_slice(&output.stdout).with_context(shown)
    }

    /// Returns what is installed on a machine.
    ///
    /// # Errors
    /// Its daemon does not answer.
    pub fn modules(&self, machine: &str) -> Result<ModuleList> {
        Ok(serde_json::from_str(&self.get(machine, "/v1/modules")?)?)
    }

    /// Returns what a machine's daemon says of itself.
    ///
    /// # Errors
    /// It does not answer.
    pub fn info(&self, machine: &str) -> Result<NodeInfo> {
        Ok(serde_json::from_str(&self.get(machine, "/v1/node")?)?)
    }

    /// Returns the daemon's metrics text.
    ///
    /// # Errors
    /// The daemon does not answer.
    pub fn metrics(&self, machine: &str) -> Result<String> {
        self.get(machine, "/metrics")
    }

    /// Serves the lab's directory over HTTP on port 80 of a machine with nginx, which takes files by `PUT` too.
    ///
    /// # Errors
    /// nginx is missing or does not start.
    pub fn serve_http(&mut self, machine: &str) -> Result<()> {
        let log = self.dir().join(format!("{machine}-access.txt")).display().to_string();
        self.serve_http_with_log(machine, &log)
    }

    /// The same, with what nginx's `access_log` is.
    ///
    /// # Errors
    /// As of [`Lab::serve_http`].
    pub fn serve_http_with_log(&mut self, machine: &str, log: &str) -> Result<()> {
        self.serve_by_nginx(machine, log, "listen 80; listen [::]:80; dav_methods PUT;")
    }

    /// Serves the same by HTTPS alone, with a certificate that is for another address.
    ///
    /// # Errors
    /// As of [`Lab::serve_http`].
    pub fn serve_https(&mut self, machine: &str) -> Result<()> {
        let log = self.dir().join(format!("{machine}-access.txt")).display().to_string();
        let file = |end: &str| workspace().join(format!("vectors/certificates/address.{end}")).display().to_string();
        let listens = "listen 443 ssl; listen [::]:443 ssl;";
        let server = format!("{listens} ssl_certificate {}; ssl_certificate_key {};", file("pem"), file("key"));
        self.serve_by_nginx(machine, &log, &server)
    }

    fn serve_by_nginx(&mut self, machine: &str, log: &str, server: &str) -> Result<()> {
        let root = self.dir().join("www");
        std::fs::create_dir_all(&root)?;
        let dir = self.dir().display().to_string();
        let config = format!(
            "daemon off; user root; worker_processes 1; pid {dir}/{machine}-nginx.pid; error_log stderr notice;\n\
             events {{ worker_connections 8192; }}\n\
             http {{ access_log {log}; client_body_temp_path {dir}/nginx-body;\n\
             proxy_temp_path {dir}/nginx-proxy; fastcgi_temp_path {dir}/nginx-fastcgi;\n\
             uwsgi_temp_path {dir}/nginx-uwsgi; scgi_temp_path {dir}/nginx-scgi;\n\
             types {{ text/html html; text/plain txt; image/png png; application/octet-stream bin; }}\n\
             server {{ {server} root {dir}/www; }} }}\n"
        );
        let path = self.dir().join(format!("{machine}-nginx.conf"));
        std::fs::write(&path, config)?;
        let mut command = self.command(machine, "/usr/sbin/nginx");
        command.arg("-c").arg(&path);
        self.start(machine, "nginx", &mut command)?;
        let pid = self.dir().join(format!("{machine}-nginx.pid"));
        self.wait_for_start((machine, "nginx"), "serve files", |_| pid.exists())
    }

    /// Puts a package where [`Lab::serve_http`] serves it, and returns its URL.
    ///
    /// # Errors
    /// The file cannot be copied.
    pub fn publish(&self, machine: &str, package: &LabPackage) -> Result<String> {
        let name = package.path.file_name().context("the package has no name")?.to_string_lossy().into_owned();
        let root = self.dir().join("www");
        std::fs::create_dir_all(&root)?;
        std::fs::copy(&package.path, root.join(&name))?;
        Ok(format!("http://{}/{name}", self.v4(machine)))
    }

    /// Returns the folder of Java's archives of classes. One folder serves all labs of a source tree, so that no node makes
    /// an archive while another node is measured. An installed program's folder may be read-only, so each lab has its own.
    fn java_archives(&self) -> Result<PathBuf> {
        const NAME: &str = "java-archives";
        match installed() {
            Some(_) => Ok(self.dir().join(NAME)),
            None => Ok(program("netservd")?.with_file_name(NAME)),
        }
    }

    fn netservd_config(&self, machine: &str, role: &str, users: &[LabUser], extra: &str) -> String {
        let (state, socket) = (self.state_dir(machine), self.socket(machine));
        let mut text = format!(
            "node = \"{machine}\"\nrole = \"{role}\"\nstate-dir = {:?}\nsocket = {:?}\n",
            state.display().to_string(),
            socket.display().to_string()
        );
        if let Ok(archives) = self.java_archives() {
            let _ = writeln!(text, "osgi.archive = {:?}", archives.display().to_string());
        }
        if let Some(code_dir) = std::env::var_os("NETSERV_LAB_CODE_DIR").filter(|_| self.shares_code()) {
            let _ = writeln!(text, "code-dir = {:?}", code_dir.display().to_string());
        }
        if let Some(driver) = self.driver() {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "dataplane.driver = {driver:?}");
        }
        if let Some(lanes) = self.lanes() {
            let _ = writeln!(text, "dataplane.lanes = {lanes}");
        }
        text += extra;
        text.push('\n');
        for user in users {
            let _ = writeln!(
                text,
                "[[user]]\nname = {:?}\nkeys = [{:?}]\nprefixes = {:?}\n{}",
                user.name, user.public, user.prefixes, user.extra
            );
        }
        text
    }
}

/// Runs the CLI without a daemon.
///
/// # Errors
/// It ends with another code than 0; its output is in the error.
pub fn cli(args: &[&str]) -> Result<Output> {
    let output = Command::new(program("netserv")?).args(args).env("NO_COLOR", "1").output()?;
    if !output.status.success() {
        let text = [output.stdout, output.stderr].concat();
        bail!("netserv {}: {}: {}", args.join(" "), output.status, String::from_utf8_lossy(&text).trim());
    }
    Ok(output)
}

/// Returns the folder with the project's files: what a package installed for this program, or else the source tree.
pub fn workspace() -> PathBuf {
    let lab = Path::new(env!("CARGO_MANIFEST_DIR"));
    installed().unwrap_or_else(|| lab.parent().unwrap_or(lab).to_owned())
}

/// Returns the folder of installed files, if this program is installed.
///
/// It is laid out as the source tree is, with modules where a build leaves them.
pub fn installed() -> Option<PathBuf> {
    shared_files(&std::env::current_exe().ok()?).filter(|share| share.is_dir())
}

/// Returns the folder of a program's files, `share/netserv` for a program in `lib/netserv`.
fn shared_files(program: &Path) -> Option<PathBuf> {
    let programs = program.parent().filter(|folder| folder.ends_with("lib/netserv"))?;
    Some(programs.parent()?.with_file_name("share").join("netserv"))
}

/// Returns the files of a sample module's code in a flavour.
///
/// # Errors
/// It is not built; the error says how.
pub fn module_parts(module: &str, flavour: Flavour) -> Result<Vec<(Part, PathBuf)>> {
    if flavour == Flavour::Osgi {
        return Ok(vec![(Part::Bundle, module_bundle(module)?)]);
    }
    let parts = [
        module_wasm(module).map(|file| (Part::Packet, file)),
        module_component(module).map(|file| (Part::Component, file)),
    ];
    let built: Vec<_> = parts.into_iter().flatten().collect();
    ensure!(!built.is_empty(), "the module {module} is not built; build it: ./dev build");
    Ok(built)
}

/// Returns the bundle of a sample module.
///
/// # Errors
/// It is not built; the error says how.
pub fn module_bundle(module: &str) -> Result<PathBuf> {
    let path = workspace().join("java/samples").join(module).join("target").join(format!("{module}.jar"));
    ensure!(path.exists(), "{} is not there; build it: ./dev build", path.display());
    Ok(path)
}

/// Returns the projects of the modules that come with NetServ, by the names of their folders.
///
/// # Errors
/// A folder cannot be read.
pub fn projects() -> Result<BTreeMap<String, PathBuf>> {
    let mut projects = BTreeMap::new();
    for kind in ["apps", "samples", "fixtures"] {
        for entry in std::fs::read_dir(workspace().join("modules").join(kind))? {
            let entry = entry?;
            let project = entry.path().join("netserv.toml");
            if project.exists() {
                projects.insert(entry.file_name().to_string_lossy().into_owned(), project);
            }
        }
    }
    Ok(projects)
}

/// Returns the project of one of them.
///
/// # Errors
/// There is none.
pub fn project(module: &str) -> Result<PathBuf> {
    projects()?.remove(module).with_context(|| format!("there is no module {module}"))
}

/// Returns the packet part of a sample module.
///
/// # Errors
/// It is not built; the error says how.
pub fn module_wasm(module: &str) -> Result<PathBuf> {
    let file = format!("{}.wasm", module.replace('-', "_"));
    let path = built_modules("wasm32-unknown-unknown").join(file);
    ensure!(path.exists(), "{} is not there; build it: ./dev build", path.display());
    Ok(path)
}

/// Returns the component of a sample module.
///
/// # Errors
/// It is not built; the error says how.
pub fn module_component(module: &str) -> Result<PathBuf> {
    let folder = built_modules("wasm32-wasip2");
    // Programs keep the dashes of their names, libraries do not; a crate with both is a program here.
    let names = [module.to_owned(), module.replace('-', "_")].map(|name| folder.join(format!("{name}.wasm")));
    let built = names.into_iter().find(|path| path.exists());
    built.with_context(|| format!("the component of {module} is not there; build it: ./dev build"))
}

/// Returns the folder of the sample modules that are built for a target: for tests, unless `NETSERV_MODULES_PROFILE` names
/// another profile, as `dist`.
pub fn built_modules(target: &str) -> PathBuf {
    let profile = std::env::var("NETSERV_MODULES_PROFILE").unwrap_or_else(|_| "release".to_owned());
    workspace().join("modules/target").join(target).join(profile)
}

fn log_level() -> String {
    std::env::var("NETSERV_LAB_LOG").unwrap_or_else(|_| "info".into())
}

/// Lets lab nodes fetch from the lab's own web server.
pub const FILES_ALLOWED: &str = "[fetch]\nschemes = [\"http\"]\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_installed_programs_have_installed_files() {
        let share = |program: &str| shared_files(Path::new(program));
        assert_eq!(share("/usr/lib/netserv/netserv-lab"), Some("/usr/share/netserv".into()));
        assert_eq!(share("/opt/netserv-1.0/lib/netserv/netserv-lab"), Some("/opt/netserv-1.0/share/netserv".into()));
        assert_eq!(share("/src/netserv/target/debug/netserv-lab"), None);
        assert_eq!(installed(), None);
        assert!(workspace().join("lab/Cargo.toml").exists());
    }
}
