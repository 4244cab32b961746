// SPDX-License-Identifier: Apache-2.0
//! `netserv module build`.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use clap::Args;
use netserv_model::limits;
use netserv_project::{PROJECT_FILE, Project, line_of};
use netserv_repository::Part;
use serde::Serialize;

use super::{check, inspect, package};
use crate::exit::{Exit, Failure, OrFail, one_line};
use crate::keys;
use crate::output::Output;
use crate::units::format_micros;

/// The status of a shell that finds no program of a name.
const NOT_FOUND: i32 = 127;

/// Build a module's code and package it
///
/// Runs `build.command` of netserv.toml with `sh -c` in the module's folder, then packages what netserv.toml names:
/// `build.wasm`, `build.component` and `build.bundle`, and the certificate and the key of `server.tls`. The package's
/// manifest is what of netserv.toml a node needs; tests and build keys are not in it.
#[derive(Args)]
pub struct Build {
    /// The module's folder, with netserv.toml in it
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// The project's file [default: netserv.toml in the module's folder]
    #[arg(long, value_name = "FILE", conflicts_with = "dir")]
    project: Option<PathBuf>,
    /// Package this WebAssembly core module, which sees packets, without running the build command
    #[arg(long, value_name = "FILE")]
    wasm: Option<PathBuf>,
    /// Package this WebAssembly component, which takes connections, without running the build command
    #[arg(long, value_name = "FILE")]
    component: Option<PathBuf>,
    /// Package this OSGi bundle, without running the build command
    #[arg(long, value_name = "FILE")]
    bundle: Option<PathBuf>,
    /// The package to write [default: NAME-VERSION.nsm in the module's folder]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Sign the package with this key, as `netserv module sign` does
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Only say what would be run and written
    #[arg(long)]
    dry_run: bool,
}

/// A module's source: its folder and its project.
pub struct Source {
    /// The project's file.
    pub path: PathBuf,
    /// The folder.
    pub dir: PathBuf,
    /// The project as it was read.
    pub project: Project,
    /// The text of the project's file.
    pub text: String,
}

impl Source {
    /// Reads the project of a module's folder.
    ///
    /// # Errors
    /// There is none, or it is not as it should be.
    pub fn read(dir: &Path) -> Result<Source, Failure> {
        if dir.is_file() {
            let cause = format!("{} is a file, and no module's folder", dir.display());
            return Err(Failure::new(cause, "name the folder that netserv.toml is in"));
        }
        Source::of_project(dir.join(PROJECT_FILE))
    }

    /// Reads a project's file, which lies in the module's folder.
    ///
    /// # Errors
    /// There is none, or it is not as it should be.
    pub fn of_project(path: PathBuf) -> Result<Source, Failure> {
        let dir = path.parent().map(Path::to_owned).unwrap_or_default();
        let shown = path.display();
        let missing = "name a module's folder, or make one with `netserv module new`";
        let text = std::fs::read_to_string(&path).or_fail(format!("cannot read {shown}"), missing)?;
        let project = Project::parse(&text).map_err(|error| check::bad_project(&path, &error))?;
        Ok(Source { path, dir, project, text })
    }

    /// Returns where each part is, of which there is at least one unless the module is a service.
    ///
    /// # Errors
    /// The project's file does not say.
    pub fn parts(&self) -> Result<Vec<PartFile>, Failure> {
        let build = &self.project.build;
        let named = [(Part::Core, &build.wasm), (Part::Component, &build.component), (Part::Bundle, &build.bundle)];
        let file = |(part, file): (Part, &Option<String>)| Some(PartFile::of(part, self.dir.join(file.as_ref()?)));
        let parts: Vec<PartFile> = named.into_iter().filter_map(file).collect();
        if parts.is_empty() && self.project.manifest.service.is_none() {
            let cause = format!("{} does not say which file is the code", self.path.display());
            let fix = "add `wasm = \"FILE\"`, `component = \"FILE\"` or `bundle = \"FILE\"` below [build]";
            return Err(Failure::new(cause, fix));
        }
        Ok(parts)
    }

    /// Returns the certificate and its key as one part, if the project has them.
    ///
    /// # Errors
    /// A file cannot be read.
    fn tls(&self) -> Result<Option<PartFile>, Failure> {
        let Some(tls) = &self.project.tls else { return Ok(None) };
        let mut pem = Vec::new();
        for (key, file) in [("certificate", &tls.certificate), ("key", &tls.key)] {
            let path = self.dir.join(file);
            let place = self.place("server.tls", key).or_else(|| self.place("server", "tls"));
            let doing = format!("{}`{key}` names {}, which cannot be read", self.at(place), path.display());
            pem.extend(
                std::fs::read(&path).or_fail(doing, format!("put the PEM file there, or mend {}", self.shown()))?,
            );
            if !pem.ends_with(b"\n") {
                pem.push(b'\n');
            }
        }
        let path = self.dir.join(&tls.certificate);
        Ok(Some(PartFile { bytes: pem, ..PartFile::of(Part::Tls, path) }))
    }

    /// Reads the files of parts, and looks whether they are what the project and this version of nodes want.
    ///
    /// # Errors
    /// One of them is not; the failure names the line of the project's file.
    pub fn load(&self, mut files: Vec<PartFile>, output: &Output) -> Result<Vec<PartFile>, Failure> {
        for file in &mut files {
            file.bytes = read_code(&file.path)?;
            check::code(self, file, output)?;
        }
        files.extend(self.tls()?);
        Ok(files)
    }

    /// Returns the project's file as it was named.
    pub fn shown(&self) -> std::path::Display<'_> {
        self.path.display()
    }

    /// Returns the line of the project's file in which a key of a section is, or the section without a key.
    pub fn place(&self, section: &str, key: &str) -> Option<usize> {
        line_of(&self.text, section, key)
    }

    /// Returns the project's file and a line of it, to stand before what is wrong there.
    pub fn at(&self, line: Option<usize>) -> String {
        let line = line.map(|line| format!("line {line}: ")).unwrap_or_default();
        format!("{}: {line}", self.shown())
    }

    /// Runs the build command, if there is one.
    ///
    /// # Errors
    /// It cannot be run or fails.
    pub fn compile(&self, output: &Output) -> Result<(), Failure> {
        let Some(command) = &self.project.build.command else { return Ok(()) };
        output.note(format!("building {}: {command}", self.project.manifest.module()));
        let started = Instant::now();
        // Standard output is for the result alone, so what the command says goes to standard error.
        let stderr = std::io::stderr().as_fd().try_clone_to_owned();
        let stderr = stderr.or_fail("cannot use standard error", "open standard error")?;
        // A project named without a folder lies in this one.
        let dir = if self.dir.as_os_str().is_empty() { Path::new(".") } else { &self.dir };
        let mut shell = Command::new("sh");
        // Commands may call this program, whatever PATH has.
        if let Ok(own) = std::env::current_exe() {
            shell.env("NETSERV", own);
        }
        let shell = shell.arg("-c").arg(command).current_dir(dir).stdin(Stdio::null()).stdout(stderr);
        let status = shell.status().or_fail("cannot run sh", "install a shell as `sh`")?;
        if status.code() == Some(NOT_FOUND) {
            let cause = format!("the build command names a program that is not there: {command}");
            let fix = "install what the line above names; the README.md of a new module says what it is built with";
            return Err(Failure::new(cause, fix));
        }
        if !status.success() {
            let cause = format!("the build command ended with {status}: {command}");
            return Err(Failure::new(cause, "mend what the lines above name, then build again"));
        }
        let took = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        output.note(format!("built in {}", format_micros(took)));
        Ok(())
    }

    /// Returns the package's usual place.
    pub fn package_path(&self) -> PathBuf {
        let name = self.project.manifest.name.as_str();
        let last = name.rsplit('/').next().unwrap_or(name);
        self.dir.join(format!("{last}-{}.nsm", self.project.manifest.version))
    }
}

impl Build {
    /// Builds and packages the module.
    ///
    /// # Errors
    /// The project, the build, the code or the package is not as it should be.
    pub fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let source = match self.project {
            Some(path) => Source::of_project(path)?,
            None => Source::read(&self.dir)?,
        };
        let named = [(Part::Core, self.wasm), (Part::Component, self.component), (Part::Bundle, self.bundle)];
        let named: Vec<_> = named.into_iter().filter_map(|(part, path)| Some(PartFile::of(part, path?))).collect();
        let builds = named.is_empty();
        let files = if builds { source.parts()? } else { named };
        let out = self.out.clone().unwrap_or_else(|| source.package_path());
        if self.dry_run {
            let would_run = source.project.build.command.clone().filter(|_| builds);
            let would_package = files.into_iter().map(|file| file.path).collect();
            return Plan { would_run, would_package, would_write: out }.show(output);
        }
        let key = self.key.as_deref().map(keys::read).transpose()?;
        if builds {
            source.compile(output)?;
        }
        let parts = source.load(files, output)?;
        let built = package::build(&source, &parts, key.as_ref())?;
        package::write(&out, &built)?;
        inspect::show(&out, &built, output)
    }
}

/// A file that becomes a part of a package.
#[derive(Debug)]
pub struct PartFile {
    /// Which part.
    pub part: Part,
    /// The file.
    pub path: PathBuf,
    /// What is in it, once it was read.
    pub bytes: Vec<u8>,
}

impl PartFile {
    /// Names a file that was not read.
    pub fn of(part: Part, path: PathBuf) -> PartFile {
        PartFile { part, path, bytes: Vec::new() }
    }

    /// Returns the key below [build] that names the part; the certificate has none there.
    pub fn key(&self) -> &'static str {
        match self.part {
            Part::Core => "wasm",
            Part::Component => "component",
            Part::Bundle => "bundle",
            Part::Tls => "tls",
        }
    }
}

/// What `--dry-run` shows.
#[derive(Serialize)]
struct Plan {
    would_run: Option<String>,
    would_package: Vec<PathBuf>,
    would_write: PathBuf,
}

impl Plan {
    fn show(&self, output: &mut Output) -> Result<Exit, Failure> {
        if output.is_json() {
            output.json(self)?;
            return Ok(Exit::Done);
        }
        if let Some(command) = &self.would_run {
            output.line(format!("would run      {}", one_line(command)));
        }
        for code in &self.would_package {
            output.line(format!("would package  {}", code.display()));
        }
        output.line(format!("would write    {}", self.would_write.display()));
        Ok(Exit::Done)
    }
}

fn read_code(path: &Path) -> Result<Vec<u8>, Failure> {
    let doing = format!("cannot read the code {}", path.display());
    let fix = "check `wasm`, `component`, `bundle` and `command` below [build] in netserv.toml";
    let length = std::fs::metadata(path).or_fail(&doing, fix)?.len();
    if length > limits::BLOB_BYTES_MAX {
        let cause = format!("{} has {length} bytes, more than {}", path.display(), limits::BLOB_BYTES_MAX);
        return Err(Failure::new(
            cause,
            "make the code smaller: build with optimisation and without debug information",
        ));
    }
    std::fs::read(path).or_fail(doing, fix)
}
