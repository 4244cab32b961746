// SPDX-License-Identifier: Apache-2.0
//! `netserv module inspect`: what is in a package, a WebAssembly file or a bundle.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use netserv_model::Flavour;
use netserv_model::manifest::Manifest;
use netserv_model::verdict::FailureMode;
use netserv_repository::package::{self, Package, Summary};
use netserv_repository::{Part, bundle};
use serde::Serialize;

use super::code::Code;
use super::files::{not_a_package, read_file, refused};
use crate::exit::{Exit, Failure, one_line};
use crate::output::{Output, Style};
use crate::report::count;
use crate::units::format_bytes;

/// Names of imports in one line.
const NAMES_SHOWN_MAX: usize = 40;

/// Show the contents of a package, a WebAssembly file or an OSGi bundle
///
/// For code, shows its imports and exports, the building blocks that it uses, and whether nodes of this version can
/// run it. If they cannot, says whether to update the code or the nodes.
#[derive(Args)]
pub struct Inspect {
    /// The package (.nsm), core module or component (.wasm), or bundle (.jar)
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

impl Inspect {
    /// Shows the file.
    ///
    /// # Errors
    /// The file is none of these.
    pub fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let bytes = read_file(&self.file, "name a package, which `netserv module build` makes and shows, or code")?;
        if bytes.starts_with(b"\0asm") {
            return show_wasm(&self.file, &bytes, output);
        }
        if bytes.starts_with(b"PK\x03\x04") {
            return show_jar(&self.file, &bytes, output);
        }
        let package = package::read(&bytes).map_err(|refusal| not_a_package(&self.file, &bytes, &refusal))?;
        show(&self.file, &package, output)
    }
}

/// What `-j` shows of a package file.
#[derive(Serialize)]
struct Shown<'a> {
    file: &'a Path,
    bytes: usize,
    #[serde(flatten)]
    summary: Summary,
    /// What can be seen of the code, by flavour.
    code: BTreeMap<Flavour, Parts>,
    manifest: &'a Manifest,
    /// Keys of the manifest that this version does not know, by their paths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unknown_keys: Vec<String>,
}

/// What can be seen of the code of one flavour.
#[derive(Default, Serialize)]
struct Parts {
    #[serde(skip_serializing_if = "Option::is_none")]
    packet: Option<Code>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<Code>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bundle: Option<Bundle>,
    /// What nodes of this version cannot run, and which side to update.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    skew: Vec<String>,
}

/// What a bundle says of itself.
#[derive(Serialize)]
struct Bundle {
    bytes: usize,
    symbolic_name: String,
    version: String,
    imports: Vec<String>,
    exports: Vec<String>,
}

impl Bundle {
    fn of(jar: &[u8]) -> Option<Bundle> {
        let headers = bundle::headers(jar).ok()?;
        let header = |name: &str| headers.get(name).map(String::as_str).unwrap_or_default();
        Some(Bundle {
            bytes: jar.len(),
            symbolic_name: first(header("bundle-symbolicname")),
            version: header("bundle-version").to_owned(),
            imports: packages(header("import-package")),
            exports: packages(header("export-package")),
        })
    }
}

/// Shows a package file.
///
/// # Errors
/// It cannot be shown as JSON.
pub fn show(path: &Path, package: &Package, output: &mut Output) -> Result<Exit, Failure> {
    let bytes = package.to_bytes().len();
    let shown = Shown {
        file: path,
        bytes,
        summary: package.summary(),
        code: code_of(package),
        manifest: package.manifest(),
        unknown_keys: package.unknown_keys(),
    };
    if output.is_json() {
        output.json(&shown)?;
        return Ok(Exit::Done);
    }
    for (name, value) in facts(&shown) {
        output.line(format!("{name:11}  {}", one_line(&value)));
    }
    signatures(&shown.summary, output);
    if !shown.unknown_keys.is_empty() {
        output.note(unknown_keys(&shown.unknown_keys));
    }
    let skews = shown.code.values().flat_map(|parts| &parts.skew);
    skews.for_each(|skew| output.note(format!("no node of this version runs it: {skew}")));
    Ok(Exit::Done)
}

fn code_of(package: &Package) -> BTreeMap<Flavour, Parts> {
    let mut code: BTreeMap<Flavour, Parts> = BTreeMap::new();
    for (part, bytes) in package.parts() {
        match part {
            Part::Core | Part::Component => {
                let Ok(seen) = Code::read(bytes) else { continue };
                let wasm = code.entry(Flavour::Wasm).or_default();
                wasm.skew.extend(seen.skew().map(|skew| format!("{}: {}; {}", part.file_name(), skew.cause, skew.fix)));
                if part == Part::Core {
                    wasm.packet = Some(seen);
                } else {
                    wasm.server = Some(seen);
                }
            }
            Part::Bundle => code.entry(Flavour::Osgi).or_default().bundle = Bundle::of(bytes),
            Part::Tls => {}
        }
    }
    code
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
    for parts in shown.code.values() {
        let wasm = [("packet part", &parts.packet), ("server part", &parts.server)];
        facts.extend(wasm.into_iter().filter_map(|(name, code)| Some((name, summary_of(code.as_ref()?)))));
        facts.extend(
            parts.bundle.as_ref().map(|bundle| ("bundle", format!("{} {}", bundle.symbolic_name, bundle.version))),
        );
    }
    facts.extend(manifest.chain().iter().enumerate().map(|(at, part)| ("service", format!("{}. {part}", at + 1))));
    facts.extend(manifest.filters().iter().map(|filter| ("filter", filter.to_string())));
    facts.extend(manifest.listen().iter().map(|filter| ("listens at", filter.to_string())));
    facts.extend(manifest.intercept().iter().map(|filter| ("intercepts", filter.to_string())));
    facts.extend(manifest.requires.iter().map(|feature| ("requires", feature.to_string())));
    facts.extend(manifest.dependencies.iter().map(|dependency| ("needs", dependency.to_string())));
    facts.extend(manifest.properties.iter().map(|(key, value)| ("property", format!("{key}={value}"))));
    let failing = match manifest.on_failure() {
        FailureMode::Open => "packets pass",
        FailureMode::Closed => "packets are dropped",
    };
    facts.extend(manifest.packet.as_ref().map(|_| ("on failure", failing.to_owned())));
    facts.extend(manifest.is_parallel().then(|| ("parallel", "an instance for each lane of the node".to_owned())));
    let limits = &manifest.limits;
    let memory = format_bytes(limits.memory_bytes);
    facts.push(("limits", format!("memory {memory}, a call {} ms, {} timers", limits.call_ms, limits.timers)));
    if manifest.server.is_some() {
        let body = format_bytes(limits.body_bytes);
        let requests = format!(
            "a request {} ms, {} requests and {} connections at a time, bodies {body}",
            limits.request_ms, limits.requests, limits.connections
        );
        facts.push(("of servers", requests));
    }
    let state = format!("{} entries, {}", limits.kv_entries, format_bytes(limits.kv_bytes));
    facts.push(("kv state", format!("schema {}, {state}", manifest.state_schema)));
    facts
}

fn unknown_keys(keys: &[String]) -> String {
    let mut names: Vec<String> = keys.iter().take(NAMES_SHOWN_MAX).map(|key| one_line(key)).collect();
    if keys.len() > NAMES_SHOWN_MAX {
        names.push(format!("and {} more", keys.len() - NAMES_SHOWN_MAX));
    }
    let keys = count(u64::try_from(keys.len()).unwrap_or(u64::MAX), "key");
    format!("nodes of this version read over {keys} of the manifest: {}", names.join(", "))
}

/// Returns what code is, in one line.
fn summary_of(code: &Code) -> String {
    let mut parts = vec![code.kind.as_str().to_owned(), format_bytes(u64::try_from(code.bytes).unwrap_or(u64::MAX))];
    parts.extend(code.abi.map(|abi| format!("ABI {abi}")));
    parts.extend(code.memory_bytes.map(|bytes| format!("starts with {} of memory", format_bytes(bytes))));
    if !code.blocks.is_empty() {
        parts.push(format!("uses {}", Vec::from_iter(code.blocks.iter().map(String::as_str)).join(" ")));
    }
    parts.join(", ")
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

fn show_wasm(path: &Path, bytes: &[u8], output: &mut Output) -> Result<Exit, Failure> {
    let fix = "name a core module or a component in binary form";
    let code = Code::read(bytes).map_err(|error| Failure::new(format!("{} {error}", path.display()), fix))?;
    let skew = code.skew();
    if output.is_json() {
        let skew = skew.map(|skew| serde_json::json!({ "cause": skew.cause, "fix": skew.fix }));
        output.json(&serde_json::json!({ "file": path, "code": code, "skew": skew }))?;
        return Ok(Exit::Done);
    }
    output.line(format!("{:11}  {}, {}", "file", path.display(), summary_of(&code)));
    for (name, names) in [("imports", &code.imports), ("exports", &code.exports)] {
        for one in names.iter().take(NAMES_SHOWN_MAX) {
            output.line(format!("{name:11}  {one}"));
        }
        if names.len() > NAMES_SHOWN_MAX {
            output.line(format!("{name:11}  and {} more", names.len() - NAMES_SHOWN_MAX));
        }
    }
    match skew {
        None => output.line(format!("{:11}  packet ABI 1, WASI 0.2 and building blocks of this version fit", "nodes")),
        Some(skew) => {
            output.line(format!("{:11}  cannot run it: it {}", "nodes", skew.cause));
            output.line(format!("{:11}  {}", "fix", skew.fix));
        }
    }
    Ok(Exit::Done)
}

fn show_jar(path: &Path, bytes: &[u8], output: &mut Output) -> Result<Exit, Failure> {
    bundle::check(bytes).map_err(|refusal| refused(path, &refusal))?;
    let Some(bundle) = Bundle::of(bytes) else { return Ok(Exit::Failed) };
    if output.is_json() {
        output.json(&serde_json::json!({ "file": path, "bundle": bundle }))?;
        return Ok(Exit::Done);
    }
    let size = format_bytes(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
    output.line(format!("{:11}  {}, OSGi bundle, {size}", "file", path.display()));
    output.line(format!("{:11}  {} {}", "bundle", one_line(&bundle.symbolic_name), one_line(&bundle.version)));
    for (name, names) in [("imports", &bundle.imports), ("exports", &bundle.exports)] {
        names.iter().for_each(|one| output.line(format!("{name:11}  {}", one_line(one))));
    }
    Ok(Exit::Done)
}

fn first(header: &str) -> String {
    header.split(';').next().unwrap_or_default().trim().to_owned()
}

/// Splits a header of packages at the commas that are not in quotes, and leaves out what follows each name but its version.
fn packages(header: &str) -> Vec<String> {
    let mut quoted = false;
    let parts = header.split(|c: char| {
        quoted ^= c == '"';
        c == ',' && !quoted
    });
    let one = |part: &str| {
        let version = part.split(';').skip(1).find_map(|rest| rest.trim().strip_prefix("version="));
        let version = version.map(|version| format!(" {}", version.trim_matches('"'))).unwrap_or_default();
        format!("{}{version}", first(part))
    };
    parts.filter(|part| !part.trim().is_empty()).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_read_with_their_versions() {
        let header = "org.netserv.block;version=\"[1.0,2)\",javax.servlet;resolution:=optional, a.b";
        assert_eq!(packages(header), ["org.netserv.block [1.0,2)", "javax.servlet", "a.b"]);
        assert!(packages("").is_empty());
    }
}
