// SPDX-License-Identifier: Apache-2.0
//! The arguments and the output of `test`, which both programs have.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use netserv_model::manifest::ModuleLimits;
use netserv_project::{Build, PROJECT_FILE, Project};

use super::case::{Case, Report};
use crate::tools::pcap;

/// What is to be tested.
#[derive(Clone, Debug, clap::Args)]
#[group(id = "tested")]
pub struct Args {
    /// A folder with a netserv.toml; all its tests are run.
    #[arg(long, conflicts_with_all = ["input", "output", "property", "counter"], required_unless_present = "code")]
    package_dir: Option<PathBuf>,
    /// The WebAssembly file or the bundle; with --package-dir, in place of the one that netserv.toml names.
    #[arg(long = "wasm", visible_alias = "bundle", value_name = "FILE")]
    code: Option<PathBuf>,
    /// The compiled code of the component that netserv.toml names, of this program's own make.
    #[arg(long, value_name = "FILE", requires = "package_dir")]
    compiled: Option<PathBuf>,
    /// That of the packet module.
    #[arg(long, value_name = "FILE", requires = "package_dir")]
    compiled_packet: Option<PathBuf>,
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
#[derive(Clone, Debug)]
pub struct Job {
    /// What it is called.
    pub name: String,
    /// What goes in and what must come out.
    pub case: Case,
    output: PathBuf,
}

/// The tests of a module, with the file of its code.
#[derive(Clone, Debug)]
pub struct Jobs {
    /// The file of its code; empty if there are no tests for it.
    pub code: PathBuf,
    /// The folder and the project, if there is one with tests of its server part.
    pub server: Option<(PathBuf, Project)>,
    /// The compiled code of that part, if it is there.
    pub compiled: Option<PathBuf>,
    /// The compiled code of the packet part, if it is there.
    pub compiled_packet: Option<PathBuf>,
    /// Whether what comes out is what must come out.
    pub accept: bool,
    jobs: Vec<Job>,
}

#[derive(serde::Serialize)]
struct Named<'a> {
    name: &'a str,
    #[serde(flatten)]
    report: &'a Report,
}

impl Jobs {
    /// Reads the tests that the arguments name. `named` finds the file of the code in a project.
    ///
    /// # Errors
    /// A file is missing or makes no sense.
    pub fn read(args: &Args, named: fn(&Build) -> Option<&String>) -> anyhow::Result<Jobs> {
        match &args.package_dir {
            Some(folder) => from_project(folder, args, named),
            None => {
                let (code, jobs) = from_arguments(args)?;
                Ok(Jobs { code, server: None, compiled: None, compiled_packet: None, accept: args.accept, jobs })
            }
        }
    }

    /// Returns the tests in turn.
    pub fn iter(&self) -> std::slice::Iter<'_, Job> {
        self.jobs.iter()
    }

    /// Prints one line of JSON with what a test found, and keeps the packets if they are accepted. Returns whether it
    /// passed.
    ///
    /// # Errors
    /// The packets cannot be kept.
    pub fn finish(&self, job: &Job, mut report: Report) -> anyhow::Result<bool> {
        if self.accept && report.failure.is_none() {
            std::fs::write(&job.output, pcap::write(&report.output))
                .with_context(|| format!("cannot write {}", job.output.display()))?;
            report.difference = None;
            report.passed = report.wrong_counters.is_empty();
        }
        println!("{}", serde_json::to_string(&Named { name: &job.name, report: &report })?);
        Ok(report.passed)
    }
}

impl<'a> IntoIterator for &'a Jobs {
    type Item = &'a Job;
    type IntoIter = std::slice::Iter<'a, Job>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Returns the exit code of a run of tests: 0 if all passed, 1 if not, 2 if they could not be run, which is said.
pub fn exit_code(result: anyhow::Result<bool>) -> u8 {
    match result {
        Ok(true) => 0,
        Ok(false) => 1,
        Err(error) => {
            eprintln!("test: {error:#}");
            2
        }
    }
}

fn from_project(folder: &Path, args: &Args, named: fn(&Build) -> Option<&String>) -> anyhow::Result<Jobs> {
    let project = read_project(folder)?;
    ensure!(project.has_tests(), "{} names no tests", folder.join(PROJECT_FILE).display());
    let code = match args.code.clone().or(named(&project.build).map(|code| folder.join(code))) {
        Some(code) => code,
        None if project.tests.is_empty() => PathBuf::new(),
        None => bail!("name the file, with --wasm or --bundle, or in [build]"),
    };
    let mut jobs = Vec::new();
    for test in &project.tests {
        let mut properties = project.manifest.properties.clone();
        properties.extend(test.properties.clone());
        let output = folder.join(&test.output);
        let case = Case {
            input: read_capture(&folder.join(&test.input))?,
            output: read_expected(&output, args.accept)?,
            properties,
            counters: test.counters.clone(),
            limits: project.manifest.limits,
        };
        jobs.push(Job { name: test.name.clone(), output, case });
    }
    let server = project.has_server_tests().then(|| (folder.to_owned(), project));
    let (compiled, compiled_packet) = (args.compiled.clone(), args.compiled_packet.clone());
    Ok(Jobs { code, server, compiled, compiled_packet, accept: args.accept, jobs })
}

/// Reads the project of a module's folder.
///
/// # Errors
/// There is none, or it is not as it should be.
pub fn read_project(folder: &Path) -> anyhow::Result<Project> {
    let path = folder.join(PROJECT_FILE);
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    Project::parse(&text).with_context(|| format!("cannot read {}", path.display()))
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
    let code = args.code.clone().expect(given);
    Ok((code, vec![Job { name: "test".to_owned(), output, case }]))
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
