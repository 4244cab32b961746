// SPDX-License-Identifier: Apache-2.0
//! `netserv module sign` and `netserv module inspect`, and package files in general.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use ed25519_dalek::SigningKey;
use netserv_model::limits::PACKAGE_BYTES_MAX;
use netserv_model::manifest::Manifest;
use netserv_model::verdict::FailureMode;
use netserv_model::{Digest, Flavour, PublicKey, Refusal};
use netserv_repository::package::{self, Package, Summary};
use serde::Serialize;

use crate::exit::{Exit, Failure, OrFail, one_line};
use crate::keys;
use crate::output::{Output, Style};
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

/// Show what is in a package
#[derive(Args)]
pub struct Inspect {
    /// The package
    #[arg(value_name = "FILE.nsm")]
    file: PathBuf,
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
        show(&out, &package, output)
    }
}

impl Inspect {
    /// Shows the package.
    ///
    /// # Errors
    /// The file is no package.
    pub fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let package = read_package(&self.file)?;
        show(&self.file, &package, output)
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
    let doing = format!("cannot read {}", path.display());
    let fix = "name a package that `netserv module build` made";
    let file = std::fs::File::open(path).or_fail(&doing, fix)?;
    let mut bytes = Vec::new();
    file.take(PACKAGE_BYTES_MAX + 1).read_to_end(&mut bytes).or_fail(&doing, fix)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > PACKAGE_BYTES_MAX) {
        let cause = format!("{} is larger than {}", path.display(), format_bytes(PACKAGE_BYTES_MAX));
        return Err(Failure::new(cause, fix));
    }
    package::read(&bytes).map_err(|refusal| refused(path, &refusal))
}

/// Packages a module, and signs it if there is a key.
///
/// # Errors
/// The manifest or the code is not as it should be.
pub fn build(
    manifest: &Path,
    text: &str,
    code: &[(Flavour, PathBuf, Vec<u8>)],
    key: Option<&SigningKey>,
) -> Result<Package, Failure> {
    let parts: Vec<(Flavour, &[u8])> = code.iter().map(|(flavour, _, bytes)| (*flavour, bytes.as_slice())).collect();
    let mut package = package::build(text, &parts).map_err(|refusal| not_packaged(manifest, text, code, &refusal))?;
    if let Some(key) = key {
        package::sign(&mut package, key).map_err(|refusal| refused(manifest, &refusal))?;
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

/// What `-j` shows of a package file.
#[derive(Serialize)]
struct Shown<'a> {
    file: &'a Path,
    bytes: usize,
    #[serde(flatten)]
    summary: Summary,
    manifest: &'a Manifest,
}

/// Shows a package file.
///
/// # Errors
/// It cannot be shown as JSON.
pub fn show(path: &Path, package: &Package, output: &mut Output) -> Result<Exit, Failure> {
    let bytes = package.to_bytes().len();
    let shown = Shown { file: path, bytes, summary: package.summary(), manifest: package.manifest() };
    if output.is_json() {
        output.json(&shown)?;
        return Ok(Exit::Done);
    }
    for (name, value) in facts(&shown) {
        output.line(format!("{name:11}  {}", one_line(&value)));
    }
    signatures(&shown.summary, output);
    Ok(Exit::Done)
}

fn facts(shown: &Shown<'_>) -> Vec<(&'static str, String)> {
    let Shown { summary, manifest, .. } = shown;
    let size = u64::try_from(shown.bytes).unwrap_or(u64::MAX);
    let mut facts = vec![("module", summary.module.to_string())];
    if !summary.description.is_empty() {
        facts.push(("description", summary.description.clone()));
    }
    facts.push(("file", format!("{}, {}", shown.file.display(), format_bytes(size))));
    facts.push(("digest", format!("{} (the package's, for --digest)", summary.digest)));
    let flavour = |(kind, bytes): &(String, u64)| ("flavour", format!("{kind}, {}", format_bytes(*bytes)));
    facts.extend(summary.flavours.iter().map(flavour));
    facts.extend(manifest.filters().iter().map(|filter| ("filter", filter.to_string())));
    facts.extend(manifest.listen().iter().map(|filter| ("listens at", filter.to_string())));
    facts.extend(manifest.dependencies.iter().map(|dependency| ("needs", dependency.to_string())));
    facts.extend(manifest.properties.iter().map(|(key, value)| ("property", format!("{key}={value}"))));
    let failing = match manifest.on_failure() {
        FailureMode::Open => "packets pass",
        FailureMode::Closed => "packets are dropped",
    };
    facts.extend(manifest.packet.as_ref().map(|_| ("on failure", failing.to_owned())));
    let limits = &manifest.limits;
    let memory = format_bytes(limits.memory_bytes);
    facts.push(("limits", format!("memory {memory}, a call {} ms, {} timers", limits.call_ms, limits.timers)));
    let state = format!("{} entries, {}", limits.kv_entries, format_bytes(limits.kv_bytes));
    facts.push(("kv state", format!("schema {}, {state}", manifest.state_schema)));
    facts
}

fn signatures(summary: &Summary, output: &mut Output) {
    let line = |name: &str, value: &str| format!("{name:11}  {value}");
    if summary.signed_by.is_empty() {
        let nobody = output.paint(Style::Warn, "nobody; nodes refuse it until `netserv module sign`");
        output.line(line("signed by", &nobody));
    }
    for key in &summary.signed_by {
        output.line(line("signed by", &key.to_string()));
    }
    if summary.bad_signatures > 0 {
        let bad = output.paint(Style::Bad, &format!("{} that do not fit", summary.bad_signatures));
        output.line(line("signatures", &bad));
    }
}

/// Names the file that cannot be packaged: the manifest, or the code of the flavour that is refused by itself too.
fn not_packaged(manifest: &Path, text: &str, code: &[(Flavour, PathBuf, Vec<u8>)], refusal: &Refusal) -> Failure {
    if let Some(detail) = refusal.detail.strip_prefix("netserv.toml: ") {
        let shown = manifest.display();
        return Failure::new(format!("{shown}: {detail}"), format!("mend {shown}"));
    }
    let is_at_fault = |(flavour, _, bytes): &&(Flavour, PathBuf, Vec<u8>)| {
        package::build(text, &[(*flavour, bytes)]).is_err_and(|alone| alone == *refusal)
    };
    match code.iter().find(is_at_fault) {
        Some((Flavour::Wasm, path, _)) => Failure::new(
            format!("{}: {}", path.display(), refusal.detail),
            "name a WebAssembly file: `wasm` below [build] in netserv.toml, or --wasm",
        ),
        Some((Flavour::Osgi, path, _)) => Failure::new(
            format!("{}: {}", path.display(), refusal.detail),
            "name an OSGi bundle: `bundle` below [build] in netserv.toml, or --bundle",
        ),
        None => refused(manifest, refusal),
    }
}

fn refused(path: &Path, refusal: &Refusal) -> Failure {
    Failure::new(format!("{}: {}", path.display(), refusal.detail), refusal.kind.fix())
}
