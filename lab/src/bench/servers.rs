// SPDX-License-Identifier: Apache-2.0
//! Server modules: requests a second, what one intercepted TCP flow carries, and many flows at a time.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use netserv_model::request::Outcome;

use super::container::Memory;
use super::goals::Goal;
use super::pin::{OUTSIDE_CORE, to_node_core, workers};
use super::summary::{Figure, Row};
use super::{Plan, progress};
use crate::netns::{Lab, wait_until};
use crate::node::{LabPackage, LabUser, built_modules, cli, workspace};
use crate::serving;

/// Connections of the load generator.
const CONNECTIONS: u32 = 16;
/// Intercepted connections at a time.
const FLOWS: u32 = 5_000;
/// How long a server may take until it answers.
const READY_WAIT: Duration = Duration::from_secs(20);
/// Ports of the servers to compare with, on the sender.
const WASMTIME_PORT: u16 = 8081;
const CGI_PORT: u16 = 8082;
const IPERF_PORT: u16 = 5201;
const LINES_PORT: u16 = 7000;
/// What the users may do.
const PERMITS: &str = "listen = [\"tcp port 80\"]\nconnect = [\"tcp\"]\n";
const PREFIXES: [&str; 2] = ["10.99.7.0/29", "fd99:7::/64"];

/// Measures servers and interception.
///
/// # Errors
/// A node refuses, or a program is missing.
pub fn measure(plan: &Plan) -> Result<Vec<Figure>> {
    Ok(vec![requests(plan)?, streams(plan, "afxdp")?, streams(plan, "nfqueue")?, flows()?])
}

/// `receiver – node – sender`, with a user whose modules are servers on the node.
struct Net {
    lab: Lab,
    user: LabUser,
}

impl Net {
    fn up(driver: &str) -> Result<Net> {
        let (lab, [user]) = serving::network(Some(driver), &PREFIXES, [("anna", PERMITS)])?;
        to_node_core(lab.pid("node", "netservd").context("netservd runs")?)?;
        Ok(Net { lab, user })
    }

    /// Installs a sample module. Returns how long the SETUP took.
    fn install(&self, module: &str, filters: &[String]) -> Result<(LabPackage, Duration)> {
        let package = self.lab.package(module, &self.user)?;
        let (url, file) = (self.lab.publish("sender", &package)?, package.path.to_string_lossy().into_owned());
        let mut args = vec!["setup", &file, "--url", &url];
        for filter in filters {
            args.extend(["--filter", filter]);
        }
        let (outcome, took) = self.request(&args)?;
        ensure!(matches!(outcome, Outcome::Installed { .. }), "{module} is not installed: {outcome:?}");
        to_node_core(self.lab.pid("node", "netservd").context("netservd runs")?)?;
        Ok((package, took))
    }

    fn remove(&self, package: &LabPackage) -> Result<()> {
        let name = package.module.split('@').next().unwrap_or_default();
        let (outcome, _) = self.request(&["remove", name])?;
        ensure!(outcome == Outcome::Removed, "{name} is not removed: {outcome:?}");
        Ok(())
    }

    fn request(&self, args: &[&str]) -> Result<(Outcome, Duration)> {
        let (to, key) = (self.lab.v4("receiver").to_string(), self.user.key.to_string_lossy().into_owned());
        let whole = [args, &["--to", &to, "--user", &self.user.name, "--key", &key]].concat();
        let result = self.lab.request("sender", &whole)?;
        let node = result.nodes.into_iter().find(|node| node.node.as_str() == "node").context("the node is silent")?;
        Ok((node.outcome, Duration::from_micros(node.took_us)))
    }

    fn address(&self) -> Result<IpAddr> {
        let modules = self.lab.modules("node")?.modules;
        let address = modules.iter().flat_map(|status| &status.addresses).find(|address| address.is_ipv4());
        address.copied().context("the container has no address")
    }

    /// Waits until a server answers the receiver.
    fn ready(&self, url: &str) -> Result<()> {
        let answers = || self.lab.run("receiver", "curl", &["-s", "-f", "-m", "2", "-o", "/dev/null", url]).is_ok();
        ensure!(wait_until(READY_WAIT, answers), "{url} does not answer");
        Ok(())
    }

    /// Returns requests a second from the receiver, with the generator on its core.
    fn load(&self, url: &str, seconds: u32) -> Result<f64> {
        let core = OUTSIDE_CORE.to_string();
        let (connections, time) = (format!("-c{CONNECTIONS}"), format!("-d{seconds}s"));
        let output = self.lab.run("receiver", "taskset", &["-c", &core, "wrk", "-t1", &connections, &time, url])?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(!text.contains("Non-2xx") && !text.contains("Socket errors"), "requests failed: {text}");
        let line =
            text.lines().find_map(|line| line.trim().strip_prefix("Requests/sec:")).context("wrk says nothing")?;
        Ok(line.trim().parse()?)
    }

    /// Installs hello-http where no container runs, and asks it once. Returns how long the node took for the SETUP, and
    /// the module for its answer.
    fn cold_start(&self) -> Result<Duration> {
        let daemon = self.lab.pid("node", "netservd").context("netservd runs")?;
        let none = || workers(daemon).is_ok_and(|all| all.is_empty());
        ensure!(wait_until(READY_WAIT, none), "a container is left");
        let (_, took) = self.install("hello-http", &[])?;
        let url = format!("http://{}/", self.address()?);
        let output = self.lab.run("receiver", "curl", &["-s", "-f", "-o", "/dev/null", "-w", "%{time_total}", &url])?;
        Ok(took + Duration::from_secs_f64(String::from_utf8_lossy(&output.stdout).trim().parse()?))
    }

    fn worker_memory(&self) -> Result<f64> {
        let daemon = self.lab.pid("node", "netservd").context("netservd runs")?;
        let all = workers(daemon)?;
        ensure!(all.len() == 1, "{} workers run", all.len());
        Ok(Memory::of(all[0])?.private_mb)
    }
}

fn requests(plan: &Plan) -> Result<Figure> {
    let mut net = Net::up("afxdp")?;
    // A container that is there already, to see what a server adds.
    let filter = format!("udp dst {}/32 port 9", net.lab.v4("sender"));
    let (echo, _) = net.install("echo", &[filter])?;
    let bare = net.worker_memory()?;
    let (hello, _) = net.install("hello-http", &[])?;
    let idle = net.worker_memory()?;
    let (mut warm, mut cold) = (Vec::new(), Vec::new());
    for _ in 0..plan.setups_uncached {
        net.remove(&hello)?;
        // From the store: what is left is the load of the component.
        warm.push(net.install("hello-http", &[])?.1.as_secs_f64() * 1000.0);
    }
    net.remove(&echo)?;
    for _ in 0..plan.setups_uncached {
        net.remove(&hello)?;
        cold.push(net.cold_start()?.as_secs_f64() * 1000.0);
    }
    let ours = format!("http://{}/", net.address()?);
    net.ready(&ours)?;
    let theirs = start_wasmtime(&mut net)?;
    let cgi = start_cgi(&mut net)?;
    let (mut per_second, mut to_wasmtime, mut to_cgi, mut wasmtimes, mut cgis) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..plan.server_rounds {
        let own = net.load(&ours, plan.server_seconds)?;
        if let Some(url) = &theirs {
            let other = net.load(url, plan.server_seconds)?;
            to_wasmtime.push(own / other);
            wasmtimes.push(other);
        }
        let other = net.load(&cgi, plan.server_seconds)?;
        to_cgi.push(own / other);
        cgis.push(other);
        per_second.push(own);
        progress(&format!("{own:.0} requests/s"));
    }
    let mut rows = vec![Row::new("hello-http in a container", "requests/s", &per_second)];
    if wasmtimes.is_empty() {
        progress("no `wasmtime` in PATH: nothing to compare with");
    } else {
        rows.push(Row::new("`wasmtime serve` of the same component", "requests/s", &wasmtimes));
        rows.push(Row::new("hello-http / `wasmtime serve`", "", &to_wasmtime).goal(Goal::HttpWasmtime));
    }
    rows.extend([
        Row::new("a CGI program in C, by nginx and fcgiwrap", "requests/s", &cgis),
        Row::new("hello-http / CGI", "", &to_cgi).goal(Goal::HttpCgi),
        Row::new("SETUP of a server, package there, container runs", "ms", &warm),
        Row::new("SETUP to first HTTP answer, package there, container new", "ms", &cold).goal(Goal::HttpColdStart),
        instance()?,
        Row::new("an idle server beside another module, private", "MB", &[idle - bare]).goal(Goal::IdleServer),
    ]);
    let how = format!(
        "receiver – node – sender; wrk on core {OUTSIDE_CORE} with {CONNECTIONS} connections, each server alone on the other \
         core; in turn, {} s each. The others run on the sender, one hop behind the node, as the container is.",
        plan.server_seconds
    );
    Ok(Figure { name: "Requests to server modules", how, rows })
}

/// Asks `netserv module bench` what an instance of hello-http takes.
fn instance() -> Result<Row> {
    let module = workspace().join("modules/samples/hello-http").to_string_lossy().into_owned();
    let output = cli(&["-j", "module", "bench", &module, "--no-build", "--time", "1s"])?;
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let micros = |which: &str| report["http"]["instantiate_us"][which].as_f64().context("no time of an instance");
    let values = [micros("least")?, micros("median")?, micros("greatest")?];
    Ok(Row::new("an instance, by `netserv module bench`", "µs", &values).goal(Goal::HttpInstance))
}

/// Starts `wasmtime serve` on the sender; nothing if it is not installed.
fn start_wasmtime(net: &mut Net) -> Result<Option<String>> {
    if std::process::Command::new("wasmtime").arg("--version").output().is_err() {
        return Ok(None);
    }
    let component = built_modules("wasm32-wasip2").join("hello_http.wasm");
    let listen = format!("0.0.0.0:{WASMTIME_PORT}");
    let mut command = net.lab.command("sender", "wasmtime");
    command.args(["serve", "-Scli", "--addr", &listen]).arg(component);
    let pid = net.lab.start("sender", "wasmtime", &mut command)?;
    let url = format!("http://{}:{WASMTIME_PORT}/", net.lab.v4("sender"));
    net.ready(&url)?;
    to_node_core(pid)?;
    Ok(Some(url))
}

/// Starts nginx with fcgiwrap on the sender, which make a process for each request.
fn start_cgi(net: &mut Net) -> Result<String> {
    let dir = net.lab.dir().to_path_buf();
    let socket = dir.join("fcgi.sock");
    let program = built_cgi()?;
    let mut command = net.lab.command("sender", "/usr/sbin/fcgiwrap");
    command.args(["-c", "4", "-s", &format!("unix:{}", socket.display())]);
    let wrapper = net.lab.start("sender", "fcgiwrap", &mut command).context("fcgiwrap: apt-get install fcgiwrap")?;
    let text = dir.display();
    let config = format!(
        "daemon off; user root; worker_processes 1; pid {text}/cgi.pid; error_log stderr notice;\n\
         events {{ worker_connections 256; }}\n\
         http {{ access_log off; client_body_temp_path {text}/c1; proxy_temp_path {text}/c2;\n\
         fastcgi_temp_path {text}/c3; uwsgi_temp_path {text}/c4; scgi_temp_path {text}/c5;\n\
         server {{ listen {CGI_PORT}; location / {{ fastcgi_pass unix:{}; fastcgi_param SCRIPT_FILENAME {};\n\
         fastcgi_param REQUEST_METHOD $request_method; }} }} }}\n",
        socket.display(),
        program.display()
    );
    let path = dir.join("cgi.conf");
    std::fs::write(&path, config)?;
    let mut command = net.lab.command("sender", "/usr/sbin/nginx");
    command.arg("-c").arg(&path);
    let server = net.lab.start("sender", "cgi", &mut command)?;
    let url = format!("http://{}:{CGI_PORT}/", net.lab.v4("sender"));
    net.ready(&url)?;
    to_node_core(wrapper)?;
    to_node_core(server)?;
    Ok(url)
}

fn built_cgi() -> Result<PathBuf> {
    let program = workspace().join("target/bench-c/hello_cgi");
    ensure!(program.exists(), "{} is not built: see lab/bench-c/Makefile", program.display());
    Ok(program)
}

fn streams(plan: &Plan, driver: &'static str) -> Result<Figure> {
    let mut net = Net::up(driver)?;
    let mut command = net.lab.command("sender", "iperf3");
    command.args(["--server", "--port", &IPERF_PORT.to_string()]);
    net.lab.start("sender", "iperf3", &mut command).context("iperf3: apt-get install iperf3")?;
    let filter = format!("tcp dst {}/32 port {IPERF_PORT}", net.lab.v4("sender"));
    // The server may not listen yet.
    ensure!(wait_until(READY_WAIT, || net.goodput(1).is_ok()), "iperf3 does not answer");
    let (mut direct, mut taken, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..plan.server_rounds {
        let kernel = net.goodput(plan.server_seconds)?;
        let (package, _) = net.install("byte-count", std::slice::from_ref(&filter))?;
        let through = net.goodput(plan.server_seconds)?;
        let counters = net.lab.modules("node")?.modules.into_iter().next().context("the module runs")?.counters;
        ensure!(counters.get("connections").is_some_and(|count| *count >= 2), "nothing was intercepted: {counters:?}");
        net.remove(&package)?;
        progress(&format!("{kernel:.2} Gbit/s forwarded, {through:.2} intercepted"));
        ratios.push(through / kernel);
        direct.push(kernel);
        taken.push(through);
    }
    let rows = vec![
        Row::new("forwarded by the kernel", "Gbit/s", &direct),
        Row::new("intercepted, each byte shown to byte-count", "Gbit/s", &taken),
        Row::new("intercepted / forwarded", "", &ratios).goal(Goal::InterceptedFlow),
    ];
    let segments = match driver {
        "afxdp" => "With its XDP program the links carry no segments larger than a frame.",
        _ => "Without XDP the links carry segments of up to 64 KiB.",
    };
    let how = format!(
        "iperf3 from receiver to sender, one TCP flow; client, server and node on two cores together, in turn with and \
         without the module. Driver {driver}. {segments}"
    );
    Ok(Figure { name: "One intercepted TCP flow", how, rows })
}

impl Net {
    /// Returns what one flow carries, in Gbit/s as received.
    fn goodput(&self, seconds: u32) -> Result<f64> {
        let (server, port) = (self.lab.v4("sender").to_string(), IPERF_PORT.to_string());
        let time = seconds.to_string();
        let args = ["--client", &server, "--port", &port, "--time", &time, "--omit", "1", "--json"];
        let output = self.lab.run("receiver", "iperf3", &args)?;
        let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        let bits = report["end"]["sum_received"]["bits_per_second"].as_f64().context("iperf3 says nothing")?;
        Ok(bits / 1e9)
    }
}

fn flows() -> Result<Figure> {
    let mut net = Net::up("afxdp")?;
    let script = workspace().join("lab/src/bench/flows.py");
    let mut command = net.lab.command("sender", "python3");
    command.arg(&script).args(["serve", &LINES_PORT.to_string()]);
    net.lab.start("sender", "lines", &mut command)?;
    let filter = format!("tcp dst {}/32 port {LINES_PORT}", net.lab.v4("sender"));
    net.install("byte-count", &[filter])?;
    let started = Instant::now();
    let (server, port, count) = (net.lab.v4("sender").to_string(), LINES_PORT.to_string(), FLOWS.to_string());
    let script = script.to_string_lossy().into_owned();
    let output = net.lab.run("receiver", "python3", &[&script, "ask", &server, &port, &count])?;
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let took = started.elapsed().as_secs_f64();
    let number = |name: &str| report[name].as_f64().with_context(|| format!("no {name} in {report}"));
    let memory = net.worker_memory()?;
    let rows = vec![
        Row::new("connections at a time, each answered", "", &[number("answered")?]).goal(Goal::InterceptedFlows),
        Row::new("failed connections", "", &[number("failed")?]),
        Row::new("from the first to the last answer", "s", &[took]),
        Row::new("the worker afterwards, private", "MB", &[memory]),
    ];
    let how = format!(
        "{FLOWS} connections from receiver to sender through byte-count, opened at once and kept open until each has had \
         its line back. Client and server are Python programs."
    );
    Ok(Figure { name: "Many intercepted TCP flows", how, rows })
}
