// SPDX-License-Identifier: Apache-2.0
//! Response stacks as people read them.

use netserv_model::api::RequestResult;
use netserv_model::floating::GivenUp;
use netserv_model::off_path::Off;
use netserv_model::request::{
    HeldBy, HopProof, ModuleState, ModuleStatus, NodeLoad, NodeReport, Outcome, PathEnd, PolicyReport, ReturnStack,
    ServerCounts, Withheld,
};
use netserv_model::{Flavour, Refusal, RefusalKind};
use serde::Serialize;

use crate::exit::{Exit, Failure, one_line};
use crate::output::{Output, Style};
use crate::table::{Table, plain};
use crate::units::{format_bytes, format_micros, format_rtt, format_seconds};

/// Writes a response stack, as JSON or as a table, and returns how the command ends.
///
/// # Errors
/// The result cannot be written as JSON.
pub fn write(result: &RequestResult, output: &mut Output) -> Result<Exit, Failure> {
    if output.is_json() {
        output.json(result)?;
        return Ok(exit(result));
    }
    output.detail(format!("session {}", result.session));
    if !result.nodes.is_empty() {
        stack(&result.nodes).write(output);
        write_answers(&result.nodes, output);
    }
    if let Some(returned) = &result.returned {
        output.line("way back:");
        if !returned.nodes.is_empty() {
            stack(&returned.nodes).write(output);
        }
        write_returned(returned, output);
    }
    write_beside(&result.beside, output);
    write_end(result, output);
    Ok(exit(result))
}

/// Writes a response stack as a path, nearest node first.
///
/// # Errors
/// The result cannot be written as JSON.
pub fn write_path(result: &RequestResult, destination: &str, output: &mut Output) -> Result<Exit, Failure> {
    if output.is_json() {
        output.json(&PathView { result, beyond_us: BeyondUs::of(result) })?;
        return Ok(exit_path(result));
    }
    write_hops(&result.nodes, output);
    let last = match result.end.filter(|_| !result.nodes.is_empty()) {
        Some(end) => format!("{destination}  {}", end.text()),
        None => format!("? {destination}"),
    };
    output.line(format!("{HOPS_INDENT}{last}"));
    if let Some(returned) = &result.returned {
        output.line("way back:");
        write_hops(&returned.nodes, output);
        let last = returned.end.map_or_else(|| "? the requester".to_owned(), back_end);
        output.line(format!("{HOPS_INDENT}{last}"));
        write_returned_early(returned, output);
    }
    write_end(result, output);
    Ok(exit_path(result))
}

/// A path for programs.
#[derive(Serialize)]
struct PathView<'a> {
    #[serde(flatten)]
    result: &'a RequestResult,
    beyond_us: BeyondUs,
}

/// What is known of the path beyond this node.
#[derive(Serialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
enum BeyondUs {
    /// Every node of it is shown.
    Whole {
        /// What proves that none comes after the last one.
        by: PathEnd,
    },
    /// There may be nodes that are not shown.
    Incomplete {
        /// Why.
        reason: Refusal,
    },
}

impl BeyondUs {
    fn of(result: &RequestResult) -> BeyondUs {
        let reason = match (&result.incomplete, result.end) {
            (Some(refusal), _) => refusal.clone(),
            (None, _) if !result.withheld.is_empty() => {
                Refusal::new(RefusalKind::OutsideDomain, withheld(&result.withheld))
            }
            (None, Some(by)) if !result.nodes.is_empty() => return BeyondUs::Whole { by },
            (None, _) if result.nodes.is_empty() => Refusal::new(RefusalKind::NoNode, "no node answered"),
            (None, _) => Refusal::new(RefusalKind::Timeout, "nothing proves that no node comes after the last one"),
        };
        BeyondUs::Incomplete { reason }
    }
}

/// Where the columns after the first one begin.
const HOPS_INDENT: &str = "     ";

/// Writes the nodes of a path with the ways between them.
fn write_hops(nodes: &[NodeReport], output: &mut Output) {
    if nodes.is_empty() {
        return;
    }
    let mut table = Table::new(&["HOP", "NODE", "ADDRESS", "RTT", "IP HOPS", "PROVEN BY", "FLAVOURS"]);
    let mut offered_before = &[][..];
    for (number, report) in (1..).zip(nodes) {
        let hop = report.hop.clone().unwrap_or_default();
        let flavours: Vec<&str> = report.environments.iter().map(|runs| runs.flavour.as_str()).collect();
        table.row([
            plain(number),
            plain(&report.node),
            plain(report.address),
            known(hop.rtt_us.map(format_rtt)),
            known(hop.ip_hops.map(|hops| hops.to_string())),
            known(hop.proof.map(|proof| proven_by(proof, hop.tls_name.as_deref()))),
            known(Some(flavours.join(", ")).filter(|flavours| !flavours.is_empty())),
        ]);
        if let Outcome::Refused(refusal) = &report.outcome {
            table.note(format!("cause: {}: {}", refusal.kind, refusal.detail));
            note_context(refusal, &mut table);
            table.note(format!("fix: {}", refusal.kind.fix()));
        }
        // Nodes of one operator offer the same, in a line that fills the screen.
        if report.blocks.is_empty() || report.blocks != offered_before {
            note_blocks(report, &mut table);
        } else {
            table.note("blocks: the same");
        }
        offered_before = &report.blocks;
    }
    table.write(output);
}

fn known(text: Option<String>) -> (Style, String) {
    text.map_or_else(|| (Style::Dim, "-".to_owned()), plain)
}

fn proven_by(proof: HopProof, tls_name: Option<&str>) -> String {
    match proof {
        HopProof::ResponseCookie => "cookie".to_owned(),
        HopProof::Association => "association".to_owned(),
        HopProof::Tls => tls_name.map_or_else(|| "TLS".to_owned(), |name| format!("TLS, {name}")),
    }
}

fn note_context(refusal: &Refusal, table: &mut Table) {
    refusal.context.iter().for_each(|line| table.note(format!("  {line}")));
}

fn note_blocks(report: &NodeReport, table: &mut Table) {
    if !report.blocks.is_empty() {
        let blocks: Vec<String> = report.blocks.iter().map(ToString::to_string).collect();
        table.note(format!("blocks: {}", blocks.join(", ")));
    }
}

/// Returns for people what proves that a way back is whole.
fn back_end(end: PathEnd) -> String {
    match end {
        PathEnd::Destination => "the way back ends at the requester".to_owned(),
        PathEnd::Unreachable | PathEnd::EndpointFound | PathEnd::Named => format!("the requester {}", end.text()),
    }
}

/// Returns the exit code that tells a response stack in one number.
pub fn exit(result: &RequestResult) -> Exit {
    let back = result.returned.iter().flat_map(|returned| &returned.nodes);
    let is_back = result.returned.as_ref().is_none_or(|returned| returned.incomplete.is_none());
    if result.nodes.iter().chain(back).any(|node| !node.outcome.is_ok())
        || result.withheld.refused > 0
        || refused_beside(&result.beside)
    {
        Exit::NodeRefused
    } else if !is_back || result.incomplete.is_some() || result.withheld.nodes > 0 || is_for_nobody(result) {
        Exit::Incomplete
    } else {
        Exit::Done
    }
}

/// Returns the exit code of a path, which is not done before its end is proven.
fn exit_path(result: &RequestResult) -> Exit {
    match (exit(result), BeyondUs::of(result)) {
        (Exit::Done, BeyondUs::Incomplete { .. }) => Exit::Incomplete,
        (exit, BeyondUs::Whole { .. } | BeyondUs::Incomplete { .. }) => exit,
    }
}

/// Returns whether no node that answered is one that the request is for, on either way.
fn is_for_nobody(result: &RequestResult) -> bool {
    let back = result.returned.iter().flat_map(|returned| &returned.nodes);
    result.nodes.iter().chain(back).all(|node| node.outcome.is_not_targeted())
}

/// Returns installed modules as a table.
///
/// Each comes with the node that it is on, or nothing for this one.
pub fn modules<'a>(modules: impl Iterator<Item = (Option<&'a str>, &'a ModuleStatus)>) -> Table {
    let mut table = Table::new(&[
        "WHERE", "USER", "MODULE", "FLAVOUR", "STATE", "LEASE", "SEEN", "PASSED", "DROPPED", "MODIFIED", "INJECTED",
    ]);
    for (node, module) in modules {
        let packets = module.packets;
        let counts = [packets.seen, packets.passed, packets.dropped, packets.modified, packets.injected];
        let state = state_cell(module.state);
        let flavour = plain(module.flavour.map_or("-", Flavour::as_str));
        let first = [plain(node.unwrap_or("here")), plain(&module.user), plain(&module.module), flavour, state];
        let lease = plain(format_seconds(module.lease_s));
        table.row(first.into_iter().chain([lease]).chain(counts.map(plain)));
        module.filters.iter().for_each(|filter| table.note(format!("filter: {filter}")));
        if module.held_by > 1 {
            module.sessions.iter().for_each(|session| table.note(held(session)));
            let more = module.held_by.saturating_sub(u64::try_from(module.sessions.len()).unwrap_or(u64::MAX));
            if more > 0 {
                table.note(format!("session: {more} more"));
            }
        }
        module.listen.iter().for_each(|filter| table.note(format!("listens: {filter}")));
        module.intercept.iter().for_each(|filter| table.note(format!("intercepts: {filter}")));
        module.chain.iter().for_each(|part| table.note(format!("part: {part}")));
        module.addresses.iter().for_each(|address| table.note(format!("address: {address}")));
        module.floating.iter().for_each(|address| table.note(format!("floating: {address}")));
        for GivenUp { address, epoch } in &module.given_up {
            table.note(format!("gave up: {address}, another owner has it since epoch {epoch}"));
        }
        if let Some(counts) = &module.server {
            table.note(served(counts));
        }
        for (name, value) in &module.counters {
            table.note(format!("counter: {name} = {value}"));
        }
        if let Some(refusal) = &module.last_failure {
            table.note(format!("last failure: {refusal} ({} restarts)", module.restarts));
            note_context(refusal, &mut table);
            table.note(format!("fix: {}", refusal.kind.fix()));
        }
    }
    table
}

/// Returns what a session has of a module in one line.
fn held(HeldBy { session, lease_s, filters }: &HeldBy) -> String {
    let filters: Vec<String> = filters.iter().map(ToString::to_string).collect();
    let asked = if filters.is_empty() { String::new() } else { format!(", {}", filters.join(", ")) };
    format!("session: {session}, lease {}{asked}", format_seconds(*lease_s))
}

/// Returns a node's load in one line.
pub fn load(load: &NodeLoad) -> String {
    format!(
        "{} in {}, {} packets seen, load {}.{:02}{}, {} free{}",
        count(u64::from(load.modules), "module"),
        count(u64::from(load.containers), "container"),
        load.packets,
        load.load_permille / 1000,
        load.load_permille % 1000 / 10,
        if load.processors == 0 {
            String::new()
        } else {
            format!(" on {}", count(load.processors.into(), "processor"))
        },
        format_bytes(load.memory_free_kib.saturating_mul(1024)),
        if load.maintenance { ", drained" } else { "" },
    )
}

fn stack(nodes: &[NodeReport]) -> Table {
    table_of((1..).zip(nodes), "HOP")
}

fn table_of<'a>(rows: impl Iterator<Item = (usize, &'a NodeReport)>, first: &'static str) -> Table {
    let mut table = Table::new(&[first, "NODE", "ADDRESS", "OUTCOME", "TIME"]);
    for (number, report) in rows {
        let time = plain(format_micros(report.took_us));
        let outcome = outcome_cell(&report.outcome);
        table.row([plain(number), plain(&report.node), plain(report.address), outcome, time]);
        if let Outcome::Refused(refusal) = &report.outcome {
            table.note(format!("cause: {}", refusal.detail));
            note_context(refusal, &mut table);
            table.note(format!("fix: {}", refusal.kind.fix()));
        }
        if let Outcome::NotTargeted { reason } = &report.outcome {
            table.note(one_line(reason));
        }
        if let Some(node_load) = &report.load {
            table.note(format!("load: {}", load(node_load)));
        }
        note_blocks(report, &mut table);
        for environment in &report.environments {
            table.note(format!("{}: {}", environment.flavour, environment.engine));
        }
        if let Some(report) = &report.policy {
            policy(report).iter().for_each(|line| table.note(line));
        }
    }
    table
}

fn write_answers(nodes: &[NodeReport], output: &mut Output) {
    let of_node = nodes.iter().flat_map(|node| node.modules.iter().map(|module| (Some(node.node.as_str()), module)));
    if nodes.iter().any(|node| !node.modules.is_empty()) {
        output.line("");
        modules(of_node).write(output);
    }
}

/// Writes what nodes beside the path say, apart from the path.
fn write_beside(beside: &Off, output: &mut Output) {
    if beside.is_empty() {
        return;
    }
    output.line("");
    output.line("beside the path:");
    if !beside.nodes.is_empty() {
        let rows: Vec<(usize, &NodeReport)> =
            beside.nodes.iter().map(|beside| (usize::from(beside.hops), &beside.report)).collect();
        table_of(rows.into_iter(), "AWAY").write(output);
    }
    if beside.missing > 0 {
        let missing = count(u64::from(beside.missing), "neighbour");
        let line = output.paint(Style::Warn, &format!("{missing} not heard of: silent, or more than are asked"));
        output.line(line);
    }
    output.line("");
}

fn refused_beside(beside: &Off) -> bool {
    beside.nodes.iter().any(|beside| !beside.report.outcome.is_ok())
}

fn write_end(result: &RequestResult, output: &mut Output) {
    let took = format_micros(result.took_us);
    let back = result.returned.as_ref().map_or(&[][..], |returned| &returned.nodes);
    let refused = result.nodes.iter().chain(back).filter(|node| !node.outcome.is_ok()).count();
    let nodes = count(u64::try_from(result.nodes.len()).unwrap_or(u64::MAX), "node");
    let nodes = if back.is_empty() { nodes } else { format!("{nodes} there and {} back", back.len()) };
    let (style, sum) = match refused {
        0 => (Style::Good, format!("{nodes} in {took}")),
        refused => (Style::Bad, format!("{nodes} in {took}, {refused} refused")),
    };
    if !result.nodes.is_empty() {
        let sum = output.paint(style, &sum);
        output.line(sum);
    }
    if result.withheld.nodes > 0 {
        let line = output.paint(Style::Warn, &withheld(&result.withheld));
        output.line(line);
    }
    match &result.incomplete {
        Some(refusal) => {
            let line = output.paint(Style::Warn, "the response stack ends early");
            output.line(line);
            write_refusal(refusal, 0, output);
        }
        None if result.nodes.is_empty() && result.withheld.nodes == 0 => {
            let none = Refusal::new(RefusalKind::NoNode, "no node answered");
            write_refusal(&none, 0, output);
        }
        None if is_for_nobody(result) => {
            output.line("cause: no node on the path is one that the request is for");
            output.line("fix: compare --scope, --node and --require with `netserv probe --ask blocks,load`");
        }
        None => {}
    }
}

fn write_returned(returned: &ReturnStack, output: &mut Output) {
    if let Some(end) = returned.end {
        output.line(back_end(end));
    }
    write_returned_early(returned, output);
}

fn write_returned_early(returned: &ReturnStack, output: &mut Output) {
    if let Some(refusal) = &returned.incomplete {
        let line = output.paint(Style::Warn, "the stack of the way back ends early");
        output.line(line);
        write_refusal(refusal, 0, output);
    }
}

fn withheld(withheld: &Withheld) -> String {
    let Withheld { nodes, refused, lease_s } = *withheld;
    let nodes = count(u64::from(nodes), "node");
    let refused = if refused > 0 { format!(", {refused} of which refused") } else { String::new() };
    let lease = if lease_s > 0 { format!(", longest lease {}", format_seconds(lease_s)) } else { String::new() };
    format!("{nodes} more that the operator of a domain on the path does not show{refused}{lease}")
}

fn write_refusal(refusal: &Refusal, indent: usize, output: &mut Output) {
    output.line(format!("{:indent$}cause: {}: {}", "", refusal.kind, one_line(&refusal.detail)));
    write_context(refusal, indent, output);
    output.line(format!("{:indent$}fix: {}", "", refusal.kind.fix()));
}

/// Writes what more is known of a failure, below its cause.
pub fn write_context(refusal: &Refusal, indent: usize, output: &mut Output) {
    refusal.context.iter().for_each(|line| output.line(format!("{:indent$}  {}", "", one_line(line))));
}

fn outcome_cell(outcome: &Outcome) -> (Style, String) {
    match (outcome, outcome.lease_s()) {
        (Outcome::Refused(refusal), _) => (Style::Bad, format!("refused: {}", refusal.kind)),
        (Outcome::NotTargeted { .. }, _) => (Style::Plain, "not targeted".to_owned()),
        (Outcome::Probed, _) => (Style::Good, "ok".to_owned()),
        (_, Some(lease_s)) => (Style::Good, format!("{}, lease {}", outcome.word(), format_seconds(lease_s))),
        (_, None) => (Style::Good, outcome.to_string()),
    }
}

fn state_cell(state: ModuleState) -> (Style, String) {
    let (style, word) = match state {
        ModuleState::Fetching => (Style::Warn, "fetching"),
        ModuleState::Starting => (Style::Warn, "starting"),
        ModuleState::Running => (Style::Good, "running"),
        ModuleState::Frozen => (Style::Warn, "frozen"),
        ModuleState::BackingOff => (Style::Warn, "backing-off"),
        ModuleState::Quarantined => (Style::Bad, "quarantined"),
        ModuleState::Draining => (Style::Warn, "draining"),
    };
    (style, word.to_owned())
}

/// Returns what a user may do, a line each.
pub fn policy(policy: &PolicyReport) -> Vec<String> {
    let price = policy.price_per_hour.map(|price| format!("price: {price} for each hour of a module"));
    let ceilings: Vec<String> = policy.ceilings.iter().map(|(resource, most)| format!("{resource} {most}")).collect();
    let list = |items: &[String], empty: &str| if items.is_empty() { empty.to_owned() } else { items.join(", ") };
    let mut lines = vec![
        format!("prefixes: {}", list(&policy.prefixes, "none")),
        format!("ports: {}", list(&policy.ports, "all")),
        format!("longest lease: {}", format_seconds(policy.ttl_s_max)),
        format!("modules at most: {}", policy.modules_max),
        format!("memory of one module at most: {}", format_bytes(policy.memory_bytes_max)),
        format!("a module gets at most: {}", list(&ceilings, "not said")),
        format!("connections that it may take: {}", list(&policy.listen, "none")),
        format!("connections that it may open: {}", list(&policy.connect, "none")),
    ];
    lines.extend(price);
    lines
}

fn served(counts: &ServerCounts) -> String {
    let ServerCounts { connections, requests, refused, failed, errors, bytes_in, bytes_out } = *counts;
    let errors = if errors > 0 { format!(", {errors} answered with an error") } else { String::new() };
    format!(
        "served: {} with {}, {refused} refused, {failed} failed{errors}, {} in, {} out",
        count(connections, "connection"),
        count(requests, "request"),
        format_bytes(bytes_in),
        format_bytes(bytes_out),
    )
}

/// Writes a count with its noun.
pub fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}
