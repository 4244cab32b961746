// SPDX-License-Identifier: Apache-2.0
//! `netserv module build`.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use clap::Args;
use ed25519_dalek::SigningKey;
use netserv_model::limits;
use netserv_repository::Part;
use netserv_repository::package::{self, Package};
use serde::Serialize;

use super::files::refused;
use super::source::{PartFile, Source};
use super::{check, files, inspect};
use crate::exit::{Exit, Failure, OrFail, one_line};
use crate::keys;
use crate::output::Output;
use crate::units::format_micros;

/// The status of a shell that finds no program of a name.
const NOT_FOUND: i32 = 127;

/// Build a module's code and package it
///
/// Runs `build.command` of netserv.toml with `sh -c` in the module's folder. Then packages the files that
/// netserv.toml names: `build.wasm`, `build.component`, `build.bundle`, and the certificate and key of
/// `server.tls`. The package's manifest contains those parts of netserv.toml that nodes need, not the tests and
/// build keys.
#[derive(Args)]
pub struct Build {
    /// The module's folder, with netserv.toml in it
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Project file [default: netserv.toml in the module's folder]
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
    /// Only show what the command would run and write
    #[arg(long)]
    dry_run: bool,
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
            compile(&source, output)?;
        }
        let parts = load(&source, files, output)?;
        let built = package_of(&source, &parts, key.as_ref())?;
        files::write(&out, &built)?;
        inspect::show(&out, &built, output)
    }
}

/// Reads the files of parts, and looks whether they are what the project and this version of nodes want.
///
/// # Errors
/// One of them is not; the failure names the line of the project's file.
pub fn load(source: &Source, mut files: Vec<PartFile>, output: &Output) -> Result<Vec<PartFile>, Failure> {
    for file in &mut files {
        file.bytes = read_code(&file.path)?;
        check::code(source, file, output)?;
    }
    files.extend(source.tls()?);
    Ok(files)
}

/// Runs the build command, if there is one.
///
/// # Errors
/// It cannot be run or fails.
pub fn compile(source: &Source, output: &Output) -> Result<(), Failure> {
    let Some(command) = &source.project.build.command else { return Ok(()) };
    output.note(format!("building {}: {command}", source.project.manifest.module()));
    let started = Instant::now();
    // Standard output is for the result alone, so what the command says goes to standard error.
    let stderr = std::io::stderr().as_fd().try_clone_to_owned();
    let stderr = stderr.or_fail("cannot use standard error", "open standard error")?;
    // A project named without a folder lies in this one.
    let dir = if source.dir.as_os_str().is_empty() { Path::new(".") } else { &source.dir };
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

/// Packages a module, and signs it if there is a key.
///
/// # Errors
/// The project or the code is not as it should be.
pub fn package_of(source: &Source, files: &[PartFile], key: Option<&SigningKey>) -> Result<Package, Failure> {
    let parts: Vec<(Part, &[u8])> = files.iter().map(|file| (file.part, file.bytes.as_slice())).collect();
    let built = package::build(source.project.manifest.clone(), &parts);
    let mut package = built.map_err(|refusal| check::not_packaged(source, files, &refusal))?;
    if let Some(key) = key {
        package::sign(&mut package, key).map_err(|refusal| refused(&source.path, &refusal))?;
    }
    Ok(package)
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
