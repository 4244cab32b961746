// SPDX-License-Identifier: Apache-2.0
//! Whether a log is what was written.

use netserv_model::Digest;
use netserv_model::audit::{AuditFault, AuditLine, AuditReport};

use crate::chain::Chain;
use crate::reader::Found;

/// Looks at what a [`Reader`](crate::Reader) finds, from the first line that is there on.
#[derive(Debug, Default)]
pub struct Check {
    report: AuditReport,
    chain: Chain,
    damaged: Option<Digest>,
}

impl Check {
    /// Takes what comes next. After the first fault, nothing counts any more.
    pub fn take(&mut self, found: &Found<'_>) {
        if self.report.broken.is_some() {
            return;
        }
        match found {
            Found::Damaged(digest) => self.damaged = Some(*digest),
            Found::Line(line, text) => match self.check(line) {
                Ok(()) => self.count(line, text),
                Err(why) => self.report.broken = Some(AuditFault { line: self.next(line), why }),
            },
        }
    }

    /// Returns what was found.
    pub fn end(mut self) -> AuditReport {
        if self.damaged.is_some() && self.report.broken.is_none() {
            let why =
                "what comes last is damaged, and the node has not said so yet, as it does when it starts after a crash";
            self.report.broken = Some(AuditFault { line: self.chain.line() + 1, why: why.to_owned() });
        }
        self.report
    }

    fn check(&self, line: &AuditLine) -> Result<(), String> {
        if self.damaged != line.entry.damaged {
            return Err(match line.entry.damaged {
                Some(_) => "what was damaged before it is not there, or was changed",
                None => "what lies before it is damaged, and it does not say so",
            }
            .to_owned());
        }
        // Older lines may have been deleted, which nothing can tell.
        let is_first = self.report.first.is_none();
        if is_first && line.line > 1 { Ok(()) } else { self.chain.check(line) }
    }

    fn count(&mut self, line: &AuditLine, text: &str) {
        self.chain = Chain::after(line.line, text.as_bytes());
        let report = &mut self.report;
        report.lines += 1;
        report.first.get_or_insert(line.line);
        (report.last, report.newest) = (Some(line.line), Some(self.chain.digest()));
        report.damaged += u64::from(self.damaged.take().is_some());
        let sum = match line.entry.outcome.as_str() {
            LOST => &mut report.lost,
            LEFT_OUT => &mut report.left_out,
            _ => return,
        };
        *sum = sum.saturating_add(line.entry.count.unwrap_or_default());
    }

    /// Returns the number of the line that is missing or wrong.
    fn next(&self, line: &AuditLine) -> u64 {
        if self.report.first.is_none() { line.line } else { self.chain.line() + 1 }
    }
}

/// The outcome of an `AUDIT` about lines that could not be written.
pub const LOST: &str = "lost";
/// That of one about lines that were left out.
pub const LEFT_OUT: &str = "left-out";
/// That of one about what is damaged.
pub const DAMAGED: &str = "damaged";
