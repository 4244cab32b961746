// SPDX-License-Identifier: Apache-2.0
//! `netserv`: the command line of NetServ.
//!
//! It talks to `netservd` over the same HTTP API that every other client uses, and makes module packages by itself.
//! Each command returns an [`exit::Exit`], or an [`exit::Failure`] with one line of cause and one line of fix.

mod cli;
mod client;
mod cmd;
mod environment;
mod exit;
mod grants;
mod keys;
mod output;
mod properties;
mod report;
mod request;
mod revocation_lists;
mod table;
mod units;

use std::process::ExitCode;

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use netserv_api::ApiError;

use crate::cli::Cli;
use crate::exit::{Exit, Failure, one_line};
use crate::output::{Output, to_stderr};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error).into(),
    };
    let json = cli.global.json;
    let mut output = Output::stdio(json, cli.global.verbose);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(cli.run(&mut output)),
        Err(error) => Err(Failure::new(format!("cannot start: {error}"), "raise the limit of open files")),
    };
    match result.and_then(|exit| output.finish().map(|()| exit)) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            print_failure(&failure, json);
            failure.exit.into()
        }
    }
}

fn print_failure(failure: &Failure, json: bool) {
    let error = ApiError { error: failure.cause.clone(), fix: failure.fix.clone() };
    match serde_json::to_string(&error) {
        Ok(line) if json => to_stderr(&format!("{line}\n")),
        Ok(_) | Err(_) => to_stderr(&format!("error: {}\nfix: {}\n", error.error, error.fix)),
    }
}

/// Shows help and version as they are, and everything else as cause and fix.
fn usage(error: &clap::Error) -> Exit {
    // Not one of our own enums, and it may grow.
    #[allow(clippy::wildcard_enum_match_arm, reason = "clap's enum is open to new variants")]
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let _ = error.print();
            Exit::Done
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            Exit::Usage
        }
        _ => {
            let (cause, fix) = usage_lines(&error.to_string());
            let fix = hint(error).map_or(fix, str::to_owned);
            let json = std::env::args_os().any(|arg| arg == "-j" || arg == "--json");
            print_failure(&Failure { exit: Exit::Usage, cause, fix }, json);
            Exit::Usage
        }
    }
}

/// Returns a better fix than clap's own: names that are like others may mean something else.
fn hint(error: &clap::Error) -> Option<&'static str> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        Some(_) | None => None,
    };
    if !text(ContextKind::InvalidArg)?.starts_with("--lang ") {
        return None;
    }
    Some(match text(ContextKind::InvalidValue)? {
        "typescript" | "ts" => "write `--lang js`, and have `build.command` compile TypeScript to module.js first",
        _ => {
            "choose one of these; what else makes components of WASI 0.2 is packaged by `netserv module build --component`"
        }
    })
}

/// Makes a cause and a fix of clap's paragraphs: what is wrong, tips, usage.
fn usage_lines(text: &str) -> (String, String) {
    let mut paragraphs = text.split("\n\n").map(one_line);
    let cause = paragraphs.next().unwrap_or_default();
    let cause = cause.strip_prefix("error: ").unwrap_or(&cause).to_owned();
    let rest: Vec<String> = paragraphs.collect();
    let tip = rest.iter().find_map(|line| line.strip_prefix("tip: ")).map(str::to_owned);
    let usage = rest.iter().find_map(|line| line.strip_prefix("Usage: ")).map(|usage| format!("write `{usage}`"));
    (cause, tip.or(usage).unwrap_or_else(|| "see `netserv --help`".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(arguments: &str, cause: &str, fix: &str) {
        let error = Cli::try_parse_from(arguments.split(' ')).err().unwrap();
        assert_eq!(usage_lines(&error.to_string()), (cause.to_owned(), fix.to_owned()));
    }

    #[test]
    fn usage_errors_are_one_cause_and_one_fix() {
        check(
            "netserv path 10.0.0.1 --jsn",
            "unexpected argument '--jsn' found",
            "a similar argument exists: '--json'",
        );
        check(
            "netserv setup x",
            "invalid value 'x' for '<MODULE@VERSION|FILE.nsm>': `x` is neither a module reference such as \
             example.org/net-monitor@1.2.0 nor a file that ends in .nsm",
            "see `netserv --help`",
        );
    }
}
