// SPDX-License-Identifier: Apache-2.0
//! What the placement wishes, carried out beside the loop.

use std::sync::Arc;

use netserv_placement::{Answer, Ticket, Wish};
use tokio::sync::mpsc;

use super::Agent;
use crate::config::{Config, Deploy};
use crate::event::Event;
use crate::node::NodeClient;
use crate::relocate::{New, Old};
use crate::table::Asked;
use crate::{relocate, requests};

impl Agent {
    pub(super) fn carry_out(&self, wish: Wish) {
        let (node, turns, answers) = (Arc::clone(&self.node), Arc::clone(&self.turns), self.answers.clone());
        let (config, removed) = (Arc::clone(&self.config), self.removed(&wish));
        if let Wish::Move { from, moving, .. } = &wish {
            tracing::info!(%from, to = %moving.to, why = moving.why.as_str(), "a module moves");
        }
        tokio::spawn(async move {
            let turn = turns.acquire().await;
            let (ticket, answer) = carried_out(&node, &config, wish, removed).await;
            drop(turn);
            tell(&answers, ticket, answer);
        });
    }

    fn removed(&self, wish: &Wish) -> Option<Asked> {
        match wish {
            Wish::Remove { deployment, .. } => self.modules.get(deployment).cloned(),
            Wish::Probe { .. } | Wish::Look { .. } | Wish::Setup { .. } | Wish::Move { .. } => None,
        }
    }
}

async fn carried_out(node: &NodeClient, config: &Config, wish: Wish, removed: Option<Asked>) -> (Ticket, Answer) {
    match wish {
        Wish::Probe { ticket, rule, client } => {
            let to = config.toward(rule, client);
            let way = match config.get(rule) {
                Some(Deploy { moves: Some(_), needs, .. }) => relocate::best(node, needs, &to).await,
                _ => requests::probe(node, &to).await,
            };
            (ticket, way)
        }
        Wish::Look { ticket, rule: id, client } => {
            let Some(rule) = config.get(id) else { return (ticket, Answer::Failed) };
            (ticket, relocate::look_around(node, &rule.needs, &config.toward(id, client)).await)
        }
        Wish::Setup { ticket, rule: id, client, address, session, edge, epoch, .. } => {
            let Some(rule) = config.get(id) else { return (ticket, Answer::Failed) };
            let to = config.toward(id, client).at(address);
            (ticket, requests::setup(node, rule, &to, session, (edge, epoch)).await)
        }
        Wish::Move { ticket, deployment, rule: id, client, from, from_address, moving } => {
            let Some(rule @ Deploy { moves: Some(_), .. }) = config.get(id) else { return (ticket, Answer::Failed) };
            let old = Old { node: from, to: config.toward(id, client).at(from_address) };
            let new = New { to: config.toward(id, moving.client), moving };
            (ticket, relocate::relocate(node, rule, deployment, old, new).await)
        }
        Wish::Remove { ticket, rule, client, addresses, session, .. } => {
            let Some(Asked { module, both_ways, .. }) = removed else { return (ticket, Answer::Failed) };
            let to = config.toward(rule, client);
            let mut answer = requests::remove(node, (&module, both_ways), &to, session).await;
            for address in addresses {
                let to = to.clone().at(Some(address));
                let beside = requests::remove(node, (&module, false), &to, None).await;
                answer = if answer == Answer::Removed { beside } else { answer };
            }
            (ticket, answer)
        }
    }
}

fn tell(answers: &mpsc::UnboundedSender<Event>, ticket: Ticket, answer: Answer) {
    // An agent that ends wants no answers.
    let _ = answers.send(Event::Answered(ticket, answer));
}
