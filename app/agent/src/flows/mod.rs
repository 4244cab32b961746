// SPDX-License-Identifier: Apache-2.0
//! Flows of programs of this machine, which know nothing of the agent: each new one is an observation of its other end.

mod diag;
mod tracker;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Instant;

use anyhow::{Context, Result};
use netserv_placement::RuleId;
use tokio::sync::{mpsc, watch};

use self::diag::{Closed, Flow};
use self::tracker::Tracker;
use crate::config::{FlowPort, FlowProtocol, Flows};
use crate::event::{Event, Observation, Observations};
use crate::limits::{BATCH_MAX, FLOWS_KNOWN_MAX};

/// Looks at flows for ever, and tells of them for some rules, which may be others later: new ones are told of all that are there.
pub async fn follow(
    flows: Flows,
    rules: watch::Receiver<Vec<RuleId>>,
    events: mpsc::Sender<Event>,
    observations: Observations,
) {
    let Some(port) = flows.port() else { return };
    let (mut tracker, mut told) = (Tracker::default(), rules.borrow().clone());
    let mut closed = Closed::listen(flows.protocol).ok();
    loop {
        let begun = Instant::now();
        let count = match list(flows.protocol, port).await {
            Ok((there, is_whole)) => {
                let now = rules.borrow().clone();
                let (new, before) = now.iter().copied().partition::<Vec<_>, _>(|rule| !told.contains(rule));
                tell(&observations, &tracker.note(begun, &there, is_whole), &before);
                tell(&observations, &tracker.clients(), &new);
                told = now;
                if is_whole { Ok(tracker.len()) } else { Err(format!("more than {FLOWS_KNOWN_MAX} flows")) }
            }
            Err(error) => Err(format!("{error:#}")),
        };
        if events.send(Event::Flows(flows.name.clone(), count)).await.is_err() {
            return;
        }
        let until = tokio::time::Instant::from_std(begun + flows.every());
        // Those that come and go between two looks.
        while let Ok(over) = tokio::time::timeout_at(until, hear(&mut closed, port)).await {
            let mut clients = BTreeMap::new();
            for client in over.iter().filter_map(|flow| tracker.closed(Instant::now(), flow)) {
                *clients.entry(client).or_default() += 1;
            }
            tell(&observations, &clients, &told);
        }
    }
}

/// Waits for flows that are over; for ever if the kernel does not tell.
async fn hear(closed: &mut Option<Closed>, port: FlowPort) -> Vec<Flow> {
    if let Some(listener) = closed {
        match listener.next(port).await {
            Ok(flows) => return flows,
            Err(error) => tracing::warn!("the kernel does not tell of closed sockets any more: {error}"),
        }
    }
    *closed = None;
    std::future::pending().await
}

/// Returns the flows, and whether they are all.
async fn list(protocol: FlowProtocol, port: FlowPort) -> Result<(Vec<Flow>, bool)> {
    let listed = tokio::task::spawn_blocking(move || diag::list(protocol, port, FLOWS_KNOWN_MAX)).await?;
    let (flows, is_cut) = listed.context("the kernel does not list sockets")?;
    Ok((flows, !is_cut))
}

/// Tells rules of clients.
fn tell(observations: &Observations, clients: &BTreeMap<IpAddr, u32>, rules: &[RuleId]) {
    let of = |(client, count): (&IpAddr, &u32)| {
        let (client, count) = (*client, *count);
        rules.iter().map(move |rule| Observation { rule: *rule, client, count })
    };
    let all: Vec<Observation> = clients.iter().flat_map(of).collect();
    for batch in all.chunks(BATCH_MAX) {
        observations.send(batch.to_vec());
    }
}
