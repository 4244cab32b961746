// SPDX-License-Identifier: Apache-2.0
//! Modules that move by rule: nodes are asked how they are, and the steps of a relocation carried out.

use std::time::{Duration, SystemTime};

use anyhow::Result;
use netserv_model::NodeId;
use netserv_placement::candidates::{ASKED, Needs, rank};
use netserv_placement::relocation::{Owner, Plan, Relocation, Step, Stopped};
use netserv_placement::{Answer, DeploymentId, MoveEnd, Moving};
use netserv_wire::nslp::RequestBuilder;

use crate::config::Deploy;
use crate::destination::Destination;
use crate::node::NodeClient;
use crate::requests::{failed, request};

/// The node that has a module.
pub struct Old {
    /// Its name.
    pub node: NodeId,
    /// For whom it has it, and its address, if that is known.
    pub to: Destination,
}

/// The node that is to have it.
pub struct New {
    /// The client on whose way it is.
    pub to: Destination,
    /// What is to be done.
    pub moving: Moving,
}

/// Asks for the node on the way to a client that a module which moves is to be on first: the best one.
pub async fn best(node: &NodeClient, needs: &Needs, to: &Destination) -> Answer {
    let Answer::Around(candidates) = look_around(node, needs, to).await else { return Answer::Failed };
    let able = candidates.into_iter().find(|one| one.score.is_some());
    Answer::Way(able.into_iter().map(|one| one.node).collect())
}

/// Asks the nodes on the way to a client how they are, and weighs that by what the module needs.
pub async fn look_around(node: &NodeClient, needs: &Needs, to: &Destination) -> Answer {
    match node.send(RequestBuilder::probe(&ASKED), to.address(), None).await {
        Ok(result) => Answer::Around(rank(needs, &result)),
        Err(error) => failed("PROBE", to, &error),
    }
}

/// Moves a rule's module with its state from one node to another, or goes on with that.
pub async fn relocate(node: &NodeClient, rule: &Deploy, id: DeploymentId, old: Old, new: New) -> Answer {
    match setups(rule, &old, &new) {
        Ok(setups) => Answer::Move(moved(node, plan(rule, id, &old, &new), setups, &old, &new).await),
        Err(error) => failed("SETUP", &new.to, &error),
    }
}

/// Returns the SETUPs for the old node and for the new one, each for the client that it is for there.
fn setups(rule: &Deploy, old: &Old, new: &New) -> Result<[RequestBuilder; 2]> {
    let setup = |client| request(rule, client).map(|setup| setup.floating(&rule.floating));
    Ok([setup(old.to.client)?, setup(new.to.client)?])
}

fn plan(rule: &Deploy, id: DeploymentId, old: &Old, New { moving, .. }: &New) -> Plan {
    let moves = rule.moves.as_ref();
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let url = |base: &str| format!("{}/{}-{}-{}", base.trim_end_matches('/'), id.0, since_epoch.as_millis(), moving.to);
    let store = moves.map(|moves| moves.store.as_str()).unwrap_or_default();
    Plan {
        module: rule.module.name.clone(),
        old: old.node.clone(),
        new: moving.to.clone(),
        store: url(store),
        fetch: url(moves.and_then(|moves| moves.fetch.as_deref()).unwrap_or(store)),
        freeze: moves.map(|moves| Duration::from_secs(moves.freeze_s)).unwrap_or_default(),
    }
}

async fn moved(
    node: &NodeClient,
    plan: Plan,
    [old_setup, new_setup]: [RequestBuilder; 2],
    old: &Old,
    new: &New,
) -> MoveEnd {
    let (mut relocation, mut renewed) = (Relocation::new(plan), false);
    let (from, to) = (&old.node, &new.moving.to);
    loop {
        let step = match relocation.next() {
            Ok(step) => step,
            Err(Ok(moved)) => {
                tracing::info!(%from, %to, epoch = moved.epoch, "a module moved");
                return MoveEnd::Moved { epoch: moved.epoch };
            }
            Err(Err(Stopped { cause, owner, .. })) => {
                let cause = old.to.without_client(&new.to.without_client(&cause));
                tracing::warn!(%from, %to, ?owner, "a move stops: {cause}");
                return match owner {
                    Owner::Old => MoveEnd::Stays,
                    Owner::None => MoveEnd::Gone,
                    // Nothing was sent that could have moved it.
                    Owner::Unknown if !new.moving.tried && !renewed => MoveEnd::Stays,
                    Owner::New(_) | Owner::Unknown => MoveEnd::Unknown { renewed },
                };
            }
        };
        renewed |= brings_lease(step);
        // The way to the new node leads by the old one, if that is on it, which sees by it that the module is handed over.
        let (setup, at) = if relocation.node(step) == from { (&old_setup, &old.to) } else { (&new_setup, &new.to) };
        let sent = node.send(relocation.request(step, || setup.clone()), at.address(), None).await;
        relocation.answered(sent.as_ref().map_err(|error| format!("{error:#}")));
    }
}

fn brings_lease(step: Step) -> bool {
    match step {
        Step::GoOn(_) | Step::Begin(..) | Step::CallOff(_) => true,
        Step::AskOld
        | Step::AskNew
        | Step::Try(_)
        | Step::Buffer(..)
        | Step::Export
        | Step::Check
        | Step::Release(_) => false,
    }
}
