// SPDX-License-Identifier: Apache-2.0
//! Refusals: why a node did not do what a request asked, with a cause and a fix for the requester.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::{CONTEXT_BYTES_MAX, CONTEXT_LINE_BYTES_MAX, CONTEXT_LINES_MAX};
use crate::text::one_line;

words! {
    serde
    /// Why a node refused, as a word that programs can test for.
    pub enum RefusalKind {
        /// The message is not a NetServ request.
        BadRequest = "bad-request" => "send a request made by this version of `netserv`",
        /// No signature, and the node wants one.
        Unsigned = "unsigned" => "sign the request: `netserv setup --key FILE`",
        /// The node knows no such user.
        UnknownUser = "unknown-user" =>
            "name yourself as the operator does (`--user`), or ask the operator to add you and your public key",
        /// What should prove the user's rights does not, or does not any more.
        BadProof = "bad-proof" =>
            "see the cause; `netserv grant verify` shows whether the grants themselves hold",
        /// The signature does not fit the message and any of the user's keys.
        BadSignature = "bad-signature" => "sign with the key whose public half the operator has (`netserv key show`)",
        /// `created` is too far from the node's clock.
        StaleRequest = "stale-request" => "set both clocks (NTP), then send a new request",
        /// The user sent this nonce before.
        Replayed = "replayed" => "send a new request; each nonce works once",
        /// A filter reaches beyond the user's prefixes, or a grant beyond those that may be given.
        PrefixNotAllowed = "prefix-not-allowed" =>
            "narrow the filter to a prefix of yours, or ask for the prefix: the operator, or who the cause names",
        /// A filter reaches beyond the user's ports.
        PortNotAllowed = "port-not-allowed" =>
            "narrow the filter's ports, or ask for them: the operator, or who the cause names",
        /// The module wants to take connections that the operator does not grant its user.
        NotPermitted = "not-permitted" => "narrow `server.listen` in netserv.toml, or ask the operator to add the port",
        /// Another module of the user's takes connections at the port, or intercepts them.
        PortTaken = "port-taken" => "take another port in netserv.toml, or remove the other module first",
        /// A floating address leads to another module, or is that of a container or of the node.
        AddressTaken = "address-taken" =>
            "take another address, or a later epoch if it leads to a module of yours (`netserv probe --ask modules`)",
        /// A part of a service is not installed, or not in a version that will do.
        MissingPart = "missing-part" =>
            "send SETUPs for the service's parts first, in versions that its `[service] chain` takes",
        /// The parts of a service do not fit each other.
        BadService = "bad-service" => "correct `[service] chain` in netserv.toml",
        /// The module is a server, and containers on the node have no network.
        NoNetwork = "no-network" => "send the SETUP to a node whose containers have a network, or ask its operator",
        /// A bound of the user's or the node's is reached.
        QuotaExceeded = "quota-exceeded" => "remove a module, or ask the operator for more",
        /// The lease asked for is too short or too long.
        BadTtl = "bad-ttl" => "ask for a lease that the node grants (`netserv probe --ask policy`)",
        /// The node has not the building blocks that the module needs.
        MissingDependency = "missing-dependency" =>
            "put it into the module, or send the SETUP to nodes that have it (`netserv probe --ask blocks`)",
        /// The URL is not of a kind that the node fetches, or of a host that it does not ask.
        BadUrl = "bad-url" => "use an https, http or file URL that the operator allows",
        /// The download failed or took too long.
        FetchFailed = "fetch-failed" => "check what the cause names, and that the node can reach it",
        /// The package is larger than the node takes.
        PackageTooLarge = "package-too-large" => "make the package smaller, or ask the operator for a higher limit",
        /// The package is not an OCI image layout with a NetServ manifest.
        BadPackage = "bad-package" => "build it with `netserv module build`",
        /// The package's manifest has another digest than the request says.
        DigestMismatch = "digest-mismatch" =>
            "take the digest from `netserv module inspect`, and check what the URL serves",
        /// The package is not signed by one of the user's keys.
        ModuleUnsigned = "module-unsigned" => "sign the package: `netserv module sign`",
        /// The package's manifest is not understood.
        BadManifest = "bad-manifest" => "check netserv.toml with `netserv module build`",
        /// The package's manifest requires a feature, or is of a version, that the node does not know.
        MissingFeature = "missing-feature" =>
            "update NetServ there (of nodes, ask the operator), or build the package without what is named",
        /// The package has no flavour that the node runs.
        NoFlavour = "no-flavour" => "add a flavour that the node runs (`netserv probe --ask blocks`)",
        /// The code is not a WebAssembly module that the node can compile, or not an OSGi bundle that it can install.
        BadCode = "bad-code" => "check the package with `netserv module test`",
        /// The module was built for another packet ABI.
        AbiMismatch = "abi-mismatch" => "rebuild the module with the SDK of the node's version",
        /// The module wants more memory than it may have.
        MemoryLimit = "memory-limit" =>
            "lower the module's memory, or raise `limits.memory-bytes` in netserv.toml and at the operator",
        /// The module trapped while it started.
        Trapped = "trapped" => "find the trap with `netserv module test`",
        /// The module did not come to an end in time.
        Stalled = "stalled" => "find the endless loop with `netserv module test`",
        /// The compiler used up what it may take for one module.
        CompileLimit = "compile-limit" =>
            "make the code smaller, or ask the operator for a higher `fetch.compile-cpu-s`",
        /// The request is accepted, and its package still being fetched and compiled, which goes on.
        InProgress = "in-progress" => "send the request again in a while: it finds what is there by then",
        /// The module failed too often, or took too long to compile, and is kept out for a while.
        Quarantined = "quarantined" => "mend the module and send a SETUP with the new digest",
        /// No such module is installed for this user.
        NotInstalled = "not-installed" => "see what is installed with `netserv probe --ask modules`",
        /// The module is installed and does not run.
        NotRunning = "not-running" => "try again once `netserv probe --ask modules` shows that it runs",
        /// The running module takes no control messages.
        NoInbox = "no-inbox" =>
            "build the module with an inbox: `netserv:control/inbox`, `netserv_control`, or `org.netserv.block.Control`",
        /// As many control messages as may wait for the module do, and it does not take them.
        InboxFull = "inbox-full" => "have the module take its messages, then send this one again",
        /// A control message with this sequence number, or with a later one, was taken before.
        OldSequence = "old-sequence" => "number it above the last one, or leave `--seq` to `netserv tell`",
        /// There were too many of them within a second.
        RateLimited = "rate-limited" => "send fewer in a second, or put several into one",
        /// A request with a later epoch was taken, so another node may have the module.
        OldEpoch = "old-epoch" =>
            "find out which node has the module, and count on from its epoch, or take `--epoch now`",
        /// The module's state cannot be had of it, or the module does not take the one that it should begin
        /// with.
        StateRefused = "state-refused" => "look at the state with `netserv state show`, and at the module's log",
        /// The node could not make a container or a filter rule.
        NodeFailed = "node-failed" => "ask the node's operator to look at its log",
        /// The node's role is `host`: it sends requests and runs no modules.
        NotANode = "not-a-node" => "send the request to a path with a NetServ node on it",
        /// The operator drains the node: what it has goes on until it is moved or its lease ends, and nothing new is taken.
        Maintenance = "maintenance" => "take another node (`netserv candidates`), or wait until the operator is done",
        /// The request's user named another path than it follows, or did not name what the operator wants named.
        NotForThisNode = "not-for-this-node" =>
            "send a new request along the path that it names (`--to`, `--for-path`); a copy of another one is not taken",
        /// The request comes from outside of the node's domain, or would leave it, and the operator does not want that.
        OutsideDomain = "outside-domain" =>
            "send the request from inside of the domain, or ask its operator to let it pass (`signaling.domain`)",
        /// No NetServ node answered on the path.
        NoNode = "no-node" => "check the path and that nodes run: `netserv path`",
        /// A node further on did not answer in time.
        Timeout = "timeout" => "try again; if it stays, look where the stack ends with `netserv path`",
    }
    /// Returns what the requester can do about it, in one line.
    fn fix
}

/// One refusal: its kind and what exactly was wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{kind}: {detail}")]
pub struct Refusal {
    /// The kind, for programs.
    pub kind: RefusalKind,
    /// The cause in one line, for people; at most 400 characters.
    pub detail: String,
    /// What more is known of a module's failure, at most 1 KiB: the last lines that it wrote, then each function that it
    /// was in, the innermost of its own first, as `in NAME`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<String>,
}

impl Refusal {
    /// Builds a refusal; the detail becomes one line ([`one_line`]) of at most 400 characters.
    pub fn new(kind: RefusalKind, detail: impl AsRef<str>) -> Refusal {
        let detail = one_line(detail.as_ref()).chars().take(400).collect();
        Refusal { kind, detail, context: Vec::new() }
    }

    /// Adds lines of context. Each becomes one line of at most [`CONTEXT_LINE_BYTES_MAX`] bytes; of more than
    /// [`CONTEXT_LINES_MAX`] lines, or [`CONTEXT_BYTES_MAX`] bytes, the last are left out.
    #[must_use]
    pub fn with_context<T: AsRef<str>>(mut self, lines: impl IntoIterator<Item = T>) -> Refusal {
        let mut bytes: usize = self.context.iter().map(String::len).sum();
        for line in lines {
            let mut line = one_line(line.as_ref());
            line.truncate(line.floor_char_boundary(CONTEXT_LINE_BYTES_MAX));
            bytes += line.len();
            if self.context.len() >= CONTEXT_LINES_MAX || bytes > CONTEXT_BYTES_MAX {
                break;
            }
            self.context.push(line);
        }
        self
    }

    /// Returns all of it in one line, for a log.
    #[must_use]
    pub fn in_full(&self) -> String {
        std::iter::once(self.to_string()).chain(self.context.iter().cloned()).collect::<Vec<_>>().join("; ")
    }

    /// Returns the refusal with every text inside its bounds, for one that came from outside.
    #[must_use]
    pub fn clean(self) -> Refusal {
        Refusal::new(self.kind, self.detail).with_context(self.context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_is_bounded_and_steers_no_terminal() {
        let refusal = || Refusal::new(RefusalKind::Trapped, "x");
        let context = refusal().with_context(["a\nb", "\u{1b}[2J", &"ü".repeat(1000)]).context;
        assert_eq!(context[..2], ["a b", r"\u{1b}[2J"]);
        assert_eq!(context[2].len(), CONTEXT_LINE_BYTES_MAX);
        assert_eq!(refusal().with_context(vec!["a"; 1000]).context.len(), CONTEXT_LINES_MAX);
        let long = refusal().with_context(vec!["x".repeat(1000); 1000]).with_context(["y".repeat(1000)]);
        assert_eq!(long.context.iter().map(String::len).sum::<usize>(), CONTEXT_BYTES_MAX);
        assert_eq!(long.clone().clean(), long);
        assert_eq!(refusal().with_context(["in a", "in b"]).in_full(), "trapped: x; in a; in b");
    }

    #[test]
    fn a_refusal_without_context_is_written_as_before_there_was_any() {
        let json = r#"{"kind":"trapped","detail":"x"}"#;
        let refusal: Refusal = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&refusal).unwrap(), json);
    }
}
