// SPDX-License-Identifier: Apache-2.0
//! Responses: the stack of what the nodes said, nearest to the requester first.

use std::fmt::Write;

use netserv_model::limits::{
    BESIDE_MAX, DNS_NAME_BYTES_MAX, HEADER_LINE_BYTES_MAX, HEADERS_MAX, MESSAGE_BYTES_MAX, STACK_ENTRIES_MAX,
};
use netserv_model::off_path::{Beside, Off};
use netserv_model::request::{HopProof, NodeReport, PathEnd, ReturnStack, Withheld};
use netserv_model::text::one_line;
use netserv_model::{Nonce, Refusal, RefusalKind, SessionId};
use serde::de::DeserializeOwned;

use super::lines::{Header, Lines, bad, is_header_name, shown};

const FIRST_LINE: &str = "NETSERV/1 RESPONSE";
/// What goes on with an entry whose JSON does not fit one line.
const CONTINUED: &str = "entry-more";
const CHUNK_BYTES: usize = HEADER_LINE_BYTES_MAX - RETURN[1].len() - 2;
/// The names of an entry of the way back.
const RETURN: [&str; 2] = ["return", "return-more"];
/// Room that the entries leave for the last headers: `foreign`, `withheld`, `returned`, `beside-missing`, and `incomplete` or `end`.
const RESERVE_BYTES: usize = 6144;
/// How many those are at most, beside the last one.
const LAST_HEADERS: usize = 4;

/// The answer to one request as it travels upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The session of the request.
    pub session: SessionId,
    /// The nonce of the request.
    pub nonce: Nonce,
    /// One entry per node, nearest to the requester first.
    pub entries: Vec<NodeReport>,
    /// Why the stack ends before the last node, if it does.
    pub incomplete: Option<Refusal>,
    /// What proves that it does not.
    pub end: Option<PathEnd>,
    /// The nodes that have no entry, since their operators do not show it.
    pub withheld: Withheld,
    /// How many of the entries, at the far end, are of nodes outside of the domain of the node that sends this.
    pub foreign: usize,
    /// What the nodes on the way back said, if the last node sent the request back.
    pub returned: Option<ReturnStack>,
    /// What nodes beside the path say.
    pub beside: Off,
    /// Headers that this version does not know, kept and forwarded.
    pub unknown: Vec<(String, String)>,
}

impl Response {
    /// Returns one that says nothing.
    pub fn empty(session: SessionId, nonce: Nonce) -> Response {
        Response {
            session,
            nonce,
            entries: Vec::new(),
            incomplete: None,
            end: None,
            withheld: Withheld::default(),
            foreign: 0,
            returned: None,
            beside: Off::default(),
            unknown: Vec::new(),
        }
    }

    /// Returns whether a text begins as a response does.
    pub fn is_response(bytes: &[u8]) -> bool {
        bytes.starts_with(FIRST_LINE.as_bytes())
    }

    /// Parses a response; `bytes` may be anything.
    ///
    /// Control characters in what nodes say become spaces, so that it can be shown on a terminal. A proof of the end or of a hop
    /// that this version does not know is none.
    ///
    /// # Errors
    /// Anything but a response within the model's limits is a `BadRequest` that names the line.
    pub fn parse(bytes: &[u8]) -> Result<Response, Refusal> {
        let lines = Lines::parse(bytes)?;
        if lines.first != FIRST_LINE {
            return Err(bad(1, format!("not `{FIRST_LINE}`")));
        }
        let (mut session, mut nonce, mut incomplete, mut end) = (None, None, None, None);
        let (mut withheld, mut foreign, mut missing) = (None, None, None);
        let mut beside: Vec<(usize, String)> = Vec::new();
        let mut entries: Vec<(usize, String)> = Vec::new();
        let mut back: Vec<(usize, String)> = Vec::new();
        let mut returned = None;
        let mut unknown = Vec::new();
        for Header { line, name, value } in lines.headers {
            let earlier = match name.as_str() {
                "session" => session.replace((line, value)),
                "nonce" => nonce.replace((line, value)),
                "incomplete" => incomplete.replace((line, value)),
                "end" => end.replace((line, value)),
                "withheld" => withheld.replace((line, value)),
                "foreign" => foreign.replace((line, value)),
                "beside-missing" => missing.replace((line, value)),
                "beside" => {
                    beside.push((line, value));
                    None
                }
                "entry" => {
                    entries.push((line, value));
                    None
                }
                "returned" => returned.replace((line, value)),
                "return" => {
                    back.push((line, value));
                    None
                }
                CONTINUED | "return-more" => {
                    let list = if name == CONTINUED { &mut entries } else { &mut back };
                    let (_, entry) = list.last_mut().ok_or_else(|| bad(line, "it goes on with no entry"))?;
                    entry.push_str(&value);
                    None
                }
                _ => {
                    unknown.push((name, value.trim_matches(' ').to_owned()));
                    continue;
                }
            };
            if earlier.is_some() {
                return Err(bad(line, format!("`{name}` is there twice")));
            }
        }
        if entries.len() > STACK_ENTRIES_MAX || back.len() > STACK_ENTRIES_MAX {
            return Err(bad(0, format!("more than {STACK_ENTRIES_MAX} entries")));
        }
        if beside.len() > BESIDE_MAX {
            return Err(bad(0, format!("more than {BESIDE_MAX} nodes beside the path")));
        }
        let nodes = beside.iter().map(parse_beside).collect::<Result<_, _>>()?;
        let missing = u32::try_from(missing.map_or(Ok(0), parse_count)?).unwrap_or(u32::MAX);
        Ok(Response {
            beside: Off { nodes, missing },
            session: identifier("session", session)?,
            nonce: identifier("nonce", nonce)?,
            entries: entries.iter().map(parse_entry).collect::<Result<_, _>>()?,
            incomplete: incomplete.as_ref().map(parse_json::<Refusal>).transpose()?.map(Refusal::clean),
            end: end.and_then(|(_, value)| PathEnd::from_word(value.trim_matches(' '))),
            withheld: withheld.as_ref().map(parse_json).transpose()?.unwrap_or_default(),
            foreign: foreign.map_or(Ok(0), parse_count)?.min(entries.len()),
            returned: parse_returned(returned.as_ref(), &back)?,
            unknown,
        })
    }

    /// Writes the response within the model's limits.
    ///
    /// Entries that do not fit are left out from the far end, and `incomplete` says so.
    pub fn emit(&self) -> String {
        let mut text = format!("{FIRST_LINE}\nsession: {}\nnonce: {}\n", self.session, self.nonce);
        let mut headers = 2;
        for (name, value) in &self.unknown {
            let fits = headers < HEADERS_MAX / 2 && text.len() + name.len() + value.len() < HEADER_LINE_BYTES_MAX;
            if fits && is_header_name(name) && !value.contains(char::is_control) {
                writeln!(text, "{name}: {value}").expect("writing to a String cannot fail");
                headers += 1;
            }
        }
        let written = write_entries(&mut text, &mut headers, &self.entries, ["entry", CONTINUED]);
        if let Some(returned) = &self.returned {
            let back = write_entries(&mut text, &mut headers, &returned.nodes, RETURN);
            let incomplete = incomplete_after(returned.nodes.len() - back, returned.incomplete.as_ref());
            let end = returned.end.filter(|_| incomplete.is_none());
            let stack = ReturnStack { nodes: Vec::new(), incomplete, end };
            let json = serde_json::to_string(&stack).expect("a stack is plain data");
            writeln!(text, "returned: {json}").expect("writing to a String cannot fail");
        }
        let foreign = self.foreign.saturating_sub(self.entries.len() - written);
        if foreign > 0 {
            writeln!(text, "foreign: {foreign}").expect("writing to a String cannot fail");
        }
        if !self.withheld.is_empty() {
            let json = serde_json::to_string(&self.withheld).expect("counts are plain data");
            writeln!(text, "withheld: {json}").expect("writing to a String cannot fail");
        }
        self.emit_beside(&mut text, &mut headers);
        if let Some(refusal) = incomplete_after(self.entries.len() - written, self.incomplete.as_ref()) {
            let json = serde_json::to_string(&refusal).expect("a refusal is plain data");
            writeln!(text, "incomplete: {json}").expect("writing to a String cannot fail");
        } else if let Some(end) = self.end {
            writeln!(text, "end: {}", end.as_str()).expect("writing to a String cannot fail");
        }
        text.push('\n');
        text
    }

    /// Writes what nodes beside the path say, as far as there is room; each on one line.
    fn emit_beside(&self, text: &mut String, headers: &mut usize) {
        let mut missing = self.beside.missing;
        for (at, beside) in self.beside.nodes.iter().enumerate() {
            let beside = Beside { report: clean_report(beside.report.clone()), ..*beside };
            let json = serde_json::to_string(&beside).expect("a report is plain data with text keys");
            let fits = at < BESIDE_MAX
                && json.len() <= CHUNK_BYTES
                && text.len() + json.len() + RESERVE_BYTES <= MESSAGE_BYTES_MAX
                && *headers < HEADERS_MAX - LAST_HEADERS - 1;
            if fits {
                writeln!(text, "beside: {json}").expect("writing to a String cannot fail");
                *headers += 1;
            } else {
                missing = missing.saturating_add(1);
            }
        }
        if missing > 0 {
            writeln!(text, "beside-missing: {missing}").expect("writing to a String cannot fail");
        }
    }
}

/// Returns why a stack is incomplete of which some entries were left out.
fn incomplete_after(left_out: usize, incomplete: Option<&Refusal>) -> Option<Refusal> {
    if left_out == 0 {
        return incomplete.cloned().map(Refusal::clean);
    }
    let detail = format!("the {left_out} entries furthest away did not fit the response");
    Some(Refusal::new(RefusalKind::QuotaExceeded, detail))
}

/// Writes the entries that fit, nearest first; returns how many there were.
fn write_entries(text: &mut String, headers: &mut usize, entries: &[NodeReport], names: [&str; 2]) -> usize {
    let mut written = 0;
    for entry in entries.iter().take(STACK_ENTRIES_MAX) {
        let lines = entry_lines(entry, names);
        let bytes: usize = lines.iter().map(String::len).sum();
        let fits = text.len() + bytes + RESERVE_BYTES <= MESSAGE_BYTES_MAX;
        if !fits || *headers + lines.len() >= HEADERS_MAX - LAST_HEADERS {
            break;
        }
        *headers += lines.len();
        text.extend(lines);
        written += 1;
    }
    written
}

fn parse_returned(
    header: Option<&(usize, String)>,
    entries: &[(usize, String)],
) -> Result<Option<ReturnStack>, Refusal> {
    let Some(header) = header else {
        return match entries.first() {
            None => Ok(None),
            Some((line, _)) => Err(bad(*line, "the way back has entries and no `returned` header")),
        };
    };
    let ReturnStack { nodes: _, incomplete, end } = parse_json(header)?;
    let nodes = entries.iter().map(parse_entry).collect::<Result<_, _>>()?;
    Ok(Some(ReturnStack { nodes, incomplete: incomplete.map(Refusal::clean), end }))
}

fn identifier<T: std::str::FromStr<Err: std::fmt::Display>>(
    name: &str,
    found: Option<(usize, String)>,
) -> Result<T, Refusal> {
    let (line, value) = found.ok_or_else(|| bad(0, format!("the response has no `{name}` header")))?;
    value.trim_matches(' ').parse().map_err(|error: T::Err| bad(line, error.to_string()))
}

fn parse_count((line, value): (usize, String)) -> Result<usize, Refusal> {
    let value = value.trim_matches(' ');
    value.parse().map_err(|_| bad(line, format!("`{}` is no count", shown(value))))
}

fn parse_json<T: DeserializeOwned>((line, json): &(usize, String)) -> Result<T, Refusal> {
    serde_json::from_str(json).map_err(|error| bad(*line, format!("the JSON is not understood: {error}")))
}

fn parse_entry(entry: &(usize, String)) -> Result<NodeReport, Refusal> {
    parse_json(entry).map(clean_report)
}

fn parse_beside(entry: &(usize, String)) -> Result<Beside, Refusal> {
    let Beside { hops, report } = parse_json(entry)?;
    Ok(Beside { hops, report: clean_report(report) })
}

/// One line of the first name, and as many of the second as the JSON needs.
fn entry_lines(entry: &NodeReport, [first, more]: [&str; 2]) -> Vec<String> {
    let json = serde_json::to_string(&clean_report(entry.clone())).expect("a report is plain data with text keys");
    let mut lines = Vec::new();
    let mut rest = json.as_str();
    while !rest.is_empty() {
        let end = rest.floor_char_boundary(CHUNK_BYTES);
        let name = if lines.is_empty() { first } else { more };
        lines.push(format!("{name}: {}\n", &rest[..end]));
        rest = &rest[end..];
    }
    lines
}

/// Makes everything in a report that is free text [`one_line`].
fn clean_report(mut report: NodeReport) -> NodeReport {
    report.outcome = report.outcome.clean();
    for module in &mut report.modules {
        module.last_failure = module.last_failure.take().map(Refusal::clean);
        module.counters =
            std::mem::take(&mut module.counters).into_iter().map(|(name, count)| (one_line(&name), count)).collect();
    }
    if let Some(hop) = &mut report.hop {
        let name = hop.tls_name.take().filter(|_| hop.proof == Some(HopProof::Tls));
        hop.tls_name = name.map(|name| one_line(&name)).filter(|name| name.len() <= DNS_NAME_BYTES_MAX);
    }
    if let Some(policy) = &mut report.policy {
        let addresses = policy.prefixes.iter_mut().chain(&mut policy.ports);
        addresses.chain(&mut policy.listen).chain(&mut policy.connect).for_each(|text| *text = one_line(text));
    }
    for environment in &mut report.environments {
        environment.engine = one_line(&environment.engine);
    }
    report
}
