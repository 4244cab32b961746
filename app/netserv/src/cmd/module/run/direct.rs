// SPDX-License-Identifier: Apache-2.0
//! HTTP without a node: `netserv-worker serve-http`, started anew whenever the sources change.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Stdio;

use netserv_model::Flavour;
use netserv_repository::Part;
use serde_json::json;
use tokio::process::{Child, Command};

use super::arguments::Run;
use super::signals::Signals;
use super::watch::{WATCH_EVERY, Watch, show_failure};
use crate::cmd::module::build;
use crate::cmd::module::code::{Code, Kind};
use crate::cmd::module::source::Source;
use crate::cmd::module::worker;
use crate::exit::{Exit, Failure, OrFail};
use crate::output::Output;

/// Serves a module's component until it is interrupted.
pub(super) async fn run(
    source: &Source,
    run: Run,
    signals: &mut Signals,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let component = source.parts()?.into_iter().find(|file| file.part == Part::Component).map(|file| file.path);
    let Some(component) = component else {
        let cause = if run.direct { "--direct serves HTTP alone" } else { "only root may make the network for others" };
        return Err(Failure::new(format!("{} has no component for HTTP, and {cause}", source.shown()), AS_ROOT));
    };
    let worker = worker::find(Flavour::Wasm)?;
    let mut watch = Watch::new(source);
    build(source, output)?;
    output.note(
        "without a node: no sandbox, no interception, no packet part, and state ends with the process. As root there is \
         all of it.",
    );
    let mut served = serve(&worker, &component, source, &run, output)?;
    loop {
        tokio::select! {
            () = signals.any() => break,
            status = served.wait() => {
                let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
                return Err(Failure::new(format!("netserv-worker ended with {status}"), "mend what the lines above name"));
            }
            () = tokio::time::sleep(WATCH_EVERY), if !run.no_watch => {
                if !watch.has_changed() {
                    continue;
                }
                match Source::read(&run.dir).and_then(|source| build(&source, output).map(|()| source)) {
                    Ok(source) => {
                        end(&mut served).await;
                        served = serve(&worker, &component, &source, &run, output)?;
                    }
                    Err(failure) => show_failure(&failure, output)?,
                }
                watch.settle();
            }
        }
    }
    end(&mut served).await;
    Ok(Exit::Done)
}

fn build(source: &Source, output: &Output) -> Result<(), Failure> {
    build::compile(source, output)?;
    let parts = build::load(source, source.parts()?, output)?;
    let components = parts.iter().filter(|file| file.part == Part::Component);
    for kind in components.filter_map(|file| Code::read(&file.bytes).ok()).map(|code| code.kind) {
        let does = match kind {
            Kind::Http => continue,
            Kind::Tcp => "handles TCP connections as events",
            Kind::Command => "is a program with sockets of its own",
            Kind::Packet | Kind::Core | Kind::Component => "answers no requests",
        };
        let cause = format!("the component of {} {does}, and without a node there is only HTTP", source.shown());
        return Err(Failure::new(cause, AS_ROOT));
    }
    Ok(())
}

/// What runs everything.
const AS_ROOT: &str = "run it as root without --direct: `sudo netserv module run`";
/// Where HTTP is served if nobody says where.
const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);

fn serve(worker: &Path, component: &Path, source: &Source, run: &Run, output: &mut Output) -> Result<Child, Failure> {
    let listen = run.listen.unwrap_or(LISTEN);
    let mut command = Command::new(worker);
    command.arg("serve-http").arg(component).args(["--listen", &listen.to_string()]).stdin(Stdio::null());
    let limits = &source.project.manifest.limits;
    command.args(["--memory", &limits.memory_bytes.to_string(), "--requests", &limits.requests.to_string()]);
    let mut properties = source.project.manifest.properties.clone();
    properties.extend(run.property.iter().cloned());
    for (key, value) in properties {
        command.arg("--property").arg(format!("{key}={value}"));
    }
    // Its lines are for people; standard output is for the result alone.
    let stderr = std::os::fd::AsFd::as_fd(&std::io::stderr()).try_clone_to_owned();
    command.stdout(stderr.or_fail("cannot use standard error", "open standard error")?).kill_on_drop(true);
    let child = command.spawn().or_fail(format!("cannot run {}", worker.display()), "name it with NETSERV_WORKER")?;
    if output.is_json() {
        output.json_line(&json!({ "event": "serving", "listen": listen }))?;
    } else {
        output.line(format!("try         curl http://{listen}/"));
    }
    Ok(child)
}

/// Ends what serves, and waits for it, so that the port is free.
async fn end(served: &mut Child) {
    // It may have ended by itself.
    let _ = served.kill().await;
}
