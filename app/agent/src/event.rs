// SPDX-License-Identifier: Apache-2.0
//! What happens to the agent.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use netserv_api::{AgentReload, AgentRule, AgentStatus};
use netserv_model::{ModuleName, NodeId};
use netserv_placement::{Answer, DeploymentId, RuleId, Ticket};
use tokio::sync::{mpsc, oneshot};

use crate::config::MetricId;
use crate::page_counts::{Counted, Sites};

/// What was read of a metric; the text says why nothing was.
pub type Reading = Result<f64, String>;

/// How many flows there are; the text says why they cannot be listed.
pub type FlowCount = Result<usize, String>;

/// A client was seen so often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    /// For which rule it counts.
    pub rule: RuleId,
    /// Who.
    pub client: IpAddr,
    /// How often.
    pub count: u32,
}

/// What the loop is told.
pub enum Event {
    /// A metric was read.
    Read(MetricId, Reading),
    /// The program behind a metric began, or was there already when the agent began.
    Began(MetricId),
    /// Flows were looked at, told by their name.
    Flows(String, FlowCount),
    /// A rule, by its name, is to stop at once, or to go on; nothing is answered if there is none.
    Switch(String, bool, oneshot::Sender<AgentRule>),
    /// The configuration is to be read again; who asks is told what came of it.
    Reload(Option<oneshot::Sender<Result<AgentReload, String>>>),
    /// A wish was carried out.
    Answered(Ticket, Answer),
    /// A deployment was told something, or could not be.
    Told(DeploymentId, NodeId),
    /// A node tells that it is drained, which has a module.
    Drained(ModuleName, NodeId),
    /// Somebody asks for the nearest node.
    Nearest(RuleId, IpAddr, oneshot::Sender<Option<netserv_placement::Node>>),
    /// Somebody looks at the page.
    Sites(oneshot::Sender<Arc<Sites>>),
    /// Nodes were asked what a deployment's module counts there, and told it if they could.
    Looked(DeploymentId, Option<Counted>),
    /// Somebody asks how things are.
    Status(oneshot::Sender<AgentStatus>),
}

/// The way for observations, which never waits: those that find too many before them are lost, and counted.
#[derive(Clone)]
pub struct Observations {
    sender: mpsc::Sender<Vec<Observation>>,
    lost: Arc<AtomicU64>,
}

impl Observations {
    /// Returns a way that ends at `sender`.
    pub fn new(sender: mpsc::Sender<Vec<Observation>>) -> Observations {
        Observations { sender, lost: Arc::default() }
    }

    /// Tells of a batch; returns whether it goes through.
    pub fn send(&self, batch: Vec<Observation>) -> bool {
        let count = batch.len() as u64;
        let sent = batch.is_empty() || self.sender.try_send(batch).is_ok();
        if !sent {
            self.lost.fetch_add(count, Ordering::Relaxed);
        }
        sent
    }

    /// Returns how many observations were lost.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}
