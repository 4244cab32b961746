// SPDX-License-Identifier: Apache-2.0
//! Writing requests.

use std::fmt::{Display, Write};
use std::net::IpAddr;
use std::time::Duration;

use netserv_model::control::{ControlMessage, encode_body};
use netserv_model::evidence::{AddressProof, Checklist};
use netserv_model::limits::HEADER_LINE_BYTES_MAX;
use netserv_model::off_path::OffPath;
use netserv_model::request::{Ask, Dependency, StateSource, Verb};
use netserv_model::target::{Bound, Destinations, Scope, Target};
use netserv_model::{
    Digest, Filter, ModuleName, ModuleRef, NodeId, Nonce, Refusal, Signature, UnixTime, UserId, WantedFilter,
};

use super::message::Message;
use super::properties;

/// Collects what a request says; [`RequestBuilder::build`] makes the text.
#[derive(Clone, Debug)]
pub struct RequestBuilder {
    request_line: String,
    user: Option<UserId>,
    headers: Vec<(String, String)>,
    properties: Vec<(String, String)>,
}

impl RequestBuilder {
    /// Starts a SETUP: install, refresh or replace a module.
    pub fn setup(module: &ModuleRef, url: &str, digest: Digest, ttl: Duration) -> RequestBuilder {
        let builder = RequestBuilder::new(Verb::Setup, module);
        let builder = builder.header("url", url).header("digest", &digest.to_string());
        builder.header("ttl", &ttl.as_secs().to_string())
    }

    /// Starts a REMOVE: take a module away, whatever its version.
    pub fn remove(module: &ModuleName) -> RequestBuilder {
        RequestBuilder::new(Verb::Remove, module)
    }

    /// Has a REMOVE end the module's intercepted connections, whatever its manifest says of them.
    #[must_use]
    pub fn force(self) -> RequestBuilder {
        self.header("force", "true")
    }

    /// Has a REMOVE take the module from every session that holds it, and not from its own only.
    #[must_use]
    pub fn all(self) -> RequestBuilder {
        self.header("all", "true")
    }

    /// Starts a TELL: hand a message to a running module.
    pub fn tell(module: &ModuleName, message: &ControlMessage) -> RequestBuilder {
        let ControlMessage { topic, seq, body } = message;
        let builder = RequestBuilder::new(Verb::Tell, module);
        let builder = builder.header("topic", topic.as_str()).header("seq", &seq.to_string());
        builder.header("body", &encode_body(body))
    }

    /// Starts an EXPORT: put the state of a running module somewhere.
    pub fn export(module: &ModuleName, url: &str) -> RequestBuilder {
        RequestBuilder::new(Verb::Export, module).header("url", url)
    }

    /// Has the module of an EXPORT stand still for so many seconds, from just before its state is asked for.
    #[must_use]
    pub fn freeze(self, seconds: u64) -> RequestBuilder {
        self.header("freeze", &seconds.to_string())
    }

    /// Starts a PROBE; asking for nothing means `nodes`.
    pub fn probe(ask: &[Ask]) -> RequestBuilder {
        let builder = RequestBuilder::new(Verb::Probe, "*");
        let words: Vec<&str> = ask.iter().map(|ask| ask.as_str()).collect();
        if words.is_empty() { builder } else { builder.header("ask", &words.join(", ")) }
    }

    /// Says who asks.
    #[must_use]
    pub fn user(mut self, user: &UserId) -> RequestBuilder {
        self.user = Some(user.clone());
        self
    }

    /// Adds the grants that say what the user may do, the issuer's first.
    #[must_use]
    pub fn grants(self, grants: &[String]) -> RequestBuilder {
        grants.iter().fold(self, |builder, grant| builder.header("grant", grant))
    }

    /// Adds what makes an address vouch for the user.
    #[must_use]
    pub fn address_proof(self, proof: Option<AddressProof>) -> RequestBuilder {
        proof.iter().fold(self, |builder, proof| builder.header("address-proof", &proof.to_string()))
    }

    /// Adds what says that the holder of the first grant's prefixes made it.
    #[must_use]
    pub fn checklist(self, checklist: Option<&Checklist>) -> RequestBuilder {
        checklist.iter().fold(self, |builder, checklist| builder.header("checklist", &checklist.to_string()))
    }

    /// Adds a filter.
    #[must_use]
    pub fn filter(self, filter: &WantedFilter) -> RequestBuilder {
        self.header("filter", &filter.to_string())
    }

    /// Adds connections between others that the module takes over.
    #[must_use]
    pub fn intercept(self, filter: &Filter) -> RequestBuilder {
        self.header("intercept", &filter.to_string())
    }

    /// Adds a property.
    #[must_use]
    pub fn property(mut self, key: &str, value: &str) -> RequestBuilder {
        self.properties.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Adds a building block that the module needs.
    #[must_use]
    pub fn dependency(self, dependency: &Dependency) -> RequestBuilder {
        self.header("dependencies", &dependency.to_string())
    }

    /// Says which of its owners in turn the node is to be, or, in a REMOVE, that another one is.
    #[must_use]
    pub fn epoch(self, epoch: u64) -> RequestBuilder {
        self.header("epoch", &epoch.to_string())
    }

    /// Adds the state that the module begins with; it takes an epoch, too.
    #[must_use]
    pub fn state(self, state: &StateSource) -> RequestBuilder {
        self.header("state", &state.url).header("state-digest", &state.digest.to_string())
    }

    /// Names addresses that lead to the module wherever it is; they take an epoch and the name of one node, too.
    #[must_use]
    pub fn floating(self, addresses: &[IpAddr]) -> RequestBuilder {
        let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        if addresses.is_empty() { self } else { self.header("floating", &addresses.join(", ")) }
    }

    /// Asks only what would happen.
    #[must_use]
    pub fn dry_run(self) -> RequestBuilder {
        self.header("dry-run", "true")
    }

    /// Asks what would happen, and has all made ready that takes time.
    #[must_use]
    pub fn prepare(self) -> RequestBuilder {
        self.dry_run().header("prepare", "true")
    }

    /// Has packets wait for a module that is made ready or stands still; the other node of the two has this address.
    #[must_use]
    pub fn buffer(self, other: IpAddr) -> RequestBuilder {
        self.header("buffer", &other.to_string())
    }

    /// Says which nodes it is for; without a word, it is for all of them.
    #[must_use]
    pub fn target(mut self, target: &Target) -> RequestBuilder {
        if target.scope != Scope::All {
            self = self.header("scope", target.scope.as_str());
        }
        // Below a header line's bound, however long the names are.
        for nodes in target.nodes.chunks(16) {
            let names: Vec<&str> = nodes.iter().map(NodeId::as_str).collect();
            self = self.header("node-id", &names.join(", "));
        }
        let domains = target.domains.iter().cloned().map(Bound::Domain);
        let builder = domains.fold(self, |builder, domain| builder.bound(&domain));
        let conditions: Vec<String> = target.require.iter().map(ToString::to_string).collect();
        if conditions.is_empty() { builder } else { builder.header("require", &conditions.join(", ")) }
    }

    /// Says where the flow leads that it may follow; without a word, anywhere.
    #[must_use]
    pub fn along(self, destinations: &Destinations) -> RequestBuilder {
        destinations.0.iter().copied().map(Bound::To).fold(self, |builder, to| builder.bound(&to))
    }

    /// Has the last node send it back to the requester, by a flow of its own.
    #[must_use]
    pub fn and_return(self) -> RequestBuilder {
        self.header("trigger", "return")
    }

    /// Has the last node send it back, and the nodes on that way alone do what it asks.
    #[must_use]
    pub fn return_only(self) -> RequestBuilder {
        self.header("trigger", "return-only")
    }

    /// Returns whether the last node is to send it back.
    pub fn comes_back(&self) -> bool {
        self.headers.iter().any(|(name, _)| name == "trigger")
    }

    /// Has nodes beside the path asked, too.
    #[must_use]
    pub fn off_path(self, off_path: OffPath) -> RequestBuilder {
        self.header("off-path", &off_path.to_string())
    }

    /// Adds any header; nodes keep and forward those that they do not know.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> RequestBuilder {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Makes the text. `created` is cut to whole seconds.
    ///
    /// # Errors
    /// What a node would refuse as a bad request is refused here, with the line.
    pub fn build(self, created: UnixTime, nonce: Nonce) -> Result<Unsigned, Refusal> {
        let mut text = format!("{}\n", self.request_line);
        let mut line = |name: &str, value: &str| {
            writeln!(text, "{name}: {value}").expect("writing to a String cannot fail");
        };
        if let Some(user) = &self.user {
            line("user", user.as_str());
        }
        self.headers.iter().for_each(|(name, value)| line(name, value));
        self.property_lines().iter().for_each(|value| line("properties", value));
        line("created", &created.to_string());
        line("nonce", &nonce.to_string());
        text.push('\n');
        Ok(Unsigned { message: Message::parse(text.as_bytes())? })
    }

    fn bound(self, bound: &Bound) -> RequestBuilder {
        self.header("for", &bound.to_string())
    }

    fn new(verb: Verb, subject: impl Display) -> RequestBuilder {
        let request_line = format!("{verb} {subject} NETSERV/1");
        RequestBuilder { request_line, user: None, headers: Vec::new(), properties: Vec::new() }
    }

    /// As many properties to a line as fit.
    fn property_lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for (key, value) in &self.properties {
            let mut item = String::new();
            properties::encode_one(&mut item, key, value);
            let room = HEADER_LINE_BYTES_MAX - "properties: ,".len();
            match lines.last_mut() {
                Some(line) if line.len() + item.len() <= room => {
                    line.push(',');
                    line.push_str(&item);
                }
                Some(_) | None => lines.push(item),
            }
        }
        lines
    }
}

/// A complete request that nobody signed yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsigned {
    message: Message,
}

impl Unsigned {
    /// Returns what to sign.
    pub fn canonical_bytes(&self) -> &[u8] {
        self.message.canonical().as_bytes()
    }

    /// Adds the signature over [`Unsigned::canonical_bytes`].
    ///
    /// # Errors
    /// A request that is as long as it may be without the signature has no room for it.
    pub fn with_signature(self, signature: Signature) -> Result<Message, Refusal> {
        let text = self.message.as_str();
        let text = text.strip_suffix('\n').unwrap_or(text);
        Message::parse(format!("{text}signature: {signature}\n\n").as_bytes())
    }

    /// Returns the request without a signature, as nodes take it from nobody but for tests and open probes.
    pub fn into_message(self) -> Message {
        self.message
    }
}
