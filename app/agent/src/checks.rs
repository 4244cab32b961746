// SPDX-License-Identifier: Apache-2.0
//! Whether the agent reaches what its configuration names: sockets, sources, folders, files and the database.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use netserv_api::{AgentFinding, AgentLog, AgentStatus};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

use crate::access::{Fault, Want, Who, fault, socket_fault};
use crate::config::{Config, Log, Metric, MetricSource};
use crate::event::Event;
use crate::ids::group_number;
use crate::limits::{CHECK_EVERY, CHECK_FIRST, METRIC_TIME_MAX, UNMATCHED_LINES_MIN};
use crate::metric::{self, kamailio, sockets_at};
use crate::names::NamesFile;
use crate::relays::{RelayTables, SETS};

/// Looks at everything that a configuration names, at all sources at the same time. `status` is how things are for the agent.
pub async fn findings(config: &Config, status: &AgentStatus) -> Vec<AgentFinding> {
    let mut asked = JoinSet::new();
    for (number, metric) in config.metrics.iter().cloned().enumerate() {
        asked.spawn(async move { (number, of_metric(&metric).await) });
    }
    let mut all = vec![
        finding("netservd", config.netservd.display(), netservd(&config.netservd).await),
        finding("key", config.key.display(), reads(&config.key)),
        finding("state", config.state_dir.display(), state(&config.state_dir)),
    ];
    all.extend(config.grant.iter().map(|grant| finding("grant", grant.display(), reads(grant))));
    all.extend(config.proof.iter().map(|proof| finding("proof", proof.display(), reads(proof))));
    all.extend(config.checklist.iter().map(|list| finding("checklist", list.display(), reads(list))));
    for log in &config.logs {
        let (at, came) = (log.at(), status.logs.iter().find(|came| came.name == log.name));
        all.push(finding(&format!("log {}", log.name), at, of_log(log, came)));
    }
    for flows in &status.flows {
        let found = match (&flows.error, flows.count) {
            (Some(why), _) => {
                Err(Fault::new(why, "the unit needs RestrictAddressFamilies=AF_NETLINK, as the shipped one has"))
            }
            (None, Some(count)) => Ok(format!("{count} open")),
            (None, None) => Ok("not looked at yet".to_owned()),
        };
        all.push(finding(&format!("flows {}", flows.name), "the kernel", found));
    }
    if let Some(names) = &config.names {
        all.push(finding("names", names.file.display(), of_names(names)));
    }
    if let Some(relays) = &config.relays {
        all.push(finding("relays", relays.dir.display(), of_tables(relays)));
        all.push(finding("relays' rpc", relays.rpc.display(), rpc(&relays.rpc).await));
    }
    for rule in &config.rules {
        let package = rule.moves.as_ref().and_then(|moves| moves.package.as_ref());
        for (key, file) in [("tls-chain", rule.tls_chain.as_ref()), ("package", package)] {
            let Some(file) = file else { continue };
            all.push(finding(&format!("{key} of rule {}", rule.name), file.display(), reads(file)));
        }
    }
    let mut metrics = BTreeMap::new();
    while let Some(told) = asked.join_next().await {
        metrics.extend(told.ok());
    }
    all.extend(metrics.into_values());
    all
}

/// Says in the log what is not reached, once each, and when it is again. `last` has what was found last.
pub async fn watch(
    config: watch::Receiver<Arc<Config>>,
    events: mpsc::Sender<Event>,
    last: watch::Sender<Vec<AgentFinding>>,
) {
    let mut told = BTreeMap::new();
    tokio::time::sleep(CHECK_FIRST).await;
    loop {
        let (reply, answer) = oneshot::channel();
        let asked = events.send(Event::Status(reply)).await;
        let (Ok(()), Ok(status)) = (asked, answer.await) else { return };
        let current = Arc::clone(&config.borrow());
        let found = findings(&current, &status).await;
        for AgentFinding { what, at, ok, found, fix } in news(&mut told, &found) {
            match ok {
                true => tracing::info!(what, at, "is reached again"),
                false => tracing::warn!(what, at, fix, "{found}"),
            }
        }
        last.send_replace(found);
        tokio::time::sleep(CHECK_EVERY).await;
    }
}

/// Returns what is to be told of findings, where `told` has what is wrong so far.
fn news(told: &mut BTreeMap<String, String>, findings: &[AgentFinding]) -> Vec<AgentFinding> {
    let before = std::mem::take(told);
    let mut news = Vec::new();
    for finding in findings {
        let known = before.get(&finding.what);
        if !finding.ok {
            told.insert(finding.what.clone(), finding.found.clone());
        }
        // The same fault in other words, such as another count, is not told again.
        if finding.ok == known.is_some() {
            news.push(finding.clone());
        }
    }
    news
}

fn finding(what: &str, at: impl Display, found: Result<String, Fault>) -> AgentFinding {
    let (ok, found, fix) = match found {
        Ok(found) => (true, found, None),
        Err(Fault { found, fix }) => (false, found, Some(fix)),
    };
    AgentFinding { what: what.to_owned(), at: at.to_string(), ok, found, fix }
}

fn reads(file: &Path) -> Result<String, Fault> {
    fault(file, Want::Read, &Who::Agent).map_or(Ok("can be read".to_owned()), Err)
}

async fn netservd(socket: &Path) -> Result<String, Fault> {
    let start = "start netservd, which needs /etc/netserv.toml; `role = \"host\"` is enough for the agent";
    if let Some(fault) = socket_fault(socket) {
        let is_missing = !socket.exists() && fault.found.starts_with("there is no");
        return Err(if is_missing { Fault { fix: start.to_owned(), ..fault } } else { fault });
    }
    match UnixStream::connect(socket).await {
        Ok(_) => Ok("answers".to_owned()),
        Err(error) => Err(Fault::new(format!("{}: {error}", socket.display()), start)),
    }
}

fn state(folder: &Path) -> Result<String, Fault> {
    let database = folder.join("placement.db");
    let closed = fault(folder, Want::Fill, &Who::Agent).or_else(|| fault(&database, Want::Write, &Who::Agent));
    closed.map_or(Ok("can be written".to_owned()), Err)
}

fn of_log(log: &Log, came: Option<&AgentLog>) -> Result<String, Fault> {
    let (lines, matched) = came.map_or((0, 0), |came| (came.lines, came.matched));
    if matched == 0 && lines >= UNMATCHED_LINES_MIN {
        let found = format!("none of {lines} lines has the pattern with an address as its `{{client}}`");
        return Err(Fault::new(found, "compare `pattern` with a line that the server writes"));
    }
    let counted =
        if lines == 0 { "no line yet".to_owned() } else { format!("{matched} of {lines} lines have the pattern") };
    let Some(path) = &log.socket else { return Ok(counted) };
    if !path.exists() {
        let found = format!("{} was taken away, so lines are lost", path.display());
        return Err(Fault::new(found, "systemctl restart netserv-agent"));
    }
    match &log.group {
        Some(group) => {
            let groups = group_number(group).into_iter().collect();
            let member = Who::Other { user: NOBODY, groups };
            let by_group = |closed: Fault| {
                let of_agent = |(start, _): (&str, &str)| format!("{start} is closed to the group {group}");
                let found = closed.found.split_once(" is closed to").map(of_agent).unwrap_or(closed.found);
                Fault::new(found, "have the socket in /run/netserv, which all users pass")
            };
            fault(path, Want::Write, &member).map_or(Ok(counted), |closed| Err(by_group(closed)))
        }
        None if lines == 0 => {
            let found = format!("no line yet, and only root and {} may write there", Who::Agent.name());
            Err(Fault::new(found, "name the group of the server's user, such as `group = \"www-data\"`"))
        }
        None => Ok(counted),
    }
}

async fn of_metric(metric: &Metric) -> AgentFinding {
    let (at, found) = match &metric.source {
        MetricSource::Kamailio { socket, .. } => {
            let found = match kamailio_fault(socket) {
                Some(fault) => Err(fault),
                None => metric::read_once(metric).await.map_err(|error| {
                    let fix = match is_refused(&error) {
                        true => START_KAMAILIO,
                        false => {
                            "have `loadmodule \"kex.so\"` in kamailio.cfg, and see `kamcmd stats.get_statistics all`"
                        }
                    };
                    Fault::new(format!("{error:#}"), fix)
                }),
            };
            (socket.display().to_string(), found)
        }
        MetricSource::UdpQueue { sockets } => {
            let ports: Vec<u16> = sockets.iter().map(std::net::SocketAddr::port).collect();
            let found = metric::read_once(metric).await.map_err(|error| {
                let there: Vec<String> = sockets_at(&ports).iter().map(ToString::to_string).collect();
                let fix = match there.is_empty() {
                    true => "start the server, or name the addresses and ports at which it listens".to_owned(),
                    false => {
                        format!("name those that there are ({}), or have the server listen at these", there.join(", "))
                    }
                };
                Fault::new(format!("{error:#}"), fix)
            });
            (sockets.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "), found)
        }
        MetricSource::Prometheus(prometheus) => {
            let url = prometheus.url.to_string();
            let found = metric::read_once(metric).await;
            let fix = "see whether it runs there, and whether `query`, `ca` and what it is shown are right";
            (url, found.map_err(|error| Fault::new(format!("{error:#}"), fix)))
        }
    };
    finding(&format!("metric {}", metric.name), at, found.map(|value| value.to_string()))
}

/// Returns what keeps this process from Kamailio's socket.
fn kamailio_fault(socket: &Path) -> Option<Fault> {
    let fault = socket_fault(socket)?;
    if !fault.found.starts_with("there is no") {
        return Some(fault);
    }
    let names_it = format!("modparam(\"jsonrpcs\", \"dgram_socket\", \"{}\")", socket.display());
    Some(Fault { fix: format!("start Kamailio, with `{names_it}` in kamailio.cfg"), ..fault })
}

fn is_refused(error: &anyhow::Error) -> bool {
    let kinds = error.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>()).map(std::io::Error::kind);
    kinds.into_iter().any(|kind| kind == ErrorKind::ConnectionRefused)
}

fn of_names(names: &NamesFile) -> Result<String, Fault> {
    let folder = names.file.parent().unwrap_or(Path::new("/"));
    fault(folder, Want::Fill, &Who::Agent).map_or(Ok("can be written".to_owned()), Err)
}

/// Looks whether tables can be written, and read by who serves Kamailio's socket.
fn of_tables(relays: &RelayTables) -> Result<String, Fault> {
    if let Some(fault) = fault(&relays.dir, Want::Fill, &Who::Agent) {
        return Err(fault);
    }
    let Ok(kamailio) = fs::metadata(&relays.rpc) else { return Ok("can be written".to_owned()) };
    let kamailio = Who::owner_of(&kamailio);
    let Some(fault) = fault(&relays.dir.join(SETS), Want::Read, &kamailio) else {
        return Ok(format!("can be written, and read by {}", kamailio.name()));
    };
    let fix = match &relays.group {
        None => format!("name its group, as `group = \"{}\"` in `[relays]`", kamailio.group_name()),
        Some(_) => fault.fix,
    };
    Err(Fault::new(fault.found, fix))
}

async fn rpc(socket: &Path) -> Result<String, Fault> {
    if let Some(fault) = kamailio_fault(socket) {
        return Err(fault);
    }
    match tokio::time::timeout(METRIC_TIME_MAX, kamailio::call(socket, "core.version")).await {
        Ok(Ok(())) => Ok("answers".to_owned()),
        Ok(Err(error)) => Err(Fault::new(format!("{error:#}"), START_KAMAILIO)),
        Err(_) => Err(Fault::new("Kamailio does not answer", "see Kamailio's log")),
    }
}

const START_KAMAILIO: &str = "start Kamailio: its socket is there, and nobody serves it";
/// A user that owns nothing.
const NOBODY: u32 = u32::MAX - 1;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// Goal: what is wrong is told once, and once more when it is right again.
    #[test]
    fn each_fault_is_told_once() {
        let of = |found: &str, ok: bool| {
            let fix = (!ok).then(|| "do it".to_owned());
            AgentFinding { what: "key".to_owned(), at: "/k".to_owned(), ok, found: found.to_owned(), fix }
        };
        let mut told = BTreeMap::new();
        let mut count = |finding| news(&mut told, &[finding]).len();
        assert_eq!(count(of("can be read", true)), 0);
        assert_eq!((count(of("3 lines", false)), count(of("3 lines", false)), count(of("4 lines", false))), (1, 0, 0));
        assert_eq!((count(of("can be read", true)), count(of("can be read", true))), (1, 0));
        assert_eq!(count(of("3 lines", false)), 1);
    }

    #[test]
    fn a_log_tells_whether_its_lines_come_and_are_understood() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.sock");
        let text = |more: &str| {
            let text = format!(
                "user = \"voip\"\nkey = \"k\"\n[[log]]\nname = \"a\"\nsocket = {path:?}\npattern = \"x {{client}}\"\n{more}"
            );
            Config::parse(&text).unwrap().logs.remove(0)
        };
        let came = |lines, matched| AgentLog { name: "a".to_owned(), lines, matched };
        let found = |log: &Log, came: &AgentLog| of_log(log, Some(came)).unwrap_or_else(|fault| format!("{fault:?}"));
        assert!(found(&text(""), &came(0, 0)).contains("was taken away"));
        let _socket = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
        assert!(found(&text(""), &came(0, 0)).contains("name the group"));
        assert_eq!(found(&text(""), &came(3, 2)), "2 of 3 lines have the pattern");
        assert!(found(&text(""), &came(UNMATCHED_LINES_MIN, 0)).contains("none of 100 lines"));
        assert!(!found(&text(""), &came(UNMATCHED_LINES_MIN - 1, 0)).contains("none of"));
        let own = crate::ids::group_name(rustix::process::getegid().as_raw());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o620)).unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let grouped = text(&format!("group = {own:?}"));
        assert!(found(&grouped, &came(0, 0)).contains("is closed to the group"));
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(found(&grouped, &came(0, 0)), "no line yet");
    }
}
