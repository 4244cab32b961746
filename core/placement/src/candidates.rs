// SPDX-License-Identifier: Apache-2.0
//! Which nodes suit a module, and why: by what its manifest needs, and by what nodes say of themselves in answer to a PROBE.
//!
//! A node that cannot have it is not scored, and says why not. The others lose points for what they have little of: the one with
//! the most is the best.

use std::cmp::Reverse;
use std::net::IpAddr;

use netserv_model::api::RequestResult;
use netserv_model::manifest::{Amounts, Manifest};
use netserv_model::request::{Ask, Dependency, NodeLoad, NodeReport, Outcome};
use netserv_model::{Flavour, NodeId};
use serde::Serialize;

/// What to ask nodes for it.
pub const ASKED: [Ask; 4] = [Ask::Nodes, Ask::Blocks, Ask::Load, Ask::Policy];
/// Points of a node that lacks nothing.
pub const POINTS_MAX: i32 = 1000;
/// Points that a node loses whose processors are all taken.
pub const LOAD_POINTS: i32 = 400;
/// Points that a node loses at most that has little memory free.
pub const MEMORY_POINTS: i32 = 200;
/// A node with so many times the memory free that a module needs loses none.
pub const MEMORY_TIMES: u64 = 16;
/// Points that a node loses for each millisecond to the last node of the path,
pub const DELAY_POINTS_PER_MS: i32 = 5;
/// and at most.
pub const DELAY_POINTS_MAX: i32 = 300;
/// Points that a node loses for each time more that it costs than the cheapest one which can have the module,
pub const PRICE_POINTS: i32 = 100;
/// and at most.
pub const PRICE_POINTS_MAX: i32 = 300;
/// Points that a node loses for each hop beside the path.
pub const BESIDE_POINTS_PER_HOP: i32 = 100;

/// What a module needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The flavours that its package has, of which a node runs one; empty if that is not known.
    pub flavours: Vec<Flavour>,
    /// The building blocks.
    pub blocks: Vec<Dependency>,
    /// What it cannot do with less of.
    pub amounts: Amounts,
    /// The memory that it may use, in bytes.
    pub memory_bytes: u64,
    /// What of it sees packets or connections between others, if anything: that is only so on the path.
    pub on_path: Option<&'static str>,
    /// Whether it takes connections.
    pub listens: bool,
}

impl Needs {
    /// Returns what a package needs, with the flavours that it has.
    pub fn of(manifest: &Manifest, flavours: &[Flavour]) -> Needs {
        let on_path = match (&manifest.packet, manifest.intercept()) {
            (Some(_), _) => Some("its packet part"),
            (None, []) => None,
            (None, _) => Some("what it intercepts"),
        };
        Needs {
            // A service runs where its parts do.
            flavours: if manifest.service.is_some() { Vec::new() } else { flavours.to_vec() },
            blocks: manifest.dependencies.clone(),
            amounts: manifest.needs.clone(),
            memory_bytes: manifest.limits.memory_bytes,
            on_path,
            listens: !manifest.listen().is_empty(),
        }
    }
}

/// Where a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "where")]
pub enum Place {
    /// On the path.
    Path {
        /// Its place, 1 for the nearest to the requester.
        hop: usize,
        /// The round trips from here to the last node, together, in microseconds; nothing if one is not known.
        #[serde(skip_serializing_if = "Option::is_none")]
        behind_us: Option<u64>,
    },
    /// Beside it.
    Beside {
        /// So many GIST hops.
        hops: u8,
    },
}

/// One reason of a score.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// The points that it costs.
    pub points: i32,
    /// What costs them.
    pub why: String,
}

/// A node that may be asked to have the module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Candidate {
    /// Its name.
    pub node: NodeId,
    /// Its address, as the node before it knows it.
    pub address: IpAddr,
    /// Where it is.
    #[serde(flatten)]
    pub place: Place,
    /// Its points; nothing if it cannot have the module.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<i32>,
    /// What the points are lost for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
    /// Why it cannot have the module.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub against: Vec<String>,
    /// What each hour of a module costs there, in a unit that the user knows; nothing if its operator does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price_per_hour: Option<u64>,
    /// Its load average for each processor, in thousandths; nothing if it does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_permille: Option<u32>,
    /// Whether its operator drains it.
    pub maintenance: bool,
}

/// Returns all nodes that answered, the best first; of equal ones those nearer to the last node of the path.
pub fn rank(needs: &Needs, result: &RequestResult) -> Vec<Candidate> {
    let nodes = &result.nodes;
    let behind = |index: usize| {
        let hops = nodes.get(index + 1..).unwrap_or_default();
        hops.iter().try_fold(0_u64, |sum, report| Some(sum.saturating_add(report.hop.as_ref()?.rtt_us?)))
    };
    let path = nodes
        .iter()
        .enumerate()
        .map(|(index, report)| assess(needs, report, Place::Path { hop: index + 1, behind_us: behind(index) }));
    let beside = result.beside.nodes.iter().map(|one| assess(needs, &one.report, Place::Beside { hops: one.hops }));
    // A node on the path that is asked by a neighbour, too, is where it is.
    let is_on_path = |candidate: &Candidate| nodes.iter().any(|report| report.node == candidate.node);
    let mut all: Vec<Candidate> = path.chain(beside.filter(|candidate| !is_on_path(candidate))).collect();
    weigh_prices(&mut all);
    let nearness = |place: Place| match place {
        Place::Path { hop, .. } => (0, Reverse(hop)),
        Place::Beside { hops } => (hops, Reverse(0)),
    };
    all.sort_by_key(|candidate| (Reverse(candidate.score), nearness(candidate.place)));
    all
}

/// Takes points from nodes that cost more than the cheapest one which can have the module. Those that do not say cost nothing that is known.
fn weigh_prices(all: &mut [Candidate]) {
    let able = all.iter().filter(|one| one.score.is_some());
    let Some(least) = able.filter_map(|one| one.price_per_hour).min() else { return };
    for one in all {
        let (Some(score), Some(price)) = (one.score, one.price_per_hour) else { continue };
        let more = price.saturating_sub(least).saturating_mul(PRICE_POINTS.unsigned_abs().into()) / least.max(1);
        let points = small(more).min(PRICE_POINTS_MAX);
        if points > 0 {
            one.score = Some(score - points);
            one.reasons.push(Reason { points, why: format!("an hour costs {price}, elsewhere {least}") });
        }
    }
}

/// Returns how a node suits a module, whatever others cost.
pub fn assess(needs: &Needs, report: &NodeReport, place: Place) -> Candidate {
    let load = report.load.unwrap_or_default();
    let load_permille = load_of(&load);
    let against = against(needs, report, place);
    let mut reasons = Vec::new();
    let mut cost = |points: i32, why: String| {
        if points > 0 {
            reasons.push(Reason { points, why });
        }
    };
    if let Some(permille) = load_permille {
        let why = format!("load {}.{:02} for each processor", permille / 1000, permille % 1000 / 10);
        cost(LOAD_POINTS * small(permille.min(1000).into()) / 1000, why);
    }
    let (free, needed) = (load.memory_free_kib.saturating_mul(1024), needs.memory_bytes);
    let enough = needed.saturating_mul(MEMORY_TIMES).max(1);
    let short = small(enough.saturating_sub(free).saturating_mul(1000) / enough);
    cost(MEMORY_POINTS * short / 1000, format!("{} MiB free, it may use {} MiB", free >> 20, needed >> 20));
    match place {
        Place::Path { behind_us: Some(us), .. } => {
            let points = small(us / 1000).saturating_mul(DELAY_POINTS_PER_MS).min(DELAY_POINTS_MAX);
            cost(points, format!("{} ms to the last node of the path", us / 1000));
        }
        Place::Path { behind_us: None, .. } => {
            cost(DELAY_POINTS_MAX, "how far the last node of the path is, is not known".to_owned());
        }
        Place::Beside { hops } => {
            cost(i32::from(hops).saturating_mul(BESIDE_POINTS_PER_HOP), format!("{hops} hops beside the path"));
        }
    }
    let lost: i32 = reasons.iter().map(|reason| reason.points).sum();
    Candidate {
        node: report.node.clone(),
        address: report.address,
        place,
        score: against.is_empty().then(|| POINTS_MAX - lost),
        reasons: if against.is_empty() { reasons } else { Vec::new() },
        against,
        price_per_hour: report.policy.as_ref().and_then(|policy| policy.price_per_hour),
        load_permille,
        maintenance: load.maintenance,
    }
}

/// Returns why a node cannot have the module.
fn against(needs: &Needs, report: &NodeReport, place: Place) -> Vec<String> {
    if let Outcome::Refused(refusal) = &report.outcome {
        return vec![format!("refuses: {refusal}")];
    }
    let mut against = Vec::new();
    if report.environments.is_empty() {
        against.push("it runs no modules".to_owned());
        return against;
    }
    if report.load.is_some_and(|load| load.maintenance) {
        against.push("its operator drains it".to_owned());
    }
    if let (Place::Beside { .. }, Some(part)) = (place, needs.on_path) {
        against.push(format!("{part} sees nothing of the path from there"));
    }
    let runs = |flavour: &Flavour| report.environments.iter().any(|one| one.flavour == *flavour);
    if !needs.flavours.is_empty() && !needs.flavours.iter().any(runs) {
        let flavours = needs.flavours.iter().map(|flavour| flavour.as_str()).collect::<Vec<_>>().join(", ");
        against.push(format!("it runs none of the package's flavours: {flavours}"));
    }
    for wanted in &needs.blocks {
        match report.blocks.iter().find(|block| block.block == wanted.block) {
            None => against.push(format!("it has not {wanted}")),
            Some(has) if has.version_min < wanted.version_min => {
                against.push(format!("it has version {} of {wanted}", has.version_min));
            }
            Some(_) => {}
        }
    }
    let Some(policy) = &report.policy else {
        against.push("it does not know the user".to_owned());
        return against;
    };
    for (resource, amount) in &needs.amounts {
        let most = policy.ceilings.get(resource.as_str()).copied().unwrap_or(0);
        if most < *amount {
            against.push(format!("it grants {most} of {resource}, {amount} are needed"));
        }
    }
    if needs.listens && policy.listen.is_empty() {
        against.push("it lets the user take no connections".to_owned());
    }
    let free = report.load.map(|load| load.memory_free_kib.saturating_mul(1024));
    if let Some(free) = free.filter(|free| *free < needs.memory_bytes) {
        against.push(format!("{} MiB are free, it may use {} MiB", free >> 20, needs.memory_bytes >> 20));
    }
    against
}

/// Returns a load average for each processor, in thousandths; nothing if the node does not say how many it has.
pub fn load_of(load: &NodeLoad) -> Option<u32> {
    load.load_permille.checked_div(load.processors)
}

fn small(number: u64) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use netserv_model::manifest::Resource;
    use netserv_model::off_path::Beside;
    use netserv_model::request::{Environment, Hop, PolicyReport};
    use netserv_model::{Refusal, RefusalKind, SessionId};

    use super::*;

    #[test]
    fn of_equal_nodes_the_last_of_the_path_is_the_best() {
        let ranked = rank(&needs(), &path(vec![node("a"), node("b"), node("c")]));
        assert_eq!(names(&ranked), ["c", "b", "a"]);
        assert_eq!(ranked[0].score, Some(POINTS_MAX));
        // 10 ms for each hop.
        assert_eq!(ranked[1].reasons, [Reason { points: 50, why: "10 ms to the last node of the path".to_owned() }]);
        assert_eq!(ranked[2].score, Some(POINTS_MAX - 100));
    }

    #[test]
    fn points_are_lost_for_load_memory_and_delay_and_bounded() {
        let check = |change: &dyn Fn(&mut NodeReport), lost: i32, why: &str| {
            let mut report = node("a");
            change(&mut report);
            let one = assess(&needs(), &report, Place::Path { hop: 1, behind_us: Some(0) });
            assert_eq!(one.score, Some(POINTS_MAX - lost), "{one:?}");
            assert!(one.reasons.iter().any(|reason| reason.why == why), "{one:?}");
        };
        let load = |report: &mut NodeReport, permille| report.load.as_mut().unwrap().load_permille = permille;
        check(&|report| load(report, 1000), LOAD_POINTS / 2, "load 0.50 for each processor");
        check(&|report| load(report, 9000), LOAD_POINTS, "load 4.50 for each processor");
        let half =
            |report: &mut NodeReport| report.load.as_mut().unwrap().memory_free_kib = 8 * 1024 * MEMORY_TIMES / 2;
        check(&half, MEMORY_POINTS / 2, "64 MiB free, it may use 8 MiB");
        let far = assess(&needs(), &node("a"), Place::Path { hop: 1, behind_us: Some(u64::MAX) });
        assert_eq!(far.score, Some(POINTS_MAX - DELAY_POINTS_MAX));
        let unknown = assess(&needs(), &node("a"), Place::Path { hop: 1, behind_us: None });
        assert_eq!(unknown.score, far.score);
    }

    #[test]
    fn a_node_says_why_it_cannot_have_the_module() {
        let check = |change: &dyn Fn(&mut NodeReport, &mut Needs), why: &str| {
            let (mut report, mut needs) = (node("a"), needs());
            change(&mut report, &mut needs);
            let one = assess(&needs, &report, Place::Path { hop: 1, behind_us: Some(0) });
            assert_eq!((one.score, one.against), (None, vec![why.to_owned()]));
        };
        check(&|report, _| report.environments.clear(), "it runs no modules");
        check(&|report, _| report.load.as_mut().unwrap().maintenance = true, "its operator drains it");
        check(&|_, needs| needs.flavours = vec![Flavour::Osgi], "it runs none of the package's flavours: osgi");
        check(&|_, needs| needs.blocks.push("media>=1".parse().unwrap()), "it has not media>=1");
        check(&|_, needs| needs.blocks = vec!["kv>=2".parse().unwrap()], "it has version 1 of kv>=2");
        check(&|report, _| report.policy = None, "it does not know the user");
        check(&|_, needs| needs.listens = true, "it lets the user take no connections");
        check(
            &|_, needs| needs.amounts = [(Resource::BitsPerSecond, 11)].into(),
            "it grants 10 of bits-per-second, 11 are needed",
        );
        check(
            &|_, needs| needs.amounts = [(Resource::CpuPermille, 1)].into(),
            "it grants 0 of cpu-permille, 1 are needed",
        );
        check(&|report, _| report.load.as_mut().unwrap().memory_free_kib = 0, "0 MiB are free, it may use 8 MiB");
        let refusal = Refusal::new(RefusalKind::UnknownUser, "x");
        let said = format!("refuses: {refusal}");
        check(&|report, _| report.outcome = Outcome::Refused(refusal.clone()), &said);
    }

    /// Goal: who costs more than the cheapest that can have the module loses points, up to a bound; who does not say is not weighed.
    #[test]
    fn a_price_counts_beside_that_of_the_cheapest() {
        let priced = |name: &str, price| {
            let mut report = node(name);
            report.policy.as_mut().unwrap().price_per_hour = price;
            report
        };
        let lost = |prices: &[Option<u64>]| -> Vec<i32> {
            let result = path(prices.iter().map(|price| priced("a", *price)).collect());
            let costs = |reason: &&Reason| reason.why.starts_with("an hour costs");
            let lost = |one: &Candidate| one.reasons.iter().filter(costs).map(|reason| reason.points).sum();
            let mut all: Vec<i32> = rank(&needs(), &result).iter().map(lost).collect();
            all.sort_unstable();
            all
        };
        assert_eq!(lost(&[Some(10), Some(15), Some(20)]), [0, PRICE_POINTS / 2, PRICE_POINTS]);
        assert_eq!(lost(&[Some(1), Some(u64::MAX), None]), [0, 0, PRICE_POINTS_MAX]);
        assert_eq!(lost(&[Some(0), Some(2)]), [0, 2 * PRICE_POINTS]);
        assert_eq!(lost(&[None, Some(7)]), [0, 0], "nothing to compare with");
        // A cheap one that cannot have it makes nobody dear, and a nearer one is worth a price.
        let mut result = path(vec![priced("cheap", Some(1)), priced("dear", Some(9))]);
        result.nodes[0].environments.clear();
        assert_eq!(names(&rank(&needs(), &result)), ["dear", "cheap"]);
        let ranked = rank(&needs(), &path(vec![priced("cheap", Some(10)), priced("dear", Some(30))]));
        assert_eq!(names(&ranked), ["cheap", "dear"]);
        assert!(ranked[1].reasons.iter().any(|reason| reason.why == "an hour costs 30, elsewhere 10"), "{ranked:?}");
    }

    #[test]
    fn beside_the_path_are_servers_only_and_behind_those_on_it() {
        let mut result = path(vec![node("a")]);
        let beside = |name, hops| Beside { hops, report: node(name) };
        result.beside.nodes = vec![beside("far", 2), beside("near", 1), beside("a", 1)];
        let ranked = rank(&needs(), &result);
        assert_eq!(names(&ranked), ["a", "near", "far"], "a node of the path is none beside it");
        assert_eq!(ranked[2].score, Some(POINTS_MAX - 2 * BESIDE_POINTS_PER_HOP));
        let packet = Needs { on_path: Some("its packet part"), ..needs() };
        let ranked = rank(&packet, &result);
        assert_eq!(ranked.iter().filter(|one| one.score.is_some()).count(), 1);
        assert_eq!(ranked[1].against, ["its packet part sees nothing of the path from there"]);
    }

    fn names(ranked: &[Candidate]) -> Vec<&str> {
        ranked.iter().map(|one| one.node.as_str()).collect()
    }

    fn needs() -> Needs {
        Needs {
            flavours: vec![Flavour::Wasm],
            blocks: vec!["kv>=1".parse().unwrap()],
            memory_bytes: 8 << 20,
            ..Needs::default()
        }
    }

    /// 10 ms before each node; two idle processors, much memory.
    fn node(name: &str) -> NodeReport {
        NodeReport {
            node: name.parse().unwrap(),
            address: "192.0.2.1".parse().unwrap(),
            outcome: Outcome::Probed,
            took_us: 0,
            hop: Some(Hop { rtt_us: Some(10_000), ..Hop::default() }),
            load: Some(NodeLoad { processors: 2, memory_free_kib: 1 << 20, ..NodeLoad::default() }),
            modules: Vec::new(),
            blocks: vec!["kv>=1".parse().unwrap()],
            environments: vec![Environment { flavour: Flavour::Wasm, engine: "test".to_owned() }],
            policy: Some(PolicyReport {
                ttl_s_max: 60,
                modules_max: 1,
                memory_bytes_max: 1 << 30,
                ceilings: BTreeMap::from([("bits-per-second".to_owned(), 10)]),
                ..PolicyReport::default()
            }),
        }
    }

    fn path(nodes: Vec<NodeReport>) -> RequestResult {
        RequestResult {
            session: SessionId([0; 16]),
            nodes,
            incomplete: None,
            withheld: Default::default(),
            beside: Default::default(),
            end: None,
            returned: None,
            took_us: 0,
        }
    }
}
