// SPDX-License-Identifier: Apache-2.0
//! The arguments and the output of `netserv-worker test`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use netserv_model::manifest::{Manifest, ModuleLimits};
use netserv_worker::pcap_test::{Case, Report, run as run_case};
use netserv_worker::{compile, pcap};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A folder with a netserv.toml; all its tests are run.
    #[arg(long, conflicts_with_all = ["input", "output", "property", "counter"], required_unless_present = "wasm")]
    package_dir: Option<PathBuf>,
    /// The WebAssembly file; with --package-dir, in place of the one that the manifest names.
    #[arg(long)]
    wasm: Option<PathBuf>,
    /// A capture of the packets that go in.
    #[arg(long, required_unless_present = "package_dir")]
    input: Option<PathBuf>,
    /// A capture of the packets that must come out.
    #[arg(long, required_unless_present = "package_dir")]
    output: Option<PathBuf>,
    /// A property that the module can read, as key=value.
    #[arg(long, value_parser = key_value)]
    property: Vec<(String, String)>,
    /// A counter that must have a value afterwards, as name=value.
    #[arg(long, value_parser = key_value)]
    counter: Vec<(String, String)>,
    /// Write the packets that came out to the output captures, instead of comparing.
    #[arg(long)]
    accept: bool,
}

/// One test with what belongs to it.
struct Job {
    name: String,
    output: PathBuf,
    case: Case,
}

#[derive(serde::Serialize)]
struct Named<'a> {
    name: &'a str,
    #[serde(flatten)]
    report: &'a Report,
}

/// Runs the tests, and prints one line of JSON per test. Fails unless all pass.
pub(crate) fn run(args: &Args) -> ExitCode {
    match try_run(args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("netserv-worker: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn try_run(args: &Args) -> anyhow::Result<bool> {
    let (wasm, jobs) = match &args.package_dir {
        Some(folder) => from_manifest(folder, args)?,
        None => from_arguments(args)?,
    };
    let wasm = compile::read_wasm(&wasm)?;
    let mut all_passed = true;
    for job in &jobs {
        let mut report = run_case(&wasm, &job.case);
        if args.accept && report.failure.is_none() {
            std::fs::write(&job.output, pcap::write(&report.output))
                .with_context(|| format!("cannot write {}", job.output.display()))?;
            report.difference = None;
            report.passed = report.wrong_counters.is_empty();
        }
        all_passed &= report.passed;
        println!("{}", serde_json::to_string(&Named { name: &job.name, report: &report })?);
    }
    Ok(all_passed)
}

fn from_manifest(folder: &Path, args: &Args) -> anyhow::Result<(PathBuf, Vec<Job>)> {
    let path = folder.join("netserv.toml");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let manifest: Manifest = toml::from_str(&text).with_context(|| format!("cannot read {}", path.display()))?;
    ensure!(!manifest.tests.is_empty(), "{} names no tests", path.display());
    let named = manifest.build.wasm.as_ref().map(|wasm| folder.join(wasm));
    let wasm = args.wasm.clone().or(named).context("name the WebAssembly file, with --wasm or as build.wasm")?;
    let mut jobs = Vec::new();
    for test in &manifest.tests {
        let mut properties = manifest.properties.clone();
        properties.extend(test.properties.clone());
        let output = folder.join(&test.output);
        let case = Case {
            input: read_capture(&folder.join(&test.input))?,
            output: read_expected(&output, args.accept)?,
            properties,
            counters: test.counters.clone(),
            limits: manifest.limits,
        };
        jobs.push(Job { name: test.name.clone(), output, case });
    }
    Ok((wasm, jobs))
}

fn from_arguments(args: &Args) -> anyhow::Result<(PathBuf, Vec<Job>)> {
    let given = "checked by the argument parser";
    let output = args.output.clone().expect(given);
    let mut counters = BTreeMap::new();
    for (name, value) in &args.counter {
        counters.insert(name.clone(), value.parse().with_context(|| format!("`{value}` is not a number"))?);
    }
    let case = Case {
        input: read_capture(args.input.as_ref().expect(given))?,
        output: read_expected(&output, args.accept)?,
        properties: args.property.iter().cloned().collect(),
        counters,
        limits: ModuleLimits::default(),
    };
    let wasm = args.wasm.clone().expect(given);
    Ok((wasm, vec![Job { name: "test".to_owned(), output, case }]))
}

fn read_expected(path: &Path, accept: bool) -> anyhow::Result<Vec<pcap::Captured>> {
    if accept { Ok(Vec::new()) } else { read_capture(path) }
}

fn read_capture(path: &Path) -> anyhow::Result<Vec<pcap::Captured>> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    pcap::read(&bytes).with_context(|| format!("cannot read {}", path.display()))
}

fn key_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write key=value")?;
    Ok((key.to_owned(), value.to_owned()))
}
