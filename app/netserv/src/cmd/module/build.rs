// SPDX-License-Identifier: Apache-2.0
//! `netserv module build`.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use clap::Args;
use netserv_model::Flavour;
use netserv_model::limits;
use netserv_model::manifest::Manifest;
use netserv_repository::manifest;

use serde::Serialize;

use super::package;
use crate::exit::{Exit, Failure, OrFail, one_line};
use crate::keys;
use crate::output::Output;
use crate::units::format_micros;

/// The manifest's file name.
pub const MANIFEST_FILE: &str = "netserv.toml";

/// Build a module's code and package it
///
/// Runs the manifest's `build.command` with `sh -c` in the module's folder, then packages `build.wasm` and
/// `build.bundle`, or the one that there is, with the manifest.
#[derive(Args)]
pub struct Build {
    /// The module's folder, with netserv.toml in it
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// The manifest [default: netserv.toml in the module's folder]
    #[arg(long, value_name = "FILE", conflicts_with = "dir")]
    manifest: Option<PathBuf>,
    /// Package this WebAssembly file, without running the build command
    #[arg(long, value_name = "FILE")]
    wasm: Option<PathBuf>,
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

/// A module's source: its folder and its manifest.
pub struct Source {
    /// The manifest's file.
    path: PathBuf,
    /// The folder.
    pub dir: PathBuf,
    /// The manifest as it was read.
    pub manifest: Manifest,
    /// The manifest's own text.
    pub text: String,
}

impl Source {
    /// Reads the manifest of a module's folder.
    ///
    /// # Errors
    /// There is none, or it is not as it should be.
    pub fn read(dir: &Path) -> Result<Source, Failure> {
        Source::of_manifest(dir.join(MANIFEST_FILE))
    }

    /// Reads a manifest, which lies in the module's folder.
    ///
    /// # Errors
    /// There is none, or it is not as it should be.
    pub fn of_manifest(path: PathBuf) -> Result<Source, Failure> {
        let dir = path.parent().map(Path::to_owned).unwrap_or_default();
        let shown = path.display();
        let missing = "name a module's folder, or make one with `netserv module new`";
        let text = std::fs::read_to_string(&path).or_fail(format!("cannot read {shown}"), missing)?;
        let manifest = manifest::parse(&text).map_err(|refusal| {
            let detail = refusal.detail.strip_prefix("netserv.toml: ").unwrap_or(&refusal.detail);
            Failure::new(format!("{shown}: {detail}"), format!("mend {shown}"))
        })?;
        Ok(Source { path, dir, manifest, text })
    }

    /// Returns where the code of each flavour is, of which there is at least one.
    ///
    /// # Errors
    /// The manifest does not say.
    pub fn code(&self) -> Result<Vec<(Flavour, PathBuf)>, Failure> {
        let file = |flavour: Flavour| Some((flavour, self.dir.join(self.manifest.build.code(flavour)?)));
        let code: Vec<(Flavour, PathBuf)> = Flavour::ALL.into_iter().filter_map(file).collect();
        if code.is_empty() {
            let cause = format!("{} does not say which file is the code", self.path.display());
            return Err(Failure::new(cause, "add `wasm = \"FILE\"` or `bundle = \"FILE\"` below [build]"));
        }
        Ok(code)
    }

    /// Runs the build command, if there is one.
    ///
    /// # Errors
    /// It cannot be run or fails.
    pub fn compile(&self, output: &Output) -> Result<(), Failure> {
        let Some(command) = &self.manifest.build.command else { return Ok(()) };
        output.note(format!("building {}: {command}", self.manifest.module()));
        let started = Instant::now();
        // Standard output is for the result alone, so what the command says goes to standard error.
        let stderr = std::io::stderr().as_fd().try_clone_to_owned();
        let stderr = stderr.or_fail("cannot use standard error", "open standard error")?;
        // A manifest named without a folder lies in this one.
        let dir = if self.dir.as_os_str().is_empty() { Path::new(".") } else { &self.dir };
        let mut shell = Command::new("sh");
        let shell = shell.arg("-c").arg(command).current_dir(dir).stdin(Stdio::null()).stdout(stderr);
        let status = shell.status().or_fail("cannot run sh", "install a shell as `sh`")?;
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
        let name = self.manifest.name.as_str();
        let last = name.rsplit('/').next().unwrap_or(name);
        self.dir.join(format!("{last}-{}.nsm", self.manifest.version))
    }
}

impl Build {
    /// Builds and packages the module.
    ///
    /// # Errors
    /// The manifest, the build, the code or the package is not as it should be.
    pub fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let source = match self.manifest {
            Some(path) => Source::of_manifest(path)?,
            None => Source::read(&self.dir)?,
        };
        let named = [(Flavour::Wasm, self.wasm), (Flavour::Osgi, self.bundle)];
        let named: Vec<_> = named.into_iter().filter_map(|(flavour, path)| Some((flavour, path?))).collect();
        let builds = named.is_empty();
        let code = if builds { source.code()? } else { named };
        let out = self.out.clone().unwrap_or_else(|| source.package_path());
        if self.dry_run {
            let would_run = source.manifest.build.command.clone().filter(|_| builds);
            let would_package = code.into_iter().map(|(_, path)| path).collect();
            return Plan { would_run, would_package, would_write: out }.show(output);
        }
        let key = self.key.as_deref().map(keys::read).transpose()?;
        if builds {
            source.compile(output)?;
        }
        let mut parts = Vec::new();
        for (flavour, path) in code {
            let bytes = read_code(&path)?;
            parts.push((flavour, path, bytes));
        }
        let built = package::build(&source.path, &source.text, &parts, key.as_ref())?;
        package::write(&out, &built)?;
        package::show(&out, &built, output)
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
    let fix = "check `wasm`, `bundle` and `command` below [build] in netserv.toml";
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
