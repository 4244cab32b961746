// SPDX-License-Identifier: Apache-2.0
//! Wishes, carried out: each becomes one or two signed requests, and an answer.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use netserv_model::api::RequestResult;
use netserv_model::control::ControlMessage;
use netserv_model::request::{Ask, Hop, ModuleStatus, NodeReport, Outcome, ServerCounts};
use netserv_model::target::Target;
use netserv_model::{ModuleName, NodeId, RefusalKind, SessionId};
use netserv_placement::{Answer, Distance, Node, Served};
use netserv_wire::nslp::RequestBuilder;

use crate::config::Deploy;
use crate::destination::Destination;
use crate::limits::SETUP_TIME_MAX;
use crate::node::NodeClient;
use crate::page_counts::Counted;

/// Asks for the nodes on the way to a client.
pub async fn probe(node: &NodeClient, to: &Destination) -> Answer {
    match node.send(RequestBuilder::probe(&[]), to.address(), None).await {
        Ok(result) => Answer::Way(result.nodes.into_iter().map(|report| report.node).collect()),
        Err(error) => failed("PROBE", to, &error),
    }
}

/// Installs a rule's module on the way to a client, or renews its lease.
///
/// It is for the node `owner` alone in its epoch, if floating addresses lead to that, or it moves; the way to its address is taken, if that
/// is known.
pub async fn setup(
    node: &NodeClient,
    rule: &Deploy,
    to: &Destination,
    session: Option<SessionId>,
    owner: (NodeId, u64),
) -> Answer {
    match installed(node, rule, to, session, owner).await {
        Ok(answer) => answer,
        Err(error) => failed("SETUP", to, &error),
    }
}

/// Removes a module from there.
pub async fn remove(
    node: &NodeClient,
    (module, both_ways): (&ModuleName, bool),
    to: &Destination,
    session: Option<SessionId>,
) -> Answer {
    let result = match node.send(on(RequestBuilder::remove(module), both_ways), to.address(), session).await {
        Ok(result) => result,
        Err(error) => return failed("REMOVE", to, &error),
    };
    let has_it_still = |report: &NodeReport| !report.outcome.is_ok() && may_have_it(&report.outcome);
    let left = way(&result).into_iter().find(|(report, _)| has_it_still(report));
    match (left, &result.incomplete) {
        (Some((report, _)), _) => failed("REMOVE", to, &anyhow!("{}: {}", report.node, report.outcome)),
        (None, Some(why)) if why.kind != RefusalKind::NoNode => failed("REMOVE", to, &anyhow!("{why}")),
        (None, _) => Answer::Removed,
    }
}

/// Who was told something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// All on the path that have the module.
    All,
    /// All that answer and all that are known. Behind them is a host that says nothing, or a node that was not heard in time.
    AllKnown,
    /// One that has the module, or is known to, was not.
    NotAll,
}

/// Tells a module something on the way to a client, on one node or on all. A request for one ends there: what lies behind that node takes no time.
pub async fn tell(
    node: &NodeClient,
    (module, both_ways): (&ModuleName, bool),
    message: &ControlMessage,
    (to, name): (&Destination, Option<&NodeId>),
    known: &[NodeId],
) -> Reach {
    let request = RequestBuilder::tell(module, message);
    let request = match name {
        Some(name) => request.target(&Target { nodes: vec![name.clone()], ..Target::default() }),
        None => request,
    };
    let result = match node.send(on(request, both_ways), to.address(), None).await {
        Ok(result) => result,
        Err(error) => {
            let _ = failed("TELL", to, &error);
            return Reach::NotAll;
        }
    };
    let way = way(&result);
    let failing: Vec<_> =
        way.iter().filter(|(report, _)| !report.outcome.is_ok() && may_have_it(&report.outcome)).collect();
    for (report, _) in &failing {
        let _ = failed("TELL", to, &anyhow!("{}: {}", report.node, report.outcome));
    }
    let is_missing = |node: &&NodeId| !way.iter().any(|(report, _)| report.node == **node);
    let missing: Vec<_> = known.iter().filter(is_missing).collect();
    for node in &missing {
        let _ = failed("TELL", to, &anyhow!("{node}: it does not answer"));
    }
    match result.incomplete {
        _ if way.is_empty() || !failing.is_empty() || !missing.is_empty() => Reach::NotAll,
        Some(_) => Reach::AllKnown,
        None => Reach::All,
    }
}

/// Returns whether a node that answers so may have the module. Nodes have nothing of users that they do not know.
fn may_have_it(outcome: &Outcome) -> bool {
    let Outcome::Refused(refusal) = outcome else { return true };
    let nothing = [RefusalKind::NotInstalled, RefusalKind::NotANode, RefusalKind::UnknownUser, RefusalKind::BadProof];
    !nothing.contains(&refusal.kind)
}

/// Asks what a module on the way to a client counts on each node that has it; nothing if the question fails.
pub async fn look(node: &NodeClient, (module, both_ways): (&ModuleName, bool), client: IpAddr) -> Option<Counted> {
    let asked = node.send(on(RequestBuilder::probe(&[Ask::Modules]), both_ways), client, None).await.ok()?;
    let names: BTreeSet<&NodeId> = way(&asked).into_iter().map(|(report, _)| &report.node).collect();
    let counts = |name: &&NodeId| Some(((*name).clone(), own(&asked, name.as_str(), module).next()?.counters.clone()));
    Some(names.iter().filter_map(counts).collect())
}

/// Has a request go on the way back from the client, too, if that is wanted.
fn on(request: RequestBuilder, both_ways: bool) -> RequestBuilder {
    if both_ways { request.and_return() } else { request }
}

/// Begins a SETUP for a rule's module.
pub fn request(rule: &Deploy, client: IpAddr) -> Result<RequestBuilder> {
    let mut request = RequestBuilder::setup(&rule.module, &rule.url, rule.digest, Duration::from_secs(rule.lease_s));
    for filter in rule.filters_for(client)? {
        request = request.filter(&filter);
    }
    for filter in rule.intercept_for(client)? {
        request = request.intercept(&filter);
    }
    for (name, value) in &rule.properties {
        request = request.property(name, &rule.fill(value, client));
    }
    Ok(request)
}

async fn installed(
    node: &NodeClient,
    rule: &Deploy,
    to: &Destination,
    session: Option<SessionId>,
    (edge, epoch): (NodeId, u64),
) -> Result<Answer> {
    let mut request = on(request(rule, to.client)?, rule.both_ways);
    if rule.has_one_node() {
        let target = Target { nodes: vec![edge], ..Target::default() };
        request = request.epoch(epoch).floating(&rule.floating).target(&target);
    }
    let runs = |report: &NodeReport| report.outcome.lease_s().is_some();
    let is_slow = |report: &NodeReport| report.outcome.is_refused_for(RefusalKind::InProgress);
    let (begun, mut session) = (Instant::now(), session);
    let result = loop {
        let result = node.send(request.clone(), to.address(), session).await?;
        let is_under_way = !result.nodes.iter().any(runs) && result.nodes.iter().any(is_slow);
        // What is forgotten here would be installed there all the same.
        if !is_under_way || begun.elapsed() >= SETUP_TIME_MAX {
            break result;
        }
        session = Some(result.session);
    };
    let way = way(&result);
    if !way.iter().any(|(report, _)| runs(report)) {
        let why = way.iter().map(|(report, _)| *report).map(|report| format!("{}: {}", report.node, report.outcome));
        let why = why.chain(result.incomplete.iter().map(ToString::to_string)).collect::<Vec<_>>().join("; ");
        return Err(anyhow!("no node has the module: {why}"));
    }
    // Where it takes connections is known once it runs.
    let asked = node.send(on(RequestBuilder::probe(&[Ask::Modules]), rule.both_ways), to.address(), None).await.ok();
    let least = way.iter().filter_map(|(report, _)| report.outcome.lease_s()).min();
    let address = way.iter().rfind(|(report, _)| runs(report)).map(|(report, _)| report.address);
    let nodes = way.into_iter().filter(|(report, _)| runs(report)).map(|(report, distance)| {
        let own = || asked.iter().flat_map(|asked| own(asked, report.node.as_str(), &rule.module.name));
        Node {
            name: report.node.clone(),
            addresses: own().flat_map(|status| status.addresses.clone()).collect(),
            distance,
            activity: own().map(|own| activity(own.packets.seen, own.server.unwrap_or_default())).sum(),
            served: Served {
                requests: own().map(|own| own.server.unwrap_or_default().requests).sum(),
                errors: own().map(|own| own.server.unwrap_or_default().errors).sum(),
            },
            is_failing: false,
        }
    });
    let edge = result.nodes.last().map(|last| last.node.clone());
    let lease = Duration::from_secs(least.unwrap_or(rule.lease_s));
    Ok(Answer::Done { session: result.session, nodes: nodes.collect(), edge, address, lease })
}

/// Returns the nodes that answered, nearest to the provider first, and how far each is. Those that are only on the way back come first of
/// all: how far they are is not known, and none of them is the nearest to the clients.
fn way(result: &RequestResult) -> Vec<(&NodeReport, Option<Distance>)> {
    let is_known = |back: &NodeReport| result.nodes.iter().any(|report| report.node == back.node);
    let back = result.returned.iter().flat_map(|back| &back.nodes).rev();
    let mut way: Vec<_> = back.filter(|report| !is_known(report)).map(|report| (report, None)).collect();
    let mut so_far = Some(Distance::default());
    for (place, report) in result.nodes.iter().enumerate() {
        // The requester's own entry has no hop.
        if report.hop.is_some() || place > 0 {
            so_far = so_far.zip(report.hop.as_ref()).and_then(|(so_far, hop)| further(so_far, hop));
        }
        way.push((report, so_far));
    }
    way
}

fn further(so_far: Distance, hop: &Hop) -> Option<Distance> {
    Some(Distance {
        ip_hops: so_far.ip_hops.saturating_add(hop.ip_hops?.into()),
        rtt_us: so_far.rtt_us.saturating_add(hop.rtt_us?),
    })
}

/// Returns how a module is on a node.
fn own<'a>(
    asked: &'a RequestResult,
    node: &'a str,
    module: &'a ModuleName,
) -> impl Iterator<Item = &'a ModuleStatus> + use<'a> {
    let back = asked.returned.iter().flat_map(|back| &back.nodes);
    // A node on both ways says on the second what it did on the first.
    let reports = asked.nodes.iter().chain(back).filter(move |report| report.node.as_str() == node).take(1);
    reports.flat_map(|report| &report.modules).filter(move |status| status.module.name == *module)
}

/// Returns a number that is higher as soon as anybody was there, also by a connection that was opened long ago, and by an answer that
/// still goes out.
fn activity(packets: u64, server: ServerCounts) -> u64 {
    let ServerCounts { connections, requests, refused: _, failed: _, errors: _, bytes_in, bytes_out } = server;
    [packets, connections, requests, bytes_in, bytes_out].into_iter().fold(0, u64::saturating_add)
}

/// Says in the log that a request fails, and why, without the client's address, which may stand in the cause as well.
pub fn failed(what: &str, to: &Destination, error: &anyhow::Error) -> Answer {
    tracing::warn!(region = to.region, "{what} toward a client fails: {}", to.without_client(&format!("{error:#}")));
    Answer::Failed
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use ed25519_dalek::SigningKey;
    use ed25519_dalek::pkcs8::EncodePrivateKey as _;

    use super::*;

    #[test]
    fn whatever_goes_on_is_activity() {
        let none = ServerCounts::default();
        let still = activity(0, none);
        assert!(activity(1, none) > still);
        for counts in [
            ServerCounts { connections: 1, ..none },
            ServerCounts { requests: 1, ..none },
            ServerCounts { bytes_in: 1, ..none },
            ServerCounts { bytes_out: 1, ..none },
        ] {
            assert!(activity(0, counts) > still, "{counts:?}");
        }
        assert_eq!(activity(u64::MAX, ServerCounts { bytes_out: 1, ..none }), u64::MAX);
    }

    /// Goal: what goes wrong is in the log with the client's region, by the prefix that docs/agent.md names, and not with its address.
    #[test]
    fn the_log_has_no_client() {
        let dir = tempfile::tempdir().unwrap();
        let key = dir.path().join("key.pem");
        let pem = SigningKey::from_bytes(&[7; 32]).to_pkcs8_pem(Default::default()).unwrap();
        std::fs::write(&key, pem.as_bytes()).unwrap();
        let node = NodeClient::new(&dir.path().join("no.sock"), &"voip".parse().unwrap(), &key).unwrap();
        let module = "example.org/sip-edge".parse().unwrap();
        let message = ControlMessage { topic: "overload".parse().unwrap(), seq: 1, body: b"off".to_vec() };
        for (client, region) in [("198.51.100.77", "198.51.100.0/24"), ("2001:db8:1:277::9", "2001:db8:1:200::/56")] {
            let to = &Destination { client: client.parse().unwrap(), region: region.to_owned(), node: None };
            let log = said(async {
                let _ = probe(&node, to).await;
                let _ = crate::relocate::look_around(&node, &Default::default(), to).await;
                let _ = remove(&node, (&module, false), to, None).await;
                tell(&node, (&module, true), &message, (to, Some(&"n1".parse().unwrap())), &[]).await;
                let _ = failed("SETUP", to, &anyhow!("the user does not own `udp src {client}`"));
            });
            assert_eq!(log.lines().count(), 5, "{log}");
            assert!(!log.contains(client) && log.lines().all(|line| line.contains(region)), "{log}");
        }
    }

    /// Returns what is logged meanwhile.
    fn said(what: impl Future<Output = ()>) -> String {
        let log = Log::default();
        let to = log.clone();
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || to.clone()).finish();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        tracing::subscriber::with_default(subscriber, || runtime.block_on(what));
        let bytes = log.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
}
