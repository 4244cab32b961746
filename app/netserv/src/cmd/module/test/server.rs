// SPDX-License-Identifier: Apache-2.0
//! What the worker says of a test of a server part.

use netserv_model::Refusal;
use netserv_project::TcpOutcome;
use serde::{Deserialize, Serialize};

use crate::exit::one_line;
use crate::output::{Output, Style};
use crate::report::write_context;
use crate::units::format_micros;

/// Lines of a body that are shown.
const LINES_MAX: usize = 20;

/// What the worker says of one test.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Report {
    name: String,
    pub(super) passed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure: Option<Refusal>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    differences: Vec<String>,
    /// Which kind of test it is; packet tests have none.
    #[serde(flatten)]
    kind: Kind,
    took_us: u64,
    #[serde(default)]
    log: Vec<String>,
}

/// What is said of each kind.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "snake_case")]
enum Kind {
    Http {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expected_body: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        actual_body: Option<String>,
        status: u16,
        body_bytes: usize,
    },
    Tcp {
        outcome: TcpOutcome,
        bytes_in: usize,
        bytes_out: usize,
    },
}

impl Report {
    pub(super) fn show(&self, output: &mut Output) {
        let name = one_line(&self.name);
        if self.passed {
            let word = output.paint(Style::Good, "ok");
            output.line(format!("{word}    {name} ({}, {})", self.kind.summary(), format_micros(self.took_us)));
            return;
        }
        let word = output.paint(Style::Bad, "FAIL");
        output.line(format!("{word}  {name}"));
        if let Some(failure) = &self.failure {
            output.line(format!("      cause: {}: {}", failure.kind, one_line(&failure.detail)));
            write_context(failure, 6, output);
            output.line(format!("      fix: {}", failure.kind.fix()));
        }
        self.differences.iter().for_each(|line| output.line(format!("      {}", one_line(line))));
        if let Kind::Http { expected_body, actual_body, .. } = &self.kind {
            show_bodies(expected_body.as_deref(), actual_body.as_deref(), output);
        }
        self.log.iter().for_each(|line| output.line(format!("      log {}", one_line(line))));
    }
}

impl Kind {
    fn summary(&self) -> String {
        match self {
            Kind::Http { status, body_bytes, .. } => format!("{status}, {body_bytes} bytes"),
            Kind::Tcp { outcome, bytes_in, bytes_out } => format!("{bytes_in} bytes in, {bytes_out} out, {outcome}"),
        }
    }
}

fn show_bodies(expected: Option<&str>, actual: Option<&str>, output: &mut Output) {
    for (style, sign, body) in [(Style::Bad, '-', expected), (Style::Good, '+', actual)] {
        let lines = body.iter().flat_map(|body| body.lines()).take(LINES_MAX);
        let lines: Vec<String> = lines.map(|line| format!("{sign} {}", one_line(line))).collect();
        for line in lines {
            let line = output.paint(style, &line);
            output.line(format!("      {line}"));
        }
    }
}
