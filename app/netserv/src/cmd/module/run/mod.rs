// SPDX-License-Identifier: Apache-2.0
//! `netserv module run`: a module at work on the developer's own machine, replaced whenever its source changes.

mod arguments;
mod direct;
mod lab;
mod signals;
mod watch;

pub use arguments::Run;

use std::net::IpAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ed25519_dalek::SigningKey;
use netserv_api::{LogLine, ModuleList};
use netserv_model::api::RequestResult;
use netserv_model::request::Outcome;
use serde_json::json;

use self::lab::{Lab, USER};
use self::signals::Signals;
use self::watch::{WATCH_EVERY, Watch, show_failure};
use super::source::Source;
use super::{build, files};
use crate::client;
use crate::exit::{Exit, Failure, OrFail, one_line};
use crate::keys;
use crate::output::{Output, Style};
use netserv_api::{Client, Lines};

impl Run {
    /// Runs the module until it is interrupted.
    ///
    /// # Errors
    /// The module cannot be built at first, or what it runs in cannot be made or ends.
    pub async fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let source = Source::read(&self.dir)?;
        let mut signals = Signals::new()?;
        let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
        if self.direct || !is_root {
            return direct::run(&source, self, &mut signals, output).await;
        }
        if self.listen.is_some() {
            let cause = "--listen is for HTTP without a node, and root gets a node";
            return Err(Failure::new(cause, "add --direct, or leave --listen out").with_exit(Exit::Usage));
        }
        let watch = Watch::new(&source);
        let mut bench = Workbench::open(&self, &source).await?;
        bench.install(source, output).await?;
        bench.show(output).await?;
        bench.work(watch, &mut signals, output).await
    }
}

/// A lab with the module in it.
struct Workbench {
    lab: Lab,
    client: Client,
    key: SigningKey,
    key_path: PathBuf,
    properties: Vec<(String, String)>,
    dir: PathBuf,
    watches: bool,
    /// Packages so far.
    installed: u32,
}

impl Workbench {
    async fn open(run: &Run, source: &Source) -> Result<Workbench, Failure> {
        let key = keys::generate()?;
        let lab = Lab::up(keys::public(&key), &source.project)?;
        let key_path = lab.dir().join("key.pem");
        keys::write_new(&key_path, &key)?;
        let client = client::node(&lab.socket());
        let mut bench = Workbench {
            lab,
            client,
            key,
            key_path,
            properties: run.property.clone(),
            dir: run.dir.clone(),
            watches: !run.no_watch,
            installed: 0,
        };
        bench.lab.wait_for_node(&bench.client).await?;
        Ok(bench)
    }

    /// Builds, signs and installs the module.
    async fn install(&mut self, source: Source, output: &mut Output) -> Result<(), Failure> {
        let files = source.parts()?;
        build::compile(&source, output)?;
        let parts = build::load(&source, files, output)?;
        let built = build::package_of(&source, &parts, Some(&self.key))?;
        self.installed += 1;
        let path = self.lab.dir().join(format!("module-{}.nsm", self.installed));
        files::write(&path, &built)?;
        let result = self.setup(&source, &path)?;
        for node in &result.nodes {
            if let Outcome::Refused(refusal) = &node.outcome {
                let cause = format!("the node refuses it: {}", refusal.in_full());
                return Err(Failure::new(cause, refusal.kind.fix()).with_exit(Exit::NodeRefused));
            }
            let word = match (&node.outcome, node.outcome.lease_s()) {
                (Outcome::Refreshed { .. }, _) => "unchanged",
                (outcome, Some(_)) => outcome.word(),
                (_, None) => "answered",
            };
            let took = u64::try_from(Duration::from_micros(node.took_us).as_millis()).unwrap_or(u64::MAX);
            if output.is_json() {
                output.json_line(&json!({ "event": word, "digest": built.digest(), "took_us": node.took_us }))?;
            } else {
                let word = output.paint(Style::Good, word);
                output.line(format!("{word}  {} in {took} ms", built.manifest().module()));
            }
        }
        Ok(())
    }

    fn setup(&self, source: &Source, path: &Path) -> Result<RequestResult, Failure> {
        let fix = "report this as a bug";
        let own = std::env::current_exe().or_fail("cannot find this program's own file", fix)?;
        let mut command = Command::new(own);
        command.arg("--socket").arg(self.lab.socket()).args(["-j", "setup", "--local", "--user", USER, "--ttl", "24h"]);
        command.arg("--key").arg(&self.key_path).arg(path);
        for filter in lab::intercepts(&source.project.manifest) {
            command.args(["--intercept", &filter.to_string()]);
        }
        for filter in lab::filters(&source.project.manifest) {
            command.args(["--filter", &filter]);
        }
        for (key, value) in &self.properties {
            command.arg("--property").arg(format!("{key}={value}"));
        }
        let ran = command.output().or_fail("cannot run netserv", fix)?;
        serde_json::from_slice(&ran.stdout).map_err(|_| {
            let said: Option<netserv_api::ApiError> = serde_json::from_slice(&ran.stderr).ok();
            match said {
                Some(said) => Failure::new(said.error, said.fix),
                None => Failure::new(String::from_utf8_lossy(&ran.stderr), "see the lines above"),
            }
        })
    }

    /// Shows what to try.
    async fn show(&self, output: &mut Output) -> Result<(), Failure> {
        let list: ModuleList = self.client.get("/v1/modules").await?;
        let addresses: Vec<IpAddr> = list.modules.iter().flat_map(|module| module.addresses.clone()).collect();
        let listen: Vec<String> =
            list.modules.iter().flat_map(|module| &module.listen).map(ToString::to_string).collect();
        if output.is_json() {
            let names = ["client", "node", "server"].map(|machine| (machine, self.lab.namespace(machine)));
            let names: std::collections::BTreeMap<_, _> = names.into_iter().collect();
            let socket = self.lab.socket();
            return output.json_line(
                &json!({ "event": "ready", "namespaces": names, "socket": socket, "addresses": addresses }),
            );
        }
        let source = Source::read(&self.dir)?;
        output.line("");
        output.line("network     client 10.1.0.1 ── node ── server 10.2.0.2, and fd00:1::1, fd00:2::2");
        for address in addresses.iter().filter(|_| !listen.is_empty()) {
            output.line(format!("address     {address}  {}", listen.join(", ")));
        }
        for line in lab::to_try(&source, &addresses) {
            output.line(format!("try         {}", line.replace("@CLIENT@", &self.lab.enter("client"))));
        }
        output.line(format!("also        netserv --socket {} node list", self.lab.socket().display()));
        output.line(format!(
            "            {} sh     # a shell in the client; `server` and `node` too",
            self.lab.enter("client")
        ));
        let watching = if self.watches { "changes in its folder replace the module; " } else { "" };
        output.line(format!("            {watching}Ctrl-C ends everything"));
        output.line("");
        Ok(())
    }

    /// Shows logs and replaces the module, until it is interrupted.
    async fn work(mut self, mut watch: Watch, signals: &mut Signals, output: &mut Output) -> Result<Exit, Failure> {
        let mut logs: Lines = self.client.lines("/v1/logs?follow=true&since=0").await?;
        loop {
            tokio::select! {
                () = signals.any() => break,
                line = logs.next() => match line {
                    Ok(Some(line)) => show_log(&line, output)?,
                    Ok(None) | Err(_) => return Err(self.lab.ended()),
                },
                () = tokio::time::sleep(WATCH_EVERY), if self.watches => {
                    if watch.has_changed() {
                        self.replace(output).await?;
                        watch.settle();
                    }
                }
            }
            if output.is_closed() {
                break;
            }
        }
        output.note("ending");
        Ok(Exit::Done)
    }

    /// Installs what the sources are now. What is wrong with them is said, and what runs goes on.
    async fn replace(&mut self, output: &mut Output) -> Result<(), Failure> {
        let outcome = match Source::read(&self.dir) {
            Ok(source) => self.install(source, output).await,
            Err(failure) => Err(failure),
        };
        let Err(failure) = outcome else { return Ok(()) };
        show_failure(&failure, output)
    }
}

fn show_log(text: &str, output: &mut Output) -> Result<(), Failure> {
    let Ok(line) = serde_json::from_str::<LogLine>(text) else { return Ok(()) };
    // The node's own lines are for operators, but for those that say what went wrong.
    if line.source == "netservd" && !matches!(line.level.as_str(), "warn" | "error") {
        return Ok(());
    }
    if output.is_json() {
        return output.json_line(&json!({ "event": "log", "line": line }));
    }
    let level = output.paint(Style::of_level(&line.level), &format!("{:5}", one_line(&line.level)));
    output.line(format!("log         {level}  {}", one_line(&line.text)));
    Ok(())
}
