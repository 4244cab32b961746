// SPDX-License-Identifier: Apache-2.0
//! `netserv node audit`: who asked what, who decided, and by which evidence.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use netserv_audit::{Check, Found, Reader, Wanted, first_of_file};
use netserv_model::audit::{AuditEntry, AuditLine, AuditReport};
use netserv_model::{UnixTime, UserId};

use crate::exit::{Exit, Failure, OrFail};
use crate::output::{Output, Style};
use crate::table::{Table, plain};
use crate::units::parse_duration;
use netserv_api::Client;

/// Show or verify the audit log: who asked for what, who decided, and by which evidence
///
/// The node keeps a line for each decision, in the folder `audit` of its state directory. Each line contains the
/// digest of the line before. --verify finds lines that were removed, added or changed. It cannot find that the
/// last lines were cut off. To find that, too, note the newest digest elsewhere and look for it later.
#[derive(Args)]
pub struct Audit {
    /// Show only lines since a time, such as 2026-11-21T02:00:00Z, or since a duration ago, such as 2h
    #[arg(long, value_name = "TIME", value_parser = parse_since)]
    since: Option<UnixTime>,
    /// Show only this user
    #[arg(long, value_name = "NAME")]
    user: Option<UserId>,
    /// Verify the whole chain; exit with 1 if it is broken
    #[arg(long, conflicts_with_all = ["since", "user"])]
    verify: bool,
    /// Read the files in this folder, without a node
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

impl Audit {
    /// Carries out the command.
    ///
    /// # Errors
    /// The log cannot be read, or its chain is broken.
    pub async fn run(self, client: &Client, output: &mut Output) -> Result<Exit, Failure> {
        let Audit { since, user, verify, folder } = self;
        if verify {
            let report = match folder {
                Some(folder) => verify_folder(&folder)?,
                None => client.get("/v1/audit/verify").await?,
            };
            return show_report(&report, output);
        }
        let mut shown = Shown::default();
        match folder {
            Some(folder) => {
                let wanted = Wanted { since, user };
                let mut result = Ok(());
                read_folder(&folder, &mut |found| {
                    if let Found::Line(line, text) = found
                        && wanted.wants(&line)
                        && result.is_ok()
                    {
                        result = shown.line(*line, text, output);
                    }
                })?;
                result?;
            }
            None => {
                let since = since.map(|since| format!("since={}", since.0));
                let query: Vec<String> = since.into_iter().chain(user.map(|user| format!("user={user}"))).collect();
                let mut lines = client.lines(&format!("/v1/audit?{}", query.join("&"))).await?;
                while let Some(text) = lines.next().await? {
                    let line = serde_json::from_str(&text)
                        .or_fail("a line is not understood", "use a netserv and a netservd of one version")?;
                    shown.line(line, &text, output)?;
                    if output.is_closed() {
                        break;
                    }
                }
            }
        }
        shown.end(output);
        Ok(Exit::Done)
    }
}

/// Lines on their way to where they are shown.
#[derive(Default)]
struct Shown {
    table: Option<Table>,
    any: bool,
}

impl Shown {
    fn line(&mut self, line: AuditLine, text: &str, output: &mut Output) -> Result<(), Failure> {
        self.any = true;
        if output.is_json() {
            // As it is in the file, so that its digest can be made again.
            output.raw(format!("{text}\n").as_bytes());
            return Ok(());
        }
        let headings = &["LINE", "TIME", "VERB", "USER", "MODULE", "FROM", "OUTCOME", "EVIDENCE"];
        let table = self.table.get_or_insert_with(|| Table::new(headings));
        let AuditLine { line, entry, before: _ } = line;
        let AuditEntry { time, node: _, verb, outcome, detail, user, evidence, module, from, count, .. } = entry;
        let is_done = !["refused", "revoked", "failed", "lost", "left-out", "damaged"].contains(&outcome.as_str());
        let style = if is_done { Style::Plain } else { Style::Warn };
        let outcome = count.map_or(outcome.clone(), |count| format!("{outcome} {count}"));
        let or_none = |text: Option<String>| plain(text.unwrap_or_else(|| "-".to_owned()));
        table.row([
            plain(line),
            plain(time),
            plain(verb),
            or_none(user.map(String::from)),
            or_none(module),
            or_none(from),
            (style, outcome),
            or_none(evidence),
        ]);
        if !detail.is_empty() {
            table.note(detail);
        }
        Ok(())
    }

    fn end(self, output: &mut Output) {
        if let Some(table) = self.table {
            table.write(output);
        } else if !self.any {
            output.note("nothing was decided here, or it is not kept any more");
        }
    }
}

fn show_report(report: &AuditReport, output: &mut Output) -> Result<Exit, Failure> {
    if output.is_json() {
        output.json(report)?;
    } else {
        let AuditReport { lines, first, last, newest, damaged, lost, left_out, broken: _ } = report;
        match (first, last, newest) {
            (Some(first), Some(last), Some(newest)) => {
                output.line(format!("lines    {lines}, from {first} to {last}"));
                output.line(format!("newest   {newest}"));
            }
            _ => output.line("lines    0".to_owned()),
        }
        if first.is_some_and(|first| first > 1) {
            output.note("older lines are not kept any more");
        }
        for (count, what) in [(damaged, "damaged places"), (lost, "lost lines"), (left_out, "lines left out")] {
            if *count > 0 {
                output.note(format!("the log itself tells of {count} {what}"));
            }
        }
    }
    match &report.broken {
        None => Ok(Exit::Done),
        Some(fault) => Err(Failure::new(
            format!("the chain is broken at line {}: {}", fault.line, fault.why),
            "compare the files with a copy; only the lines before are what the node wrote",
        )),
    }
}

fn verify_folder(folder: &Path) -> Result<AuditReport, Failure> {
    let mut check = Check::default();
    read_folder(folder, &mut |found| check.take(&found))?;
    Ok(check.end())
}

fn read_folder(folder: &Path, found: &mut impl FnMut(Found<'_>)) -> Result<(), Failure> {
    let mut read = || -> io::Result<()> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            files.extend(entry.file_name().to_str().and_then(first_of_file).map(|first| (first, entry.path())));
        }
        files.sort_unstable();
        let mut reader = Reader::default();
        for (_, path) in files {
            reader.take_all(&mut File::open(path)?, found)?;
            reader.end_file(found);
        }
        reader.end(found);
        Ok(())
    };
    read().or_fail(folder.display(), "name the folder `audit` in the node's state directory, as root")
}

/// Parses a time, or how long ago it is.
fn parse_since(text: &str) -> Result<UnixTime, String> {
    if let Ok(time) = text.parse() {
        return Ok(time);
    }
    let ago = parse_duration(text).map_err(|_| format!("`{text}` is no time such as 2026-11-21T02:00:00Z or 2h"))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(UnixTime(u64::try_from(now.saturating_sub(ago).as_millis()).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_one_or_as_long_ago() {
        assert_eq!(parse_since("2026-11-21T02:00:00Z"), Ok(UnixTime::from_secs(1_795_226_400)));
        let (hour, now) = (parse_since("1h").unwrap(), parse_since("0").unwrap());
        assert!(now.0.abs_diff(hour.0 + 3_600_000) < 10_000);
        assert!(parse_since("999999d").is_ok_and(|time| time == UnixTime(0)), "before there were nodes");
        assert!(parse_since("yesterday").is_err_and(|error| error.contains("yesterday")));
    }
}
