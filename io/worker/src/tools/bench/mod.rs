// SPDX-License-Identifier: Apache-2.0
//! The arguments and the output of `bench`.

pub mod http;
pub mod packet;
pub mod tcp;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow, ensure};
use netserv_model::Refusal;
use netserv_model::limits::PACKET_BYTES_MAX;
use netserv_project::{PROJECT_FILE, Project, TcpSide, test_client, test_server};
use netserv_worker_server::testing::code::HostSettings;
use netserv_worker_server::testing::tcp::TestFlow;
use serde::Serialize;

use crate::tools::test::{self, jobs};
use crate::tools::{compile, pcap};

/// What is to be measured.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// A folder with a netserv.toml; its code is measured with the packets and requests of its tests.
    #[arg(long)]
    package_dir: PathBuf,
    /// How long measuring each part takes, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 3000, value_parser = clap::value_parser!(u64).range(100..=60_000))]
    time_ms: u64,
}

/// What was measured, in one line of JSON.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// The packet part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet: Option<packet::Report>,
    /// The server part, if it answers HTTP requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<http::Report>,
    /// The server part, if it handles TCP connections as events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp: Option<tcp::Report>,
}

/// Measures the code of a module's folder, and prints what was found.
///
/// # Errors
/// A file is missing, or the module fails.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let project = jobs::read_project(&args.package_dir)?;
    let time = Duration::from_millis(args.time_ms);
    let mut report = Report::default();
    if let Some(wasm) = &project.build.wasm {
        report.packet = Some(packet_part(&args.package_dir, &project, wasm, time)?);
    }
    if project.build.component.is_some() {
        if project.http_tests.is_empty() {
            report.tcp = tcp_part(&args.package_dir, &project, time)?;
        } else {
            report.http = Some(http_part(&args.package_dir, &project, time)?);
        }
    }
    let is_empty = report.packet.is_none() && report.http.is_none() && report.tcp.is_none();
    let measured = "`wasm`, a component that handles TCP, or, with an [[http-test]], one that answers HTTP";
    ensure!(
        !is_empty,
        "{} names no code that can be measured: {measured}",
        args.package_dir.join(PROJECT_FILE).display()
    );
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}

fn packet_part(dir: &Path, project: &Project, wasm: &str, time: Duration) -> anyhow::Result<packet::Report> {
    let wasm = compile::read_wasm(&dir.join(wasm)).map_err(said)?;
    let mut properties = project.manifest.properties.clone();
    let mut packets = Vec::new();
    if let Some(test) = project.tests.first() {
        properties.extend(test.properties.clone());
        let path = dir.join(&test.input);
        let bytes = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let captured = pcap::read(&bytes).with_context(|| format!("cannot read {}", path.display()))?;
        packets.extend(captured.into_iter().map(|one| one.packet).filter(|one| one.len() <= PACKET_BYTES_MAX));
    }
    if packets.is_empty() {
        packets.push(packet::SAMPLE.to_vec());
    }
    let setting = packet::Setting { packets, properties, limits: project.manifest.limits, time };
    packet::run(&wasm, &setting).map_err(said)
}

fn http_part(dir: &Path, project: &Project, time: Duration) -> anyhow::Result<http::Report> {
    let component = test::http::component_of(dir, project)?;
    let mut properties = project.manifest.properties.clone();
    let mut requests = Vec::new();
    for test in &project.http_tests {
        properties.extend(test.properties.clone());
        requests.push((test::http::request_of(dir, test)?, test.status));
    }
    let settings =
        HostSettings { properties, limits: project.manifest.limits, ..HostSettings::new(project.manifest.module()) };
    http::run(&component, settings, &requests, time).map_err(said)
}

/// Measures a component that handles connections, with the bytes of its first test that has some; else nothing.
fn tcp_part(dir: &Path, project: &Project, time: Duration) -> anyhow::Result<Option<tcp::Report>> {
    let component = test::http::component_of(dir, project)?;
    let intercepted = !project.manifest.intercept().is_empty();
    let mut load = tcp::TcpTraffic {
        flow: TestFlow { client: test_client(), server: test_server(), intercepted },
        from: TcpSide::Client,
        bytes: LINE.to_vec(),
    };
    let mut properties = BTreeMap::new();
    for test in &project.tcp_tests {
        let client = test.steps.iter().find_map(|step| Some((TcpSide::Client, step.from_client.as_ref()?)));
        let server = test.steps.iter().find_map(|step| Some((TcpSide::Server, step.from_server.as_ref()?)));
        let Some((from, bytes)) = client.or(server) else { continue };
        let bytes = test::tcp::bytes_of(dir, bytes)?;
        if !bytes.is_empty() {
            load = tcp::TcpTraffic { flow: test::tcp::flow_of(test), from, bytes };
            properties = test.properties.clone();
            break;
        }
    }
    tcp::run(&component, HostSettings::of(&project.manifest, &properties), &load, time).map_err(said)
}

/// What is sent to a module without tests.
const LINE: &[u8] = b"The quick brown fox jumps over the lazy dog.\n";

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` gives")]
fn said(refusal: Refusal) -> anyhow::Error {
    anyhow!("{}: {}", refusal.kind, refusal.detail)
}
