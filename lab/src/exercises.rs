// SPDX-License-Identifier: Apache-2.0
//! The checks of docs/tutorial: whether a folder has a solution of an exercise.
//!
//! Exercises 1 to 4 are about a module's code: it is built, and must pass its own tests and those of
//! `docs/tutorial/checks`. Exercises 5 and 6 run it on a node between two hosts, which needs root.

use std::io::Read as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use netserv_model::request::Outcome;

use crate::netns::{Lab, is_root, wait_until};
use crate::node::{LabPackage, LabUser, cli, workspace};
use crate::serving;

/// How long something may take on a machine with much to do.
const WAIT: Duration = Duration::from_secs(20);
/// Seconds of load in exercise 6.
const LOAD_S: u32 = 6;
/// Packets that are sent meanwhile.
const PACKETS: u64 = 20_000;
/// What containers may do in exercises 5 and 6.
const LISTEN: &str = "listen = ['tcp port 80']\n";

/// Checks a module's folder. Prints what holds; the first thing that does not is the error.
///
/// # Errors
/// The folder has no solution; the error says what is missing.
pub fn check(exercise: u8, dir: &Path) -> Result<()> {
    ensure!(dir.join("netserv.toml").exists(), "{} has no netserv.toml: name the module's folder", dir.display());
    let folder = tempfile::tempdir()?;
    let scratch = folder.path();
    let built = scratch.join("module.nsm");
    // Not over the package that is there, which may be signed.
    cli(&["module", "build", &dir.to_string_lossy(), "--out", &built.to_string_lossy()])?;
    println!("ok  the module builds");
    own_tests(dir)?;
    match exercise {
        1 => signed(dir, &built)?,
        2..=4 => asked_tests(exercise, dir, scratch)?,
        5 => {
            asked_tests(3, dir, scratch)?;
            both_roles(&built)?;
        }
        _ => upgrade(dir, &built, scratch)?,
    }
    println!("exercise {exercise} is solved");
    Ok(())
}

fn own_tests(dir: &Path) -> Result<()> {
    // For people first: what fails is the error.
    cli(&["module", "test", &dir.to_string_lossy(), "--no-build"]).context("its own tests fail")?;
    let output = cli(&["-j", "module", "test", &dir.to_string_lossy(), "--no-build"])?;
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let count = report["tests"].as_array().map_or(0, Vec::len);
    ensure!(
        count > 0,
        "the module has no tests of its own: add a [[test]], [[http-test]] or [[tcp-test]] to netserv.toml"
    );
    println!("ok  its own tests pass: {count}");
    Ok(())
}

/// Exercise 1: the package that is there is signed, and is what the folder builds.
fn signed(dir: &Path, built: &Path) -> Result<()> {
    let package = package_of(dir)?;
    let inspect = |path: &Path| -> Result<serde_json::Value> {
        Ok(serde_json::from_slice(&cli(&["-j", "module", "inspect", &path.to_string_lossy()])?.stdout)?)
    };
    let (shown, fresh) = (inspect(&package)?, inspect(built)?);
    let name = package.display();
    ensure!(shown["digest"] == fresh["digest"], "{name} is not what the folder builds: netserv module build");
    let signatures = shown["signed_by"].as_array().map_or(0, Vec::len);
    ensure!(signatures > 0, "{name} is not signed: netserv module sign {name}");
    println!("ok  the package is signed");
    Ok(())
}

fn package_of(dir: &Path) -> Result<PathBuf> {
    let manifest = read_toml(&dir.join("netserv.toml"))?;
    let field = |name: &str| manifest.get(name).and_then(toml::Value::as_str).unwrap_or_default().to_owned();
    let name = field("name");
    let short = name.rsplit('/').next().unwrap_or_default();
    let package = dir.join(format!("{short}-{}.nsm", field("version")));
    ensure!(package.exists(), "{} is not there: netserv module build", package.display());
    Ok(package)
}

/// Runs the tests of `docs/tutorial/checks` on the module's code, in place of its own.
fn asked_tests(exercise: u8, dir: &Path, scratch: &Path) -> Result<()> {
    let checks = workspace().join("docs/tutorial/checks").join(exercise.to_string());
    let asked = read_toml(&checks.join("netserv.toml"))?;
    let mut manifest = read_toml(&dir.join("netserv.toml"))?;
    for tests in ["test", "http-test", "tcp-test"] {
        manifest.remove(tests);
        if let Some(theirs) = asked.get(tests) {
            manifest.insert(tests.to_owned(), theirs.clone());
        }
    }
    let build = manifest.get_mut("build").and_then(toml::Value::as_table_mut).context("netserv.toml has no [build]")?;
    build.remove("command");
    for (_, file) in build.iter_mut() {
        let built = dir.join(file.as_str().unwrap_or_default()).canonicalize()?;
        *file = toml::Value::String(built.to_string_lossy().into_owned());
    }
    for entry in std::fs::read_dir(&checks)? {
        let path = entry?.path();
        std::fs::copy(&path, scratch.join(path.file_name().context("a file has a name")?))?;
    }
    std::fs::write(scratch.join("netserv.toml"), toml::to_string(&manifest)?)?;
    let asked = format!("it does not do what exercise {exercise} asks for, see {}", checks.display());
    cli(&["module", "test", &scratch.to_string_lossy(), "--no-build"]).context(asked)?;
    println!("ok  it does what exercise {exercise} asks for");
    Ok(())
}

/// A node between two hosts with the module on it.
struct Run {
    lab: Lab,
    user: LabUser,
    filter: String,
}

impl Run {
    fn start() -> Result<Run> {
        ensure!(is_root(), "not root: this exercise runs the module on a node in namespaces; use sudo");
        let (lab, [user]) = serving::network(None, &["10.99.7.0/29", "fd99:7::/64"], [("anna", LISTEN)])?;
        let filter = format!("udp dst {}/32", lab.v4("sender"));
        Ok(Run { lab, user, filter })
    }

    fn setup(&self, package: &Path) -> Result<Outcome> {
        let package = self.sign(package)?;
        let (url, file) = (self.lab.publish("sender", &package)?, package.path.to_string_lossy().into_owned());
        let (to, key) = (self.lab.v4("receiver").to_string(), self.user.key.to_string_lossy().into_owned());
        let args = ["setup", &file, "--to", &to, "--url", &url, "--filter", &self.filter];
        let result = self.lab.request("sender", &[&args[..], &["--user", &self.user.name, "--key", &key]].concat())?;
        let node = result.nodes.into_iter().find(|node| node.node.as_str() == "node").context("the node is silent")?;
        Ok(node.outcome)
    }

    /// Signs a package with the key that this node knows.
    fn sign(&self, package: &Path) -> Result<LabPackage> {
        let text = package.to_string_lossy();
        cli(&["module", "sign", &text, "--key", &self.user.key.to_string_lossy()])?;
        let shown: serde_json::Value = serde_json::from_slice(&cli(&["-j", "module", "inspect", &text])?.stdout)?;
        let field = |name: &str| shown[name].as_str().map(str::to_owned).context("inspect shows no digest");
        Ok(LabPackage { digest: field("digest")?, module: field("module")?, path: package.to_owned() })
    }

    fn address(&self) -> Result<IpAddr> {
        let modules = self.lab.modules("node")?.modules;
        let address = modules.iter().flat_map(|status| &status.addresses).find(|address| address.is_ipv4());
        address
            .copied()
            .context("the module has no address: does netserv.toml have [server] listen = [\"tcp port 80\"]?")
    }

    fn get(&self, method: &str, path: &str) -> Result<String> {
        let url = format!("http://{}{path}", self.address()?);
        let args = ["-s", "-m", "5", "-X", method, &url];
        let output = self.lab.command("receiver", "curl").args(args).output()?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn send(&self, port: u16) -> Result<()> {
        let line = format!("echo knock > /dev/udp/{}/{port}", self.lab.v4("sender"));
        self.lab.run("receiver", "bash", &["-c", &line])?;
        Ok(())
    }

    fn dropped(&self) -> Result<u64> {
        Ok(self.lab.modules("node")?.modules.iter().map(|status| status.packets.dropped).sum())
    }
}

/// Exercise 5: the page shows who has knocked, and closes doors.
fn both_roles(package: &Path) -> Result<()> {
    let run = Run::start()?;
    let outcome = run.setup(package)?;
    ensure!(matches!(outcome, Outcome::Installed { .. }), "the node does not take the module: {outcome:?}");
    let receiver = run.lab.v4("receiver").to_string();
    ensure!(wait_until(WAIT, || run.get("GET", "/").is_ok_and(|page| !page.is_empty())), "GET / brings nothing");
    ensure!(!run.get("GET", "/")?.contains(&receiver), "the page shows {receiver}, which did not knock yet");
    for port in [7001, 7002, 7003] {
        run.send(port)?;
    }
    let shown = || run.get("GET", "/").is_ok_and(|page| page.contains(&receiver));
    ensure!(wait_until(WAIT, shown), "{receiver} knocked, and the page does not show it: {:?}", run.get("GET", "/"));
    println!("ok  the page shows who has knocked");

    let before = run.dropped()?;
    run.send(22)?;
    std::thread::sleep(Duration::from_millis(500));
    ensure!(run.dropped()? == before, "a packet to the open door was dropped");
    run.get("POST", &format!("/close/{receiver}"))?;
    let closed = wait_until(WAIT, || run.send(22).is_ok() && run.dropped().is_ok_and(|dropped| dropped > before));
    ensure!(closed, "after POST /close/{receiver} packets to the door still pass");
    println!("ok  POST /close/ADDRESS closes the door at once");
    Ok(())
}

/// Exercise 6: a new version takes over under load, and nothing is lost.
fn upgrade(dir: &Path, package: &Path, scratch: &Path) -> Result<()> {
    let run = Run::start()?;
    let outcome = run.setup(package)?;
    ensure!(matches!(outcome, Outcome::Installed { .. }), "the node does not take the module: {outcome:?}");
    ensure!(wait_until(WAIT, || run.get("GET", "/").is_ok_and(|page| !page.is_empty())), "GET / brings nothing");
    let newer = next_version(dir, scratch)?;

    let mut load = run.lab.command("receiver", "wrk");
    let url = format!("http://{}/", run.address()?);
    load.args(["-t1", "-c8", &format!("-d{LOAD_S}s"), &url]).stdout(Stdio::piped());
    let mut load = load.spawn().context("wrk is missing: apt-get install wrk")?;
    let counted = run.count_udp()?;
    let mut packets = run.stream()?;
    let outcome = run.setup(&newer)?;
    ensure!(matches!(outcome, Outcome::Replaced { .. }), "the new version does not take over: {outcome:?}");
    ensure!(packets.wait()?.success(), "the packets could not be sent");
    let mut report = String::new();
    load.stdout.take().context("wrk has an output")?.read_to_string(&mut report)?;
    load.wait()?;
    for bad in ["Socket errors", "Non-2xx"] {
        ensure!(!report.contains(bad), "requests failed during the upgrade:\n{report}");
    }
    let requests = report.lines().find(|line| line.contains("requests in")).unwrap_or_default().trim();
    println!("ok  every request was answered: {requests}");
    let arrived = || run.count_udp().map(|count| count - counted);
    ensure!(
        wait_until(WAIT, || arrived().is_ok_and(|count| count >= PACKETS)),
        "{} of {PACKETS} packets arrived",
        arrived()?
    );
    println!("ok  every packet arrived: {PACKETS}");
    Ok(())
}

impl Run {
    /// Sends packets that the module sees and lets pass, spread over the time of the load.
    fn stream(&self) -> Result<std::process::Child> {
        let (to, each) = (self.lab.v4("sender"), f64::from(LOAD_S) / 1.5 / PACKETS as f64);
        let script = format!(
            "import socket, time\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\nstart = time.monotonic()\n\
             for n in range({PACKETS}):\n    s.sendto(b'x', ('{to}', 6000))\n    \
             wait = start + n * {each} - time.monotonic()\n    time.sleep(wait) if wait > 0.002 else None\n"
        );
        let mut command = self.lab.command("receiver", "python3");
        command.args(["-c", &script]).spawn().context("python3 is missing")
    }

    /// Returns how many UDP datagrams without a listener the sender has got.
    fn count_udp(&self) -> Result<u64> {
        let text = String::from_utf8(self.lab.run("sender", "cat", &["/proc/net/snmp"])?.stdout)?;
        let mut lines = text.lines().filter(|line| line.starts_with("Udp:"));
        let (names, values) = (lines.next().context("no Udp line")?, lines.next().context("no Udp line")?);
        let at = names.split(' ').position(|name| name == "NoPorts").context("no NoPorts")?;
        Ok(values.split(' ').nth(at).context("no value")?.parse()?)
    }
}

/// Packs the module once more under the next patch version.
fn next_version(dir: &Path, into: &Path) -> Result<PathBuf> {
    let mut manifest = read_toml(&dir.join("netserv.toml"))?;
    let version = manifest.get("version").and_then(toml::Value::as_str).context("netserv.toml has no version")?;
    let Some((rest, patch)) = version.rsplit_once('.') else { bail!("`{version}` is no version") };
    let next = format!("{rest}.{}", patch.parse::<u64>().context("the patch version is no number")? + 1);
    manifest.insert("version".to_owned(), toml::Value::String(next));
    let build =
        manifest.get("build").and_then(toml::Value::as_table).cloned().context("netserv.toml has no [build]")?;
    let mut args = vec!["module".to_owned(), "build".to_owned()];
    for (key, option) in [("wasm", "--wasm"), ("component", "--component"), ("bundle", "--bundle")] {
        if let Some(file) = build.get(key).and_then(toml::Value::as_str) {
            args.extend([option.to_owned(), dir.join(file).to_string_lossy().into_owned()]);
        }
    }
    for tests in ["test", "http-test", "tcp-test", "build"] {
        manifest.remove(tests);
    }
    let (path, out) = (into.join("next.toml"), into.join("next.nsm"));
    std::fs::write(&path, toml::to_string(&manifest)?)?;
    for (option, file) in [("--project", &path), ("--out", &out)] {
        args.extend([option.to_owned(), file.to_string_lossy().into_owned()]);
    }
    cli(&args.iter().map(String::as_str).collect::<Vec<_>>())?;
    Ok(out)
}

fn read_toml(path: &Path) -> Result<toml::Table> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    text.parse().with_context(|| format!("{} is not TOML", path.display()))
}
