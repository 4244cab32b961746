// SPDX-License-Identifier: Apache-2.0
//! `netserv-worker test`: connections that go to a module which handles them as events, and what must come of them.
//!
//! The tests of a project go to one instance in their order, each with a connection of its own. A test with properties of
//! its own begins anew, and so does what comes after a failure.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use netserv_model::Refusal;
use netserv_project::{Project, TcpOutcome, TcpSide, TcpStep, TcpTest, TestBytes};
use netserv_worker_server::testing::code::HostSettings;
use netserv_worker_server::testing::tcp::{TcpTester, TestConnection, TestFlow};
use serde::Serialize;

use super::http::{code_of, log_line, read, write};

/// Bytes that a difference shows, from the first one on that is another.
const SHOWN_BYTES_MAX: usize = 60;

/// What a test found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// What the test is called.
    pub name: String,
    /// Which kind of test it is.
    pub kind: &'static str,
    /// Whether everything was as expected.
    pub passed: bool,
    /// Why the module could not go on, if it could not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Refusal>,
    /// What is not as expected, one line each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<String>,
    /// What became of the connection.
    pub outcome: TcpOutcome,
    /// Bytes that were sent.
    pub bytes_in: usize,
    /// Bytes that came out.
    pub bytes_out: usize,
    /// Microseconds that it all took.
    pub took_us: u64,
    /// What the module wrote to its log, each line behind its level.
    pub log: Vec<String>,
}

/// Runs the TCP tests of a project, prints a line of JSON for each, and returns whether all passed. With `accept`, the
/// files with expected bytes are written anew.
///
/// # Errors
/// The component or a file of a test is missing, a test makes no sense, or a file cannot be written.
pub fn run(dir: &Path, project: &Project, compiled: Option<&Path>, accept: bool) -> anyhow::Result<bool> {
    let code = code_of(dir, project, compiled)?;
    let mut tester: Option<(HostSettings, Result<TcpTester, Refusal>)> = None;
    let mut all_passed = true;
    for test in &project.tcp_tests {
        check_sides(test)?;
        let settings = HostSettings::of(&project.manifest, &test.properties);
        let goes_on = |tester: &Result<TcpTester, Refusal>| tester.as_ref().is_ok_and(|one| one.failure().is_none());
        if tester.as_ref().is_none_or(|(before, tester)| *before != settings || !goes_on(tester)) {
            let new = code.as_ref().map_err(Clone::clone).and_then(|code| TcpTester::new(code, settings.clone()));
            tester = Some((settings, new));
        }
        let (_, tester) = tester.as_ref().expect("it was just put there");
        let report = match tester {
            Ok(tester) => Play { dir, accept, test, report: blank(test) }.run(tester)?,
            Err(refusal) => Report { failure: Some(refusal.clone()), ..blank(test) },
        };
        all_passed &= report.passed;
        println!("{}", serde_json::to_string(&report)?);
    }
    Ok(all_passed)
}

/// Returns the bytes of a test.
///
/// # Errors
/// The file with them cannot be read.
pub fn bytes_of(dir: &Path, bytes: &TestBytes) -> anyhow::Result<Vec<u8>> {
    match bytes {
        TestBytes::Text(text) => Ok(text.clone().into_bytes()),
        TestBytes::Bytes(bytes) => Ok(bytes.clone()),
        TestBytes::File { file } => read(&dir.join(file)),
    }
}

/// Returns between whom a test's connection is.
pub fn flow_of(test: &TcpTest) -> TestFlow {
    TestFlow { client: test.client, server: test.server, intercepted: test.intercepted }
}

fn check_sides(test: &TcpTest) -> anyhow::Result<()> {
    let names_server =
        |step: &TcpStep| step.from_server.is_some() || step.to_server.is_some() || step.end == Some(TcpSide::Server);
    ensure!(
        test.intercepted || !test.steps.iter().any(names_server),
        "[[tcp-test]] `{}` names a server; only a connection with `intercepted = true` has one",
        test.name
    );
    Ok(())
}

fn blank(test: &TcpTest) -> Report {
    Report {
        name: test.name.clone(),
        kind: "tcp",
        passed: false,
        failure: None,
        differences: Vec::new(),
        outcome: TcpOutcome::Reset,
        bytes_in: 0,
        bytes_out: 0,
        took_us: 0,
        log: Vec::new(),
    }
}

/// One test under way.
struct Play<'a> {
    dir: &'a Path,
    accept: bool,
    test: &'a TcpTest,
    report: Report,
}

impl Play<'_> {
    fn run(mut self, tester: &TcpTester) -> anyhow::Result<Report> {
        let begun = Instant::now();
        if let Ok(mut connection) = tester.connect(&flow_of(self.test)) {
            for (number, step) in (1..).zip(&self.test.steps) {
                self.step(number, step, &mut connection)?;
                if tester.failure().is_some() {
                    break;
                }
            }
            let outcome = connection.outcome();
            if outcome != self.test.outcome && tester.failure().is_none() {
                self.differ(format!("outcome: expected {}, is {outcome}", self.test.outcome));
            }
            self.report.outcome = outcome;
            connection.close();
        }
        let report = &mut self.report;
        report.failure = tester.failure();
        report.passed = report.failure.is_none() && report.differences.is_empty();
        report.took_us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        report.log = tester.take_log().iter().map(log_line).collect();
        Ok(self.report)
    }

    fn step(&mut self, number: usize, step: &TcpStep, connection: &mut TestConnection<'_>) -> anyhow::Result<()> {
        for (from, name, bytes) in
            [(TcpSide::Client, "client", &step.from_client), (TcpSide::Server, "server", &step.from_server)]
        {
            let Some(bytes) = bytes else { continue };
            let bytes = bytes_of(self.dir, bytes)?;
            self.report.bytes_in += bytes.len();
            if !connection.send(from, &bytes) {
                let outcome = connection.outcome();
                self.differ(format!("step {number}: the {name} cannot send, for the connection is {outcome}"));
            }
        }
        if let Some(side) = step.end
            && !connection.end(side)
        {
            self.differ(format!("step {number}: a side cannot end, for the connection is {}", connection.outcome()));
        }
        if step.wait_ms > 0 {
            connection.wait(Duration::from_millis(step.wait_ms));
        }
        for (to, name, expected) in
            [(TcpSide::Client, "to-client", &step.to_client), (TcpSide::Server, "to-server", &step.to_server)]
        {
            let came = connection.take(to);
            self.report.bytes_out += came.len();
            let expected = self.expected(expected.as_ref(), &came)?;
            if expected != came {
                self.differ(format!("step {number}: {name}: {}", difference(&expected, &came)));
            }
        }
        Ok(())
    }

    /// Returns the bytes that must come; writes them first if they are to be accepted.
    fn expected(&self, expected: Option<&TestBytes>, came: &[u8]) -> anyhow::Result<Vec<u8>> {
        let Some(expected) = expected else { return Ok(Vec::new()) };
        if let (TestBytes::File { file }, true) = (expected, self.accept) {
            write(&self.dir.join(file), came)?;
        }
        bytes_of(self.dir, expected).with_context(|| format!("[[tcp-test]] `{}`", self.test.name))
    }

    fn differ(&mut self, text: String) {
        self.report.differences.push(text);
    }
}

fn difference(expected: &[u8], came: &[u8]) -> String {
    let same = expected.iter().zip(came).take_while(|(one, other)| one == other).count();
    let shown = |bytes: &[u8]| {
        let rest = &bytes[same..];
        let more = if rest.len() > SHOWN_BYTES_MAX { "…" } else { "" };
        format!("\"{}{more}\"", rest[..rest.len().min(SHOWN_BYTES_MAX)].escape_ascii())
    };
    let (wanted, is) = (shown(expected), shown(came));
    format!("{} bytes expected, {} came; from byte {same} on expected {wanted}, is {is}", expected.len(), came.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_shown_from_where_it_begins() {
        let text = difference(b"hello\nworld\n", b"hello\nmoon\x00\n");
        assert_eq!(text, "12 bytes expected, 12 came; from byte 6 on expected \"world\\n\", is \"moon\\x00\\n\"");
        let text = difference(b"", &[b'a'; 100]);
        assert!(text.starts_with("0 bytes expected, 100 came; from byte 0 on expected \"\", is \"aaa"), "{text}");
        assert!(text.ends_with("a…\""), "{text}");
    }

    #[test]
    fn only_an_intercepted_connection_has_a_server() {
        let check = |text: &str| check_sides(&toml::from_str(&format!("name = \"t\"\n{text}")).unwrap()).is_ok();
        assert!(check("steps = [{ from-client = \"a\", to-client = [0x62, 0] }, { end = \"client\" }]"));
        for step in ["from-server = \"a\"", "to-server = { file = \"a\" }", "end = \"server\""] {
            assert!(!check(&format!("steps = [{{ {step} }}]")), "{step}");
            assert!(check(&format!("intercepted = true\nsteps = [{{ {step} }}]")), "{step}");
        }
    }
}
