// SPDX-License-Identifier: Apache-2.0
//! `netserv-worker test`: requests that go to an HTTP module, and the responses that must come back.
//!
//! The tests of a project go to one module in their order, so that a later one finds the state that an earlier one
//! left. A test with properties of its own begins anew.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, ensure};
use netserv_model::Refusal;
use netserv_project::{HttpTest, Project};
use netserv_worker_base::shared::log::Line;
use netserv_worker_server::testing::code::{HostSettings, TestCode};
use netserv_worker_server::testing::http::{HttpTester, TestRequest, TestResponse};
use serde::Serialize;

use crate::tools::compile;

/// Bytes of a body that a report shows.
const SHOWN_BYTES_MAX: usize = 2000;

/// What a test found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// What the test is called.
    pub name: String,
    /// Which kind of test it is.
    pub kind: &'static str,
    /// Whether everything was as expected.
    pub passed: bool,
    /// Why the module did not answer, if it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Refusal>,
    /// What is not as expected, one line each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<String>,
    /// The expected body, if the body is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_body: Option<String>,
    /// The body that came, if something is not as expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actual_body: Option<String>,
    /// The status that came; 0 if there was no response.
    pub status: u16,
    /// Bytes of the body that came.
    pub body_bytes: usize,
    /// Microseconds from the head of the request to the end of the response.
    pub took_us: u64,
    /// What the module wrote to its log, each line behind its level.
    pub log: Vec<String>,
}

/// Runs the HTTP tests of a project, prints a line of JSON for each, and returns whether all passed. With `accept`, the
/// files with expected bodies are written anew.
///
/// # Errors
/// The component or a file of a test is missing, or a file cannot be written.
pub fn run(dir: &Path, project: &Project, compiled: Option<&Path>, accept: bool) -> anyhow::Result<bool> {
    let code = code_of(dir, project, compiled)?;
    let mut tester: Option<(HostSettings, Result<HttpTester, Refusal>)> = None;
    let mut all_passed = true;
    for test in &project.http_tests {
        let settings = HostSettings::of(&project.manifest, &test.properties);
        if tester.as_ref().is_none_or(|(before, _)| *before != settings) {
            let new = code.as_ref().map_err(Clone::clone).and_then(|code| HttpTester::with(code, settings.clone()));
            tester = Some((settings, new));
        }
        let (_, tester) = tester.as_ref().expect("it was just put there");
        let request = request_of(dir, test)?;
        let response = tester.as_ref().map_err(Clone::clone).and_then(|tester| tester.respond(&request));
        let report = check(dir, test, response, accept)?;
        all_passed &= report.passed;
        println!("{}", serde_json::to_string(&report)?);
    }
    Ok(all_passed)
}

/// Returns the component that a project names, of which `compiled` is the code.
///
/// # Errors
/// There is none, or a file cannot be read.
pub fn code_of(dir: &Path, project: &Project, compiled: Option<&Path>) -> anyhow::Result<Result<TestCode, Refusal>> {
    match compiled {
        Some(path) => {
            let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
            Ok(TestCode::load(file))
        }
        None => Ok(TestCode::compile(&component_of(dir, project)?)),
    }
}

/// Reads the component that a project names.
///
/// # Errors
/// There is none.
pub fn component_of(dir: &Path, project: &Project) -> anyhow::Result<Vec<u8>> {
    let named = project.build.component.as_ref().context("the tests need `component` below [build]")?;
    compile::read_wasm(&dir.join(named)).map_err(|refusal| anyhow!("{}", refusal.detail))
}

/// Returns the request of a test.
///
/// # Errors
/// The file with its body cannot be read.
pub fn request_of(dir: &Path, test: &HttpTest) -> anyhow::Result<TestRequest> {
    ensure!(
        test.body.is_none() || test.body_file.is_none(),
        "[[http-test]] `{}` has `body` and `body-file`; one will do",
        test.name
    );
    let body = match (&test.body, &test.body_file) {
        (Some(text), _) => text.clone().into_bytes(),
        (None, Some(file)) => read(&dir.join(file))?,
        (None, None) => Vec::new(),
    };
    let headers = test.headers.clone().into_iter().collect();
    Ok(TestRequest { method: test.method.clone(), path: test.path.clone(), headers, body })
}

fn check(dir: &Path, test: &HttpTest, response: Result<TestResponse, Refusal>, accept: bool) -> anyhow::Result<Report> {
    let mut report = Report {
        name: test.name.clone(),
        kind: "http",
        passed: false,
        failure: None,
        differences: Vec::new(),
        expected_body: None,
        actual_body: None,
        status: 0,
        body_bytes: 0,
        took_us: 0,
        log: Vec::new(),
    };
    let response = match response {
        Ok(response) => response,
        Err(refusal) => {
            report.failure = Some(refusal);
            return Ok(report);
        }
    };
    report.status = response.status;
    report.body_bytes = response.body.len();
    report.took_us = u64::try_from(response.took.as_micros()).unwrap_or(u64::MAX);
    report.log = response.log.iter().map(log_line).collect();
    let expected = expected_body(dir, test, &response, accept)?;
    report.differences = differences(test, &response);
    if let Some(expected) = expected.filter(|expected| *expected != response.body) {
        report.differences.push(first_difference(&expected, &response.body));
        report.expected_body = Some(shown(&expected));
    }
    report.passed = report.differences.is_empty();
    report.actual_body = (!report.passed).then(|| shown(&response.body));
    Ok(report)
}

/// Returns the whole body that must come, if the test says so; writes it first if it is to be accepted.
fn expected_body(
    dir: &Path,
    test: &HttpTest,
    response: &TestResponse,
    accept: bool,
) -> anyhow::Result<Option<Vec<u8>>> {
    let Some(file) = &test.expect_body_file else {
        return Ok(test.expect_body.clone().map(String::into_bytes));
    };
    let path: PathBuf = dir.join(file);
    if accept {
        write(&path, &response.body)?;
    }
    read(&path).map(Some)
}

fn differences(test: &HttpTest, response: &TestResponse) -> Vec<String> {
    let mut found = Vec::new();
    if response.status != test.status {
        found.push(format!("status: expected {}, is {}", test.status, response.status));
    }
    for (name, expected) in &test.expect_headers {
        let values = response.headers.iter().filter(|(one, _)| one.eq_ignore_ascii_case(name));
        let values: Vec<String> = values.map(|(_, value)| String::from_utf8_lossy(value).into_owned()).collect();
        match values.as_slice() {
            [] => found.push(format!("header {name}: expected `{expected}`, is missing")),
            values if values.contains(expected) => {}
            values => found.push(format!("header {name}: expected `{expected}`, is `{}`", values.join("`, `"))),
        }
    }
    let body = String::from_utf8_lossy(&response.body);
    for text in test.expect_contains.iter().filter(|text| !body.contains(text.as_str())) {
        found.push(format!("body: `{text}` is not in it"));
    }
    found
}

fn first_difference(expected: &[u8], actual: &[u8]) -> String {
    let same = expected.iter().zip(actual).take_while(|(one, other)| one == other).count();
    let line = expected[..same].iter().filter(|byte| **byte == b'\n').count() + 1;
    format!(
        "body: {} bytes expected, {} came; they differ from byte {same} on, in line {line}",
        expected.len(),
        actual.len()
    )
}

fn shown(body: &[u8]) -> String {
    String::from_utf8_lossy(&body[..body.len().min(SHOWN_BYTES_MAX)]).into_owned()
}

/// Returns a line of a module's log, its level in front.
pub(crate) fn log_line(line: &Line) -> String {
    format!("{}: {}", line.level.as_str(), line.text)
}

/// Reads a file of a test.
pub(crate) fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Writes what came out to a file of a test.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
    }
    std::fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use netserv_model::RefusalKind;

    use super::*;

    fn test(more: &str) -> HttpTest {
        toml::from_str(&format!("name = \"t\"\n{more}")).unwrap()
    }

    fn response(status: u16, body: &str) -> TestResponse {
        let headers = vec![("content-type".to_owned(), b"text/plain".to_vec())];
        TestResponse { status, headers, body: body.into(), log: Vec::new(), took: Duration::from_micros(5) }
    }

    fn check_found(more: &str, expected: &[&str]) {
        let report = check(Path::new("."), &test(more), Ok(response(200, "hello\nworld\n")), false).unwrap();
        assert_eq!(report.differences, expected, "{more}");
        assert_eq!(report.passed, expected.is_empty());
    }

    #[test]
    fn each_expectation_is_compared() {
        check_found("expect-contains = [\"world\"]\nexpect-headers = { Content-Type = \"text/plain\" }", &[]);
        check_found("expect-body = \"hello\\nworld\\n\"", &[]);
        check_found("status = 404", &["status: expected 404, is 200"]);
        check_found("expect-contains = [\"moon\"]", &["body: `moon` is not in it"]);
        check_found("expect-headers = { x-a = \"1\" }", &["header x-a: expected `1`, is missing"]);
        check_found(
            "expect-headers = { content-type = \"text/html\" }",
            &["header content-type: expected `text/html`, is `text/plain`"],
        );
        check_found(
            "expect-body = \"hello\\nmoon\\n\"",
            &["body: 11 bytes expected, 12 came; they differ from byte 6 on, in line 2"],
        );
    }

    #[test]
    fn golden_files_are_written_when_they_are_accepted() {
        let dir = tempfile::tempdir().unwrap();
        let test = test("expect-body-file = \"golden/body.txt\"");
        let run = |body: &str, accept: bool| check(dir.path(), &test, Ok(response(200, body)), accept);
        assert!(run("one", false).is_err(), "there is no file yet");
        assert!(run("one", true).unwrap().passed);
        assert!(run("one", false).unwrap().passed);
        let report = run("two", false).unwrap();
        assert_eq!((report.expected_body.as_deref(), report.actual_body.as_deref()), (Some("one"), Some("two")));
        assert!(run("two", true).unwrap().passed && run("two", false).unwrap().passed);
    }

    #[test]
    fn a_module_that_does_not_answer_fails_its_test() {
        let refusal = Refusal::new(RefusalKind::Trapped, "no answer");
        let report = check(Path::new("."), &test(""), Err(refusal.clone()), true).unwrap();
        assert_eq!((report.passed, report.failure), (false, Some(refusal)));
    }
}
