// SPDX-License-Identifier: Apache-2.0
//! Requests: text to [`Message`] to [`Request`].

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use netserv_model::control::{CONTROL_BYTES_MAX, ControlMessage, decode_body};
use netserv_model::evidence::{AddressProof, Checklist};
use netserv_model::floating::is_container_address;
use netserv_model::ids::ParseIdError;
use netserv_model::limits::{FILTERS_PER_MODULE_MAX, FLOATING_PER_MODULE_MAX, FREEZE_TIME_MAX};
use netserv_model::off_path::OffPath;
use netserv_model::request::{Ask, Body, Dependency, Export, Probe, Remove, Request, Setup, StateSource, Tell, Verb};
use netserv_model::target::{
    Bound, CONDITIONS_MAX, DESTINATIONS_MAX, Destinations, TARGET_DOMAINS_MAX, TARGET_NODES_MAX, Target,
};
use netserv_model::{Filter, Nonce, Refusal, SessionId, Signature, UnixTime, UserId, WantedFilter};

use super::lines::{Header, Lines, bad, shown};
use super::properties;

/// A request that parsed, with its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    text: String,
    canonical: String,
    user: Option<UserId>,
    created: UnixTime,
    nonce: Nonce,
    signature: Option<Signature>,
    grants: Vec<String>,
    address_proof: Option<AddressProof>,
    checklist: Option<Checklist>,
    dry_run: bool,
    target: Target,
    destinations: Destinations,
    trigger: Trigger,
    off_path: Option<OffPath>,
    body: Body,
    unknown: Vec<(String, String)>,
}

impl Message {
    /// Parses a request; `bytes` may be anything.
    ///
    /// # Errors
    /// Anything but a request within the model's limits is a `BadRequest` that names the line.
    pub fn parse(bytes: &[u8]) -> Result<Message, Refusal> {
        let lines = Lines::parse(bytes)?;
        let text = std::str::from_utf8(&bytes[..lines.bytes]).map_err(|_| bad(0, "not UTF-8"))?.to_owned();
        let (verb, subject) = parse_request_line(&lines.first)?;
        let canonical = canonical(&lines);
        let mut fields = Fields::new(verb, &lines.headers)?;
        let user = fields.single("user")?;
        if user.is_none() && verb != Verb::Probe {
            return Err(missing(verb, "user"));
        }
        let (target, destinations) = fields.target()?;
        let message = Message {
            text,
            canonical,
            user,
            created: fields.required("created")?,
            nonce: fields.required("nonce")?,
            signature: fields.single("signature")?,
            grants: fields.list("grant", |grant| Ok(grant.to_owned()))?,
            address_proof: fields.single("address-proof")?,
            checklist: fields.single("checklist")?,
            dry_run: fields.flag("dry-run")?,
            target,
            destinations,
            off_path: fields.off_path()?,
            trigger: fields.trigger()?,
            body: fields.body(subject)?,
            unknown: fields.unknown,
        };
        match &message.body {
            Body::Setup(setup) if !setup.floating.is_empty() && message.target.nodes.len() != 1 => {
                Err(bad(0, "`floating` needs `node-id` with the one node that the addresses lead to"))
            }
            Body::Setup(setup) if setup.prepare && !message.dry_run => {
                Err(bad(0, "`prepare` goes with `dry-run`: nothing is installed"))
            }
            Body::Setup(setup) if setup.buffer.is_some() && !setup.prepare => {
                Err(bad(0, "`buffer` goes with `prepare`: packets wait for what is ready"))
            }
            Body::Export(export) if export.buffer.is_some() && export.freeze.is_none() => {
                Err(bad(0, "`buffer` goes with `freeze`: packets wait for what stands still"))
            }
            Body::Setup(_) | Body::Remove(_) | Body::Tell(_) | Body::Export(_) | Body::Probe(_) => Ok(message),
        }
    }

    /// Returns the text as it came, without padding: what goes on to the next node.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the canonical form, which the signature covers.
    pub fn canonical(&self) -> &str {
        &self.canonical
    }

    /// Returns who asks.
    pub fn user(&self) -> Option<&UserId> {
        self.user.as_ref()
    }

    /// Returns what makes the request unique within its user.
    pub fn nonce(&self) -> Nonce {
        self.nonce
    }

    /// Returns the signature, if there is one.
    pub fn signature(&self) -> Option<Signature> {
        self.signature
    }

    /// Returns what is asked.
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// Returns when it was made.
    pub fn created(&self) -> UnixTime {
        self.created
    }

    /// Returns whether nodes only say what they would do.
    pub fn is_dry_run(&self) -> bool {
        self.dry_run
    }

    /// Returns which nodes it is for.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Returns where the flow leads that it may follow.
    pub fn destinations(&self) -> &Destinations {
        &self.destinations
    }

    /// Returns whether the last node is to send it back to the requester.
    pub fn wants_return(&self) -> bool {
        self.trigger != Trigger::None
    }

    /// Returns whether it is for the nodes on the way back alone.
    pub fn is_for_way_back(&self) -> bool {
        self.trigger == Trigger::ReturnOnly
    }

    /// Returns which nodes beside its path it is for, if it is for some.
    pub fn off_path(&self) -> Option<OffPath> {
        self.off_path
    }

    /// Returns the headers that this version does not know, in order.
    pub fn unknown(&self) -> &[(String, String)] {
        &self.unknown
    }

    /// Builds the request for the controller.
    pub fn request(&self, session: SessionId) -> Request {
        Request {
            session,
            user: self.user.clone(),
            created: self.created,
            nonce: self.nonce,
            body: self.body.clone(),
            signed_bytes: self.canonical.clone().into_bytes(),
            signature: self.signature,
            grants: self.grants.clone(),
            address_proof: self.address_proof,
            checklist: self.checklist.clone(),
            dry_run: self.dry_run,
            nodes: self.target.nodes.clone(),
            is_bound: !self.destinations.are_any() || !self.target.nodes.is_empty() || !self.target.domains.is_empty(),
            require: self.target.require.clone(),
            passed_by: None,
            from: None,
        }
    }
}

/// Returns the nonce of a text that need not be a good request, so that a refusal finds its way back.
pub fn peek_nonce(bytes: &[u8]) -> Option<Nonce> {
    let mut lines = bytes.split(|&byte| byte == b'\n').take(netserv_model::limits::HEADERS_MAX);
    lines.find_map(|line| {
        let line = std::str::from_utf8(line).ok()?;
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("nonce").then(|| value.trim().parse().ok())?
    })
}

/// Headers that mean something with this verb beside those of every request.
fn headers_of(verb: Verb) -> &'static [&'static str] {
    match verb {
        Verb::Setup => &[
            "url",
            "digest",
            "filter",
            "filter-proto",
            "filter-port",
            "intercept",
            "properties",
            "dependencies",
            "ttl",
            "epoch",
            "state",
            "state-digest",
            "floating",
            "prepare",
            "buffer",
        ],
        Verb::Remove => &["force", "all", "epoch"],
        Verb::Tell => &["topic", "seq", "body"],
        Verb::Export => &["url", "freeze", "buffer"],
        Verb::Probe => &["ask"],
    }
}

const COMMON_HEADERS: [&str; 14] = [
    "user",
    "created",
    "nonce",
    "signature",
    "grant",
    "address-proof",
    "checklist",
    "dry-run",
    "scope",
    "node-id",
    "for",
    "require",
    "trigger",
    "off-path",
];
/// Headers that may be there more than once; each adds to what came before.
const REPEATABLE: [&str; 9] =
    ["filter", "intercept", "properties", "dependencies", "ask", "node-id", "for", "require", "grant"];

/// Whether the last node sends a request back to its requester (NetServ 2011, §8, "Reverse data path").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trigger {
    None,
    /// It is for the nodes of both ways.
    Return,
    /// It is for those of the way back.
    ReturnOnly,
}

/// Headers by name, taken out one by one.
struct Fields {
    verb: Verb,
    known: BTreeMap<String, Vec<(usize, String)>>,
    unknown: Vec<(String, String)>,
}

impl Fields {
    fn new(verb: Verb, headers: &[Header]) -> Result<Fields, Refusal> {
        let mut fields = Fields { verb, known: BTreeMap::new(), unknown: Vec::new() };
        for Header { line, name, value } in headers {
            let value = value.trim_matches(' ').to_owned();
            if COMMON_HEADERS.contains(&name.as_str()) || headers_of(verb).contains(&name.as_str()) {
                let values = fields.known.entry(name.clone()).or_default();
                if !values.is_empty() && !REPEATABLE.contains(&name.as_str()) {
                    return Err(bad(*line, format!("`{name}` is there twice")));
                }
                values.push((*line, value));
            } else if Verb::ALL.iter().any(|other| headers_of(*other).contains(&name.as_str())) {
                return Err(bad(*line, format!("`{name}` means nothing in a {verb}")));
            } else {
                fields.unknown.push((name.clone(), value));
            }
        }
        Ok(fields)
    }

    fn take(&mut self, name: &str) -> Vec<(usize, String)> {
        self.known.remove(name).unwrap_or_default()
    }

    fn single<T: FromStr<Err: std::fmt::Display>>(&mut self, name: &str) -> Result<Option<T>, Refusal> {
        let value = self.take(name).pop();
        value.map(|(line, value)| value.parse().map_err(|error| bad(line, format!("`{name}`: {error}")))).transpose()
    }

    fn required<T: FromStr<Err: std::fmt::Display>>(&mut self, name: &str) -> Result<T, Refusal> {
        self.single(name)?.ok_or_else(|| missing(self.verb, name))
    }

    fn off_path(&mut self) -> Result<Option<OffPath>, Refusal> {
        let off_path = self.single("off-path")?;
        match off_path.is_some() && self.known.contains_key("trigger") {
            true => Err(bad(0, "`off-path` and `trigger` exclude each other")),
            false => Ok(off_path),
        }
    }

    fn flag(&mut self, name: &str) -> Result<bool, Refusal> {
        match self.take(name).pop() {
            None => Ok(false),
            Some((line, value)) => value.parse().map_err(|_| bad(line, format!("`{name}` is `true` or `false`"))),
        }
    }

    fn trigger(&mut self) -> Result<Trigger, Refusal> {
        match self.take("trigger").pop() {
            None => Ok(Trigger::None),
            Some((_, value)) if value == "return" => Ok(Trigger::Return),
            Some((_, value)) if value == "return-only" => Ok(Trigger::ReturnOnly),
            Some((line, _)) => Err(bad(line, "`trigger` is `return` or `return-only`")),
        }
    }

    fn target(&mut self) -> Result<(Target, Destinations), Refusal> {
        let scope = self.single("scope")?.unwrap_or_default();
        let nodes = self.list("node-id", |name| name.parse().map_err(|error: ParseIdError| error.to_string()))?;
        let require = self.list("require", |text| text.parse().map_err(|error: ParseIdError| error.to_string()))?;
        let (mut destinations, mut domains) = (Vec::new(), Vec::new());
        for bound in self.list("for", |text| text.parse().map_err(|error: ParseIdError| error.to_string()))? {
            match bound {
                Bound::To(prefix) => destinations.push(prefix),
                Bound::Domain(domain) => domains.push(domain),
            }
        }
        if destinations.len() > DESTINATIONS_MAX {
            return Err(bad(0, format!("`for` names more than {DESTINATIONS_MAX} destinations")));
        }
        if domains.len() > TARGET_DOMAINS_MAX {
            return Err(bad(0, format!("`for` names more than {TARGET_DOMAINS_MAX} domains")));
        }
        if nodes.len() > TARGET_NODES_MAX {
            return Err(bad(0, format!("`node-id` names more than {TARGET_NODES_MAX} nodes")));
        }
        if require.len() > CONDITIONS_MAX {
            return Err(bad(0, format!("`require` has more than {CONDITIONS_MAX} conditions")));
        }
        Ok((Target { scope, nodes, domains, require }, Destinations(destinations)))
    }

    fn body(&mut self, subject: &str) -> Result<Body, Refusal> {
        let subject_error = |error: ParseIdError| bad(1, error.to_string());
        match self.verb {
            Verb::Setup => Ok(Body::from(Setup {
                module: subject.parse().map_err(subject_error)?,
                url: self.url("url")?.ok_or_else(|| missing(self.verb, "url"))?,
                digest: self.required("digest")?,
                filters: self.filters()?,
                intercept: self.intercept()?,
                properties: self.properties()?,
                dependencies: self.list("dependencies", parse_dependency)?,
                ttl: self.ttl()?,
                state: self.state()?,
                floating: self.floating()?,
                prepare: self.flag("prepare")?,
                buffer: self.buffer()?,
                epoch: self.epoch()?.unwrap_or(0),
            })),
            Verb::Remove => {
                let module = subject.parse().map_err(subject_error)?;
                let (force, all) = (self.flag("force")?, self.flag("all")?);
                Ok(Body::Remove(Remove { module, force, all, epoch: self.epoch()? }))
            }
            Verb::Export => {
                let module = subject.parse().map_err(subject_error)?;
                let url = self.url("url")?.ok_or_else(|| missing(self.verb, "url"))?;
                Ok(Body::Export(Export { module, url, freeze: self.freeze()?, buffer: self.buffer()? }))
            }
            Verb::Tell => {
                let module = subject.parse().map_err(subject_error)?;
                let (topic, seq, body) = (self.required("topic")?, self.seq()?, self.message_body()?);
                Ok(Body::Tell(Tell { module, message: ControlMessage { topic, seq, body } }))
            }
            Verb::Probe if subject == "*" => Ok(Body::Probe(Probe { ask: self.list("ask", parse_ask)? })),
            Verb::Probe => Err(bad(1, format!("`{}`: a PROBE is of `*`", shown(subject)))),
        }
    }

    /// A whole number, written with digits only; otherwise it is not `what`.
    fn number(&mut self, name: &str, what: &str) -> Result<u64, Refusal> {
        let Some((line, value)) = self.take(name).pop() else { return Err(missing(self.verb, name)) };
        let number = value.bytes().all(|byte| byte.is_ascii_digit()).then(|| value.parse().ok()).flatten();
        number.ok_or_else(|| bad(line, format!("`{name}` is not {what}")))
    }

    fn seq(&mut self) -> Result<u64, Refusal> {
        self.number("seq", "a whole number below 2^64")
    }

    fn message_body(&mut self) -> Result<Vec<u8>, Refusal> {
        let Some((line, value)) = self.take("body").pop() else { return Err(missing(self.verb, "body")) };
        decode_body(&value, CONTROL_BYTES_MAX).map_err(|error| bad(line, format!("`body`: {error}")))
    }

    fn url(&mut self, name: &str) -> Result<Option<String>, Refusal> {
        match self.take(name).pop() {
            Some((line, url)) if url.is_empty() || url.contains(char::is_whitespace) => {
                Err(bad(line, format!("`{name}` is empty or has a space in it")))
            }
            url => Ok(url.map(|(_, url)| url)),
        }
    }

    /// Which owner in turn the node is to be; counted from 1.
    fn epoch(&mut self) -> Result<Option<u64>, Refusal> {
        if !self.known.contains_key("epoch") {
            return Ok(None);
        }
        match self.number("epoch", "a whole number from 1 on, below 2^64")? {
            0 => Err(bad(0, "`epoch` is a whole number from 1 on, below 2^64")),
            epoch => Ok(Some(epoch)),
        }
    }

    fn freeze(&mut self) -> Result<Option<Duration>, Refusal> {
        if !self.known.contains_key("freeze") {
            return Ok(None);
        }
        let most = FREEZE_TIME_MAX.as_secs();
        let what = format!("a whole number of seconds from 1 to {most}");
        match self.number("freeze", &what)? {
            seconds if (1..=most).contains(&seconds) => Ok(Some(Duration::from_secs(seconds))),
            _ => Err(bad(0, format!("`freeze` is not {what}"))),
        }
    }

    fn state(&mut self) -> Result<Option<StateSource>, Refusal> {
        match (self.url("state")?, self.single("state-digest")?) {
            (None, None) => Ok(None),
            (Some(url), Some(digest)) if self.known.contains_key("epoch") => Ok(Some(StateSource { url, digest })),
            (Some(_), Some(_)) => Err(bad(0, "`state` needs `epoch`, so that it is taken once")),
            (Some(_), None) | (None, Some(_)) => Err(bad(0, "`state` and `state-digest` need each other")),
        }
    }

    /// Addresses that lead to the module, which is then to be on one node.
    fn buffer(&mut self) -> Result<Option<IpAddr>, Refusal> {
        let address: Option<IpAddr> = self.single("buffer")?;
        if address.is_some_and(|address| address.is_unspecified() || address.is_multicast()) {
            return Err(bad(0, "`buffer` is the address of a node"));
        }
        Ok(address)
    }

    fn floating(&mut self) -> Result<Vec<IpAddr>, Refusal> {
        let addresses = self.list("floating", parse_floating)?;
        let given: BTreeSet<&IpAddr> = addresses.iter().collect();
        if given.len() < addresses.len() {
            return Err(bad(0, "`floating` names an address twice"));
        }
        if addresses.len() > FLOATING_PER_MODULE_MAX {
            return Err(bad(0, format!("`floating` names more than {FLOATING_PER_MODULE_MAX} addresses")));
        }
        if !addresses.is_empty() && !self.known.contains_key("epoch") {
            return Err(bad(0, "`floating` needs `epoch`, which says who has the addresses"));
        }
        Ok(addresses)
    }

    fn ttl(&mut self) -> Result<Duration, Refusal> {
        self.number("ttl", "a whole number of seconds").map(Duration::from_secs)
    }

    fn intercept(&mut self) -> Result<Vec<Filter>, Refusal> {
        let values = self.take("intercept");
        if let Some((line, _)) = values.get(FILTERS_PER_MODULE_MAX) {
            return Err(bad(*line, format!("more than {FILTERS_PER_MODULE_MAX} of `intercept`")));
        }
        let parse =
            |(line, value): (usize, String)| value.parse().map_err(|error| bad(line, format!("`intercept`: {error}")));
        values.into_iter().map(parse).collect()
    }

    fn filters(&mut self) -> Result<Vec<WantedFilter>, Refusal> {
        let mut filters = Vec::new();
        let mut last_line = 0;
        for (line, value) in self.take("filter") {
            filters.push(value.parse().map_err(|error| bad(line, format!("`filter`: {error}")))?);
            last_line = line;
        }
        if let Some((line, filter)) = self.short_filter()? {
            filters.push(filter);
            last_line = last_line.max(line);
        }
        if filters.len() > FILTERS_PER_MODULE_MAX {
            return Err(bad(last_line, format!("more than {FILTERS_PER_MODULE_MAX} filters")));
        }
        Ok(filters)
    }

    /// The 2011 paper's `filter-proto` and `filter-port`.
    fn short_filter(&mut self) -> Result<Option<(usize, WantedFilter)>, Refusal> {
        let (proto, port) = (self.take("filter-proto").pop(), self.take("filter-port").pop());
        let (line, text) = match (proto, port) {
            (None, None) => return Ok(None),
            (Some((line, proto)), None) => (line, proto),
            (Some((_, proto)), Some((line, port))) => (line, format!("{proto} port {port}")),
            (None, Some((line, _))) => return Err(bad(line, "`filter-port` needs `filter-proto`")),
        };
        let filter = text.to_ascii_lowercase().parse();
        filter.map(|filter| Some((line, filter))).map_err(|error| bad(line, format!("`filter-proto`: {error}")))
    }

    fn properties(&mut self) -> Result<BTreeMap<String, String>, Refusal> {
        let mut all = BTreeMap::new();
        for (line, value) in self.take("properties") {
            properties::decode_into(&mut all, &value).map_err(|error| bad(line, format!("`properties`: {error}")))?;
        }
        Ok(all)
    }

    fn list<T>(&mut self, name: &str, parse: fn(&str) -> Result<T, String>) -> Result<Vec<T>, Refusal> {
        let mut items = Vec::new();
        for (line, value) in self.take(name) {
            for item in value.split(',').map(|item| item.trim_matches(' ')) {
                items.push(parse(item).map_err(|error| bad(line, format!("`{name}`: {error}")))?);
            }
        }
        Ok(items)
    }
}

fn parse_request_line(line: &str) -> Result<(Verb, &str), Refusal> {
    let mut words = line.split(' ');
    let (Some(verb), Some(subject), Some(version), None) = (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(bad(1, format!("`{}` is not a request line such as `PROBE * NETSERV/1`", shown(line))));
    };
    if version != "NETSERV/1" {
        return Err(bad(1, format!("`{}`: only NETSERV/1 is understood", shown(version))));
    }
    let verb = Verb::from_word(verb).ok_or_else(|| bad(1, format!("`{}` is not understood", shown(line))))?;
    Ok((verb, subject))
}

fn canonical(lines: &Lines) -> String {
    let mut text = format!("{}\n", lines.first);
    for header in lines.headers.iter().filter(|header| header.name != "signature") {
        writeln!(text, "{}: {}", header.name, header.value.trim_matches(' ')).expect("writing to a String cannot fail");
    }
    text
}

fn missing(verb: Verb, name: &str) -> Refusal {
    bad(0, format!("the {verb} has no `{name}` header"))
}

fn parse_dependency(text: &str) -> Result<Dependency, String> {
    text.parse().map_err(|error: ParseIdError| error.to_string())
}

fn parse_floating(text: &str) -> Result<IpAddr, String> {
    let address = text.parse().ok().filter(|address| is_container_address(*address));
    address.ok_or_else(|| format!("`{}` is no address that a module can have", shown(text)))
}

fn parse_ask(text: &str) -> Result<Ask, String> {
    Ask::from_word(text)
        .ok_or_else(|| format!("`{}` is not one of {}", shown(text), Ask::ALL.map(Ask::as_str).join(", ")))
}
