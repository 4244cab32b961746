// SPDX-License-Identifier: Apache-2.0
//! The operator's domain: who is inside of it, which requests are taken from outside and let out, and what outsiders learn.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::request::{Ask, Body, NodeReport, Outcome, PathEnd, Probe, Withheld};
use crate::{DomainName, Refusal, RefusalKind, UserId};

/// What a domain's operator wants at its border. The default is no domain: everybody is inside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DomainPolicy {
    /// What it is called.
    pub name: Option<DomainName>,
    /// Who is inside and who is not.
    pub neighbours: Neighbours,
    /// Whose requests are taken from outside.
    pub take: Methods,
    /// What becomes of the others.
    pub refused: Refused,
    /// Whose requests are let out.
    pub let_out: Methods,
    /// What of the response stack outsiders see.
    pub show: Show,
    /// What strangers outside learn.
    pub strangers: Strangers,
}

/// Who is inside and who is not, by the first that fits; who fits none is outside. Empty means that all are inside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Neighbours(pub Vec<Neighbour>);

impl Neighbours {
    /// Returns on which side a peer is; `tls_name` is one that TLS has shown to be its own.
    #[must_use]
    pub fn side(&self, address: IpAddr, tls_name: Option<&str>) -> Side {
        let first = self.0.iter().find(|neighbour| neighbour.fits(address.to_canonical(), tls_name));
        match first {
            Some(neighbour) => neighbour.side,
            None if self.0.is_empty() => Side::Inside,
            None => Side::Outside,
        }
    }
}

/// Some of the nodes next to this one; all conditions that are there have to hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Neighbour {
    /// Where they are.
    pub side: Side,
    /// In one of these networks the peer's address lies; nothing means anywhere.
    pub prefixes: Option<Vec<IpNet>>,
    /// The name in the peer's certificate, which TLS has shown to be its own: `n1.example.net`, or `*.example.net` for one
    /// label more. In lower case.
    pub tls_name: Option<String>,
}

impl Neighbour {
    fn fits(&self, address: IpAddr, tls_name: Option<&str>) -> bool {
        let lies = |prefixes: &Vec<IpNet>| prefixes.iter().any(|prefix| prefix.contains(&address));
        let named = |listed: &String| tls_name.is_some_and(|shown| stands_for(listed, shown));
        self.prefixes.as_ref().is_none_or(lies) && self.tls_name.as_ref().is_none_or(named)
    }
}

/// Returns whether a DNS name in lower case, whose first label may be `*`, stands for another of any case. `*` stands for one
/// label that is not empty and no `*` itself: a certificate with `*` is no single node's.
#[must_use]
pub fn stands_for(listed: &str, shown: &str) -> bool {
    let shown = shown.to_ascii_lowercase();
    let parent =
        shown.split_once('.').filter(|(label, _)| !label.is_empty() && *label != "*").map(|(_, parent)| parent);
    listed == shown || listed.strip_prefix("*.").is_some_and(|rest| Some(rest) == parent)
}

/// On which side of the domain's border somebody is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// In the domain, or on this machine.
    #[default]
    Inside,
    /// Beyond the border.
    Outside,
}

/// Whose requests, by what they ask.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Methods {
    /// Those to install modules, to tell them something, and to have their state.
    pub setup: Users,
    /// Those to remove modules.
    pub remove: Users,
    /// Those that ask about nodes.
    pub probe: Users,
}

impl Methods {
    /// Returns whether a request is one of them; its user is the one that it names, proven or not.
    #[must_use]
    pub fn have(&self, body: &Body, user: Option<&UserId>) -> bool {
        let users = match body {
            Body::Setup(_) | Body::Tell(_) | Body::Export(_) => &self.setup,
            Body::Remove(_) => &self.remove,
            Body::Probe(_) => &self.probe,
        };
        match users {
            Users::All => true,
            Users::Only(users) => user.is_some_and(|user| users.contains(user)),
        }
    }
}

/// Some users.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Users {
    /// Everybody, also who says no name.
    #[default]
    All,
    /// These.
    Only(BTreeSet<UserId>),
}

/// What becomes of a request from outside that is not taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Refused {
    /// This node refuses it, and it goes no further.
    #[default]
    Stop,
    /// This node refuses it, and it goes on: the nodes after this one are told that it comes from outside.
    Pass,
}

/// What of the response stack goes out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Show {
    /// Each node's entry.
    #[default]
    All,
    /// This node's own entry; of the domain's others, how many there are and how many refused.
    Border,
    /// How many nodes there are and how many refused.
    Count,
}

/// What a PROBE of a stranger outside leads to, by what it asks; other requests ask which nodes there are. A stranger is who does
/// not prove to be a user of the node's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Strangers {
    /// To the question which nodes there are, and what is known of the ways between them.
    pub nodes: Learns,
    /// To that for the user's modules, of which a stranger has none.
    pub modules: Learns,
    /// To that for building blocks and flavours.
    pub blocks: Learns,
    /// To that for the load.
    pub load: Learns,
    /// To that for what is granted, of which a stranger has nothing.
    pub policy: Learns,
}

impl Strangers {
    fn of(&self, ask: Ask) -> Learns {
        match ask {
            Ask::Nodes => self.nodes,
            Ask::Modules => self.modules,
            Ask::Blocks => self.blocks,
            Ask::Load => self.load,
            Ask::Policy => self.policy,
        }
    }

    /// Returns whether a stranger is told that a node is there.
    fn learn_presence(&self, probe: &Probe) -> bool {
        let asked = if probe.ask.is_empty() { &[Ask::Nodes][..] } else { &probe.ask };
        asked.iter().any(|ask| self.of(*ask) != Learns::Nothing)
    }

    /// Returns whether a stranger is told of the ways between nodes, which belongs to the question which there are.
    fn learn_hops(&self, probe: &Probe) -> bool {
        self.nodes == Learns::All && (probe.ask.is_empty() || probe.ask.contains(&Ask::Nodes))
    }

    /// Returns what a node's entry tells a stranger; nothing if not even that the node is there.
    fn entry(&self, probe: &Probe, mut report: NodeReport) -> Option<NodeReport> {
        if !self.learn_presence(probe) {
            return None;
        }
        let asked: BTreeSet<Ask> = probe.ask.iter().copied().collect();
        let told = |ask: Ask| asked.contains(&ask) && self.of(ask) == Learns::All;
        if !told(Ask::Load) {
            report.load = None;
        }
        if !told(Ask::Modules) {
            report.modules.clear();
        }
        if !told(Ask::Blocks) {
            (report.blocks, report.environments) = (Vec::new(), Vec::new());
        }
        if !told(Ask::Policy) {
            report.policy = None;
        }
        Some(report)
    }
}

/// How much a question brings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Learns {
    /// Not the node's name or address: it is counted among the withheld.
    Nothing,
    /// That the node is there, with its name and address.
    Presence,
    /// All that was asked.
    #[default]
    All,
}

/// The nodes' part of an answer: what goes to whoever asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stack {
    /// One entry per node, nearest first.
    pub entries: Vec<NodeReport>,
    /// How many of them, at the far end, are of nodes outside.
    pub foreign: usize,
    /// The nodes that have no entry, since a domain's operator does not show it.
    pub withheld: Withheld,
    /// Why the entries end before the last node, if they do.
    pub incomplete: Option<Refusal>,
    /// What proves that they do not.
    pub end: Option<PathEnd>,
}

impl DomainPolicy {
    /// Returns why a request from outside is not taken, if it is not.
    #[must_use]
    pub fn why_not_taken(&self, body: &Body, user: Option<&UserId>) -> Option<Refusal> {
        let is_taken = self.take.have(body, user);
        (!is_taken).then(|| {
            let who = user.map_or_else(|| "of nobody".to_owned(), |user| format!("of `{user}`"));
            let detail = format!("a {} {who} is not taken from outside of the domain", body.verb());
            Refusal::new(RefusalKind::OutsideDomain, detail)
        })
    }

    /// Returns what somebody outside gets to see of an answer. `own` says that this node's entry is the first one;
    /// `stranger` is what a stranger asked, if it is one who asked.
    #[must_use]
    pub fn shown_outside(&self, stack: Stack, own: bool, stranger: Option<&Probe>) -> Stack {
        let Stack { entries, foreign, mut withheld, incomplete, end } = stack;
        let inside = entries.len().saturating_sub(foreign);
        // The reasons name nodes.
        let mut hides = stranger.is_some_and(|probe| !self.strangers.learn_presence(probe));
        let mut shown = Vec::new();
        let tells_hops = stranger.is_none_or(|probe| self.strangers.learn_hops(probe));
        // A hop is what the node before it says, and of entry 0, what whoever gets the answer sees itself.
        let mut tells_hop = false;
        for (at, mut entry) in entries.into_iter().enumerate() {
            if at <= inside && !tells_hop {
                entry.hop = None;
            }
            let is_shown = match self.show {
                Show::All => true,
                Show::Border => own && at == 0,
                Show::Count => false,
            };
            let outcome = entry.outcome.clone();
            let entry = if at >= inside {
                Some(entry)
            } else {
                let told = |entry| match stranger {
                    Some(probe) => self.strangers.entry(probe, entry),
                    None => Some(entry),
                };
                Some(entry).filter(|_| is_shown).and_then(told)
            };
            hides |= entry.is_none();
            tells_hop = entry.is_some() && tells_hops;
            match entry {
                Some(entry) => shown.push(entry),
                None => withheld.add(&outcome),
            }
        }
        // Its text may name nodes that are not shown.
        hides |= self.show != Show::All;
        let incomplete = incomplete.map(|refusal| {
            let detail = "the operator of a domain on the path does not show where and why";
            if hides { Refusal::new(refusal.kind, detail) } else { refusal }
        });
        Stack { entries: shown, foreign: 0, withheld, incomplete, end }
    }

    /// Returns whether outsiders are told the names of nodes in news of them.
    #[must_use]
    pub fn names_nodes(&self) -> bool {
        self.show == Show::All
    }

    /// Returns whether outsiders are told of nodes beside the path; `stranger` as in [`DomainPolicy::shown_outside`].
    #[must_use]
    pub fn names_nodes_beside(&self, stranger: Option<&Probe>) -> bool {
        self.names_nodes() && stranger.is_none_or(|probe| self.strangers.learn_presence(probe))
    }
}

/// Returns what a stranger asked, if whoever sent this request is not proven by this node's own outcome to be its user. What is no
/// PROBE asks which nodes there are: all of them answer.
#[must_use]
pub fn stranger(body: &Body, is_signed: bool, own: Option<&Outcome>) -> Option<Probe> {
    let (asks, is_proven) = if let Body::Probe(probe) = body {
        (probe.clone(), is_signed && own.is_some_and(Outcome::is_ok))
    } else {
        (Probe::default(), own.is_some_and(|own| proves(is_signed, own)))
    };
    (!is_proven).then_some(asks)
}

/// Returns whether a controller that says this has checked the user's signature, or does without. An old request that comes anew
/// may come from anybody who saw it.
fn proves(is_signed: bool, own: &Outcome) -> bool {
    let unproven = [
        RefusalKind::BadRequest,
        RefusalKind::Unsigned,
        RefusalKind::UnknownUser,
        RefusalKind::BadProof,
        RefusalKind::BadSignature,
        RefusalKind::StaleRequest,
        RefusalKind::Replayed,
        RefusalKind::NotANode,
        RefusalKind::OutsideDomain,
        RefusalKind::Timeout,
        RefusalKind::InProgress,
    ];
    let is_unproven = matches!(own, Outcome::Refused(refusal) if unproven.contains(&refusal.kind));
    (own.is_ok() && !own.is_not_targeted()) || (is_signed && !is_unproven)
}

#[cfg(test)]
mod tests;
