// SPDX-License-Identifier: Apache-2.0
//! `netserv node doctor`: what a node and its user need, each with a way to mend it.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use netserv_api::{NodeInfo, PlaneInfo};
use netserv_model::Flavour;
use netserv_model::api::{DeviceInfo, PostRequest, RequestResult};
use netserv_model::request::{Ask, Outcome};
use netserv_wire::nslp::RequestBuilder;
use serde::Serialize;

use crate::cmd::module::worker;
use crate::exit::{Exit, Failure};
use crate::keys;
use crate::output::{Output, Style};
use crate::report::count;
use crate::request::Identity;
use crate::table::{Table, plain};
use netserv_api::Client;

/// How long the question whether the node knows the user may take.
const PROBE_TIME_MAX: Duration = Duration::from_secs(10);

/// How one check went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    /// As it should be.
    Ok,
    /// Something will not work, the rest will.
    Warn,
    /// The node cannot be used.
    Fail,
}

/// One check as it went.
#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    state: State,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

#[derive(Serialize)]
struct Report {
    checks: Vec<Check>,
}

impl Check {
    fn ok(name: &'static str, detail: impl Into<String>) -> Check {
        Check { name, state: State::Ok, detail: detail.into(), fix: None }
    }

    fn bad(name: &'static str, state: State, failure: Failure) -> Check {
        Check { name, state, detail: failure.cause, fix: Some(failure.fix) }
    }
}

/// Runs every check and shows how they went.
///
/// # Errors
/// Only if the checks cannot be shown.
pub async fn run(client: &Client, socket: &Path, output: &mut Output) -> Result<Exit, Failure> {
    let mut checks = node_checks(client, socket).await;
    let node_answers = checks.iter().all(|check| check.state != State::Fail);
    checks.extend(user_checks(client, node_answers).await);
    checks.extend(Flavour::ALL.map(worker_check));
    checks.push(target_check());
    let failed = checks.iter().any(|check| check.state == State::Fail);
    if output.is_json() {
        output.json(&Report { checks })?;
    } else {
        table(&checks).write(output);
    }
    Ok(if failed { Exit::Failed } else { Exit::Done })
}

fn table(checks: &[Check]) -> Table {
    let mut table = Table::new(&["CHECK", "STATE", "DETAIL"]);
    for check in checks {
        let state = match check.state {
            State::Ok => (Style::Good, "ok".to_owned()),
            State::Warn => (Style::Warn, "warn".to_owned()),
            State::Fail => (Style::Bad, "fail".to_owned()),
        };
        table.row([plain(check.name), state, plain(&check.detail)]);
        if let Some(fix) = &check.fix {
            table.note(format!("fix: {fix}"));
        }
    }
    table
}

async fn node_checks(client: &Client, socket: &Path) -> Vec<Check> {
    let info: NodeInfo = match client.get("/v1/node").await {
        Ok(info) => info,
        Err(error) => return vec![Check::bad("netservd", State::Fail, error.into())],
    };
    let mut checks = vec![Check::ok("netservd", format!("{} answers on {}", info.node, socket.display()))];
    let own = env!("CARGO_PKG_VERSION");
    checks.push(if info.version == own {
        Check::ok("version", own)
    } else {
        let cause = format!("netservd is {}, netserv is {own}", info.version);
        Check::bad("version", State::Warn, Failure::new(cause, "install both in one version"))
    });
    checks.push(Check::ok("driver", info.driver));
    checks.extend(info.planes.iter().filter_map(plane_check));
    checks.extend(info.devices.iter().map(device_check));
    let missing = info.missing.iter().map(|missing| {
        // The node's own words end with a fix where it knows one.
        let usual = "install or allow it, then start netservd again; the rest works without it";
        let (missing, fix) = missing.split_once("; fix: ").unwrap_or((missing, usual));
        Check::bad("machine", State::Warn, Failure::new(missing, fix))
    });
    checks.extend(missing);
    checks
}

/// Says why a forwarding plane does not work here; one that does needs no words.
fn plane_check(plane: &PlaneInfo) -> Option<Check> {
    let missing = plane.missing.as_ref()?;
    let usual = "nothing, if the driver in use is good enough; `netservd doctor` checks again";
    let (missing, fix) = missing.split_once("; fix: ").unwrap_or((missing, usual));
    Some(Check::bad("plane", State::Warn, Failure::new(format!("{} cannot be used: {missing}", plane.name), fix)))
}

fn device_check(device: &DeviceInfo) -> Check {
    let copy = if device.zero_copy { "zero copy" } else { "copy" };
    let queues = count(u64::from(device.queues), "queue");
    let forwarding = match &device.left_to_kernel {
        Some(why) => format!("the kernel forwards the rest: {why}"),
        None => "forwards the rest in XDP".to_owned(),
    };
    Check::ok("device", format!("{}: {} mode, {copy}, {queues}; {forwarding}", device.name, device.mode))
}

async fn user_checks(client: &Client, node_answers: bool) -> Vec<Check> {
    let identity = Identity { user: None, key: None, grant: None, proof: None, checklist: None };
    let key = keys::default_path().and_then(|path| keys::read(&path).map(|key| (path, key)));
    let mut checks = Vec::new();
    match key {
        Ok((path, key)) => {
            checks.push(Check::ok("key", format!("{} is {}", path.display(), keys::public(&key))));
            if node_answers {
                checks.push(account_check(client, &identity).await);
            }
        }
        Err(failure) => checks.push(Check::bad("key", State::Warn, failure)),
    }
    checks
}

/// Asks the node what it grants the user, which needs a known user, a good signature and both clocks set.
async fn account_check(client: &Client, identity: &Identity) -> Check {
    let ask = || identity.account().and_then(|account| account.sign(RequestBuilder::probe(&[Ask::Policy])));
    let message = match ask() {
        Ok(message) => message,
        Err(failure) => return Check::bad("user", State::Warn, failure),
    };
    let request = PostRequest { message, path: None, session: None, timeout_ms: 0 };
    match client.post::<RequestResult>("/v1/requests", &request, PROBE_TIME_MAX).await {
        Err(error) => Check::bad("user", State::Warn, error.into()),
        Ok(result) => match result.nodes.first().map(|node| &node.outcome) {
            Some(Outcome::Refused(refusal)) => {
                Check::bad("user", State::Warn, Failure::new(refusal.to_string(), refusal.kind.fix()))
            }
            Some(_) => Check::ok("user", "the node knows the user and the key"),
            None => Check::ok("user", "not asked: this machine only sends requests"),
        },
    }
}

fn worker_check(flavour: Flavour) -> Check {
    let name = match flavour {
        Flavour::Wasm => "worker",
        Flavour::Osgi => "jvm",
    };
    match worker::find(flavour) {
        Ok(path) => Check::ok(name, path.display().to_string()),
        Err(failure) => Check::bad(name, State::Warn, failure),
    }
}

/// Rust modules need the compiler's WebAssembly target.
fn target_check() -> Check {
    let arguments = ["--print", "target-libdir", "--target", "wasm32-unknown-unknown"];
    let printed = Command::new("rustc").args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).output();
    let directory = printed.ok().filter(|printed| printed.status.success());
    let directory = directory.map(|printed| String::from_utf8_lossy(&printed.stdout).trim().to_owned());
    match directory {
        Some(directory) if Path::new(&directory).is_dir() => Check::ok("rust", "wasm32-unknown-unknown is installed"),
        Some(_) => {
            let cause = "rustc has no target wasm32-unknown-unknown, so Rust modules cannot be built";
            Check::bad("rust", State::Warn, Failure::new(cause, "rustup target add wasm32-unknown-unknown"))
        }
        None => {
            let cause = "no rustc, so Rust modules cannot be built here";
            Check::bad("rust", State::Warn, Failure::new(cause, "install Rust from https://rustup.rs"))
        }
    }
}
