// SPDX-License-Identifier: Apache-2.0
//! `netserv module test`.

mod server;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output as ProcessOutput, Stdio};

use clap::Args;
use netserv_model::request::PacketCounts;
use netserv_model::{Flavour, Refusal};
use netserv_project::PROJECT_FILE;
use netserv_repository::Part;
use serde::{Deserialize, Serialize};

use super::build;
use super::code_dir::{self, Purpose};
use super::source::{PartFile, Source};
use super::worker;
use crate::exit::{Exit, Failure, OrFail, one_line};
use crate::output::{Output, Style};
use crate::report::{count, write_context};

/// Run a module's tests: recorded packets, requests or TCP connections in, expected results out
///
/// Builds the module first. netserv.toml lists the tests as [[test]], [[http-test]] and [[tcp-test]]; they need
/// neither a node nor root. If a module has code of two flavours, both must pass the same packet tests.
#[derive(Args)]
pub struct Test {
    /// The module's folder, with netserv.toml in it
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Test only the code of this flavour [default: every flavour of the module]
    #[arg(long, value_name = "FLAVOUR")]
    flavour: Option<Flavour>,
    /// Use the existing code, without building
    #[arg(long)]
    no_build: bool,
    /// Accept the actual results as the new expected results
    #[arg(long)]
    accept: bool,
    /// Only list the tests that would run
    #[arg(long)]
    dry_run: bool,
}

/// What `-j` shows.
#[derive(Serialize)]
struct Summary {
    passed: bool,
    tests: Vec<Report>,
}

/// What the worker says of one test of either kind.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Report {
    Server(server::Report),
    Packet(TestReport),
}

impl Report {
    fn passed(&self) -> bool {
        match self {
            Report::Server(report) => report.passed,
            Report::Packet(report) => report.passed,
        }
    }
}

/// What the worker says of one packet test.
#[derive(Debug, Serialize, Deserialize)]
struct TestReport {
    /// Put in here; a worker runs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    flavour: Option<Flavour>,
    name: String,
    passed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure: Option<Refusal>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    difference: Option<Difference>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    wrong_counters: BTreeMap<String, (u64, Option<u64>)>,
    packets: PacketCounts,
    counters: BTreeMap<String, u64>,
    log: Vec<String>,
}

/// The first packet that came out other than expected, as lines of hexadecimal digits.
#[derive(Debug, Serialize, Deserialize)]
struct Difference {
    packet: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    byte: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expected: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    actual: Option<String>,
}

impl Test {
    /// Runs the tests and shows how they went.
    ///
    /// # Errors
    /// The tests cannot be run.
    pub fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let source = Source::read(&self.dir)?;
        if !source.project.has_tests() {
            let cause = format!("{} has no tests", self.dir.join(PROJECT_FILE).display());
            let fix = "add a [[test]] with name, input and output, an [[http-test]] with name, path and status, or a \
                       [[tcp-test]] with name and steps";
            return Err(Failure::new(cause, fix));
        }
        if self.dry_run {
            return would_test(&source, output);
        }
        let code = self.chosen(&source)?;
        let mut workers = Vec::new();
        for (flavour, path) in code {
            workers.push((flavour, path, worker::find(flavour)?));
        }
        if !self.no_build {
            build::compile(&source, output)?;
        }
        let mut tests = Vec::new();
        for (flavour, code, worker) in &workers {
            code.iter().try_for_each(|path| check_code(path))?;
            // What the first wrote down as right, the others must do too.
            let accept = self.accept && tests.is_empty();
            let compiled = match flavour {
                Flavour::Wasm => Compiled::of(&source, worker)?,
                Flavour::Osgi => Compiled::default(),
            };
            tests.extend(run_worker(*flavour, worker, (&self.dir, &compiled), accept)?);
        }
        let passed = tests.iter().all(Report::passed);
        let summary = Summary { passed, tests };
        if output.is_json() {
            output.json(&summary)?;
        } else {
            show(&summary, output);
        }
        Ok(if summary.passed { Exit::Done } else { Exit::TestFailed })
    }
}

impl Test {
    /// Returns the files of code that have tests, each with the flavour whose worker runs them.
    fn chosen(&self, source: &Source) -> Result<Vec<(Flavour, Vec<PathBuf>)>, Failure> {
        let files = source.parts()?;
        let paths = |parts: &[(Part, bool)]| -> Vec<PathBuf> {
            let wanted = |file: &&PartFile| parts.iter().any(|(part, tested)| *part == file.part && *tested);
            files.iter().filter(wanted).map(|file| file.path.clone()).collect()
        };
        let packet = !source.project.tests.is_empty();
        let server = source.project.has_server_tests();
        let mut code = vec![
            (Flavour::Wasm, paths(&[(Part::Core, packet), (Part::Component, server)])),
            (Flavour::Osgi, paths(&[(Part::Bundle, packet)])),
        ];
        code.retain(|(flavour, paths)| !paths.is_empty() && self.flavour.is_none_or(|wanted| wanted == *flavour));
        if !code.is_empty() {
            return Ok(code);
        }
        let shown = self.dir.join(PROJECT_FILE);
        let shown = shown.display();
        Err(match self.flavour {
            Some(wanted) => {
                let cause = format!("{shown} names no code of flavour {wanted}");
                Failure::new(cause, "leave --flavour out, or add the code below [build]")
            }
            None => {
                let cause = format!("{shown} has tests for code that [build] does not name");
                Failure::new(cause, "add `wasm` for [[test]], `component` for [[http-test]] and [[tcp-test]]")
            }
        })
    }
}

fn would_test(source: &Source, output: &mut Output) -> Result<Exit, Failure> {
    let project = &source.project;
    let packet = project.tests.iter().map(|test| test.name.as_str());
    let http = project.http_tests.iter().map(|test| test.name.as_str());
    let tcp = project.tcp_tests.iter().map(|test| test.name.as_str());
    let names: Vec<&str> = packet.chain(http).chain(tcp).collect();
    if output.is_json() {
        output.json(&serde_json::json!({ "would_test": names }))?;
    } else {
        names.iter().for_each(|name| output.line(format!("would test  {}", one_line(name))));
    }
    Ok(Exit::Done)
}

fn check_code(code: &Path) -> Result<(), Failure> {
    let missing = || Failure::new(format!("there is no {}", code.display()), "build it with `netserv module build`");
    code.is_file().then_some(()).ok_or_else(missing)
}

/// The compiled code of the parts that have tests, as far as there is any.
#[derive(Default)]
struct Compiled {
    packet: Option<PathBuf>,
    component: Option<PathBuf>,
}

impl Compiled {
    fn of(source: &Source, worker: &Path) -> Result<Compiled, Failure> {
        let files = source.parts()?;
        let made = |part: Part, is_tested: bool, purpose: Purpose| {
            let file = files.iter().find(|file| is_tested && file.part == part)?;
            code_dir::compiled(worker, &file.path, purpose)
        };
        let project = &source.project;
        let packet = made(Part::Core, !project.tests.is_empty(), Purpose::PacketTests);
        let component = made(Part::Component, project.has_server_tests(), Purpose::Node);
        Ok(Compiled { packet, component })
    }
}

fn run_worker(
    flavour: Flavour,
    worker: &Path,
    (dir, compiled): (&Path, &Compiled),
    accept: bool,
) -> Result<Vec<Report>, Failure> {
    let mut command = Command::new(worker);
    command.arg("test").arg("--package-dir").arg(dir).args(accept.then_some("--accept")).stdin(Stdio::null());
    for (option, code) in [("--compiled", &compiled.component), ("--compiled-packet", &compiled.packet)] {
        if let Some(code) = code {
            command.arg(option).arg(code);
        }
    }
    let fix = "name it with NETSERV_WORKER or NETSERV_JVM";
    let ran = command.output().or_fail(format!("cannot run {}", worker.display()), fix)?;
    let stdout = String::from_utf8_lossy(&ran.stdout);
    let of_flavour = |report: Report| match report {
        Report::Packet(test) => Report::Packet(TestReport { flavour: Some(flavour), ..test }),
        Report::Server(report) => Report::Server(report),
    };
    let tests: Result<Vec<Report>, _> = stdout.lines().map(|line| serde_json::from_str(line).map(of_flavour)).collect();
    // 0 and 1 tell how the tests went; everything else is a worker that could not run them.
    match (ran.status.code(), tests) {
        (Some(0 | 1), Ok(tests)) if !tests.is_empty() => Ok(tests),
        (_, Ok(_) | Err(_)) => Err(worker_failure(worker::name(flavour), &ran)),
    }
}

fn worker_failure(worker: &str, ran: &ProcessOutput) -> Failure {
    let stderr = String::from_utf8_lossy(&ran.stderr);
    let said = one_line(stderr.strip_prefix(&format!("{worker}: ")).unwrap_or(&stderr));
    let cause = if said.is_empty() { format!("{worker} ended with {}", ran.status) } else { said };
    let fix = format!("mend what the cause names, and check that netserv and {worker} are of one version");
    Failure::new(cause, fix)
}

fn show(summary: &Summary, output: &mut Output) {
    let flavour = |report: &Report| match report {
        Report::Packet(test) => test.flavour,
        Report::Server(_) => None,
    };
    let flavours: BTreeSet<Flavour> = summary.tests.iter().filter_map(flavour).collect();
    for report in &summary.tests {
        match report {
            Report::Packet(test) => show_packet(test, flavours.len() > 1, output),
            Report::Server(report) => report.show(output),
        }
    }
    let failed = summary.tests.iter().filter(|test| !test.passed()).count();
    let tests = count(u64::try_from(summary.tests.len()).unwrap_or(u64::MAX), "test");
    let (style, sum) = match failed {
        0 => (Style::Good, format!("{tests} passed")),
        failed => (Style::Bad, format!("{failed} of {tests} failed")),
    };
    let sum = output.paint(style, &sum);
    output.line(sum);
}

fn show_packet(test: &TestReport, with_flavour: bool, output: &mut Output) {
    let counts = &test.packets;
    let name = one_line(&test.name);
    let name = match test.flavour.filter(|_| with_flavour) {
        Some(flavour) => format!("{flavour}: {name}"),
        None => name,
    };
    if test.passed {
        let word = output.paint(Style::Good, "ok");
        let changed = counts.modified + counts.injected;
        let rest = format!("{} seen, {} dropped, {changed} changed or made", counts.seen, counts.dropped);
        output.line(format!("{word}    {name} ({rest})"));
        return;
    }
    let word = output.paint(Style::Bad, "FAIL");
    output.line(format!("{word}  {name}"));
    show_faults(test, output);
    test.log.iter().for_each(|line| output.line(format!("      log {}", one_line(line))));
}

fn show_faults(test: &TestReport, output: &mut Output) {
    if let Some(failure) = &test.failure {
        output.line(format!("      cause: {}: {}", failure.kind, one_line(&failure.detail)));
        write_context(failure, 6, output);
        output.line(format!("      fix: {}", failure.kind.fix()));
    }
    for (name, (expected, actual)) in &test.wrong_counters {
        let actual = actual.map_or("missing".to_owned(), |actual| actual.to_string());
        output.line(format!("      counter {}: expected {expected}, is {actual}", one_line(name)));
    }
    if let Some(difference) = &test.difference {
        show_difference(difference, output);
    }
}

fn show_difference(difference: &Difference, output: &mut Output) {
    let packet = difference.packet;
    let what = match (&difference.expected, &difference.actual, difference.byte) {
        (Some(_), Some(_), Some(byte)) => format!("packet {packet} of the output differs from byte {byte} on:"),
        (Some(_), None, _) => format!("packet {packet} of the output is missing:"),
        (None, Some(_), _) => format!("packet {packet} of the output should not be there:"),
        (Some(_), Some(_), None) | (None, None, _) => format!("packet {packet} of the output differs:"),
    };
    output.line(format!("      {what}"));
    for (style, line) in diff_lines(difference) {
        let line = output.paint(style, &line);
        output.line(format!("      {line}"));
    }
}

/// Returns expected (`-`) and actual (`+`) lines where they differ, and the others once.
fn diff_lines(difference: &Difference) -> Vec<(Style, String)> {
    let lines = |text: &Option<String>| -> Vec<String> {
        text.iter().flat_map(|text| text.lines()).map(netserv_model::text::one_line).collect()
    };
    let (expected, actual) = (lines(&difference.expected), lines(&difference.actual));
    let mut all = Vec::new();
    for at in 0..expected.len().max(actual.len()) {
        match (expected.get(at), actual.get(at)) {
            (Some(expected), Some(actual)) if expected == actual => all.push((Style::Plain, format!("  {expected}"))),
            (expected, actual) => {
                all.extend(expected.map(|line| (Style::Bad, format!("- {line}"))));
                all.extend(actual.map(|line| (Style::Good, format!("+ {line}"))));
            }
        }
    }
    all
}
