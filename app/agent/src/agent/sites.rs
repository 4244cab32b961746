// SPDX-License-Identifier: Apache-2.0
//! What the page shows.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use netserv_placement::{Deployment, DeploymentId};

use super::Agent;
use super::status::{health, shown};
use crate::event::Event;
use crate::limits::{SITE_REGIONS_MAX, SITES_MAX};
use crate::page_counts::{Site, SiteNode, Sites};
use crate::requests;

impl Agent {
    /// Returns where modules are and what they counted last, and has nodes asked anew.
    pub(super) fn sites(&mut self) -> Arc<Sites> {
        let now = Instant::now();
        if let Some(shown) = self.shown.get(now) {
            return shown;
        }
        let there: BTreeSet<DeploymentId> = self.placement.deployments().map(|(id, _)| id).take(SITES_MAX).collect();
        for id in self.page_counts.due(now, &there) {
            self.look_at(id);
        }
        let regions = self.placement.regions_of(&there, SITE_REGIONS_MAX);
        let site = |(id, deployment): (DeploymentId, &Deployment)| {
            let (some, all) = regions.get(&id).cloned().unwrap_or_default();
            Site {
                rule: self.name(deployment.rule).to_owned(),
                health: health(deployment.health),
                seen_s: self.now().since(deployment.seen).as_secs(),
                more_regions: all - some.len(),
                regions: some.iter().map(ToString::to_string).collect(),
                nodes: deployment.nodes.iter().map(|node| self.site_node(id, node)).collect(),
            }
        };
        let sites = Sites {
            regions: self.placement.regions(),
            observations: self.placement.counters().observations,
            sites: self.placement.deployments().take(SITES_MAX).map(site).collect(),
            more: self.placement.deployment_count().saturating_sub(SITES_MAX),
        };
        self.shown.put(now, sites)
    }

    fn site_node(&self, id: DeploymentId, node: &netserv_placement::Node) -> SiteNode {
        let told = self.page_counts.get(id, &node.name);
        SiteNode {
            node: shown(node),
            counters: told.map(|told| told.counters.clone()).unwrap_or_default(),
            purged_s: told.and_then(|told| told.purged).map(|at| at.elapsed().as_secs()),
        }
    }

    /// Asks a deployment's nodes what the module counts there.
    fn look_at(&self, id: DeploymentId) {
        let client = self.placement.deployment(id).map(Deployment::reached_by);
        let asked = self.modules.get(&id).cloned();
        let (node, turns, answers) = (Arc::clone(&self.node), Arc::clone(&self.turns), self.answers.clone());
        tokio::spawn(async move {
            let counted = match client.zip(asked) {
                Some((client, asked)) => {
                    let turn = turns.acquire().await;
                    let counted = requests::look(&node, (&asked.module, asked.both_ways), client).await;
                    drop(turn);
                    counted
                }
                None => None,
            };
            // An agent that ends wants no answers.
            let _ = answers.send(Event::Looked(id, counted));
        });
    }
}
