// SPDX-License-Identifier: Apache-2.0
//! Decisions of a node, as its audit log keeps them.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::AUDIT_DETAIL_BYTES_MAX;
use crate::request::{Body, Outcome, Request, Verb};
use crate::text::one_line;
use crate::{Digest, ModuleRef, NodeId, PublicKey, SessionId, UnixTime, UserId};

/// What a request asks, and of whom it says that it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// What it asks for.
    pub verb: Verb,
    /// Who asks, as the request says.
    pub user: Option<UserId>,
    /// Its session.
    pub session: SessionId,
    /// The module that it is about; of a SETUP with its version.
    pub module: Option<String>,
    /// The package that a SETUP asks for.
    pub package: Option<Digest>,
    /// The peer that it came from; nothing if a client of this node sent it.
    pub from: Option<IpAddr>,
    /// Whether it only wants to know what would happen.
    pub dry_run: bool,
}

impl Asked {
    /// Returns what is said of a request.
    pub fn of(request: &Request) -> Asked {
        let (module, package) = match &request.body {
            Body::Setup(setup) => (Some(setup.module.to_string()), Some(setup.digest)),
            Body::Remove(remove) => (Some(remove.module.to_string()), None),
            Body::Tell(tell) => (Some(tell.module.to_string()), None),
            Body::Export(export) => (Some(export.module.to_string()), None),
            Body::Probe(_) => (None, None),
        };
        let Request { user, session, from, dry_run, body, .. } = request;
        let (user, session, from, dry_run) = (user.clone(), *session, *from, *dry_run);
        Asked { verb: body.verb(), user, session, module, package, from, dry_run }
    }
}

/// By what a node knows that a request is of the user whom it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proven {
    /// The key that signed it; nothing if the operator takes it unsigned.
    pub key: Option<PublicKey>,
    /// What the user's rights come from, in words.
    pub evidence: String,
    /// Whether the configuration does not name the user.
    pub is_stranger: bool,
}

/// A decision, or something that happened to the audit log itself. Fields that do not apply are missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditEntry {
    /// When it was decided, in UTC (RFC 3339).
    #[serde(with = "rfc3339")]
    #[schemars(with = "String")]
    pub time: UnixTime,
    /// The node.
    pub node: NodeId,
    /// What was asked: a request's verb (`SETUP`, `REMOVE`, `TELL`, `EXPORT`, `PROBE`), or the operator's `RELOAD`, `DRAIN`, `UNDRAIN` and
    /// `TRACE`.
    /// What was not asked: `REVOKE` if rights ended, `EXPIRE` if a lease did, `RESUME` if rights came back, `FORGET` of a user without rights, `START` of the node, and
    /// `AUDIT` about this log.
    pub verb: String,
    /// What came of it: the word of an outcome, such as `installed`, or `refused`, `revoked`, `removed`, `done`, `failed`. Of `AUDIT`: `damaged`, `lost` or
    /// `left-out`.
    pub outcome: String,
    /// The kind of a refusal, and the cause in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// Who asked, as the request says, or whose rights or lease ended. The request is proven to be of the user's if there is `evidence`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<UserId>,
    /// The key that signed the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<PublicKey>,
    /// What the user's rights come from: `configured`, `grant of ISSUER sha256:…`, `address ADDRESS`; with `, unsigned` if the operator takes the
    /// request of anybody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// The module.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// The package that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<Digest>,
    /// The session of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The address of the peer that the request came from, or `local` for a client of this node. A reload, drain or
    /// trace has the caller's user and process, too: `local uid 1000 pid 7321`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// How many lines an `AUDIT` speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// SHA-256 of what lies damaged between the last good line and this one, each line of it with its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damaged: Option<Digest>,
}

impl AuditEntry {
    /// Returns one with what every entry has.
    pub fn new(time: UnixTime, node: NodeId, verb: &str, outcome: &str, detail: &str) -> AuditEntry {
        AuditEntry {
            time,
            node,
            verb: verb.to_owned(),
            outcome: outcome.to_owned(),
            detail: bounded(detail),
            user: None,
            key: None,
            evidence: None,
            module: None,
            package: None,
            session: None,
            from: None,
            count: None,
            damaged: None,
        }
    }

    /// Returns that of an answer, if the answer is a decision: something was changed, or refused.
    pub fn of_answer(
        time: UnixTime,
        node: NodeId,
        asked: Asked,
        proven: Option<Proven>,
        outcome: &Outcome,
    ) -> Option<AuditEntry> {
        let detail = match outcome {
            Outcome::Refused(refusal) => refusal.to_string(),
            Outcome::Exported { .. } => outcome.to_string(),
            Outcome::Installed { lease_s } | Outcome::Refreshed { lease_s } | Outcome::Replaced { lease_s } => {
                format!("for {lease_s} s")
            }
            Outcome::Removed | Outcome::Told => String::new(),
            Outcome::Probed | Outcome::WouldDo { .. } | Outcome::NotTargeted { .. } => return None,
        };
        let Asked { verb, user, session, module, package, from, dry_run: _ } = asked;
        let evidence = proven.as_ref().map(|Proven { key, evidence, .. }| match key {
            Some(_) => bounded(evidence),
            None => bounded(&format!("{evidence}, unsigned")),
        });
        let key = proven.and_then(|proven| proven.key);
        Some(AuditEntry {
            user,
            key,
            evidence,
            module: module.as_deref().map(bounded),
            package,
            session: Some(session),
            from: Some(from.map_or_else(|| LOCAL.to_owned(), |from| from.to_string())),
            ..AuditEntry::new(time, node, verb.as_str(), outcome.word(), &detail)
        })
    }

    /// Returns one about a user whose rights, module or place ended without a request.
    pub fn of_end(self, user: UserId, module: Option<&ModuleRef>, evidence: Option<&str>) -> AuditEntry {
        let (evidence, module) = (evidence.map(bounded), module.map(|module| bounded(&module.to_string())));
        AuditEntry { user: Some(user), evidence, module, ..self }
    }
}

/// Where requests of this node's own clients come from.
pub const LOCAL: &str = "local";

/// One line of the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditLine {
    /// Its number; the first has 1.
    pub line: u64,
    /// What it says.
    #[serde(flatten)]
    pub entry: AuditEntry,
    /// SHA-256 of the line before, without its end of line; zeros in the first line.
    pub before: Digest,
}

/// `GET /v1/audit/verify`: whether the audit log is whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditReport {
    /// Lines that are there.
    pub lines: u64,
    /// The number of the first; greater than 1 if older ones were deleted, which nothing can check.
    pub first: Option<u64>,
    /// The number of the last that fits to all before it.
    pub last: Option<u64>,
    /// The digest of that line. Note it elsewhere: nothing else tells later that lines after it were cut off.
    pub newest: Option<Digest>,
    /// Damaged places that the line after says of, as after a crash.
    pub damaged: u64,
    /// Lines that could not be written, by what the log says.
    pub lost: u64,
    /// Lines that were left out of a flood, by what the log says.
    pub left_out: u64,
    /// Where the chain breaks, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<AuditFault>,
}

/// The first place at which an audit log is not what was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditFault {
    /// The number of the line, or the one that should be there.
    pub line: u64,
    /// What is wrong.
    pub why: String,
}

/// Returns a text as one line, cut to its bound.
fn bounded(text: &str) -> String {
    let mut line = one_line(text);
    let end = (0..=AUDIT_DETAIL_BYTES_MAX.min(line.len())).rev().find(|at| line.is_char_boundary(*at));
    line.truncate(end.unwrap_or_default());
    line
}

mod rfc3339 {
    use serde::{Deserialize, Deserializer, Serializer, de};

    use crate::UnixTime;

    pub(super) fn serialize<S: Serializer>(time: &UnixTime, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(time)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<UnixTime, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Refusal, RefusalKind};

    fn asked() -> Asked {
        let (user, session) = (Some("jane".parse().unwrap()), SessionId([1; 16]));
        let module = Some("example.org/m@1.0.0".to_owned());
        Asked { verb: Verb::Setup, user, session, module, package: None, from: None, dry_run: false }
    }

    fn of(outcome: &Outcome) -> Option<AuditEntry> {
        AuditEntry::of_answer(UnixTime(1), "n1".parse().unwrap(), asked(), None, outcome)
    }

    #[test]
    fn answers_that_decide_nothing_are_no_entries() {
        let passed = Outcome::NotTargeted { reason: String::new() };
        for outcome in [Outcome::Probed, Outcome::WouldDo { action: "install".into() }, passed] {
            assert_eq!(of(&outcome), None);
        }
        let entry = of(&Outcome::Installed { lease_s: 60 }).unwrap();
        assert_eq!(
            (entry.verb.as_str(), entry.outcome.as_str(), entry.detail.as_str()),
            ("SETUP", "installed", "for 60 s")
        );
        assert_eq!(entry.from.as_deref(), Some("local"));
        let proven = Proven { key: None, evidence: "configured".into(), is_stranger: false };
        let entry = AuditEntry::of_answer(UnixTime(1), entry.node, asked(), Some(proven), &Outcome::Removed).unwrap();
        assert_eq!(entry.evidence.as_deref(), Some("configured, unsigned"));
    }

    #[test]
    fn text_of_others_is_one_line_of_audit_detail_bytes_max() {
        let refused = of(&Refusal::new(RefusalKind::BadProof, "a\n\u{1b}[2Jb").into()).unwrap();
        assert_eq!(refused.detail, "bad-proof: a \\u{1b}[2Jb");
        assert_eq!(bounded(&"x".repeat(9 * AUDIT_DETAIL_BYTES_MAX)).len(), AUDIT_DETAIL_BYTES_MAX);
        let cut = bounded(&"ü".repeat(AUDIT_DETAIL_BYTES_MAX));
        assert!(cut.len() >= AUDIT_DETAIL_BYTES_MAX - 1 && cut.ends_with('ü'));
    }
}
