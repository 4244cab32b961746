// SPDX-License-Identifier: Apache-2.0
//! From a module's trap until it sees packets again.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::Plan;
use super::goals::Goal;
use super::programs::Programs;
use super::summary::{Figure, Row};
use crate::netns::Lab;
use crate::node::FILES_ALLOWED;
use crate::topology::{Kind, Topology};

/// Packets per second: each that reaches the sink is a tenth of a millisecond without the module.
const RATE: u32 = 10_000;
const PORT: u16 = 9000;
/// Drops every packet, but traps on one whose payload starts with `T`. Those of udpgen start with `N`.
const MODULE: &str = r#"(module
  (memory (export "memory") 5)
  (func (export "netserv_abi") (result i32) (i32.const 1))
  (func (export "netserv_area") (param i32 i32) (result i32) (i32.const 65536))
  (func (export "netserv_start") (result i32) (i32.const 0))
  (func (export "netserv_process") (param $count i32) (local $descriptor i32)
    (local.set $descriptor (i32.const 65536))
    (loop $next
      (if (i32.eq (i32.load8_u offset=28 (i32.load (local.get $descriptor))) (i32.const 0x54)) (then unreachable))
      (i32.store offset=12 (local.get $descriptor) (i32.const 1))
      (local.set $descriptor (i32.add (local.get $descriptor) (i32.const 32)))
      (local.set $count (i32.sub (local.get $count) (i32.const 1)))
      (br_if $next (local.get $count)))))
"#;

#[derive(Deserialize)]
struct Sink {
    received: u32,
    foreign: u32,
}

/// Measures how long a module is away after a trap.
///
/// # Errors
/// The module does not trap, or does not come back.
pub fn measure(plan: &Plan, programs: &Programs) -> Result<Vec<Figure>> {
    let mut lab = Lab::up(Topology::chain(&[("sender", Kind::Host), ("n1", Kind::Node), ("sink", Kind::Host)]))?;
    let user = lab.user("janedoe", &[&format!("{}/32", lab.v4("sink"))])?;
    lab.start_netservd("n1", "node", std::slice::from_ref(&user), FILES_ALLOWED)?;
    lab.start_netservd("sender", "host", &[], "")?;
    lab.serve_http("sender")?;
    let (wasm, manifest) = (lab.dir().join("trap.wasm"), lab.dir().join("trap.toml"));
    std::fs::write(&wasm, wat::parse_str(MODULE)?)?;
    let text =
        "manifest = 1\nname = \"example.org/trap\"\nversion = \"1.0.0\"\n[packet]\nabi = 1\non-failure = \"open\"\n";
    std::fs::write(&manifest, text)?;
    let package = lab.package_from(&manifest, &wasm, &lab.dir().join("trap.nsm"), &user)?;
    let url = lab.publish("sender", &package)?;
    let (file, key) = (package.path.to_string_lossy().into_owned(), user.key.to_string_lossy().into_owned());
    let (to, filter) = (lab.v4("sink").to_string(), format!("udp dst {}/32 port {PORT}", lab.v4("sink")));
    let signed = ["--to", to.as_str(), "--user", "janedoe", "--key", key.as_str()];
    let mut away = Vec::new();
    for _ in 0..plan.traps {
        let setup = ["setup", &file, "--url", &url, "--filter", &filter];
        let result = lab.request("sender", &[&setup[..], &signed].concat())?;
        ensure!(result.nodes.iter().all(|node| node.outcome.is_ok()), "not installed: {result:?}");
        away.push(trap(&lab, programs)?);
        // A module that is installed anew has no failures behind it, so its first restart is at once.
        let result = lab.request("sender", &[&["remove", "example.org/trap"][..], &signed].concat())?;
        ensure!(result.nodes.iter().all(|node| node.outcome.is_ok()), "not removed: {result:?}");
    }
    let how = format!(
        "A module that drops everything, with failure mode open, {RATE} packets per second; one packet makes it trap. \
         What reaches the sink came while the module was away: with its batch, that it failed on, until the node had \
         loaded it again. Each trap is the first after a SETUP, whose restart does not wait."
    );
    let rows = vec![Row::new("trap to recovered", "ms", &away).goal(Goal::Recovery)];
    Ok(vec![Figure { name: "Recovery from a trap", how, rows }])
}

/// Returns for how many milliseconds packets passed.
fn trap(lab: &Lab, programs: &Programs) -> Result<f64> {
    let (address, port, rate) = (lab.v4("sink").to_string(), PORT.to_string(), RATE.to_string());
    let mut sink = lab.command("sink", &programs.udpsink);
    let sink = sink.args([&address, &port, "1.2"]).stdout(Stdio::piped()).spawn().context("cannot run udpsink")?;
    let mut generator = lab.command("sender", &programs.udpgen);
    generator.args([address.as_str(), &port, &rate, "0.8", "36", "-1", "1", "1"]).stdout(Stdio::null());
    std::thread::sleep(Duration::from_millis(100));
    let mut generator = generator.spawn().context("cannot run udpgen")?;
    std::thread::sleep(Duration::from_millis(400));
    lab.run("sender", "bash", &["-c", &format!("printf TRAP > /dev/udp/{address}/{port}")])?;
    ensure!(generator.wait()?.success(), "udpgen failed");
    let sink: Sink = serde_json::from_slice(&sink.wait_with_output()?.stdout).context("udpsink's result")?;
    ensure!(sink.foreign == 1, "the packet that makes the module trap did not pass: {} came", sink.foreign);
    ensure!(sink.received < RATE / 2, "the module did not come back");
    Ok(f64::from(sink.received) / f64::from(RATE) * 1000.0)
}
