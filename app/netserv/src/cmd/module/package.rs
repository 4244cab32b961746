// SPDX-License-Identifier: Apache-2.0
//! `netserv module sign`, and package files in general.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use ed25519_dalek::SigningKey;
use netserv_model::limits::PACKAGE_BYTES_MAX;
use netserv_model::{Digest, PublicKey, Refusal};
use netserv_repository::Part;
use netserv_repository::package::{self, Package};

use super::build::{PartFile, Source};
use super::{check, inspect};
use crate::exit::{Exit, Failure, OrFail};
use crate::keys;
use crate::output::Output;
use crate::units::format_bytes;

/// Sign a package
///
/// The package keeps the signatures that it has, and its digest.
#[derive(Args)]
pub struct Sign {
    /// The package
    #[arg(value_name = "FILE.nsm")]
    file: PathBuf,
    /// The key file [default: netserv/key.pem below $XDG_CONFIG_HOME]
    #[arg(long, value_name = "FILE", env = "NETSERV_KEY", hide_env_values = true)]
    key: Option<PathBuf>,
    /// Write the signed package here instead of over the file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Only say which key would sign what
    #[arg(long)]
    dry_run: bool,
}

impl Sign {
    /// Signs the package.
    ///
    /// # Errors
    /// The package or the key cannot be used.
    pub fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let key = keys::read(&self.key.map_or_else(keys::default_path, Ok)?)?;
        let mut package = read_package(&self.file)?;
        let public = keys::public(&key);
        if self.dry_run {
            return would_sign(public, package.digest(), output);
        }
        package::sign(&mut package, &key).map_err(|refusal| refused(&self.file, &refusal))?;
        let out = self.out.unwrap_or(self.file);
        write(&out, &package)?;
        inspect::show(&out, &package, output)
    }
}

fn would_sign(key: PublicKey, digest: Digest, output: &mut Output) -> Result<Exit, Failure> {
    if output.is_json() {
        output.json(&serde_json::json!({ "would_sign": digest, "public": key }))?;
    } else {
        output.line(format!("would sign  {digest}\nwith        {key}"));
    }
    Ok(Exit::Done)
}

/// Reads a package file.
///
/// # Errors
/// It cannot be read, or is no package.
pub fn read_package(path: &Path) -> Result<Package, Failure> {
    let bytes = read_file(path, "name a package that `netserv module build` made")?;
    package::read(&bytes).map_err(|refusal| not_a_package(path, &bytes, &refusal))
}

/// Says what a file is that should be a package.
pub fn not_a_package(path: &Path, bytes: &[u8], refusal: &Refusal) -> Failure {
    let build = "build the package with `netserv module build`, and name that";
    let is = if path.extension().is_some_and(|end| end == "toml") {
        "a project's file"
    } else if bytes.starts_with(b"\0asm") {
        "WebAssembly code"
    } else if bytes.starts_with(b"PK\x03\x04") {
        "an OSGi bundle or another zip file"
    } else {
        return refused(path, refusal);
    };
    Failure::new(format!("{} is {is}, and no package", path.display()), build)
}

/// Reads a file that is no larger than packages are.
///
/// # Errors
/// It cannot be read, or is larger.
pub fn read_file(path: &Path, fix: &str) -> Result<Vec<u8>, Failure> {
    let doing = format!("cannot read {}", path.display());
    if path.is_dir() {
        return Err(Failure::new(format!("{} is a folder", path.display()), fix));
    }
    let file = std::fs::File::open(path).or_fail(&doing, fix)?;
    let mut bytes = Vec::new();
    file.take(PACKAGE_BYTES_MAX + 1).read_to_end(&mut bytes).or_fail(doing, fix)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > PACKAGE_BYTES_MAX) {
        let cause = format!("{} is larger than {}", path.display(), format_bytes(PACKAGE_BYTES_MAX));
        return Err(Failure::new(cause, fix));
    }
    Ok(bytes)
}

/// Packages a module, and signs it if there is a key.
///
/// # Errors
/// The project or the code is not as it should be.
pub fn build(source: &Source, files: &[PartFile], key: Option<&SigningKey>) -> Result<Package, Failure> {
    let parts: Vec<(Part, &[u8])> = files.iter().map(|file| (file.part, file.bytes.as_slice())).collect();
    let built = package::build(source.project.manifest.clone(), &parts);
    let mut package = built.map_err(|refusal| check::not_packaged(source, files, &refusal))?;
    if let Some(key) = key {
        package::sign(&mut package, key).map_err(|refusal| refused(&source.path, &refusal))?;
    }
    Ok(package)
}

/// Writes a package beside its place and moves it there, so that nobody reads half of it.
///
/// # Errors
/// It cannot be written.
pub fn write(path: &Path, package: &Package) -> Result<(), Failure> {
    let fix = "choose a folder with room that you may write to";
    let mut partial = path.as_os_str().to_owned();
    partial.push(".part");
    let partial = PathBuf::from(partial);
    let written = std::fs::File::create(&partial)
        .and_then(|mut file| file.write_all(&package.to_bytes()).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&partial, path));
    if written.is_err() {
        // What could not be finished is of no use; if it cannot go either, the first error counts.
        let _ = std::fs::remove_file(&partial);
    }
    written.or_fail(format!("cannot write {}", path.display()), fix)
}

/// Says what is wrong with a file.
pub fn refused(path: &Path, refusal: &Refusal) -> Failure {
    Failure::new(format!("{}: {}", path.display(), refusal.detail), refusal.kind.fix())
}
