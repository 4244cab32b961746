// SPDX-License-Identifier: Apache-2.0
//! What the worker says of an HTTP test.

use netserv_model::Refusal;
use serde::{Deserialize, Serialize};

use crate::exit::one_line;
use crate::output::{Output, Style};
use crate::units::format_micros;

/// Lines of a body that are shown.
const LINES_MAX: usize = 20;

/// What the worker says of one HTTP test.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Report {
    /// Which kind of test it is; only these have one.
    kind: Kind,
    name: String,
    pub(super) passed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure: Option<Refusal>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    differences: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expected_body: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    actual_body: Option<String>,
    status: u16,
    body_bytes: usize,
    took_us: u64,
    #[serde(default)]
    log: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Http,
}

impl Report {
    pub(super) fn show(&self, output: &mut Output) {
        let name = one_line(&self.name);
        if self.passed {
            let word = output.paint(Style::Good, "ok");
            let rest = format!("{}, {} bytes, {}", self.status, self.body_bytes, format_micros(self.took_us));
            output.line(format!("{word}    {name} ({rest})"));
            return;
        }
        let word = output.paint(Style::Bad, "FAIL");
        output.line(format!("{word}  {name}"));
        if let Some(failure) = &self.failure {
            output.line(format!("      cause: {}: {}", failure.kind, one_line(&failure.detail)));
            output.line(format!("      fix: {}", failure.kind.fix()));
        }
        self.differences.iter().for_each(|line| output.line(format!("      {}", one_line(line))));
        for (style, sign, body) in [(Style::Bad, '-', &self.expected_body), (Style::Good, '+', &self.actual_body)] {
            let lines = body.iter().flat_map(|body| body.lines()).take(LINES_MAX);
            let lines: Vec<String> = lines.map(|line| format!("{sign} {}", one_line(line))).collect();
            for line in lines {
                let line = output.paint(style, &line);
                output.line(format!("      {line}"));
            }
        }
        self.log.iter().for_each(|line| output.line(format!("      log {}", one_line(line))));
    }
}
