// SPDX-License-Identifier: Apache-2.0
//! Wishes, carried out: each becomes one or two signed requests, and an answer.

use std::net::IpAddr;
use std::time::Duration;

use anyhow::{Result, anyhow};
use netserv_model::api::RequestResult;
use netserv_model::control::ControlMessage;
use netserv_model::request::{Ask, ModuleStatus, Outcome};
use netserv_model::target::Target;
use netserv_model::{ModuleName, NodeId, SessionId};
use netserv_placement::{Answer, Node};
use netserv_wire::nslp::RequestBuilder;

use crate::config::Deploy;
use crate::node::NodeClient;

/// Asks for the nodes on the way to a client.
pub async fn probe(node: &NodeClient, client: IpAddr) -> Answer {
    match node.send(RequestBuilder::probe(&[]), client, None).await {
        Ok(result) => Answer::Way(result.nodes.into_iter().map(|report| report.node).collect()),
        Err(error) => failed("PROBE", client, &error),
    }
}

/// Installs a rule's module on the way to a client, or renews its lease.
///
/// Floating addresses lead to the node `owner` in its epoch.
pub async fn setup(
    node: &NodeClient,
    rule: &Deploy,
    client: IpAddr,
    session: Option<SessionId>,
    owner: (NodeId, u64),
) -> Answer {
    match installed(node, rule, client, session, owner).await {
        Ok(answer) => answer,
        Err(error) => failed("SETUP", client, &error),
    }
}

/// Removes a module from there.
pub async fn remove(node: &NodeClient, module: &ModuleName, client: IpAddr, session: Option<SessionId>) -> Answer {
    match node.send(RequestBuilder::remove(module), client, session).await {
        Ok(_) => Answer::Removed,
        Err(error) => failed("REMOVE", client, &error),
    }
}

/// Tells a module on the way to a client something.
pub async fn tell(node: &NodeClient, module: &ModuleName, message: &ControlMessage, client: IpAddr) {
    // Another one follows soon.
    match node.send(RequestBuilder::tell(module, message), client, None).await {
        Ok(result) => {
            for report in result.nodes.iter().filter(|report| matches!(report.outcome, Outcome::Refused(_))) {
                tracing::warn!(%client, node = %report.node, "TELL: {}", report.outcome);
            }
        }
        Err(error) => tracing::warn!(%client, "TELL toward a client fails: {error:#}"),
    }
}

async fn installed(
    node: &NodeClient,
    rule: &Deploy,
    client: IpAddr,
    session: Option<SessionId>,
    (edge, epoch): (NodeId, u64),
) -> Result<Answer> {
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
    if !rule.floating.is_empty() {
        let target = Target { nodes: vec![edge], ..Target::default() };
        request = request.epoch(epoch).floating(&rule.floating).target(&target);
    }
    let result = node.send(request, client, session).await?;
    let runs = |outcome: &Outcome| outcome.lease_s().is_some();
    if !result.nodes.iter().any(|report| runs(&report.outcome)) {
        let why = result.nodes.iter().map(|report| format!("{}: {}", report.node, report.outcome));
        let why = why.chain(result.incomplete.iter().map(ToString::to_string)).collect::<Vec<_>>().join("; ");
        return Err(anyhow!("no node has the module: {why}"));
    }
    // Where it takes connections is known once it runs.
    let asked = node.send(RequestBuilder::probe(&[Ask::Modules]), client, None).await.ok();
    let nodes = result.nodes.iter().filter(|report| runs(&report.outcome));
    let nodes = nodes.map(|report| {
        let own = || asked.iter().flat_map(|asked| own(asked, report.node.as_str(), &rule.module.name));
        Node {
            name: report.node.clone(),
            addresses: own().flat_map(|status| status.addresses.clone()).collect(),
            activity: own().map(activity).sum(),
        }
    });
    Ok(Answer::Done { session: result.session, nodes: nodes.collect() })
}

/// Returns how a module is on a node.
fn own<'a>(
    asked: &'a RequestResult,
    node: &'a str,
    module: &'a ModuleName,
) -> impl Iterator<Item = &'a ModuleStatus> + use<'a> {
    let reports = asked.nodes.iter().filter(move |report| report.node.as_str() == node);
    reports.flat_map(|report| &report.modules).filter(move |status| status.module.name == *module)
}

fn activity(status: &ModuleStatus) -> u64 {
    status.packets.seen + status.server.map_or(0, |server| server.connections + server.requests)
}

fn failed(what: &str, client: IpAddr, error: &anyhow::Error) -> Answer {
    tracing::warn!(%client, "{what} toward a client fails: {error:#}");
    Answer::Failed
}
