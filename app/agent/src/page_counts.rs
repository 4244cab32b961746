// SPDX-License-Identifier: Apache-2.0
//! What modules count, as nodes told it last, for the page. Nodes are asked only while somebody looks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use netserv_model::NodeId;
use netserv_placement::DeploymentId;
use serde::Serialize;

use netserv_api::AgentNode;

use crate::limits::{LOOK_EVERY, LOOKS_MAX, SITES_EVERY};

/// `GET /v1/sites` of the page.
#[derive(Debug, Serialize)]
pub struct Sites {
    /// Regions whose clients are counted.
    pub regions: usize,
    /// Observations so far.
    pub observations: u64,
    /// What is deployed, at most [`SITES_MAX`](crate::limits::SITES_MAX).
    pub sites: Vec<Site>,
    /// How many others there are.
    pub more: usize,
}

/// A deployment.
#[derive(Debug, Serialize)]
pub struct Site {
    /// The name of its rule.
    pub rule: String,
    /// `new`, `running`, `ailing` or `leaving`.
    pub health: &'static str,
    /// Seconds since a client was seen.
    pub seen_s: u64,
    /// Regions that share it, some of them.
    pub regions: Vec<String>,
    /// How many others do.
    pub more_regions: usize,
    /// The nodes that have the module, nearest to the provider first.
    pub nodes: Vec<SiteNode>,
}

/// One of its nodes.
#[derive(Debug, Serialize)]
pub struct SiteNode {
    /// Its name, addresses and distance.
    #[serde(flatten)]
    pub node: AgentNode,
    /// What the module counts there, by name.
    pub counters: BTreeMap<String, u64>,
    /// Seconds since `purged` was seen to have grown.
    pub purged_s: Option<u64>,
}

/// What was shown last, for those who look soon after.
#[derive(Debug, Default)]
pub struct Shown(Option<(Instant, Arc<Sites>)>);

impl Shown {
    /// Returns what was shown within the last [`SITES_EVERY`]; nothing if it is to be looked up again.
    pub fn get(&self, now: Instant) -> Option<Arc<Sites>> {
        let (at, sites) = self.0.as_ref()?;
        (now < *at + SITES_EVERY).then(|| Arc::clone(sites))
    }

    /// Keeps what is shown.
    pub fn put(&mut self, now: Instant, sites: Sites) -> Arc<Sites> {
        let sites = Arc::new(sites);
        self.0 = Some((now, Arc::clone(&sites)));
        sites
    }
}

/// What each node of a deployment counts, by the counters' names.
pub type Counted = Vec<(NodeId, BTreeMap<String, u64>)>;

/// What is known of all deployments.
#[derive(Debug, Default)]
pub struct PageCounts {
    known: BTreeMap<DeploymentId, Look>,
}

#[derive(Debug, Default)]
struct Look {
    /// When its nodes were asked last; nothing while they are.
    asked: Option<Instant>,
    nodes: BTreeMap<NodeId, Told>,
}

/// What a node told.
#[derive(Debug, Default)]
pub struct Told {
    /// What the module counts.
    pub counters: BTreeMap<String, u64>,
    /// When `purged` was seen to have grown.
    pub purged: Option<Instant>,
}

impl PageCounts {
    /// Returns whose nodes are to be asked just now, of these that there are, and forgets all others.
    pub fn due(&mut self, now: Instant, there: &BTreeSet<DeploymentId>) -> Vec<DeploymentId> {
        self.known.retain(|id, _| there.contains(id));
        let mut room = LOOKS_MAX.saturating_sub(self.known.values().filter(|look| look.asked.is_none()).count());
        let mut due = Vec::new();
        for id in there {
            let is_due = self.known.get(id).is_none_or(|look| look.asked.is_some_and(|at| now >= at + LOOK_EVERY));
            if is_due && room > 0 {
                room -= 1;
                self.known.entry(*id).or_default().asked = None;
                due.push(*id);
            }
        }
        due
    }

    /// Takes what nodes told; nothing if they did not.
    pub fn told(&mut self, now: Instant, id: DeploymentId, counted: Option<Counted>) {
        // It may be gone.
        let Some(look) = self.known.get_mut(&id) else { return };
        look.asked = Some(now);
        let Some(counted) = counted else { return };
        let mut before = std::mem::take(&mut look.nodes);
        for (node, counters) in counted {
            let purged = |counters: &BTreeMap<String, u64>| counters.get("purged").copied().unwrap_or(0);
            let told = before.remove(&node);
            // What a node tells first may be of long ago.
            let grew = told.as_ref().is_some_and(|told| purged(&counters) > purged(&told.counters));
            let purged = if grew { Some(now) } else { told.and_then(|told| told.purged) };
            look.nodes.insert(node, Told { counters, purged });
        }
    }

    /// Returns what a node told last.
    pub fn get(&self, id: DeploymentId, node: &NodeId) -> Option<&Told> {
        self.known.get(&id)?.nodes.get(node)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn ids(numbers: impl IntoIterator<Item = u64>) -> BTreeSet<DeploymentId> {
        numbers.into_iter().map(DeploymentId).collect()
    }

    fn counted(purged: u64) -> Option<Counted> {
        Some(vec![("n1".parse().unwrap(), BTreeMap::from([("purged".to_owned(), purged)]))])
    }

    #[test]
    fn nodes_are_asked_as_often_as_somebody_looks_and_not_oftener() {
        let (mut looks, begin, there) = (PageCounts::default(), Instant::now(), ids([1, 2]));
        assert_eq!(looks.due(begin, &there), [DeploymentId(1), DeploymentId(2)]);
        assert_eq!(looks.due(begin + 10 * LOOK_EVERY, &there), [], "they are being asked");
        looks.told(begin, DeploymentId(1), counted(0));
        looks.told(begin, DeploymentId(2), None);
        assert_eq!(looks.due(begin + LOOK_EVERY / 2, &there), []);
        assert_eq!(looks.due(begin + LOOK_EVERY, &ids([2])), [DeploymentId(2)]);
        assert!(looks.get(DeploymentId(1), &"n1".parse().unwrap()).is_none(), "it is gone");
        looks.told(begin, DeploymentId(1), counted(0));
        assert!(looks.known.len() == 1, "what is gone does not come back");
    }

    #[test]
    fn so_many_are_asked_at_a_time_and_no_more() {
        let (mut looks, now, there) = (PageCounts::default(), Instant::now(), ids(0..2 * LOOKS_MAX as u64));
        assert_eq!(looks.due(now, &there).len(), LOOKS_MAX);
        assert_eq!(looks.due(now, &there).len(), 0);
        looks.told(now, DeploymentId(0), None);
        assert_eq!(looks.due(now, &there), [DeploymentId(LOOKS_MAX as u64)]);
    }

    /// Who asks for the page again and again does not have all regions looked at each time.
    #[test]
    fn what_is_shown_is_looked_up_now_and_then() {
        let (mut shown, begin, mut looks) = (Shown::default(), Instant::now(), 0);
        for millis in 0..1000 {
            let now = begin + Duration::from_millis(millis);
            if shown.get(now).is_none() {
                looks += 1;
                shown.put(now, Sites { regions: 0, observations: 0, sites: vec![], more: 0 });
            }
        }
        assert_eq!(looks, 2);
    }

    #[test]
    fn a_purge_is_known_by_its_counter() {
        let (mut looks, begin, node) = (PageCounts::default(), Instant::now(), "n1".parse().unwrap());
        let mut purged = |after: u32, count| {
            let now = begin + after * LOOK_EVERY;
            looks.due(now, &ids([1]));
            looks.told(now, DeploymentId(1), counted(count));
            looks.get(DeploymentId(1), &node).unwrap().purged.map(|at| at == now)
        };
        assert_eq!(purged(0, 2), None, "of long ago");
        assert_eq!(purged(1, 3), Some(true));
        assert_eq!(purged(2, 3), Some(false), "it was before");
        // Its module began anew.
        assert_eq!(purged(3, 0), Some(false));
        assert_eq!(purged(4, 1), Some(true));
    }
}
