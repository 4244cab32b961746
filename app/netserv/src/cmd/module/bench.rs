// SPDX-License-Identifier: Apache-2.0
//! `netserv module bench`.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::Args;
use netserv_model::Flavour;
use serde_json::Value;

use super::build;
use super::source::Source;
use super::worker;
use crate::exit::{Exit, Failure, OrFail, one_line};
use crate::output::Output;
use crate::units::{format_bytes, parse_duration};

/// Measure a module: nanoseconds per packet, requests or bytes per second, memory
///
/// Builds the module first, then feeds it the packets, requests and bytes of its tests again and again. For
/// packets, measures the node's whole work per packet (copy in, call, read the verdict, copy out), in batches of 64
/// as under load and one by one. TCP modules get 64 KiB at a time, without sockets. Other programs on the machine
/// affect the results.
#[derive(Args)]
pub struct Bench {
    /// The module's folder, with netserv.toml in it
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Use the existing code, without building
    #[arg(long)]
    no_build: bool,
    /// Duration of each measurement
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = parse_duration)]
    time: Duration,
}

impl Bench {
    /// Measures the module and shows what was found.
    ///
    /// # Errors
    /// The module cannot be built or fails.
    pub fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let source = Source::read(&self.dir)?;
        let build = &source.project.build;
        if build.wasm.is_none() && build.component.is_none() {
            let cause = format!("{} names no WebAssembly below [build], and only that is measured", source.shown());
            return Err(Failure::new(cause, "add `wasm = \"FILE\"` or `component = \"FILE\"` if there is one"));
        }
        let worker = worker::find(Flavour::Wasm)?;
        if !self.no_build {
            build::compile(&source, output)?;
        }
        let time = self.time.as_millis().clamp(100, 60_000).to_string();
        let mut command = Command::new(&worker);
        command.arg("bench").arg("--package-dir").arg(&self.dir).args(["--time-ms", &time]).stdin(Stdio::null());
        let fix = "name it with NETSERV_WORKER";
        let ran = command.output().or_fail(format!("cannot run {}", worker.display()), fix)?;
        let report: Option<Value> = serde_json::from_slice(&ran.stdout).ok();
        let Some(report) = report.filter(|_| ran.status.success()) else {
            let said = one_line(String::from_utf8_lossy(&ran.stderr).trim_start_matches("bench: "));
            return Err(Failure::new(said, "see that `netserv module test` passes, then measure again"));
        };
        if output.is_json() {
            output.json(&report)?;
        } else {
            lines(&report).iter().for_each(|(name, text)| output.line(format!("{name:12}  {text}")));
        }
        Ok(Exit::Done)
    }
}

/// Returns the report as lines for people.
fn lines(report: &Value) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    if let Some(packet) = report.get("packet") {
        for (name, key) in [("in batches", "ns_in_batches"), ("alone", "ns_alone")] {
            lines.push((name, format!("{} per packet", spread(&packet[key], "ns"))));
        }
        let number = |key: &str| packet[key].as_u64().unwrap_or_default();
        let verdicts =
            format!("{} shown, {} dropped, {} modified", number("packets"), number("dropped"), number("modified"));
        lines.push(("packets", verdicts));
        let (all, touched) = (format_bytes(number("memory_bytes")), format_bytes(number("touched_bytes")));
        lines.push(("memory", format!("{all}, of which {touched} in use")));
        lines.push(("start", format!("{} µs; compiled once in {} ms", number("start_us"), number("compile_ms"))));
    }
    if let Some(http) = report.get("http") {
        let number = |key: &str| http[key].as_u64().unwrap_or_default();
        lines.push(("requests", format!("{} per second", spread(&http["requests_per_second"], ""))));
        lines.push(("one request", spread(&http["request_us"], "µs")));
        lines.push(("an instance", spread(&http["instantiate_us"], "µs")));
        lines.push((
            "answered",
            format!("{} requests, {} of them not as expected", number("requests"), number("failed")),
        ));
        lines.push(compiled(http));
    }
    if let Some(tcp) = report.get("tcp") {
        let number = |key: &str| tcp[key].as_u64().unwrap_or_default();
        let per_second = |key: &str| tcp["bytes_per_second"][key].as_f64().unwrap_or_default() / 1e6;
        let [median, least, greatest] = ["median", "least", "greatest"].map(per_second);
        lines.push(("bytes", format!("{median:.0} MB per second ({least:.0}–{greatest:.0})")));
        lines.push(("a connection", spread(&tcp["connection_us"], "µs")));
        let chunk = format_bytes(number("chunk_bytes"));
        lines.push(("shown", format!("{} times {chunk} in {} connections", number("chunks"), number("connections"))));
        lines.push(("memory", format_bytes(number("memory_bytes"))));
        lines.push(compiled(tcp));
    }
    lines
}

fn compiled(component: &Value) -> (&'static str, String) {
    let number = |key: &str| component[key].as_u64().unwrap_or_default();
    ("compiled", format!("once in {} ms, {}", number("compile_ms"), format_bytes(number("wasm_bytes"))))
}

fn spread(value: &Value, unit: &str) -> String {
    let number = |key: &str| value[key].as_f64().unwrap_or_default();
    let shown = |value: f64| if value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") };
    let (median, least, greatest) = (shown(number("median")), shown(number("least")), shown(number("greatest")));
    let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
    format!("{median}{unit} ({least}–{greatest})")
}
